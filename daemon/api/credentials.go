package api

import "nize/store"

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
