package project

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"nize/store"
)

// Server is an MCP server that a program sends with a request. It is contacted only for the
// project, and dropped when it is unused.
type Server struct {
	Label   string // the program's name for it; the project's credentials are stored under it
	Slug    string // the label in the form of a name
	URL     string
	Headers map[string]Header
}

// Header is the value of a header: a text, which is a secret like any other, or the name of
// a credential of the project, {"secret_key":"NAME"} in JSON.
type Header struct {
	Text      store.Secret
	SecretKey string
}

// UnmarshalJSON reads either form. There is no MarshalJSON.
func (h *Header) UnmarshalJSON(b []byte) error {
	*h = Header{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &h.Text)
	}
	var ref struct {
		SecretKey string `json:"secret_key"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&ref); err != nil || ref.SecretKey == "" {
		return fmt.Errorf("%w header", store.ErrInvalid)
	}
	h.SecretKey = ref.SecretKey
	return nil
}

// OneOf returns the alternative forms, for the API's description.
func (Header) OneOf() []any {
	return []any{"", struct {
		SecretKey string `json:"secret_key" doc:"a credential of the project's under the server's label"`
	}{}}
}

// CredentialKey returns the key of a project's credential for a header.
func (s Server) CredentialKey(project string, h Header) store.CredentialKey {
	return store.CredentialKey{Scope: "project", Owner: project, Service: s.Label, Name: h.SecretKey}
}

// NoCredentialError is returned if a header names a credential that the project doesn't
// have.
type NoCredentialError struct{ Header string }

func (e *NoCredentialError) Error() string { return "no credential for header " + e.Header }

// Servers stores the data for calls that wait for approval longer than their server is
// used, or across a restart. It is sealed.
type Servers interface {
	// PutTemporaryServer stores a record under a name whose last part is an id
	// (store.NewID). It is pruned with the rounds of its time, see [Rounds].
	PutTemporaryServer(ctx context.Context, project, name string, record json.RawMessage) error
	// GetTemporaryServer returns the record. It returns ErrNotFound if it was pruned, or
	// its project deleted.
	GetTemporaryServer(ctx context.Context, name string) (record json.RawMessage, err error)
}
