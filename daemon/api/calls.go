package api

import (
	"encoding/json"
	"time"

	"nize/store"
)

// ListApprovals lists the cards of waiting calls that the caller may see. Admins
// get those of other people, too, without what the calls are about.
var ListApprovals = Op[Empty, List[store.Card]]{"GET", "/v1/approvals", false, "list calls that wait for a person"}

// CallRequest names a call. Reason is why an admin reads one in which they don't
// take part; it is kept in the audit.
type CallRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// GetApproval shows one card, also of a call that is decided. An admin who doesn't
// take part and gives no reason gets it without what the call is about.
var GetApproval = Op[CallRequest, store.Card]{"GET", "/v1/approvals/{id}", false, "show one call's card"}

// GetCall shows one call. An admin who doesn't take part needs a reason.
var GetCall = Op[CallRequest, store.Call]{"GET", "/v1/calls/{id}", false, "show one call"}

// DecideCall settles a waiting call. First answer stands: later ones are
// ErrDecided, after expiry ErrExpired. After an edit it is the new call that
// comes back.
var DecideCall = Op[DecideCallRequest, store.Call]{"POST", "/v1/approvals/{id}", false, "decide on a call"}

// DecideCallRequest is a person's decision on a waiting call.
type DecideCallRequest struct {
	ID      string           `path:"id" json:"-"`
	Verb    store.Verb       `json:"verb"`              // approve, run_all, deny, cancel, edit, retry or again
	Digest  string           `json:"digest,omitempty"`  // of the card that was shown; another one is ErrConflict
	Args    json.RawMessage  `json:"args,omitempty"`    // for edit
	Always  bool             `json:"always,omitempty"`  // also from now on
	For     store.GrantScope `json:"for,omitempty"`     // of that: me (the default), channel or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // of that: only where the arguments fit it
	Until   time.Time        `json:"until,omitzero"`    // of that: when it ends
	Exact   bool             `json:"exact,omitempty"`   // of that: only for these very arguments
	Line    bool             `json:"line,omitempty"`    // of that: only for the very command line of this ask
	Here    bool             `json:"here,omitempty"`    // of that: only in the repository of this ask
	Reason  string           `json:"reason,omitempty"`
}

// GrantView is a standing answer in a list.
type GrantView struct {
	store.Grant
	// Void is why an "always" allows nothing now; "" if it counts.
	Void string `json:"void,omitempty"`
}

// ListGrants lists standing answers.
var ListGrants = Op[ListGrantsRequest, List[GrantView]]{"GET", "/v1/grants", false, "list standing answers"}

// ListGrantsRequest names a user; "" is the caller, and [Everybody] for an admin all
// people, for others the caller. Without a Reason, which is kept in the audit, an
// admin gets another person's without their arguments.
type ListGrantsRequest struct {
	User   string `query:"user" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// Everybody stands for all people where a user is named.
const Everybody = "*"

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
	// Repository and Host bind it to asks that say that they are in this repository on
	// this machine.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`
}

// RevokeGrant removes a standing answer.
var RevokeGrant = Op[RevokeGrantRequest, Empty]{"DELETE", "/v1/grants/{id}", false, "revoke a standing answer"}

// RevokeGrantRequest names a standing answer.
type RevokeGrantRequest struct {
	ID string `path:"id" json:"-"`
}
