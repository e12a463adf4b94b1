package api

import (
	"context"
	"net/url"

	"nize/store"
)

// CreateToken asks for a token. Only its answer ever shows the secret.
type CreateToken struct {
	Name      string         `json:"name"`
	User      string         `json:"user,omitempty"`    // "" is the caller
	Expires   store.Duration `json:"expires,omitempty"` // from now; 0 is 90 days
	Scopes    []string       `json:"scopes,omitempty"`
	Audience  string         `json:"audience,omitempty"` // "" is [store.ForMCP]
	Overwrite bool           `json:"overwrite,omitempty"`
}

// OwnToken asks over HTTP for a token for MCP clients, in the name of the
// owner of the token that asks (POST /auth/mcp-tokens).
type OwnToken struct {
	Name      string         `json:"name"`
	Expires   store.Duration `json:"expires,omitempty"` // from now; 0 is 90 days
	Scopes    []string       `json:"scopes,omitempty"`  // at most the maker's; those where empty
	Overwrite bool           `json:"overwrite,omitempty"`
}

// MintedToken is a new token with its secret as a field of its own, as scripts
// read it.
type MintedToken struct {
	store.Token
	Secret Secret `json:"token"`
}

// CreatedToken is a new token with its secret, shown this once.
type CreatedToken struct {
	Token  store.Token `json:"token"`
	Secret Secret      `json:"secret"`
}

// RotateToken replaces a token; the old one works on for Grace.
type RotateToken struct {
	User  string         `json:"user,omitempty"` // "" is the caller
	Grace store.Duration `json:"grace,omitempty"`
}

// TokenView is a token in a list.
type TokenView struct {
	store.Token
	State    string `json:"state"` // active, expired or revoked
	UserName string `json:"user_name,omitempty"`
}

// Revoked counts.
type Revoked struct {
	Revoked int `json:"revoked"`
}

// PutCredential seals a value. An existing one of that key is replaced.
type PutCredential struct {
	store.CredentialKey
	Host   string `json:"host,omitempty"`
	Secret Secret `json:"secret"`
}

// Tokens lists the tokens of a user; "" is every token that the caller may see.
func (c *Client) Tokens(ctx context.Context, user string) ([]TokenView, error) {
	return list[TokenView](ctx, c, request{method: "GET", path: "/v1/tokens", query: query("user", user)})
}

// CreateToken makes a token. An active one of that name is ErrExists, unless
// overwrite.
func (c *Client) CreateToken(ctx context.Context, t CreateToken) (CreatedToken, error) {
	return do[CreatedToken](ctx, c, request{method: "POST", path: "/v1/tokens", body: t})
}

// RotateToken replaces a token by a new one of the same name and scopes.
func (c *Client) RotateToken(ctx context.Context, name string, r RotateToken) (CreatedToken, error) {
	return do[CreatedToken](ctx, c, request{method: "POST", path: "/v1/tokens/" + url.PathEscape(name) + "/rotate", body: r})
}

// RevokeToken revokes one token; user "" is the caller.
func (c *Client) RevokeToken(ctx context.Context, user, name string) (Revoked, error) {
	return do[Revoked](ctx, c, request{method: "DELETE", path: "/v1/tokens/" + url.PathEscape(name), query: query("user", user)})
}

// RevokeTokens revokes all tokens of a user, or everybody's for "".
func (c *Client) RevokeTokens(ctx context.Context, user string) (Revoked, error) {
	return do[Revoked](ctx, c, request{method: "DELETE", path: "/v1/tokens", query: query("all", "1", "user", user)})
}

// Credentials lists what is sealed, never a value.
func (c *Client) Credentials(ctx context.Context) ([]store.Credential, error) {
	return list[store.Credential](ctx, c, request{method: "GET", path: "/v1/credentials"})
}

// PutCredential seals a value.
func (c *Client) PutCredential(ctx context.Context, p PutCredential) error {
	return exec(ctx, c, request{method: "PUT", path: "/v1/credentials", body: p})
}

// DeleteCredential removes a sealed value.
func (c *Client) DeleteCredential(ctx context.Context, k store.CredentialKey) error {
	q := query("scope", k.Scope, "owner", k.Owner, "service", k.Service, "name", k.Name)
	return exec(ctx, c, request{method: "DELETE", path: "/v1/credentials", query: q})
}
