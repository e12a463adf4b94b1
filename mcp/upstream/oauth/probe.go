package oauth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"nize/store"
)

// maxScopes is how many scopes are requested at once.
const maxScopes = 100

func splitScopes(text string) []string {
	list := strings.Fields(text)
	return list[:min(len(list), maxScopes)]
}

// hellos are the first requests of the two protocol variants. A server that supports only
// one of them rejects the other before it checks authentication.
var hellos = []struct{ version, method, body string }{
	{"2026-07-28", "server/discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"nize","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{"2025-11-25", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"nize","version":"1"}}}`},
}

// Probe sends a server its first request without a token and returns the challenge of its
// 401. It returns ok false if the server requires no authentication. A 403 counts as well,
// unless the other protocol variant gets a 401, because some servers respond 403 whenever
// the token is missing.
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
		_ = resp.Body.Close() // only the headers are used
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			return ParseChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
		case http.StatusForbidden:
			ch, ok = ParseChallenge(resp.Header.Values("WWW-Authenticate")), true
		}
	}
	return ch, ok, nil
}

// Service is the authorization server of a server, according to both documents.
type Service struct {
	Resource      string   `json:"resource"` // the resource for which tokens are requested; "" if an admin chose the authorization server
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint,omitempty"`
	Revocation    string   `json:"revocation_endpoint,omitempty"`
	AuthMethods   []string `json:"token_endpoint_auth_methods,omitempty"` // nil if not declared
	Documents     bool     `json:"client_id_documents,omitempty"`         // it accepts a document's URL as a client id
	NamesItself   bool     `json:"iss,omitempty"`                         // it declares that each response contains iss
	PKCEUnlisted  bool     `json:"pkce_unlisted,omitempty"`               // it doesn't list S256, and an admin allowed its use
	Assertions    bool     `json:"assertions,omitempty"`                  // it announces that it accepts assertions of a company's identity provider
	NoResource    bool     `json:"no_resource,omitempty"`                 // it refuses the parameter resource, and an admin allowed to omit it
	Guessed       bool     `json:"-"`                                     // not based on a document
	Scopes        []string `json:"-"`                                     // scopes to request
	offered       []string // all scopes of the service
}

// wantedScopes returns the scopes of the challenge, else all scopes of the server, else
// none; and the scope for refresh tokens if it exists.
func wantedScopes(challenge, resource, offered []string) []string {
	scopes := challenge
	if len(scopes) == 0 {
		scopes = resource
	}
	scopes = slices.Clone(scopes[:min(len(scopes), maxScopes)])
	return WithOffline(scopes, offered)
}

// offline is OpenID Connect's scope for refresh tokens.
const offline = "offline_access"

// IsOffline reports whether a scope asks for refresh tokens.
func IsOffline(scope string) bool { return scope == offline }

// WithOffline adds the scope for refresh tokens if it is offered.
func WithOffline(scopes, offered []string) []string {
	if slices.Contains(offered, offline) && !slices.Contains(scopes, offline) {
		return append(scopes, offline)
	}
	return scopes
}
