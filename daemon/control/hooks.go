package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/people"
	"nize/mcp"
	"nize/mcp/hook"
	"nize/store"
	"nize/store/hooks"
)

// Hooks are what admins let stand around calls.
type Hooks struct {
	Store     hooks.Store
	Set       *hook.Set
	Servers   *Servers
	Directory *people.Directory
}

// List lists them in the order in which they run before a call.
func (h *Hooks) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[api.Hook], err error) {
	list, err := h.Store.ListHooks(ctx)
	if err != nil {
		return none, fmt.Errorf("listing hooks: %w", err)
	}
	slices.SortFunc(list, hooks.Compare)
	views := make([]api.Hook, len(list))
	for i, one := range list {
		if views[i], err = h.view(ctx, one); err != nil {
			return none, err
		}
	}
	return api.Items(views), nil
}

func (h *Hooks) view(ctx context.Context, one hooks.Hook) (api.Hook, error) {
	v := api.Hook{Hook: one, ScopeName: one.ScopeID}
	if one.Scope == hooks.User || one.Scope == hooks.UserServer {
		names, err := h.Directory.Names(ctx)
		if err != nil {
			return v, err
		}
		id, server, both := strings.Cut(one.ScopeID, "/")
		if n := names[id]; n != "" {
			if v.ScopeName = n; both {
				v.ScopeName += "/" + server
			}
		}
	}
	return v, nil
}

// Get shows one.
func (h *Hooks) Get(ctx context.Context, _ store.Caller, req api.HookRequest) (none api.Hook, err error) {
	one, err := h.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	return h.view(ctx, one)
}

func (h *Hooks) find(ctx context.Context, name string) (hooks.Hook, error) {
	one, err := h.Store.GetHook(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return one, err
	}
	list, err := h.Store.ListHooks(ctx)
	if err != nil {
		return one, fmt.Errorf("listing hooks: %w", err)
	}
	names := make([]string, len(list))
	for i, known := range list {
		names[i] = known.Name
	}
	return one, store.Unknown("hook", name, names)
}

// Add adds one; it is in force when this returns.
func (h *Hooks) Add(ctx context.Context, by store.Caller, req api.AddHookRequest) (none api.Hook, err error) {
	one := hooks.Hook{Name: req.Name, Type: req.Type, Scope: req.Scope, ScopeID: req.ScopeID, Tool: req.Tool, Config: req.Config, Enabled: true, Priority: hooks.DefaultPriority}
	if req.Enabled != nil {
		one.Enabled = *req.Enabled
	}
	if req.Priority != nil {
		one.Priority = *req.Priority
	}
	return h.put(ctx, by, one)
}

// Patch changes what is given of one.
func (h *Hooks) Patch(ctx context.Context, by store.Caller, req api.PatchHookRequest) (none api.Hook, err error) {
	one, err := h.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	if req.Revision != 0 && req.Revision != one.Revision {
		return none, fmt.Errorf("hook %s: %w: revision %d is now %d", one.Name, store.ErrConflict, req.Revision, one.Revision)
	}
	if req.Scope != nil {
		if one.Scope = *req.Scope; req.ScopeID == nil {
			one.ScopeID = ""
		}
	}
	if req.ScopeID != nil {
		one.ScopeID = *req.ScopeID
	}
	if req.Tool != nil {
		one.Tool = *req.Tool
	}
	if req.Config != nil {
		one.Config = req.Config
	}
	if req.Enabled != nil {
		one.Enabled = *req.Enabled
	}
	if req.Priority != nil {
		one.Priority = *req.Priority
	}
	return h.put(ctx, by, one)
}

// put checks a hook and stores it.
func (h *Hooks) put(ctx context.Context, by store.Caller, one hooks.Hook) (none api.Hook, err error) {
	if err := one.Check(); err != nil {
		return none, err
	}
	if one.Type == hooks.Webhook {
		if err := takeSecret(&one); err != nil {
			return none, err
		}
	}
	if one.ScopeID, err = h.scopeID(ctx, by, one.Scope, one.ScopeID); err != nil {
		return none, err
	}
	if err := h.Set.Check(one); err != nil {
		return none, err
	}
	stored, err := h.Store.PutHook(ctx, by, one)
	if errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("hook %s: %w; change it: nizectl hooks edit %s", one.Name, store.ErrExists, one.Name)
	}
	if err != nil {
		return none, err
	}
	if err := h.Set.Reload(context.WithoutCancel(ctx)); err != nil {
		return none, err
	}
	return h.view(ctx, stored)
}

// takeSecret moves the secret of a webhook out of its configuration, which is
// shown.
func takeSecret(one *hooks.Hook) error {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(one.Config, &config); err != nil {
		return fmt.Errorf("%w config: want a JSON object", store.ErrInvalid)
	}
	raw, ok := config["secret"]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, &one.Secret); err != nil {
		return fmt.Errorf("%w config: secret must be a text", store.ErrInvalid)
	}
	delete(config, "secret")
	rest, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the config of hook %s: %w", one.Name, err)
	}
	one.Config = rest
	return nil
}

// scopeID reads what a scope is about as people write it: a person by name.
func (h *Hooks) scopeID(ctx context.Context, by store.Caller, scope hooks.Scope, text string) (string, error) {
	if scope == hooks.Global {
		return "", nil
	}
	user, server, both := strings.Cut(text, "/")
	switch scope {
	case hooks.Server:
		user, server = "", text
	case hooks.UserServer:
		if !both || user == "" || server == "" {
			return "", fmt.Errorf("%w scope_id %q: want USER/SERVER", store.ErrInvalid, text)
		}
	}
	if server != "" && server != "nize" { // of the meta-tools
		if err := h.Servers.Check(ctx, by, server); err != nil {
			return "", err
		}
	}
	if user == "" {
		return server, nil
	}
	u, err := h.Directory.Find(ctx, user)
	if err != nil {
		return "", err
	}
	if scope == hooks.User {
		return u.ID, nil
	}
	return u.ID + "/" + server, nil
}

// Remove removes one.
func (h *Hooks) Remove(ctx context.Context, by store.Caller, req api.HookRequest) (none api.Empty, err error) {
	if _, err := h.find(ctx, req.Name); err != nil {
		return none, err
	}
	if err := h.Store.DeleteHook(ctx, by, req.Name); err != nil {
		return none, err
	}
	return none, h.Set.Reload(context.WithoutCancel(ctx))
}

// Test tries one with a sample call, whether or not it is enabled or would be
// around such a call.
func (h *Hooks) Test(ctx context.Context, by store.Caller, req api.TestHookRequest) (none api.List[api.HookTrial], err error) {
	one, err := h.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	server, name, ok := store.SplitToolID(req.Tool)
	if !ok {
		return none, fmt.Errorf("%w tool %q: want server:tool, or nize:execute_tool and so on", store.ErrInvalid, req.Tool)
	}
	if len(req.Arguments) == 0 {
		req.Arguments = json.RawMessage("{}")
	}
	args, err := store.Canonical(req.Arguments)
	if err != nil {
		return none, fmt.Errorf("arguments: %w", err)
	}
	who := by
	if req.User != "" {
		u, err := h.Directory.Find(ctx, req.User)
		if err != nil {
			return none, err
		}
		who = store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: by.Surface}
	}
	inv := &mcp.Invocation{Point: mcp.AroundCall, By: who, Tool: req.Tool, Args: args, Call: &store.Call{ID: "sample", Server: server, Tool: name, By: who.User}}
	if server == "nize" {
		inv.Point, inv.Tool, inv.Call = mcp.AroundMeta, name, nil
	}
	trials, err := h.Set.Try(ctx, one, inv, sampleResult(req.Result))
	if err != nil {
		return none, err
	}
	out := make([]api.HookTrial, len(trials))
	for i, t := range trials {
		out[i] = api.HookTrial{Point: t.Point, Decision: t.Decision, Reason: t.Reason, Arguments: t.Args, Result: t.Result}
	}
	return api.Items(out), nil
}

// sampleResult is a text as a tool would return it; an object stays.
func sampleResult(raw json.RawMessage) json.RawMessage {
	text := "a sample result"
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' {
		return raw
	} else if len(trimmed) > 0 && json.Unmarshal(trimmed, &text) != nil {
		text = string(trimmed)
	}
	b, err := json.Marshal(map[string][]map[string]string{"content": {{"type": "text", "text": text}}})
	if err != nil {
		return nil
	}
	return b
}
