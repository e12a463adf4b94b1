package api

import "time"

// GetOIDC returns nize's registration at the company's identity provider.
var GetOIDC = Op[Empty, OIDC]{"GET", "/v1/identity/oidc", true, "show the identity provider"}

// OIDC is nize's registration at an OpenID Connect provider, without the secret.
type OIDC struct {
	Issuer      string    `json:"issuer"`
	Client      string    `json:"client_id"`
	Name        string    `json:"name"`
	Scopes      []string  `json:"scopes"`
	GroupsClaim string    `json:"groups_claim"`
	HasSecret   bool      `json:"has_secret"`
	Updated     time.Time `json:"updated"`
	// URLs to enter at the provider.
	RedirectURI string `json:"redirect_uri"`
	LogoutURI   string `json:"backchannel_logout_uri"`
}

// SetOIDC sets or replaces the provider. It tests the provider first and returns
// ErrUnavailable without storing anything if the test fails, unless Force is set.
var SetOIDC = Op[SetOIDCRequest, OIDC]{"PUT", "/v1/identity/oidc", true, "set the identity provider"}

// SetOIDCRequest is a provider and nize's registration there.
type SetOIDCRequest struct {
	Issuer       string   `json:"issuer"`
	Client       string   `json:"client_id"`
	ClientSecret Secret   `json:"client_secret,omitzero"`
	Name         string   `json:"name,omitempty"`   // "" is the host of the issuer
	Scopes       []string `json:"scopes,omitempty"` // besides openid, profile and email
	GroupsClaim  string   `json:"groups_claim,omitempty"`
	Force        bool     `json:"force,omitempty"`
}

// TestOIDC tests every step of a sign-in that doesn't need a person.
var TestOIDC = Op[Empty, OIDCTest]{"POST", "/v1/identity/oidc/test", true, "test the identity provider"}

// OIDCTest has one row for each step.
type OIDCTest struct {
	OIDC
	OK    bool       `json:"ok"`
	Steps []OIDCStep `json:"steps"`
}

// OIDCStep is the result of one step.
type OIDCStep struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`           // the result
	Cure string `json:"cure,omitempty"` // what an admin should do about it
}

// RemoveOIDC removes the provider. People keep their other ways to sign in.
var RemoveOIDC = Op[Empty, Empty]{"DELETE", "/v1/identity/oidc", true, "remove the identity provider"}
