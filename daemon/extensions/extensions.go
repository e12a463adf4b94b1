// Package extensions adds extensions to the operations on servers.
//
// They appear as a server named native in admins' lists, and admins accept its tools.
package extensions

import (
	"context"
	"strings"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/imports"
	"nize/daemon/mux"
	"nize/mcp/extension"
	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/store"
)

// Extensions implements the operations on servers, including native.
type Extensions struct {
	*control.Servers
	Loader   *extension.Loader
	Registry *native.Registry
	Failed   func() []imports.Failed // entries of the servers file that are not servers
}

// Mount registers the operations.
func (e *Extensions) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListServers, e.List)
	mux.Handle(m, api.ListUntrusted, e.ListUntrusted)
	mux.Handle(m, api.TrustTools, e.Trust)
}

// List returns the servers that the caller may see. For admins it includes native, if there
// are extensions, and the entries of the servers file that are not servers.
func (e *Extensions) List(ctx context.Context, by store.Caller, req api.Empty) (api.List[api.ServerView], error) {
	list, err := e.Servers.List(ctx, by, req)
	if err != nil || !by.IsAdmin() {
		return list, err
	}
	for _, f := range e.Failed() {
		record := f.Server
		record.Name, record.Origin = f.Name, store.Origin{File: f.File}
		list.Items = append(list.Items, api.ServerView{Health: api.Health{Name: f.Name, State: api.NotAdded, LastError: f.Why}, Server: record})
	}
	count, problems := e.Loader.Count(), e.Loader.Problems()
	if count+len(problems) == 0 {
		return list, nil
	}
	health := api.Health{Name: policy.NativeServer, State: "ready", ToolCount: e.Registry.Count(), Held: len(e.Loader.Held())}
	if len(problems) > 0 {
		health.LastError = problems[0]
	}
	record := e.Gateway.Catalog.Server(policy.NativeServer)
	return api.Items(append(list.Items, api.ServerView{Health: health, Server: store.Server{Name: record.Name, About: record.About}})), nil
}

// ListUntrusted returns the tools that need an admin's acceptance.
func (e *Extensions) ListUntrusted(ctx context.Context, by store.Caller, req api.ListUntrustedRequest) (none api.List[api.TrustView], err error) {
	if req.Name != policy.NativeServer {
		return e.Servers.ListUntrusted(ctx, by, req)
	}
	if req.Tool != "" {
		if err := e.Registry.CheckPattern(policy.NativeServer + ":" + req.Tool); err != nil {
			return none, err
		}
	}
	var out []api.TrustView
	for _, h := range e.Loader.Held() {
		if req.Tool == "" || req.Tool == h.Name {
			out = append(out, api.TrustView{
				Tool: policy.NativeServer + ":" + h.Name, State: store.ToolQuarantined, Pin: h.Pin, Accepted: h.Accepted,
				Findings: h.Changes, Description: h.Description,
			})
		}
	}
	return api.Items(out), nil
}

// Trust accepts definitions that an admin has reviewed.
func (e *Extensions) Trust(ctx context.Context, by store.Caller, req api.TrustToolsRequest) (none api.List[api.ToolView], err error) {
	if req.Name != policy.NativeServer {
		return e.Servers.Trust(ctx, by, req)
	}
	var out []api.ToolView
	for _, t := range req.Tools {
		name := strings.TrimPrefix(t.Tool, policy.NativeServer+":")
		if err := e.Loader.Trust(ctx, by, name, t.Pin); err != nil {
			return none, err
		}
		out = append(out, api.ToolView{ID: policy.NativeServer + ":" + name, Name: name, State: store.ToolAccepted})
	}
	return api.Items(out), nil
}
