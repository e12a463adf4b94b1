package api

import (
	"time"
)

// LoginServer starts connecting a server by signing in to it. It returns a URL for a
// browser and doesn't wait for the sign-in.
var LoginServer = Op[LoginServerRequest, LoginFlow]{"POST", "/v1/servers/{name}/login", false, "connect a server by signing in to it"}

// LoginServerRequest names the owner of the login: User, Team, or if both are empty the
// shared login (for members: their own).
type LoginServerRequest struct {
	Name string `path:"name" json:"-"`
	User string `json:"user,omitempty"`
	Team string `json:"team,omitempty"`
	// ClientID and ClientSecret come from the operator of the sign-in service; they aren't
	// needed if it registers clients dynamically.
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret Secret   `json:"client_secret,omitzero"`
	Scopes       []string `json:"scopes,omitempty"` // exactly these
	// PKCEUnlisted accepts a sign-in service that does not list PKCE with S256. The choice
	// is kept for this server as long as the service is the same.
	PKCEUnlisted bool `json:"pkce_unlisted,omitempty"`
	// NoResource omits the parameter resource (RFC 8707), for a sign-in service that
	// rejects it. The choice is kept for this server as long as the service is the same.
	NoResource bool `json:"no_resource,omitempty"`
	// Paste requests the URL of the sign-in service itself, for a browser that can't reach
	// nize: [FinishLogin] then takes the URL at which the browser ended.
	Paste bool `json:"paste,omitempty"`
}

// LoginFlow is a login in progress.
type LoginFlow struct {
	ID      string     `json:"id"`
	Server  string     `json:"server"`
	For     string     `json:"for"`           // shared, user:NAME or team:ID
	URL     string     `json:"url,omitempty"` // single use, for the person's browser
	Issuer  string     `json:"issuer"`        // the sign-in service
	Scopes  []string   `json:"scopes"`
	Expires time.Time  `json:"expires"`
	State   LoginState `json:"state"`
	Error   string     `json:"error,omitempty"` // why it failed
}

// LoginState is the progress of a login.
type LoginState string

const (
	LoginWaiting LoginState = "waiting" // for the person in the browser
	LoginDone    LoginState = "done"
	LoginFailed  LoginState = "failed"
)

// GetLoginFlow returns the progress of a login.
var GetLoginFlow = Op[LoginFlowRequest, LoginFlow]{"GET", "/v1/servers/{name}/login/{flow}", false, "follow a login in progress"}

// LoginFlowRequest names a login in progress.
type LoginFlowRequest struct {
	Name string `path:"name" json:"-"`
	Flow string `path:"flow" json:"-"`
}

// FinishLogin completes a login with the URL at which the browser ended.
var FinishLogin = Op[FinishLoginRequest, LoginFlow]{"POST", "/v1/servers/{name}/login/{flow}", false, "finish a login with the address at which the browser ended"}

// FinishLoginRequest carries that URL.
type FinishLoginRequest struct {
	Name    string `path:"name" json:"-"`
	Flow    string `path:"flow" json:"-"`
	Address Secret `json:"address"`
}

// GetLogin returns a login.
var GetLogin = Op[LoginRequest, Login]{"GET", "/v1/servers/{name}/login", false, "show how a server is connected"}

// LoginRequest names a login as [LoginServerRequest] does.
type LoginRequest struct {
	Name string `path:"name" json:"-"`
	User string `query:"user" json:"-"`
	Team string `query:"team" json:"-"`
}

// Login is the connection of a server for one owner.
type Login struct {
	Server  string    `json:"server"`
	For     string    `json:"for"`
	State   string    `json:"state"` // connected, login needed, not connected
	Reason  string    `json:"reason,omitempty"`
	Issuer  string    `json:"issuer,omitempty"`
	Client  string    `json:"client_id,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Wanted  []string  `json:"wanted,omitempty"` // scopes that the server has requested since
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // of the access token
	Renews  bool      `json:"renews"`           // automatically, with a refresh token
}

// ForgetLogin deletes a login, and revokes it if the sign-in service supports that.
var ForgetLogin = Op[LoginRequest, ForgottenLogin]{"DELETE", "/v1/servers/{name}/login", false, "delete a login to a server"}

// ForgottenLogin reports whether the tokens were revoked.
type ForgottenLogin struct {
	Revoked bool   `json:"revoked"`
	Warning string `json:"warning,omitempty"` // why they could not be revoked
}
