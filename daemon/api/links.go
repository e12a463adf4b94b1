package api

import (
	"time"

	"nize/store"
)

// MakeLink makes a code that joins anyone who gives it with a user.
var MakeLink = Op[MakeLinkRequest, LinkCode]{"POST", "/v1/links", false, "make a code that joins identities"}

// MakeLinkRequest says whose.
type MakeLinkRequest struct {
	User string `json:"user,omitempty"` // "" is the caller; others for admins
}

// LinkCode is a code, shown once.
type LinkCode struct {
	Code    Secret     `json:"code"`
	User    store.User `json:"user"`
	Expires time.Time  `json:"expires"`
}

// Join joins the caller with whose code it is.
var Join = Op[UseLinkRequest, store.Joined]{"POST", "/v1/links/join", false, "join identities"}

// ShowLink shows who would be joined. Wrong codes are counted.
var ShowLink = Op[UseLinkRequest, LinkView]{"POST", "/v1/links/look", false, "show whom a code joins"}

// UseLinkRequest gives a code.
type UseLinkRequest struct {
	Code Secret     `json:"code"`
	Role store.Role `json:"role,omitempty"` // of both together; "" is the lower of the two
}

// LinkView is who would be joined.
type LinkView struct {
	You   store.User `json:"you"`   // who survives
	Other store.User `json:"other"` // whose code it is
}
