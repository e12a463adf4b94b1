package api

import (
	"nize/store"
	"nize/store/project"
)

// ListTokens lists the tokens of a user, the newest first.
var ListTokens = Op[ListTokensRequest, TokenPage]{"GET", "/v1/tokens", false, "list tokens"}

// ListTokensRequest names a user; "" is every token that the caller may see. Cursor is the
// Next of the previous page.
type ListTokensRequest struct {
	User   string `query:"user" json:"-"`
	Cursor string `query:"cursor" json:"-"`
	Limit  int    `query:"limit" json:"-"` // at most 500; 0 is 50
	// Unrevoked omits revoked tokens, once they no longer work.
	Unrevoked bool `query:"unrevoked" json:"-"`
}

// TokenPage is one page of a list.
type TokenPage struct {
	Items []TokenView `json:"items"`
	Next  string      `json:"next,omitempty"` // "" on the last page
}

// CreateToken creates a token; only this response contains the secret. It returns ErrExists
// if there is an active token with that name, unless Overwrite is set.
var CreateToken = Op[CreateTokenRequest, CreatedToken]{"POST", "/v1/tokens", false, "create a token"}

// CreateTokenRequest is a token to make.
type CreateTokenRequest struct {
	Name      string         `json:"name"`
	User      string         `json:"user,omitempty"`    // "" is the caller
	Expires   store.Duration `json:"expires,omitempty"` // from now; 0 is 90 days
	Scopes    []string       `json:"scopes,omitempty"`
	Audience  string         `json:"audience,omitempty"` // "" is [store.ForMCP]
	Overwrite bool           `json:"overwrite,omitempty"`
}

// The operations of the HTTP API on one's own tokens for MCP clients. The caller is the
// owner of the token that authenticates the request.
var (
	CreateOwnToken  = Op[CreateOwnTokenRequest, MintedToken]{"POST", "/auth/mcp-tokens", false, "create a token for an MCP client"}
	ListOwnTokens   = Op[Empty, List[TokenView]]{"GET", "/auth/mcp-tokens", false, "list the tokens for MCP clients"}
	RevokeOwnToken  = Op[RevokeOwnTokenRequest, Revoked]{"DELETE", "/auth/mcp-tokens/{name}", false, "revoke a token for an MCP client"}
	RevokeOwnTokens = Op[Empty, Revoked]{"POST", "/auth/logout-all", false, "revoke every token, including the one used for the request"}
)

// CreateOwnTokenRequest is a token to make.
type CreateOwnTokenRequest struct {
	Name      string         `json:"name"`
	Expires   store.Duration `json:"expires,omitempty"` // from now; 0 is 90 days
	Scopes    []string       `json:"scopes,omitempty"`  // a subset of the creating token's; empty is all of them
	Overwrite bool           `json:"overwrite,omitempty"`
}

// MintedToken is a new token with its secret in a field of its own, for scripts.
type MintedToken struct {
	store.Token
	Secret Secret `json:"token"`
}

// CreatedToken is a new token with its secret, which is shown only once.
type CreatedToken struct {
	Token  store.Token `json:"token"`
	Secret Secret      `json:"secret"`
}

// RevokeOwnTokenRequest names a token.
type RevokeOwnTokenRequest struct {
	Name string `path:"name" json:"-"`
}

// RotateToken replaces a token with a new one of the same name and scopes.
var RotateToken = Op[RotateTokenRequest, CreatedToken]{"POST", "/v1/tokens/{name}/rotate", false, "replace a token"}

// RotateTokenRequest names a token; the old one remains valid for Grace.
type RotateTokenRequest struct {
	Name  string         `path:"name" json:"-"`
	User  string         `json:"user,omitempty"` // "" is the caller
	Grace store.Duration `json:"grace,omitempty"`
}

// TokenView is a token in a list.
type TokenView struct {
	store.Token
	State    string `json:"state"` // active, expired or revoked
	UserName string `json:"user_name,omitempty"`
}

// RevokeToken revokes one token.
var RevokeToken = Op[RevokeTokenRequest, Revoked]{"DELETE", "/v1/tokens/{name}", false, "revoke a token"}

// RevokeTokenRequest names a token of a user; "" is the caller.
type RevokeTokenRequest struct {
	Name string `path:"name" json:"-"`
	User string `query:"user" json:"-"`
}

// RevokeTokens revokes all tokens of a user, or of everyone.
var RevokeTokens = Op[RevokeTokensRequest, Revoked]{"DELETE", "/v1/tokens", false, "revoke all tokens"}

// RevokeTokensRequest must set All. If an admin names no user, everyone's tokens are
// revoked.
type RevokeTokensRequest struct {
	All  bool   `query:"all" json:"-"`
	User string `query:"user" json:"-"`
}

// Revoked is the number of tokens revoked.
type Revoked struct {
	Revoked int `json:"revoked"`
}

// The operations on projects, which own the keys of programs that call over HTTP. Members
// see the projects that they own or belong to.
var (
	ListProjects  = Op[Empty, List[ProjectView]]{"GET", "/v1/projects", false, "list projects"}
	AddProject    = Op[AddProjectRequest, ProjectView]{"POST", "/v1/projects", true, "create a project"}
	GetProject    = Op[ProjectRequest, ProjectView]{"GET", "/v1/projects/{project}", false, "show a project"}
	PatchProject  = Op[PatchProjectRequest, ProjectView]{"PATCH", "/v1/projects/{project}", true, "add people to a project and remove them"}
	RemoveProject = Op[ProjectRequest, Empty]{"DELETE", "/v1/projects/{project}", true, "remove a project with its keys"}

	ListProjectKeys  = Op[ProjectRequest, List[project.Key]]{"GET", "/v1/projects/{project}/keys", true, "list the keys of a project"}
	CreateProjectKey = Op[CreateProjectKeyRequest, CreatedProjectKey]{"POST", "/v1/projects/{project}/keys", true, "create a key of a project"}
	RevokeProjectKey = Op[ProjectKeyRequest, project.Key]{"DELETE", "/v1/projects/{project}/keys/{key}", true, "revoke a key of a project"}
)

// ProjectView is a project with the names of its people.
type ProjectView struct {
	project.Project
	OwnerName   string   `json:"owner_name"`
	MemberNames []string `json:"member_names"`
}

// ProjectRequest names a project by its name or id.
type ProjectRequest struct {
	Project string `path:"project" json:"-"`
}

// AddProjectRequest is a project to create. People are named as in all requests; if Owner
// is empty, it is the caller.
type AddProjectRequest struct {
	Name    string   `json:"name"`
	Owner   string   `json:"owner,omitempty"`
	Members []string `json:"members,omitempty"`
	// Unattended are patterns of tools that its rounds may run without approval.
	Unattended []string `json:"unattended,omitempty"`
}

// PatchProjectRequest changes a project's people, and which tools its scheduled runs may
// use without approval.
type PatchProjectRequest struct {
	Project          string   `path:"project" json:"-"`
	Add              []string `json:"add,omitempty"`
	Remove           []string `json:"remove,omitempty"`
	AddUnattended    []string `json:"add_unattended,omitempty"`
	RemoveUnattended []string `json:"remove_unattended,omitempty"`
}

// CreateProjectKeyRequest is a key to create; the default name is "default".
type CreateProjectKeyRequest struct {
	Project string `path:"project" json:"-"`
	Name    string `json:"name,omitempty"`
}

// ProjectKeyRequest names a key.
type ProjectKeyRequest struct {
	Project string `path:"project" json:"-"`
	Key     string `path:"key" json:"-"`
}

// CreatedProjectKey is a new key; only this response contains the secret.
type CreatedProjectKey struct {
	project.Key
	Secret Secret `json:"key"`
}
