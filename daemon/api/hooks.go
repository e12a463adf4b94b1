package api

import (
	"encoding/json"

	"nize/store"
	"nize/store/hooks"
)

// ListHooks lists hooks in the order in which they run before a call: for admins all
// that are configured, for others their own.
var ListHooks = Op[ListHooksRequest, List[Hook]]{"GET", "/v1/hooks", false, "list hooks"}

// ListHooksRequest says which. With All, the built-in hooks come too, for others
// than admins also those of admins that may stand around their calls, and each has
// its place in the order.
type ListHooksRequest struct {
	All bool `query:"all" json:"-"`
}

// Hook is a configured hook, or a built-in one. A secret is never shown, nor, to
// others than admins, the configuration of an admin's hook.
type Hook struct {
	hooks.Hook
	ScopeName string `json:"scope_name,omitempty"` // the scope's id with a person's name in it
	OwnerName string `json:"owner_name,omitempty"` // of the person who set it for their own calls
	BuiltIn   bool   `json:"built_in,omitempty"`
	Order     int    `json:"order,omitempty"` // its place before a call, from 1 on; after it, the reverse
}

// HookRequest names a hook.
type HookRequest struct {
	Name string `path:"name" json:"-"`
	// Owner is the person whose own hook it is: an id or a name, for others than
	// admins only the caller, who need not be named. To an admin, empty is an
	// admin's hook.
	Owner string `query:"owner" json:"-"`
}

// GetHook shows one hook.
var GetHook = Op[HookRequest, Hook]{"GET", "/v1/hooks/{name}", false, "show a hook"}

// AddHook adds a hook: an admin's, or one that a person sets for their own calls.
var AddHook = Op[AddHookRequest, Hook]{"POST", "/v1/hooks", false, "add a hook"}

// AddHookRequest is a hook. Secret is for a webhook; it may also stand in the
// config, from which it is taken out.
type AddHookRequest struct {
	Name     string          `json:"name"`
	Owner    string          `json:"owner,omitempty"` // as in [HookRequest]
	Type     string          `json:"hook_type"`
	Scope    hooks.Scope     `json:"scope,omitempty"`    // global; of one's own: user
	ScopeID  string          `json:"scope_id,omitempty"` // SERVER, USER or USER/SERVER; a user's id or name. Of one's own: SERVER will do
	Tool     string          `json:"tool,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	Enabled  *bool           `json:"enabled,omitempty"`  // true
	Priority *int            `json:"priority,omitempty"` // 100
}

// PatchHook changes what is set of a hook.
var PatchHook = Op[PatchHookRequest, Hook]{"PATCH", "/v1/hooks/{name}", false, "change a hook"}

// PatchHookRequest is what is to change. A config replaces the whole of it but for
// a secret that it doesn't name; "" as a secret takes that away.
type PatchHookRequest struct {
	HookRequest
	Revision uint64          `json:"revision,omitempty"` // if given, it must be the stored one's
	Scope    *hooks.Scope    `json:"scope,omitempty"`
	ScopeID  *string         `json:"scope_id,omitempty"`
	Tool     *string         `json:"tool,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	Enabled  *bool           `json:"enabled,omitempty"`
	Priority *int            `json:"priority,omitempty"`
}

// RemoveHook removes a hook. Calls that wait and began with it end with it.
var RemoveHook = Op[HookRequest, Empty]{"DELETE", "/v1/hooks/{name}", false, "remove a hook"}

// TestHook runs one hook before and after a sample call, which isn't made.
var TestHook = Op[TestHookRequest, List[HookTrial]]{"POST", "/v1/hooks/{name}/test", false, "try a hook with a sample call"}

// TestHookRequest is the sample call.
type TestHookRequest struct {
	HookRequest
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // a CallToolResult, or a text
	User      string          `json:"user,omitempty"`   // the caller: an id or a name; you
}

// HookTrial is what it did at one point.
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
	Last     *store.HookRef `json:"last,omitempty"` // what it did at the newest call that it was around
}
