package api

import (
	"time"
)

// LoginServer begins to connect a server by signing in at it: the answer has an
// address for a browser. Nothing waits for what happens there.
var LoginServer = Op[LoginServerRequest, LoginFlow]{"POST", "/v1/servers/{name}/login", false, "connect a server by signing in at it"}

// LoginServerRequest says whose login it becomes: User's, Team's, or the shared
// one (of members: their own).
type LoginServerRequest struct {
	Name string `path:"name" json:"-"`
	User string `json:"user,omitempty"`
	Team string `json:"team,omitempty"`
	// ClientID and ClientSecret are what the sign-in service's operator gave out;
	// none are needed where it registers clients by itself.
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret Secret   `json:"client_secret,omitzero"`
	Scopes       []string `json:"scopes,omitempty"` // no others than these
	// PKCEUnlisted uses a sign-in service that does not list PKCE with S256. It stays
	// accepted for this server, as long as it is the same service.
	PKCEUnlisted bool `json:"pkce_unlisted,omitempty"`
	// NoResource leaves out the parameter resource (RFC 8707), for a sign-in service
	// that refuses it. It stays so for this server, as long as it is the same service.
	NoResource bool `json:"no_resource,omitempty"`
	// Paste asks for the address of the sign-in service itself, for a browser
	// that does not reach nize: [FinishLogin] gets the address where it ended.
	Paste bool `json:"paste,omitempty"`
}

// LoginFlow is a login that is under way.
type LoginFlow struct {
	ID      string     `json:"id"`
	Server  string     `json:"server"`
	For     string     `json:"for"`           // shared, user:NAME or team:ID
	URL     string     `json:"url,omitempty"` // once, for the browser of the person
	Issuer  string     `json:"issuer"`        // who signs people in
	Scopes  []string   `json:"scopes"`
	Expires time.Time  `json:"expires"`
	State   LoginState `json:"state"`
	Error   string     `json:"error,omitempty"` // why it failed
}

// LoginState is how far a login has come.
type LoginState string

const (
	LoginWaiting LoginState = "waiting" // for somebody in a browser
	LoginDone    LoginState = "done"
	LoginFailed  LoginState = "failed"
)

// GetLoginFlow says how far a login has come.
var GetLoginFlow = Op[LoginFlowRequest, LoginFlow]{"GET", "/v1/servers/{name}/login/{flow}", false, "follow a login that is under way"}

// LoginFlowRequest names a login that is under way.
type LoginFlowRequest struct {
	Name string `path:"name" json:"-"`
	Flow string `path:"flow" json:"-"`
}

// FinishLogin takes the address at which the browser ended.
var FinishLogin = Op[FinishLoginRequest, LoginFlow]{"POST", "/v1/servers/{name}/login/{flow}", false, "finish a login with the address where the browser ended"}

// FinishLoginRequest has that address.
type FinishLoginRequest struct {
	Name    string `path:"name" json:"-"`
	Flow    string `path:"flow" json:"-"`
	Address Secret `json:"address"`
}

// GetLogin shows a login.
var GetLogin = Op[LoginRequest, Login]{"GET", "/v1/servers/{name}/login", false, "show how a server is connected"}

// LoginRequest names a login as [LoginServerRequest] does.
type LoginRequest struct {
	Name string `path:"name" json:"-"`
	User string `query:"user" json:"-"`
	Team string `query:"team" json:"-"`
}

// Login is how a server is connected for somebody.
type Login struct {
	Server  string    `json:"server"`
	For     string    `json:"for"`
	State   string    `json:"state"` // connected, login needed, not connected
	Reason  string    `json:"reason,omitempty"`
	Issuer  string    `json:"issuer,omitempty"`
	Client  string    `json:"client_id,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Wanted  []string  `json:"wanted,omitempty"` // scopes that the server asked for since
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // of the access token
	Renews  bool      `json:"renews"`           // by itself, with a refresh token
}

// ForgetLogin forgets a login, and revokes it where the sign-in service can.
var ForgetLogin = Op[LoginRequest, ForgottenLogin]{"DELETE", "/v1/servers/{name}/login", false, "forget a login at a server"}

// ForgottenLogin says whether the tokens are of no more use anywhere.
type ForgottenLogin struct {
	Revoked bool   `json:"revoked"`
	Warning string `json:"warning,omitempty"` // why they could not be revoked
}
