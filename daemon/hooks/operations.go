package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/hooks"
)

// Hooks implements the operations on hooks, which admins run around all calls and people
// around their own.
type Hooks struct {
	Store     hooks.Store
	Set       *Set
	BuiltIn   func() []store.HookRef // in the order in which they run before a call
	Servers   *control.Servers
	Directory *people.Directory
	Config    store.Config
}

// Module returns the module.
func (h *Hooks) Module() module.Module {
	return module.Module{Name: "hooks", Settings: Settings, Operations: h.mount, Commands: h.commands()}
}

func (h *Hooks) mount(m *mux.Mux) {
	mux.Handle(m, api.ListHooks, h.List)
	mux.Handle(m, api.AddHook, h.Add)
	mux.Handle(m, api.RemoveHook, h.Remove)
	mux.Handle(m, api.GetHook, h.Get)
	mux.Handle(m, api.PatchHook, h.Patch)
	mux.Handle(m, api.TestHook, h.Test)
}

// List returns hooks in the order in which they run before a call.
func (h *Hooks) List(ctx context.Context, by store.Caller, req api.ListHooksRequest) (none api.List[api.Hook], err error) {
	list, err := h.Store.ListHooks(ctx)
	if err != nil {
		return none, fmt.Errorf("listing hooks: %w", err)
	}
	list, err = h.visible(ctx, by, list, req.All)
	if err != nil {
		return none, err
	}
	slices.SortFunc(list, hooks.Compare)
	var views []api.Hook
	if req.All {
		for _, ref := range h.BuiltIn() {
			views = append(views, api.Hook{Hook: hooks.Hook{ID: ref.ID, Name: ref.ID, Type: ref.ID, Scope: hooks.Global, Config: json.RawMessage("{}"), Enabled: true}, BuiltIn: true})
		}
	}
	names, err := h.Directory.Names(ctx)
	if err != nil {
		return none, err
	}
	for _, one := range list {
		views = append(views, viewHook(by, one, names))
	}
	for i := range views {
		if req.All {
			views[i].Order = i + 1
		}
	}
	return api.Items(views), nil
}

// visible returns the hooks that the caller may see. An admin sees all. Others see their
// own and, if all is set, admins' hooks that may run around their calls.
func (h *Hooks) visible(ctx context.Context, by store.Caller, list []hooks.Hook, all bool) ([]hooks.Hook, error) {
	if by.IsAdmin() {
		return list, nil
	}
	servers, err := h.Servers.Names(ctx, by)
	if err != nil {
		return nil, err
	}
	servers = append(servers, policy.BuiltinServer, policy.NativeServer)
	return slices.DeleteFunc(list, func(one hooks.Hook) bool {
		if one.Owner != "" {
			return one.Owner != by.User
		}
		if !all || !one.Enabled {
			return true
		}
		user, server, _ := strings.Cut(one.ScopeID, "/")
		switch one.Scope {
		case hooks.Server:
			return !slices.Contains(servers, one.ScopeID)
		case hooks.User:
			return user != by.User
		case hooks.UserServer:
			return user != by.User || !slices.Contains(servers, server)
		}
		return false
	}), nil
}

func (h *Hooks) view(ctx context.Context, by store.Caller, one hooks.Hook) (none api.Hook, err error) {
	names, err := h.Directory.Names(ctx)
	if err != nil {
		return none, err
	}
	return viewHook(by, one, names), nil
}

// viewHook returns a hook with people's names instead of ids.
func viewHook(by store.Caller, one hooks.Hook, names map[string]string) api.Hook {
	v := api.Hook{Hook: one, ScopeName: one.ScopeID, OwnerName: names[one.Owner]}
	if one.Scope == hooks.User || one.Scope == hooks.UserServer {
		id, server, both := strings.Cut(one.ScopeID, "/")
		if n := names[id]; n != "" {
			if v.ScopeName = n; both {
				v.ScopeName += "/" + server
			}
		}
	}
	if one.Owner == "" && !by.IsAdmin() {
		v.Config, v.Signed = nil, false
	}
	return v
}

// Get returns one hook.
func (h *Hooks) Get(ctx context.Context, by store.Caller, req api.HookRequest) (none api.Hook, err error) {
	one, err := h.find(ctx, by, req)
	if err != nil {
		return none, err
	}
	return h.view(ctx, by, one)
}

// owner returns the owner of the hook that a caller names: for an admin "" unless a person
// is named, for others the caller.
func (h *Hooks) owner(ctx context.Context, by store.Caller, who string) (string, error) {
	if who == "" && by.IsAdmin() {
		return "", nil
	}
	return h.Directory.Owner(ctx, by, who)
}

// find returns a hook that the caller may change.
func (h *Hooks) find(ctx context.Context, by store.Caller, req api.HookRequest) (one hooks.Hook, err error) {
	owner, err := h.owner(ctx, by, req.Owner)
	if err != nil {
		return one, err
	}
	one, err = h.Store.GetHook(ctx, owner, req.Name)
	if !errors.Is(err, store.ErrNotFound) {
		return one, err
	}
	list, err := h.Store.ListHooks(ctx)
	if err != nil {
		return one, fmt.Errorf("listing hooks: %w", err)
	}
	var names []string
	for _, known := range list {
		if known.Owner == owner {
			names = append(names, known.Name)
		}
	}
	return one, store.Unknown("hook", req.Name, names)
}

// Add adds a hook; it is in force when Add returns.
func (h *Hooks) Add(ctx context.Context, by store.Caller, req api.AddHookRequest) (none api.Hook, err error) {
	owner, err := h.owner(ctx, by, req.Owner)
	if err != nil {
		return none, err
	}
	one := hooks.Hook{Name: req.Name, Owner: owner, Type: req.Type, Scope: req.Scope, ScopeID: req.ScopeID, Tool: req.Tool, Config: req.Config, Enabled: true, Priority: hooks.DefaultPriority}
	if req.Enabled != nil {
		one.Enabled = *req.Enabled
	}
	if req.Priority != nil {
		one.Priority = *req.Priority
	}
	return h.put(ctx, by, one)
}

// Patch changes the fields of a hook that are set.
func (h *Hooks) Patch(ctx context.Context, by store.Caller, req api.PatchHookRequest) (none api.Hook, err error) {
	one, err := h.find(ctx, by, req.HookRequest)
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

// ownScope fills in the scope of a person's own hook, which may be omitted.
func ownScope(one *hooks.Hook) {
	if one.Owner == "" {
		return
	}
	one.Scope = cmp.Or(one.Scope, hooks.User)
	switch {
	case one.Scope == hooks.User:
		one.ScopeID = cmp.Or(one.ScopeID, one.Owner)
	case one.Scope == hooks.UserServer && one.ScopeID != "" && !strings.Contains(one.ScopeID, "/"):
		one.ScopeID = one.Owner + "/" + one.ScopeID
	}
}

// put validates a hook and stores it.
func (h *Hooks) put(ctx context.Context, by store.Caller, one hooks.Hook) (none api.Hook, err error) {
	ownScope(&one)
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
	if user, _, _ := strings.Cut(one.ScopeID, "/"); one.Owner != "" && user != one.Owner {
		return none, store.Mark(store.Errorf("your own hook runs around your own calls only; an admin can set one for other people"), store.ErrRefused)
	}
	if err := h.Set.Check(one); err != nil {
		return none, err
	}
	stored, err := h.Store.PutHook(ctx, by, one, store.GetInt(h.Config, "", "limits.user.hooks"))
	if errors.Is(err, store.ErrExists) {
		return none, store.Errorf("hook %s: %w; change it: nizectl hooks edit %s", one.Name, store.ErrExists, one.Name)
	}
	if err != nil {
		return none, err
	}
	if err := h.Set.Reload(context.WithoutCancel(ctx)); err != nil {
		return none, err
	}
	return h.view(ctx, by, stored)
}

// takeSecret moves the secret of a webhook out of its configuration, since that is shown.
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

// scopeID parses a scope's id, in which a person may be given by name.
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
	if server != "" && server != policy.BuiltinServer && server != policy.NativeServer {
		if err := h.Servers.Check(ctx, by, server); err != nil {
			return "", err
		}
	}
	if user == "" {
		return server, nil
	}
	id, err := h.person(ctx, by, user)
	if err != nil {
		return "", err
	}
	if scope == hooks.User {
		return id, nil
	}
	return id + "/" + server, nil
}

// person returns a person's id by id or name. A caller who is not an admin finds only
// themselves.
func (h *Hooks) person(ctx context.Context, by store.Caller, who string) (string, error) {
	if who == by.User || who == by.Name && !by.IsAdmin() {
		return by.User, nil
	}
	return h.Directory.Owner(ctx, by, who)
}

// Remove removes a hook.
func (h *Hooks) Remove(ctx context.Context, by store.Caller, req api.HookRequest) (none api.Empty, err error) {
	one, err := h.find(ctx, by, req)
	if err != nil {
		return none, err
	}
	if err := h.Store.DeleteHook(ctx, by, one.Owner, one.Name); err != nil {
		return none, err
	}
	return none, h.Set.Reload(context.WithoutCancel(ctx))
}

// Test runs a hook with a sample call, even if it is disabled or would not run for such a
// call.
func (h *Hooks) Test(ctx context.Context, by store.Caller, req api.TestHookRequest) (none api.List[api.HookTrial], err error) {
	one, err := h.find(ctx, by, req.HookRequest)
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
		id, err := h.person(ctx, by, req.User)
		if err != nil {
			return none, err
		}
		u, err := h.Directory.Find(ctx, id)
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

// sampleResult wraps a text as a tool would return it; it returns an object unchanged.
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
