package api

import (
	"encoding/json"

	"nize/store"
	"nize/store/hooks"
)

// ListHooks lists hooks in the order in which they run before a call. Admins get all that
// are configured, others their own.
var ListHooks = Op[ListHooksRequest, List[Hook]]{"GET", "/v1/hooks", false, "list hooks"}

// ListHooksRequest selects the hooks to list. With All, the list includes the built-in
// hooks and, for non-admins, the admins' hooks that may run around their calls; each then
// has its position in the order.
type ListHooksRequest struct {
	All bool `query:"all" json:"-"`
}

// Hook is a configured or built-in hook. It never contains a secret, and the configuration
// of an admin's hook is shown to admins only.
type Hook struct {
	hooks.Hook
	ScopeName string `json:"scope_name,omitempty"` // ScopeID with a person's name instead of an id
	OwnerName string `json:"owner_name,omitempty"` // person who set it for their own calls
	BuiltIn   bool   `json:"built_in,omitempty"`
	Order     int    `json:"order,omitempty"` // position before a call, from 1; after it, the order is reversed
}

// HookRequest names a hook.
type HookRequest struct {
	Name string `path:"name" json:"-"`
	// Owner is the person who set the hook for their own calls: an id or a name. If the
	// caller is not an admin, it may only be the caller, and may be empty. If the caller is
	// an admin, empty means an admin's hook.
	Owner string `query:"owner" json:"-"`
}

// GetHook returns one hook.
var GetHook = Op[HookRequest, Hook]{"GET", "/v1/hooks/{name}", false, "show a hook"}

// AddHook adds an admin's hook, or one that a person sets for their own calls.
var AddHook = Op[AddHookRequest, Hook]{"POST", "/v1/hooks", false, "add a hook"}

// AddHookRequest is a hook. Secret is for a webhook; if the config contains it, it is
// removed from there.
type AddHookRequest struct {
	Name     string          `json:"name"`
	Owner    string          `json:"owner,omitempty"` // as in [HookRequest]
	Type     string          `json:"hook_type"`
	Scope    hooks.Scope     `json:"scope,omitempty"`    // default global; for one's own: user
	ScopeID  string          `json:"scope_id,omitempty"` // SERVER, USER or USER/SERVER; a user's id or name. For one's own, SERVER is enough
	Tool     string          `json:"tool,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	Enabled  *bool           `json:"enabled,omitempty"`  // default true
	Priority *int            `json:"priority,omitempty"` // default 100
}

// PatchHook changes the fields of a hook that are set.
var PatchHook = Op[PatchHookRequest, Hook]{"PATCH", "/v1/hooks/{name}", false, "change a hook"}

// PatchHookRequest is the change. A config replaces the stored one as a whole, except for a
// secret that it doesn't contain; "" as the secret removes it.
type PatchHookRequest struct {
	HookRequest
	Revision uint64          `json:"revision,omitempty"` // if set, must be the stored revision
	Scope    *hooks.Scope    `json:"scope,omitempty"`
	ScopeID  *string         `json:"scope_id,omitempty"`
	Tool     *string         `json:"tool,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	Enabled  *bool           `json:"enabled,omitempty"`
	Priority *int            `json:"priority,omitempty"`
}

// RemoveHook removes a hook. Pending calls that started with it still finish with it.
var RemoveHook = Op[HookRequest, Empty]{"DELETE", "/v1/hooks/{name}", false, "remove a hook"}

// TestHook runs one hook before and after a sample call, without making the call.
var TestHook = Op[TestHookRequest, List[HookTrial]]{"POST", "/v1/hooks/{name}/test", false, "test a hook with a sample call"}

// TestHookRequest is the sample call.
type TestHookRequest struct {
	HookRequest
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // a CallToolResult, or a string
	User      string          `json:"user,omitempty"`   // the sample's caller, an id or a name; default: you
}

// HookTrial is the hook's result at one point.
type HookTrial struct {
	Point     string          `json:"point"`    // before or after
	Decision  string          `json:"decision"` // allow, deny, change or failed
	Reason    string          `json:"reason,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// WhyHook is a hook around the use of a tool.
type WhyHook struct {
	Name     string         `json:"name"`
	Type     string         `json:"hook_type"`
	Scope    hooks.Scope    `json:"scope"`
	Tool     string         `json:"tool,omitempty"`
	Priority int            `json:"priority"`
	Personal bool           `json:"personal,omitempty"` // the caller set it for their own calls
	Revision uint64         `json:"revision"`
	Last     *store.HookRef `json:"last,omitempty"` // its result at the newest call that it ran for
}
