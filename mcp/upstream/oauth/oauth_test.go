package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/mcp/upstream/authtest"
	"nize/mcp/upstream/oauth"
	"nize/store"
)

func newClient(t *testing.T) *oauth.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &oauth.Client{HTTP: &http.Client{Transport: tr, Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// TestDiscoveryRefuses: documents that lead elsewhere, that are another's, or with
// which signing in would not be safe.
func TestDiscoveryRefuses(t *testing.T) {
	s := authtest.New("http://127.0.0.1:1/mcp")
	t.Cleanup(s.Close)
	set := func(name, key string, value any) func(*authtest.Faults) {
		return func(f *authtest.Faults) {
			f.Edit = func(doc string, m map[string]any) {
				if doc == name {
					if m[key] = value; value == nil {
						delete(m, key)
					}
				}
			}
		}
	}
	serve := func(path string, do http.HandlerFunc) func(*authtest.Faults) {
		return func(f *authtest.Faults) {
			f.Serve = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, path) {
					return false
				}
				do(w, r)
				return true
			}
		}
	}
	const known = "/.well-known/oauth-authorization-server"
	for what, test := range map[string]struct {
		fault func(*authtest.Faults)
		want  string
	}{
		"another resource":             {set("resource", "resource", "https://evil.example/mcp"), "not about this server"},
		"another path":                 {set("resource", "resource", s.URL+"/other"), "not about this server"},
		"no authorization server":      {set("resource", "authorization_servers", nil), "names nobody"},
		"a clear-text issuer":          {set("resource", "authorization_servers", []string{"http://auth.example"}), "must be https"},
		"a file":                       {set("resource", "authorization_servers", []string{"file:///etc/passwd"}), "no address"},
		"another issuer":               {set("server", "issuer", "https://evil.example"), "another issuer"},
		"an issuer with a slash":       {set("server", "issuer", s.URL+"/"), "another issuer"},
		"no PKCE":                      {set("server", "code_challenge_methods_supported", nil), "PKCE with S256"},
		"plain PKCE":                   {set("server", "code_challenge_methods_supported", []string{"plain"}), "PKCE with S256"},
		"a token endpoint without TLS": {set("server", "token_endpoint", "http://evil.example/token"), "must be https"},
		"a script as the page":         {set("server", "authorization_endpoint", "javascript:alert(1)"), "no address"},
		"no token endpoint":            {set("server", "token_endpoint", nil), "no address"},
		"a redirect": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}), "redirects are not followed"},
		"a document without end": {serve(known, func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}), "over 64 KiB"},
		"a page": {serve(known, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), "no such document"},
	} {
		s.Set(func(f *authtest.Faults) { *f = authtest.Faults{}; test.fault(f) })
		c := newClient(t)
		ch, _, err := c.Probe(t.Context(), s.MCP)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := c.Discover(t.Context(), s.MCP, ch); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
	}
}

// TestDiscoveryOrder: where each document is looked for, in the protocol's order.
func TestDiscoveryOrder(t *testing.T) {
	var asked []string
	docs := map[string]func(base string) any{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		doc, ok := docs[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(doc("http://" + r.Host))
	}))
	t.Cleanup(web.Close)
	issued := func(path string) func(string) any {
		return func(base string) any {
			return map[string]any{"issuer": base + path, "authorization_endpoint": base + "/a", "token_endpoint": base + "/t", "code_challenge_methods_supported": []string{"S256"}}
		}
	}
	about := func(base string) any {
		return map[string]any{"resource": base + "/v1/mcp", "authorization_servers": []string{base + "/tenant"}}
	}
	for what, test := range map[string]struct {
		docs     map[string]func(string) any
		metadata string
		want     []string
		issuer   string
	}{
		"named by the challenge": {map[string]func(string) any{"/meta": about, "/.well-known/oauth-authorization-server/tenant": issued("/tenant")}, "/meta",
			[]string{"/meta", "/.well-known/oauth-authorization-server/tenant"}, "/tenant"},
		"with the path, OpenID appended": {map[string]func(string) any{"/.well-known/oauth-protected-resource/v1/mcp": about, "/tenant/.well-known/openid-configuration": issued("/tenant")}, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/tenant/.well-known/openid-configuration"}, "/tenant"},
		"at the root, OpenID inserted": {map[string]func(string) any{"/.well-known/oauth-protected-resource": about, "/.well-known/openid-configuration/tenant": issued("/tenant")}, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant"}, "/tenant"},
		"as 2025-03-26 had it, with a document": {map[string]func(string) any{"/.well-known/oauth-authorization-server": issued("")}, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}, ""},
		"as 2025-03-26 had it, without": {nil, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}, ""},
	} {
		asked, docs = nil, test.docs
		ch := oauth.Challenge{Bearer: true}
		if test.metadata != "" {
			ch.Metadata = web.URL + test.metadata
		}
		s, err := newClient(t).Discover(t.Context(), web.URL+"/v1/mcp", ch)
		if err != nil || !slices.Equal(asked, test.want) || s.Issuer != web.URL+test.issuer || s.Resource != web.URL+"/v1/mcp" {
			t.Errorf("%s: asked %q, issuer %q, resource %q, error %v", what, asked, s.Issuer, s.Resource, err)
		}
		if test.docs == nil && (s.Authorization != web.URL+"/authorize" || s.Token != web.URL+"/token" || s.Registration != web.URL+"/register") {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// TestScopes: those of the challenge, else those of the server, else none.
func TestScopes(t *testing.T) {
	s := authtest.New("http://127.0.0.1:1/mcp")
	t.Cleanup(s.Close)
	for _, test := range []struct {
		challenge []string
		server    []string
		offered   []string
		want      []string
	}{
		{[]string{"a"}, []string{"a", "b"}, nil, []string{"a"}},
		{nil, []string{"a", "b"}, []string{"offline_access"}, []string{"a", "b", "offline_access"}},
		{nil, nil, nil, nil},
		{[]string{"a", "offline_access"}, nil, []string{"offline_access"}, []string{"a", "offline_access"}},
	} {
		s.Set(func(f *authtest.Faults) {
			f.Edit = func(name string, doc map[string]any) {
				if name == "resource" {
					doc["scopes_supported"] = test.server
				} else {
					doc["scopes_supported"] = test.offered
				}
			}
		})
		got, err := newClient(t).Discover(t.Context(), s.MCP, oauth.Challenge{Scopes: test.challenge})
		if err != nil || !slices.Equal(got.Scopes, test.want) {
			t.Errorf("%+v: %q, error %v", test, got.Scopes, err)
		}
	}
}

// TestTokenAnswers: what no header could carry, or is no bearer token, is refused,
// and nothing of an answer is printed.
func TestTokenAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"access_token":"a b","token_type":"Bearer"}`:       "no header can carry",
		`{"access_token":"a\r\nX: 1","token_type":"Bearer"}`: "no header can carry",
		`{"access_token":"abc","token_type":"DPoP"}`:         "of the type",
		`{"token_type":"Bearer"}`:                            "without an access token",
		`[]`:                                                 "without an access token",
		`{"access_token":"abc","token_type":"bearer","expires_in":"3600"}`: "",
		`{"access_token":"abc","token_type":"bearer","expires_in":1e300}`:  "",
		`{"access_token":"abc","token_type":"bearer","expires_in":-5}`:     "",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		g := oauth.Grant{Service: oauth.Service{Token: web.URL + "/token", Issuer: web.URL}, Client: oauth.Registration{ID: "x", Method: "none"}, Refresh: store.NewSecret("r")}
		got, err := newClient(t).Renew(context.Background(), g, time.Now())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
		if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "abc") {
			t.Errorf("a token was printed: %s", text)
		}
		web.Close()
	}
}

// FuzzChallenge: no header ends the daemon, or makes more of itself than it is.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a.example/x", scope="a b", error="invalid_token"`)
	f.Add(`Basic realm="x", Bearer scope=a`)
	f.Add(`Bearer scope="a\"b`)
	f.Fuzz(func(t *testing.T, header string) {
		if c := oauth.ParseChallenge([]string{header}); len(c.Scopes) > 100 || !c.Bearer && (c.Metadata != "" || c.Scopes != nil) {
			t.Errorf("%q: %+v", header, c)
		}
	})
}
