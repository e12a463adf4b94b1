package api

import (
	"nize/store"
	"nize/store/credential"
)

// ListCredentials lists the sealed credentials, never their values.
var ListCredentials = Op[Empty, List[store.Credential]]{"GET", "/v1/credentials", false, "list credentials, without their values"}

// PutCredential seals a value. It replaces an existing one with the same key.
var PutCredential = Op[PutCredentialRequest, Empty]{"PUT", "/v1/credentials", false, "set a credential"}

// PutCredentialRequest is a value under its key.
type PutCredentialRequest struct {
	store.CredentialKey
	Host   string `json:"host,omitempty"`
	Secret Secret `json:"secret"`
}

// DeleteCredential removes a sealed value.
var DeleteCredential = Op[DeleteCredentialRequest, Empty]{"DELETE", "/v1/credentials", false, "remove a credential"}

// DeleteCredentialRequest is a [store.CredentialKey].
type DeleteCredentialRequest struct {
	Scope   string `query:"scope" json:"-"`
	Owner   string `query:"owner" json:"-"`
	Service string `query:"service" json:"-"`
	Name    string `query:"name" json:"-"`
}

// ListDeclarations lists the declared credentials and the caller's state for each.
var ListDeclarations = Op[Empty, List[DeclarationView]]{"GET", "/v1/declared-credentials", false, "list declared credentials"}

// DeclarationView is a declared credential and which values it has.
type DeclarationView struct {
	credential.Declaration
	Connected bool     `json:"connected"`         // the caller or their team has a value
	Given     int      `json:"given"`             // number of values; only for admins
	Servers   []string `json:"servers,omitempty"` // servers that use it; only for admins
	Tools     []string `json:"tools,omitempty"`   // native tools that use it
}

// GetDeclaration returns one declared credential.
var GetDeclaration = Op[DeclarationRequest, DeclarationView]{"GET", "/v1/declared-credentials/{id}", false, "show a declared credential"}

// DeclarationRequest names a declared credential.
type DeclarationRequest struct {
	ID string `path:"id" json:"-"`
}

// Declare declares a credential, or changes the declaration of that id.
var Declare = Op[DeclareRequest, DeclarationView]{"PUT", "/v1/declared-credentials/{id}", true, "declare a credential"}

// DeclareRequest is a declaration under its id.
type DeclareRequest struct {
	ID string `path:"id" json:"-"`
	credential.Declaration
	// ClientSecret belongs to oauth.clientId. If it is empty, nize keeps the secret it has,
	// provided that neither the client nor an address changes, or else is a public client.
	ClientSecret Secret `json:"clientSecret,omitzero"`
}

// LoginDeclared starts connecting a declared credential by signing in. The response has a
// URL for a browser. [GetLoginFlow] returns the progress, by the credential's id.
var LoginDeclared = Op[LoginDeclaredRequest, LoginFlow]{"POST", "/v1/declared-credentials/{id}/login", false, "connect a declared credential by signing in"}

// LoginDeclaredRequest names the owner of the login: a team's id or a person, depending on
// the credential's mode; "" is the caller.
type LoginDeclaredRequest struct {
	ID    string `path:"id" json:"-"`
	Owner string `json:"owner,omitempty"`
	// Paste is as in [LoginServerRequest].
	Paste bool `json:"paste,omitempty"`
}

// RemoveDeclaration removes a declaration that no server uses, and the values that people
// gave.
var RemoveDeclaration = Op[DeclarationRequest, Empty]{"DELETE", "/v1/declared-credentials/{id}", true, "remove a declared credential and its values"}
