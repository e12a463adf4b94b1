package api

import (
	"time"
)

// The operations on sign-ins: requests that a browser's page makes by a code, and browsers
// that are signed in.
var (
	ShowLogin    = Op[LoginCodeRequest, SignInRequest]{"POST", "/v1/logins/show", false, "show who requests the sign-in of a code"}
	ApproveLogin = Op[LoginCodeRequest, ApprovedLogin]{"POST", "/v1/logins/approve", false, "confirm a sign-in and get the number for its page"}
	DenyLogin    = Op[LoginCodeRequest, SignInRequest]{"POST", "/v1/logins/deny", false, "deny a sign-in"}
	StartLogin   = Op[StartLoginRequest, StartedLogin]{"POST", "/v1/logins", false, "create a link that signs a browser in"}
	ListLogins   = Op[ListTokensRequest, TokenPage]{"GET", "/v1/logins", false, "list browsers that are signed in"}
	RevokeLogin  = Op[LoginIDRequest, Empty]{"DELETE", "/v1/logins/{id}", false, "sign a browser out"}
)

// LoginCodeRequest is the code of a page. User is the person who signs in; "" is the
// caller.
type LoginCodeRequest struct {
	Code string `json:"code"`
	User string `json:"user,omitempty"`
}

// SignInRequest describes the program that wants to sign in.
type SignInRequest struct {
	ID       string    `json:"id"`
	Client   string    `json:"client,omitempty"`        // "" for a browser
	Host     string    `json:"host,omitempty"`          // host that vouches for the client's name
	Redirect string    `json:"redirect_host,omitempty"` // host to which the client's code is sent
	Scope    string    `json:"scope,omitempty"`
	Address  string    `json:"address"`
	Browser  string    `json:"browser,omitempty"`
	Asked    time.Time `json:"asked"`
}

// ApprovedLogin is an approved request with the number for its page, shown only once.
type ApprovedLogin struct {
	SignInRequest
	User     string `json:"user"`
	UserName string `json:"user_name"`
	Number   Secret `json:"number"`
}

// StartLoginRequest names the person; "" is the caller.
type StartLoginRequest struct {
	User string `json:"user,omitempty"`
}

// StartedLogin is a single-use URL that signs a browser in.
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
