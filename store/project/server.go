package project

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"nize/store"
)

// Server is an MCP server that a program brings with a request. It is contacted
// for the project alone, and forgotten when nobody uses it.
type Server struct {
	Label   string // as the program calls it; the project's credentials are filed under it
	Slug    string // of the label, for names
	URL     string
	Headers map[string]Header
}

// Header is the value of a header: a text, which is a secret like any other, or
// the name of a credential of the project's, {"secret_key":"NAME"} in JSON.
type Header struct {
	Text      store.Secret
	SecretKey string
}

// UnmarshalJSON reads either form; nothing writes one.
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

// OneOf says what it may be, for the document of the API.
func (Header) OneOf() []any {
	return []any{"", struct {
		SecretKey string `json:"secret_key" doc:"a credential of the project's under the server's label"`
	}{}}
}

// CredentialKey names the credential behind a header of a project's.
func (s Server) CredentialKey(project string, h Header) store.CredentialKey {
	return store.CredentialKey{Scope: "project", Owner: project, Service: s.Label, Name: h.SecretKey}
}

// NoCredentialError says that a header names a credential which the project has not.
type NoCredentialError struct{ Header string }

func (e *NoCredentialError) Error() string { return "no credential for header " + e.Header }

// Servers keeps what calls need that wait for a yes longer than anybody uses their
// server, or over a restart. It is sealed.
type Servers interface {
	// PutTemporaryServer stores a record under a name whose last part is an id
	// (store.NewID). It goes with the rounds of its time, see [Rounds].
	PutTemporaryServer(ctx context.Context, project, name string, record json.RawMessage) error
	// GetTemporaryServer returns it. ErrNotFound for one that was pruned, or whose
	// project is gone.
	GetTemporaryServer(ctx context.Context, name string) (record json.RawMessage, err error)
}
