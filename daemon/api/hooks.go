package api

import (
	"encoding/json"

	"nize/store"
	"nize/store/hooks"
)

// ListHooks lists the configured hooks in the order in which they run before a
// call.
var ListHooks = Op[Empty, List[Hook]]{"GET", "/v1/hooks", true, "list hooks"}

// Hook is a configured hook. What its secret is nobody is told.
type Hook struct {
	hooks.Hook
	ScopeName string `json:"scope_name,omitempty"` // the scope's id with a person's name in it
}

// HookRequest names a hook.
type HookRequest struct {
	Name string `path:"name" json:"-"`
}

// GetHook shows one hook.
var GetHook = Op[HookRequest, Hook]{"GET", "/v1/hooks/{name}", true, "show a hook"}

// AddHook adds a hook.
var AddHook = Op[AddHookRequest, Hook]{"POST", "/v1/hooks", true, "add a hook"}

// AddHookRequest is a hook. Secret is for a webhook; it may also stand in the
// config, from which it is taken out.
type AddHookRequest struct {
	Name     string          `json:"name"`
	Type     string          `json:"hook_type"`
	Scope    hooks.Scope     `json:"scope,omitempty"`    // global
	ScopeID  string          `json:"scope_id,omitempty"` // SERVER, USER or USER/SERVER; a user's id or name
	Tool     string          `json:"tool,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	Enabled  *bool           `json:"enabled,omitempty"`  // true
	Priority *int            `json:"priority,omitempty"` // 100
}

// PatchHook changes what is set of a hook.
var PatchHook = Op[PatchHookRequest, Hook]{"PATCH", "/v1/hooks/{name}", true, "change a hook"}

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
var RemoveHook = Op[HookRequest, Empty]{"DELETE", "/v1/hooks/{name}", true, "remove a hook"}

// TestHook runs one hook before and after a sample call, which isn't made.
var TestHook = Op[TestHookRequest, List[HookTrial]]{"POST", "/v1/hooks/{name}/test", true, "try a hook with a sample call"}

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
	Revision uint64         `json:"revision"`
	Last     *store.HookRef `json:"last,omitempty"` // what it did at the newest call that it was around
}
