package api

import (
	"encoding/json"
	"time"

	"nize/store"
)

// ListGrants lists standing answers.
var ListGrants = Op[ListGrantsRequest, List[store.Grant]]{"GET", "/v1/grants", false, "list standing answers"}

// ListGrantsRequest names a user; "" is the caller.
type ListGrantsRequest struct {
	User string `query:"user" json:"-"`
}

// AddGrant makes a standing answer about a tool. Members answer for themselves.
var AddGrant = Op[AddGrantRequest, store.Grant]{"POST", "/v1/grants", false, "make a standing answer"}

// AddGrantRequest is a standing answer: a yes to this exact definition of a tool, or a
// no to the tool.
type AddGrantRequest struct {
	Tool    string           `json:"tool"`
	Deny    bool             `json:"deny,omitempty"`
	For     store.GrantScope `json:"for,omitempty"`     // me (the default) or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // of arguments; see store.MatchArgs
	Expires time.Time        `json:"expires,omitzero"`
}

// RevokeGrant removes a standing answer.
var RevokeGrant = Op[RevokeGrantRequest, Empty]{"DELETE", "/v1/grants/{id}", false, "revoke a standing answer"}

// RevokeGrantRequest names a standing answer.
type RevokeGrantRequest struct {
	ID string `path:"id" json:"-"`
}
