package api

import (
	"time"
)

// The operations on sign-ins: what a browser's page asks for by a code, and the
// browsers that are signed in.
var (
	ShowLogin    = Op[LoginCodeRequest, SignInRequest]{"POST", "/v1/logins/show", false, "show who wants to sign in with a code"}
	ApproveLogin = Op[LoginCodeRequest, ApprovedLogin]{"POST", "/v1/logins/approve", false, "confirm a sign-in and get the number for its page"}
	DenyLogin    = Op[LoginCodeRequest, SignInRequest]{"POST", "/v1/logins/deny", false, "deny a sign-in"}
	StartLogin   = Op[StartLoginRequest, StartedLogin]{"POST", "/v1/logins", false, "make an address that signs a browser in"}
	ListLogins   = Op[ListTokensRequest, TokenPage]{"GET", "/v1/logins", false, "list browsers that are signed in"}
	RevokeLogin  = Op[LoginIDRequest, Empty]{"DELETE", "/v1/logins/{id}", false, "sign a browser out"}
)

// LoginCodeRequest is the code of a page. User is who signs in: the caller where
// none is given.
type LoginCodeRequest struct {
	Code string `json:"code"`
	User string `json:"user,omitempty"`
}

// SignInRequest is who wants to sign in.
type SignInRequest struct {
	ID       string    `json:"id"`
	Client   string    `json:"client,omitempty"`        // "" is a browser
	Host     string    `json:"host,omitempty"`          // that vouches for the client's name
	Redirect string    `json:"redirect_host,omitempty"` // where the client takes its code
	Scope    string    `json:"scope,omitempty"`
	Address  string    `json:"address"`
	Browser  string    `json:"browser,omitempty"`
	Asked    time.Time `json:"asked"`
}

// ApprovedLogin is one with the number for its page, shown this once.
type ApprovedLogin struct {
	SignInRequest
	User     string `json:"user"`
	UserName string `json:"user_name"`
	Number   Secret `json:"number"`
}

// StartLoginRequest says for whom; "" is the caller.
type StartLoginRequest struct {
	User string `json:"user,omitempty"`
}

// StartedLogin is an address that signs a browser in, once.
type StartedLogin struct {
	URL      Secret    `json:"url"`
	User     string    `json:"user"`
	UserName string    `json:"user_name"`
	Expires  time.Time `json:"expires"`
}

// LoginIDRequest names a browser's session.
type LoginIDRequest struct {
	ID string `path:"id" json:"-"`
}
