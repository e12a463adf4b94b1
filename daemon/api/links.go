package api

import (
	"time"

	"nize/store"
)

// MakeLink creates a code. Whoever redeems it is merged with the user.
var MakeLink = Op[MakeLinkRequest, LinkCode]{"POST", "/v1/links", false, "create a code that links accounts"}

// MakeLinkRequest names the user.
type MakeLinkRequest struct {
	User string `json:"user,omitempty"` // "" is the caller; only admins may name others
}

// LinkCode is a code; it is shown only once.
type LinkCode struct {
	Code    Secret     `json:"code"`
	User    store.User `json:"user"`
	Expires time.Time  `json:"expires"`
}

// Join merges the caller with the user who made the code.
var Join = Op[UseLinkRequest, store.Joined]{"POST", "/v1/links/join", false, "link accounts"}

// ShowLink returns the users that a code would merge. Wrong codes are counted.
var ShowLink = Op[UseLinkRequest, LinkView]{"POST", "/v1/links/look", false, "show which accounts a code would link"}

// UseLinkRequest carries a code.
type UseLinkRequest struct {
	Code Secret     `json:"code"`
	Role store.Role `json:"role,omitempty"` // of the merged user; "" is the lower of both roles
}

// LinkView is the users that a code would merge.
type LinkView struct {
	You   store.User `json:"you"`   // the user that remains
	Other store.User `json:"other"` // the user who made the code
}
