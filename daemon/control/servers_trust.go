package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/printable"
)

// ListUntrusted returns the tools of a server whose definitions need an admin's acceptance.
func (s *Servers) ListUntrusted(ctx context.Context, by store.Caller, req api.ListUntrustedRequest) (none api.List[api.TrustView], err error) {
	if req.Name == policy.NativeServer {
		out, err := s.Extensions.Untrusted(req.Tool)
		return api.Items(out), err
	}
	if _, err := s.Find(ctx, by, req.Name); err != nil {
		return none, err
	}
	tools, err := s.Store.ListTools(ctx, req.Name)
	if err != nil {
		return none, fmt.Errorf("listing tools of %s: %w", req.Name, err)
	}
	var out []api.TrustView
	var names []string
	found := req.Tool == ""
	for _, t := range tools {
		names = append(names, t.Name)
		found = found || t.Name == req.Tool
		if req.Tool != "" && t.Name != req.Tool || t.State == store.ToolAccepted {
			continue
		}
		out = append(out, api.TrustView{Tool: t.ID(), State: t.State, Pin: t.Pin, Accepted: t.Accepted, Findings: t.Findings, Description: t.Description, Changes: trustChanges(t), ViewSends: view.Of(t.Meta).Sends()})
	}
	if !found {
		return none, store.Unknown("tool", req.Tool, names)
	}
	return api.Items(out), nil
}

// trustChanges returns the parts of a definition that differ from the accepted one. Launch
// and instructions are not compared if an older version, which did not store them, accepted
// the tool.
func trustChanges(t store.Tool) (changes []api.TrustChange) {
	was := t.Was
	if was == nil {
		return nil
	}
	add := func(part, old, now string) {
		if old != now {
			changes = append(changes, api.TrustChange{Part: part, Old: old, New: now})
		}
	}
	document := func(raw json.RawMessage) string {
		if len(raw) == 0 {
			return ""
		}
		if canonical, err := store.Canonical(raw); err == nil { // ignore the order of keys
			raw = canonical
		}
		text, _ := printable.PrettyJSON(raw)
		return text
	}
	if was.Around != (store.Around{}) {
		add("command", was.Launch, t.Around.Launch)
		add("instructions", was.Instructions, t.Around.Instructions)
	}
	add("title", was.Title, t.Title)
	add("description", was.Description, t.Description)
	add("input schema", document(was.InputSchema), document(t.InputSchema))
	add("output schema", document(was.OutputSchema), document(t.OutputSchema))
	add("annotations", annotationsText(was.Annotations), annotationsText(t.Annotations))
	add("metadata", document(was.Meta), document(t.Meta))
	add("icons", document(was.Icons), document(t.Icons))
	return changes
}

// annotationsText returns a server's claims about a tool, as the server makes them.
func annotationsText(a store.Annotations) string {
	raw, err := json.MarshalIndent(a, "", "  ")
	if err != nil || string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

// Trust accepts definitions that an admin has reviewed.
func (s *Servers) Trust(ctx context.Context, by store.Caller, req api.TrustToolsRequest) (none api.List[api.ToolView], err error) {
	if req.Name == policy.NativeServer {
		var out []api.ToolView
		for _, t := range req.Tools {
			name := strings.TrimPrefix(t.Tool, policy.NativeServer+":")
			if err := s.Extensions.Trust(ctx, by, name, t.Pin); err != nil {
				return none, err
			}
			out = append(out, api.ToolView{ID: policy.NativeServer + ":" + name, Name: name, State: store.ToolAccepted})
		}
		return api.Items(out), nil
	}
	if _, err := s.Find(ctx, by, req.Name); err != nil {
		return none, err
	}
	for _, a := range req.Tools {
		t, err := s.Store.GetTool(ctx, a.Tool)
		if err != nil {
			return none, fmt.Errorf("tool %s: %w", a.Tool, err)
		}
		if t.Server != req.Name || t.State == store.ToolRefused {
			return none, store.Mark(fmt.Errorf("%s can't be accepted: %s; only a change at its server can help", a.Tool, strings.Join(t.Findings, "; ")), store.ErrRefused)
		}
	}
	for _, a := range req.Tools {
		if err := s.Store.AcceptTool(ctx, by, a.Tool, a.Pin); err != nil {
			return none, fmt.Errorf("accepting %s: %w", a.Tool, err)
		}
	}
	if _, err := s.Pool.Sync(ctx, store.System, req.Name); err != nil {
		s.Log.Warn("listing after a trust", "server", req.Name, "err", err)
	}
	if err := s.Gateway.Catalog.Refresh(ctx, req.Name); err != nil {
		return none, err
	}
	view, err := s.reread(ctx, req.Name)
	return api.Items(view.Tools), err
}
