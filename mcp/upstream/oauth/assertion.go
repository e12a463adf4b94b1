package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"nize/store"
)

// GrantTypeAssertion is the grant type of RFC 7523, with which an assertion is exchanged for
// an access token.
const GrantTypeAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// profileAssertion is the profile that an authorization server lists if it accepts identity
// assertion authorization grants (draft-ietf-oauth-identity-assertion-authz-grant).
const profileAssertion = "urn:ietf:params:oauth:grant-profile:id-jag"

// AssertionRequest describes the identity assertion authorization grant that a company's
// identity provider issues for one person. It is valid at one authorization server only,
// for one client and one resource.
type AssertionRequest struct {
	Issuer   string // of the authorization server that will get it
	Resource string // URL of the MCP server
	Client   string // nize's client id at the authorization server
	Scopes   []string
	Server   string // name of the server in nize, for messages
}

// takesAssertions reports whether an authorization server announces that it accepts
// assertions. Some services list only the grant type.
func (m *serverMetadata) takesAssertions() bool {
	return slices.Contains(m.Profiles, profileAssertion) || slices.Contains(m.Grants, GrantTypeAssertion)
}

// AssertionType is the type in the header of an identity assertion authorization grant.
const AssertionType = "oauth-id-jag+jwt"

// HeaderType returns the type in the header of a signed token, in lower case, or "".
func HeaderType(raw string) string {
	head, _, _ := strings.Cut(raw, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	var h struct {
		Type string `json:"typ"`
	}
	if json.Unmarshal(b, &h) != nil {
		return ""
	}
	return strings.ToLower(h.Type)
}

// Exchange is nize as a client of the token endpoint of an identity provider.
//
// [oauthex.ExchangeToken] sends the client's secret only in the form, which a provider that
// asks for the header refuses (TestExchangeOfTheSDK).
type Exchange struct {
	HTTP     *http.Client
	URL      string
	Client   string
	Secret   store.Secret
	InHeader bool // the provider takes the secret in the header
}

// Assertion exchanges a person's ID token for an identity assertion authorization grant
// (RFC 8693). The provider's refusal is an [*oauth2.RetrieveError].
func (e Exchange) Assertion(ctx context.Context, idToken store.Secret, want AssertionRequest) (none store.Secret, err error) {
	client := oauth2.Config{ClientID: e.Client, ClientSecret: e.Secret.Reveal(), Endpoint: oauth2.Endpoint{TokenURL: e.URL, AuthStyle: oauth2.AuthStyleInParams}}
	if e.InHeader {
		client.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	options := []oauth2.AuthCodeOption{
		oauth2.SetAuthURLParam("grant_type", oauthex.GrantTypeTokenExchange),
		oauth2.SetAuthURLParam("requested_token_type", oauthex.TokenTypeIDJAG),
		oauth2.SetAuthURLParam("subject_token", idToken.Reveal()),
		oauth2.SetAuthURLParam("subject_token_type", oauthex.TokenTypeIDToken),
		oauth2.SetAuthURLParam("audience", want.Issuer),
		oauth2.SetAuthURLParam("resource", want.Resource),
	}
	if len(want.Scopes) > 0 {
		options = append(options, oauth2.SetAuthURLParam("scope", strings.Join(want.Scopes, " ")))
	}
	token, err := client.Exchange(context.WithValue(ctx, oauth2.HTTPClient, e.HTTP), "", options...)
	if err != nil {
		return none, err
	}
	if kind, _ := token.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return none, fmt.Errorf("the provider issued a token of the type %q, want %q", store.Clip(kind, 100), oauthex.TokenTypeIDJAG)
	}
	if kind := HeaderType(token.AccessToken); kind != AssertionType {
		return none, fmt.Errorf("the provider issued an assertion of the type %q, want %q", store.Clip(kind, 100), AssertionType)
	}
	return store.NewSecret(token.AccessToken), nil
}

// Redeem exchanges an assertion of the identity provider about a nize user for tokens. A
// refresh token in the answer is dropped, so that the provider decides about each token.
func (c *Client) Redeem(ctx context.Context, s Service, r Registration, user string, assertion store.Secret, now time.Time) (Grant, error) {
	g := Grant{Service: s, Client: r, Person: user}
	form := url.Values{"grant_type": {GrantTypeAssertion}, "assertion": {assertion.Reveal()}}
	if len(s.Scopes) > 0 {
		form.Set("scope", strings.Join(s.Scopes, " "))
	}
	err := c.token(ctx, &g, s.Scopes, now, form)
	g.Refresh = store.Secret{}
	return g, err
}
