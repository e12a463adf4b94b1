package oauth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"nize/store"
)

// maxScopes is how many are asked for at once.
const maxScopes = 100

func splitScopes(text string) []string {
	list := strings.Fields(text)
	return list[:min(len(list), maxScopes)]
}

// hellos are first requests of the two wires. A server of one of them alone turns
// the other away before it asks who is there.
var hellos = []struct{ version, method, body string }{
	{"2026-07-28", "server/discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"nize","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{"2025-11-25", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"nize","version":"1"}}}`},
}

// Probe sends a server its first request without a token and returns the
// challenge of its 401. ok is false if the server lets everybody in. A 403 counts
// as well, unless the other wire is answered with a 401: some servers send it
// whenever no token came.
func (c *Client) Probe(ctx context.Context, server string) (ch Challenge, ok bool, err error) {
	for _, hello := range hellos {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, strings.NewReader(hello.body))
		if err != nil {
			return ch, false, fmt.Errorf("%w URL of the server", store.ErrInvalid)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", hello.version)
		if hello.method != "" {
			req.Header.Set("Mcp-Method", hello.method)
		}
		resp, err := c.HTTP.Do(req)
		if err != nil {
			return ch, false, hideURL(err)
		}
		_ = resp.Body.Close() // its head says it all
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			return ParseChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
		case http.StatusForbidden:
			ch, ok = ParseChallenge(resp.Header.Values("WWW-Authenticate")), true
		}
	}
	return ch, ok, nil
}

// Service is who signs people in for a server, as both documents say.
type Service struct {
	Resource      string   `json:"resource"` // what tokens are asked for; "" where an admin said who signs people in
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint,omitempty"`
	Revocation    string   `json:"revocation_endpoint,omitempty"`
	AuthMethods   []string `json:"token_endpoint_auth_methods,omitempty"` // of clients; nil where it does not say
	Documents     bool     `json:"client_id_documents,omitempty"`         // it takes the address of a document as a client's id
	NamesItself   bool     `json:"iss,omitempty"`                         // it promises iss with each answer
	PKCEUnlisted  bool     `json:"pkce_unlisted,omitempty"`               // it does not list S256, and an admin said that it may be used
	NoResource    bool     `json:"no_resource,omitempty"`                 // it refuses the parameter resource, and an admin said that it is left out
	Guessed       bool     `json:"-"`                                     // no document says any of this
	Scopes        []string `json:"-"`                                     // to be asked for
	offered       []string // all scopes of the service
}

// wantedScopes are those of the challenge, else all that the server has, else
// none; and what a refresh token needs, where there is such a scope.
func wantedScopes(challenge, resource, offered []string) []string {
	scopes := challenge
	if len(scopes) == 0 {
		scopes = resource
	}
	scopes = slices.Clone(scopes[:min(len(scopes), maxScopes)])
	return WithOffline(scopes, offered)
}

// offline is the scope that OpenID Connect has for refresh tokens.
const offline = "offline_access"

// WithOffline adds the scope for refresh tokens where it is offered.
func WithOffline(scopes, offered []string) []string {
	if slices.Contains(offered, offline) && !slices.Contains(scopes, offline) {
		return append(scopes, offline)
	}
	return scopes
}
