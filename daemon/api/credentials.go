package api

import (
	"nize/store"
	"nize/store/credential"
)

// ListCredentials lists what is sealed, never a value.
var ListCredentials = Op[Empty, List[store.Credential]]{"GET", "/v1/credentials", false, "list credentials, without their values"}

// PutCredential seals a value. An existing one of that key is replaced.
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

// ListDeclarations lists the declared credentials, as the caller meets them.
var ListDeclarations = Op[Empty, List[DeclarationView]]{"GET", "/v1/declared-credentials", false, "list declared credentials"}

// DeclarationView is a declared credential, and what there is of it.
type DeclarationView struct {
	credential.Declaration
	Connected bool     `json:"connected"`         // the caller has a value, or their team
	Given     int      `json:"given"`             // how many have one; admins alone are told
	Servers   []string `json:"servers,omitempty"` // that are called with it; admins alone are told
	Tools     []string `json:"tools,omitempty"`   // native ones that are
}

// GetDeclaration shows one.
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
	// ClientSecret is that of oauth.clientId. Without one nize is a public client, or
	// keeps the one that it has where neither the client nor an address is changed.
	ClientSecret Secret `json:"clientSecret,omitzero"`
}

// LoginDeclared begins to connect a declared credential by signing in: the answer has
// an address for a browser. [GetLoginFlow] follows it, by the credential's id.
var LoginDeclared = Op[LoginDeclaredRequest, LoginFlow]{"POST", "/v1/declared-credentials/{id}/login", false, "connect a declared credential by signing in"}

// LoginDeclaredRequest says whose login it becomes: a team's id or a person, as its
// mode says; "" is the caller.
type LoginDeclaredRequest struct {
	ID    string `path:"id" json:"-"`
	Owner string `json:"owner,omitempty"`
	// Paste is as for [LoginServer].
	Paste bool `json:"paste,omitempty"`
}

// RemoveDeclaration removes a declaration with which no server is called, and the
// values that people gave.
var RemoveDeclaration = Op[DeclarationRequest, Empty]{"DELETE", "/v1/declared-credentials/{id}", true, "remove a declared credential and its values"}
