package api

import (
	"encoding/json"
	"time"

	"nize/store"
)

// ListApprovals lists the cards of pending calls that the caller may see. Admins also get
// those of other people, without their contents.
var ListApprovals = Op[Empty, List[store.Card]]{"GET", "/v1/approvals", false, "list pending calls"}

// CallRequest names a call. Reason is an admin's reason for reading a call in which they
// don't take part; it is recorded in the audit trail.
type CallRequest struct {
	ID     string `path:"id" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// GetApproval returns one card, including that of a decided call. An admin who doesn't take
// part and gives no reason gets it without its contents.
var GetApproval = Op[CallRequest, store.Card]{"GET", "/v1/approvals/{id}", false, "show one call's card"}

// GetCall returns one call. An admin who doesn't take part must give a reason.
var GetCall = Op[CallRequest, store.Call]{"GET", "/v1/calls/{id}", false, "show one call"}

// DecideCall decides on a pending call. The first decision stands: later ones return
// ErrDecided, or ErrExpired after expiry. An edit returns the new call.
var DecideCall = Op[DecideCallRequest, store.Call]{"POST", "/v1/approvals/{id}", false, "decide on a call"}

// DecideCallRequest is a person's decision on a pending call.
type DecideCallRequest struct {
	ID      string           `path:"id" json:"-"`
	Verb    store.Verb       `json:"verb"`              // approve, run_all, deny, cancel, edit, retry or again
	Digest  string           `json:"digest,omitempty"`  // of the card that was shown; a different one returns ErrConflict
	Args    json.RawMessage  `json:"args,omitempty"`    // for edit
	Always  bool             `json:"always,omitempty"`  // make it a standing answer; the fields below apply to that
	For     store.GrantScope `json:"for,omitempty"`     // me (the default), channel or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // only if the arguments match it
	Until   time.Time        `json:"until,omitzero"`    // expiry
	Exact   bool             `json:"exact,omitempty"`   // only for exactly these arguments
	Line    bool             `json:"line,omitempty"`    // only for exactly this ask's command line
	Here    bool             `json:"here,omitempty"`    // only in this ask's repository
	Reason  string           `json:"reason,omitempty"`
}

// GrantView is a standing answer in a list.
type GrantView struct {
	store.Grant
	// Void is the reason why an "always" has no effect now; "" if it is in force.
	Void string `json:"void,omitempty"`
}

// ListGrants lists standing answers.
var ListGrants = Op[ListGrantsRequest, List[GrantView]]{"GET", "/v1/grants", false, "list standing answers"}

// ListGrantsRequest names a user. "" is the caller; [Everybody] is all people if the caller
// is an admin, else the caller. If an admin gives no Reason, which is recorded in the audit
// trail, the answers of other people come without their arguments.
type ListGrantsRequest struct {
	User   string `query:"user" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// Everybody stands for all people in place of a user's name.
const Everybody = "*"

// AddGrant creates a standing answer about a tool. Members answer for themselves.
var AddGrant = Op[AddGrantRequest, store.Grant]{"POST", "/v1/grants", false, "create a standing answer"}

// AddGrantRequest is a standing answer: approval of this exact definition of a tool, or
// denial of the tool.
type AddGrantRequest struct {
	Tool    string           `json:"tool"`
	Deny    bool             `json:"deny,omitempty"`
	For     store.GrantScope `json:"for,omitempty"`     // me (the default) or everywhere
	Pattern json.RawMessage  `json:"pattern,omitempty"` // of arguments; see store.MatchArgs
	Expires time.Time        `json:"expires,omitzero"`
	// Repository and Host restrict it to asks that claim to be in this repository on this
	// machine.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`
}

// RevokeGrant removes a standing answer.
var RevokeGrant = Op[RevokeGrantRequest, Empty]{"DELETE", "/v1/grants/{id}", false, "revoke a standing answer"}

// RevokeGrantRequest names a standing answer.
type RevokeGrantRequest struct {
	ID string `path:"id" json:"-"`
}
