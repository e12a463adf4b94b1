package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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
		"another resource": {set("resource", "resource", "https://evil.example/mcp"), "not about this server"},
		"another path":     {set("resource", "resource", s.URL+"/other"), "not about this server"},
		"no authorization server": {func(f *authtest.Faults) {
			set("resource", "authorization_servers", nil)(f)
			serve(known, http.NotFound)(f)
		}, "names no authorization server"},
		"an empty list of them": {func(f *authtest.Faults) {
			set("resource", "authorization_servers", []string{})(f)
			serve(known, http.NotFound)(f)
		}, "names no authorization server"},
		"nobody, and another's document": {func(f *authtest.Faults) {
			f.Edit = func(doc string, m map[string]any) {
				delete(m, "authorization_servers")
				if doc == "server" {
					m["issuer"] = "https://evil.example"
				}
			}
		}, "names no authorization server"},
		"an issuer that is a template": {set("server", "issuer", s.URL+"/{tenantid}/v2.0"), "another issuer"},
		"an issuer without TLS":        {set("server", "issuer", "http://evil.example/"), "another issuer"},
		"an issuer whose document names a third": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			next := map[string]string{known: "/second", known + "/second": "/third", known + "/third": "/third"}[r.URL.Path]
			fmt.Fprintf(w, `{"issuer":"%s","authorization_endpoint":"%[2]s/a","token_endpoint":"%[2]s/t","code_challenge_methods_supported":["S256"]}`, s.URL+next, s.URL)
		}), "another issuer"},
		"an issuer that names one without PKCE": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"issuer":"%s/second","authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/t"}`, s.URL)
		}), "another issuer"},
		"a document's address of another host": {set("resource", "authorization_servers", []string{"http://auth.example" + known}), "must be https"},
		"a redirect without end": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"/x", http.StatusMovedPermanently)
		}), "it answered 301"},
		"a redirect to another port": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1"+known, http.StatusFound)
		}), "redirects are not followed to another host"},
		"a redirect to a name": {serve(known, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://me@"+r.Host+"/x", http.StatusFound)
		}), "it answered 302"},
		"a clear-text issuer":          {set("resource", "authorization_servers", []string{"http://auth.example"}), "must be https"},
		"a file":                       {set("resource", "authorization_servers", []string{"file:///etc/passwd"}), "is not a URL"},
		"another issuer":               {set("server", "issuer", "https://evil.example"), "another issuer"},
		"an issuer with a path":        {set("server", "issuer", s.URL+"/tenant"), "another issuer"},
		"an issuer at another port":    {set("server", "issuer", "http://127.0.0.1:1"), "another issuer"},
		"an issuer by https":           {set("server", "issuer", strings.Replace(s.URL, "http:", "https:", 1)), "another issuer"},
		"no issuer":                    {set("server", "issuer", nil), "another issuer"},
		"a path below":                 {set("resource", "resource", s.MCP+"/below"), "not about this server"},
		"a path that begins the same":  {set("resource", "resource", s.URL+"/mc"), "not about this server"},
		"the origin of another host":   {set("resource", "resource", "http://127.0.0.2:1/"), "not about this server"},
		"the origin in a query":        {set("resource", "resource", s.URL+"/?x=/mcp"), "not about this server"},
		"dots to the server":           {set("resource", "resource", s.URL+"/other/../mcp"), "not about this server"},
		"no PKCE":                      {set("server", "code_challenge_methods_supported", nil), "--pkce-unlisted"},
		"plain PKCE":                   {set("server", "code_challenge_methods_supported", []string{"plain"}), "--pkce-unlisted"},
		"a token endpoint without TLS": {set("server", "token_endpoint", "http://evil.example/token"), "must be https"},
		"a script as the page":         {set("server", "authorization_endpoint", "javascript:alert(1)"), "is not a URL"},
		"no token endpoint":            {set("server", "token_endpoint", nil), "is not a URL"},
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
		"a page": {serve(known, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), "instead of that document"},
	} {
		s.Set(func(f *authtest.Faults) { *f = authtest.Faults{}; test.fault(f) })
		c := newClient(t)
		ch, _, err := c.Probe(t.Context(), s.MCP)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := c.Discover(t.Context(), s.MCP, ch, nil); err == nil || !strings.Contains(err.Error(), test.want) {
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
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/v1/mcp/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}, ""},
		"as 2025-03-26 had it, at its own path": {map[string]func(string) any{"/v1/mcp/.well-known/oauth-authorization-server": issued("/v1/mcp")}, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/v1/mcp/.well-known/oauth-protected-resource",
				"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
				"/.well-known/oauth-authorization-server/v1/mcp", "/.well-known/openid-configuration/v1/mcp", "/v1/mcp/.well-known/openid-configuration", "/v1/mcp/.well-known/oauth-authorization-server"}, "/v1/mcp"},
		"below the server's path, RFC 8414 appended": {map[string]func(string) any{"/v1/mcp/.well-known/oauth-protected-resource": about, "/tenant/.well-known/oauth-authorization-server": issued("/tenant")}, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/v1/mcp/.well-known/oauth-protected-resource",
				"/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/tenant/.well-known/openid-configuration", "/tenant/.well-known/oauth-authorization-server"}, "/tenant"},
		"as 2025-03-26 had it, without": {nil, "",
			[]string{"/.well-known/oauth-protected-resource/v1/mcp", "/.well-known/oauth-protected-resource", "/v1/mcp/.well-known/oauth-protected-resource",
				"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
				"/.well-known/oauth-authorization-server/v1/mcp", "/.well-known/openid-configuration/v1/mcp", "/v1/mcp/.well-known/openid-configuration", "/v1/mcp/.well-known/oauth-authorization-server"}, ""},
	} {
		asked, docs = nil, test.docs
		ch := oauth.Challenge{Bearer: true}
		if test.metadata != "" {
			ch.Metadata = web.URL + test.metadata
		}
		s, err := newClient(t).Discover(t.Context(), web.URL+"/v1/mcp", ch, nil)
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
		got, err := newClient(t).Discover(t.Context(), s.MCP, oauth.Challenge{Scopes: test.challenge}, nil)
		if err != nil || !slices.Equal(got.Scopes, test.want) {
			t.Errorf("%+v: %q, error %v", test, got.Scopes, err)
		}
	}
}

// TestTokenAnswers: answers of every form are read; what no header could carry, is no
// bearer token, or is an error under the status of a success, is refused. Nothing of
// an answer is printed.
func TestTokenAnswers(t *testing.T) {
	now := time.Now()
	hour := now.Add(time.Hour)
	for body, test := range map[string]struct {
		want    string // of the error
		scopes  string
		expires time.Time
	}{
		`{"access_token":"a b","token_type":"Bearer"}`:                                               {want: "be sent in a header"},
		`{"access_token":"a\r\nX: 1","token_type":"Bearer"}`:                                         {want: "be sent in a header"},
		`{"access_token":"abc","token_type":"DPoP"}`:                                                 {want: "of the type"},
		`{"access_token":"abc","token_type":["mac"]}`:                                                {want: "of the type"},
		`{"access_token":"abc","token_type":"N_A"}`:                                                  {want: "of the type"},
		`{"access_token":"abc","token_type":"PoP"}`:                                                  {want: "of the type"},
		`{"data":{"access_token":"abc","token_type":"DPoP"}}`:                                        {want: "of the type"},
		`{"data":["abc"],"authed_user":"abc"}`:                                                       {want: "without an access token"},
		`{"ok":false,"error":"invalid_code","data":{"access_token":"abc"}}`:                          {want: "answered invalid_code"},
		`{"ok":true,"access_token":"abc","token_type":"user","scope":"search:read,chat:write"}`:      {scopes: "search:read chat:write"}, // mcp.slack.com
		`{"ok":true,"authed_user":{"access_token":"abc","token_type":"user","expires_in":3600}}`:     {scopes: "asked", expires: hour},
		`{"code":0,"data":{"access_token":"abc","expires_in":3600,"token_type":"Bearer"}}`:           {scopes: "asked", expires: hour},
		`{"access_token":"abc","data":{"access_token":"no"},"authed_user":{"access_token":"other"}}`: {scopes: "asked"},
		`{"access_token":"abc","token_type":"BearerToken"}`:                                          {scopes: "asked"}, // Apigee
		`{"access_token":"abc","token_type":"Bearer Token"}`:                                         {scopes: "asked"},
		`{"access_token":"abc","token_type":"JWT"}`:                                                  {scopes: "asked"},
		`{"access_token":"abc","token_type":" bearer "}`:                                             {scopes: "asked"},
		`access_token=abc&token_type=mac`:                                                            {want: "of the type"},
		`{"token_type":"Bearer"}`:                                                                    {want: "without an access token"},
		`{"access_token":{"value":"abc"}}`:                                                           {want: "without an access token"},
		`[]`:                                                                                         {want: "without an access token"},
		``:                                                                                           {want: "without an access token"},
		`access_token`:                                                                               {want: "without an access token"},
		`<html>access_token=abc</html>`:                                                              {want: "a web page"},
		`{"error":"invalid_grant"}`:                                                                  {want: "answered invalid_grant"},
		`{"errors":[{"message":"client is disabled","code":"E7"}]}`:                                  {want: "answered E7: client is disabled"},
		`{"errors":["client is disabled"]}`:                                                          {want: "answered client is disabled"},
		`{"error":null,"errors":[{"detail":"x","code":5}],"detail":"no such client"}`:                {want: "answered 5: no such client"},
		`{"errors":[],"access_token":""}`:                                                            {want: "without an access token"},
		`{"errors":[],"access_token":"abc"}`:                                                         {scopes: "asked"},
		`{"errors":null,"detail":"x","access_token":"abc"}`:                                          {scopes: "asked"},
		`{"error":"invalid_grant","access_token":"abc"}`:                                             {want: "answered invalid_grant"},
		`{"ok":false,"error":"invalid_code"}`:                                                        {want: "answered invalid_code"},
		`{"error":{"code":400,"status":"DENIED","message":"no such code"}}`:                          {want: "answered DENIED: no such code"},
		`error=bad_verification_code&error_description=The+code+is+incorrect`:                        {want: "answered bad_verification_code: The code is incorrect"},
		`{"access_token":"abc","token_type":"bearer","expires_in":"3600"}`:                           {scopes: "asked", expires: hour},
		`{"access_token":"abc","token_type":"bearer","expires_in":" 3600s "}`:                        {scopes: "asked", expires: hour},
		`{"access_token":"abc","token_type":"bearer","expires_in":3600.0}`:                           {scopes: "asked", expires: hour},
		`{"access_token":"abc","token_type":"bearer","expires_in":1e300}`:                            {scopes: "asked", expires: now.Add(10 * 365 * 24 * time.Hour)},
		`{"access_token":"abc","token_type":"bearer","expires_in":-5}`:                               {scopes: "asked"},
		`{"access_token":"abc","token_type":"bearer","expires_in":"soon"}`:                           {scopes: "asked"},
		`{"access_token":"abc","expires_in":null,"scope":null,"error":null}`:                         {scopes: "asked"},
		`{"access_token":"abc","token_type":null}`:                                                   {scopes: "asked"},
		`{"access_token":"abc","token_type":""}`:                                                     {scopes: "asked"},
		"\xef\xbb\xbf" + `{"access_token":"abc"}`:                                                    {scopes: "asked"},
		`{"access_token":"abc","token_type":"BEARER","scope":["read","write"]}`:                      {scopes: "read write"},
		`{"access_token":"abc","scope":"read write","error":""}`:                                     {scopes: "read write"},
		`{"access_token":"abc","scope":[]}`:                                                          {scopes: ""},
		`{"access_token":"abc","scope":""}`:                                                          {scopes: ""},
		`{"access_token":"abc","scope":{"read":true}}`:                                               {scopes: "asked"},
		`access_token=abc&scope=repo%2Cgist&token_type=bearer`:                                       {scopes: "repo gist"},
		`access_token=abc&expires_in=3600&refresh_token=next` + "\n":                                 {scopes: "asked", expires: hour},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		g := oauth.Grant{Service: oauth.Service{Token: web.URL + "/token", Issuer: web.URL}, Client: oauth.Registration{ID: "x", Method: "none"}, Refresh: store.NewSecret("r"), Scopes: []string{"asked"}}
		got, err := newClient(t).Renew(context.Background(), g, now)
		switch {
		case test.want != "":
			if err == nil || !strings.Contains(err.Error(), test.want) || got.Access.Reveal() != "" {
				t.Errorf("%s: %v, want %q", body, err, test.want)
			}
		case err != nil || got.Access.Reveal() != "abc" || strings.Join(got.Scopes, " ") != test.scopes || !got.Expires.Equal(test.expires):
			t.Errorf("%s: scopes %q, expires %s, error %v", body, got.Scopes, got.Expires, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "abc") {
			t.Errorf("a token was printed: %s", text)
		}
		web.Close()
	}
}

// TestForgottenCode: services have names of their own for what the standard calls
// invalid_grant.
func TestForgottenCode(t *testing.T) {
	for _, test := range []struct {
		code, text string
		want       bool
	}{
		{"invalid_grant", "", true}, {"bad_refresh_token", "", true}, {"BAD_REFRESH_TOKEN", "", true}, {"invalid_refresh_token", "", true},
		{"token_expired", "", true}, {"token_revoked", "", true}, {"interaction_required", "AADSTS50076", true}, {"invalid_token", "", true},
		{"invalid_request", "The refresh token is unknown, expired or revoked", true}, {"invalid_request", "Invalid refresh_token", true},
		{"invalid_request", "refresh_token is required", false}, {"invalid_request", "missing refresh_token", false}, {"invalid_request", "", false},
		{"invalid_client", "", false}, {"slow_down", "", false}, {"temporarily_unavailable", "refresh token", false}, {"", "", false},
	} {
		if got := oauth.IsCode(fmt.Errorf("refreshing: %w", &oauth.Error{Code: test.code, Description: test.text}), "invalid_grant"); got != test.want {
			t.Errorf("%s %s: %v", test.code, test.text, got)
		}
	}
}

// TestChallenges: headers of every kind of wrongness lead to the document that they
// name, or at least say nothing that isn't so.
func TestChallenges(t *testing.T) {
	const at = "https://a.example/meta"
	for _, test := range []struct {
		headers []string
		want    oauth.Challenge
	}{
		{nil, oauth.Challenge{}},
		{[]string{`Bearer`}, oauth.Challenge{Bearer: true}},
		{[]string{`Bearer resource_metadata="https://a.example/meta", scope="a b", error="invalid_token"`}, oauth.Challenge{Bearer: true, Metadata: at, Scopes: []string{"a", "b"}, Error: "invalid_token"}},
		{[]string{`bearer realm="x" resource_metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Bearer resource_metadata=https://a.example/meta`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Bearer resource_metadata='https://a.example/meta'`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Bearer resource_metadata = "https://a.example/meta", scope="a`}, oauth.Challenge{Bearer: true, Metadata: at, Scopes: []string{"a"}}},
		{[]string{`Bearer resource_metadata="https://a.example/meta, scope=a`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Bearer: Resource_Metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`resource_metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Basic realm="x, Bearer y", Bearer resource_metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Basic realm="x"`, `Bearer resource_metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Bearer realm="x"`, `Bearer resource_metadata="https://a.example/meta"`}, oauth.Challenge{Bearer: true, Metadata: at}},
		{[]string{`Basic realm="x", scope="no"`}, oauth.Challenge{}},
		{[]string{`Basic dXNlcjpwYXNz==`}, oauth.Challenge{}},
		{[]string{`Bearer realm="resource_metadata=https://evil.example/"`}, oauth.Challenge{Bearer: true}},
		{[]string{`Bearer ` + strings.Repeat("x", 9<<10) + `, resource_metadata="https://a.example/meta"`}, oauth.Challenge{}},
	} {
		if got := oauth.ParseChallenge(test.headers); got.Bearer != test.want.Bearer || got.Metadata != test.want.Metadata || !slices.Equal(got.Scopes, test.want.Scopes) || got.Error != test.want.Error {
			t.Errorf("%.100q: %+v, want %+v", test.headers, got, test.want)
		}
	}
}

// TestSameIdentifier: what the URL standard calls the same is the same, and nothing
// else is.
func TestSameIdentifier(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/x", "https://a.example/x/", true},
		{"https://a.example", "HTTPS://A.Example", true},
		{"https://a.example", "https://a.example:443/", true},
		{"http://127.0.0.1:80/x", "http://127.0.0.1/x/", true},
		{"https://[2001:DB8::1]/x", "https://[2001:db8::1]:443/x", true},
		{"https://a.example/x?t=1", "https://a.example:443/x?t=1", true},
		{"", "", false},
		{"https://a.example", "http://a.example", false},
		{"https://a.example", "https://a.example:8443", false},
		{"https://a.example:80", "https://a.example", false},
		{"https://a.example", "https://b.example", false},
		{"https://a.example", "https://a.example.", false},
		{"https://a.example", "https://a.example.evil.example", false},
		{"https://a.example", "https://a.example@evil.example", false},
		{"https://a.example", "https://evil.example/#https://a.example", false},
		{"https://a.example/x", "https://a.example/X", false},
		{"https://a.example/x", "https://a.example/x//", false},
		{"https://a.example/x", "https://a.example/%78", false},
		{"https://a.example/x", "https://a.example/y/../x", false},
		{"https://a.example/x", "https://a.example/x?t=1", false},
		{"https://a.example/x", "https://a.example\\x", false},
		{"https://a.example", "https://\u0430.example", false},
		{"https://a.example", "//a.example", false},
		{"https://a.example", "a.example", false},
	} {
		if got := oauth.SameIdentifier(test.a, test.b); got != test.want || oauth.SameIdentifier(test.b, test.a) != got {
			t.Errorf("%q and %q: %v", test.a, test.b, got)
		}
	}
}

// TestDiscoveryTolerates: documents that are written another way than the standards
// have it, and places that answer with something else, lead to the right service.
func TestDiscoveryTolerates(t *testing.T) {
	const known, resource, openID = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/.well-known/openid-configuration"
	page := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html><p>Hello") }
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	moved := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example/", http.StatusFound)
	}
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	gone := http.HandlerFunc(http.NotFound)
	issued := func(base, issuer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/a","token_endpoint":"%[2]s/t","code_challenge_methods_supported":["S256"]}`, issuer, base)
		}
	}
	type doc = map[string]any
	for what, test := range map[string]struct {
		edit   func(base string, res, meta doc)
		serve  func(base string) map[string]http.HandlerFunc // in place of what stands there
		meta   string                                        // of the challenge
		server string                                        // as it is registered; BASE/mcp
		issuer string                                        // below BASE
	}{
		"an issuer that has another name (mcp.atlassian.com)": {serve: func(base string) map[string]http.HandlerFunc {
			named := issued(base, base+"/alias")
			return map[string]http.HandlerFunc{resource + "/mcp": gone, resource: gone, openID: gone, known: named, known + "/alias": named}
		}, issuer: "/alias"},
		"a tenant whose document is its host's (auth.atlassian.com)": {
			edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + "/tenant"} },
			serve: func(base string) map[string]http.HandlerFunc {
				return map[string]http.HandlerFunc{known + "/tenant": issued(base, base)}
			},
		},
		"a gateway's document, and its issuer's own (mcp.pagerduty.com)": {
			edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + "/gateway/"} },
			serve: func(base string) map[string]http.HandlerFunc {
				return map[string]http.HandlerFunc{known + "/gateway": issued(base, base+"/oauth/anonymous"), "/oauth/anonymous" + openID: issued(base, base+"/oauth/anonymous")}
			}, issuer: "/oauth/anonymous",
		},
		"the address of a document as the service": {edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + known} }},
		"of an OpenID document, with a path (Keycloak)": {
			edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + "/realms/a" + openID} },
			serve: func(base string) map[string]http.HandlerFunc {
				return map[string]http.HandlerFunc{"/realms/a" + openID: issued(base, base+"/realms/a")}
			},
			issuer: "/realms/a",
		},
		"of a document with its path inserted (GitHub)": {
			edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + known + "/login/oauth"} },
			serve: func(base string) map[string]http.HandlerFunc {
				return map[string]http.HandlerFunc{known + "/login/oauth": issued(base, base+"/login/oauth")}
			},
			issuer: "/login/oauth",
		},
		"a tenant that has an OpenID document alone (Entra, Cognito)": {
			edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + "/pool/v2.0"} },
			serve: func(base string) map[string]http.HandlerFunc {
				return map[string]http.HandlerFunc{"/pool/v2.0" + openID: issued(base, base+"/pool/v2.0")}
			},
			issuer: "/pool/v2.0",
		},
		"a redirect to the root's document (mcp.slack.com)": {serve: func(string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{resource + "/mcp": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, resource, http.StatusFound) }}
		}},
		"redirects with and without a slash": {serve: func(base string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{
				known: func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, known+"/", http.StatusMovedPermanently)
				},
				known + "/": func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, openID, http.StatusPermanentRedirect)
				},
			}
		}},
		"a document that names nobody, on a host that signs in": {edit: func(_ string, res, _ doc) { delete(res, "authorization_servers") }},
		"a document with an empty list":                         {edit: func(_ string, res, _ doc) { res["authorization_servers"] = []string{} }},
		"an issuer with a slash":                                {edit: func(base string, _, meta doc) { meta["issuer"] = base + "/" }},
		"a resource that names it with one":                     {edit: func(base string, res, _ doc) { res["authorization_servers"] = []string{base + "/"} }},
		"an issuer in capitals":                                 {edit: func(base string, _, meta doc) { meta["issuer"] = strings.Replace(base, "http:", "HTTP:", 1) }},
		"a resource with a slash":                               {edit: func(base string, res, _ doc) { res["resource"] = base + "/mcp/" }},
		"a server with a slash":                                 {server: "/mcp/"},
		"a server with a query":                                 {server: "/mcp?tenant=a"},
		"a resource that is the origin":                         {edit: func(base string, res, _ doc) { res["resource"] = base }},
		"a resource that is the origin, /":                      {edit: func(base string, res, _ doc) { res["resource"] = base + "/" }},
		"a resource above":                                      {edit: func(base string, res, _ doc) { res["resource"] = base + "/v1/" }, server: "/v1/mcp"},
		"a service as a text":                                   {edit: func(base string, res, _ doc) { res["authorization_servers"] = base }},
		"scopes as a text":                                      {edit: func(_ string, res, meta doc) { res["scopes_supported"], meta["scopes_supported"] = "a b", "a" }},
		"PKCE in lower case":                                    {edit: func(_ string, _, meta doc) { meta["code_challenge_methods_supported"] = []any{"plain", "s256"} }},
		"PKCE as a text":                                        {edit: func(_ string, _, meta doc) { meta["code_challenge_methods_supported"] = "S256 plain" }},
		"fields that are null, or of no type":                   {edit: func(_ string, _, meta doc) { meta["registration_endpoint"], meta["scopes_supported"] = nil, 5 }},
		"a service that is not there, and one": {edit: func(base string, res, _ doc) {
			res["authorization_servers"] = []string{"http://127.0.0.1:1", base}
		}},
		"a challenge with a relative address":     {meta: resource + "/mcp"},
		"a challenge with an address without TLS": {meta: "http://a.example/meta"},
		"a challenge with no address":             {meta: "see the manual"},
		"a challenge that names a page":           {meta: "/page", serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{"/page": page} }},
		"a challenge that names another server's": {meta: "/other", serve: func(base string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"/other": func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"resource":"https://evil.example/mcp","authorization_servers":["https://evil.example"]}`)
			}}
		}},
		"a page at the path, the document at the root": {serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{resource + "/mcp": page} }},
		"a 503 at the path": {serve: func(string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{resource + "/mcp": status(503)}
		}},
		"a redirect at the path":               {serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{resource + "/mcp": moved} }},
		"a connection that is cut at the path": {serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{resource + "/mcp": cut} }},
		"an empty document at the path": {serve: func(string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{resource + "/mcp": status(200)}
		}},
		"pages at both, and its own host's document": {serve: func(string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{resource + "/mcp": page, resource: status(500), "/mcp" + resource: page}
		}},
		"a page in place of the service's document": {serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{known: page} }},
		"a 500 in place of the service's document":  {serve: func(string) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{known: status(500)} }},
		"another issuer's in place of it": {serve: func(string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{known: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"issuer":"https://evil.example"}`) }}
		}},
		"one without PKCE before one that lists it": {serve: func(base string) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{known: func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/a","token_endpoint":"%[2]s/t"}`, base, base)
			}}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			var serve map[string]http.HandlerFunc
			var res, meta doc
			web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if do := serve[r.URL.Path]; do != nil {
					do(w, r)
					return
				}
				switch r.URL.Path {
				case resource + "/mcp", resource + "/v1/mcp", resource:
					_ = json.NewEncoder(w).Encode(res)
				case known, openID:
					_ = json.NewEncoder(w).Encode(meta)
				default:
					http.NotFound(w, r)
				}
			}))
			web.Start()
			t.Cleanup(web.Close)
			server := "/mcp"
			if test.server != "" {
				server = test.server
			}
			res = doc{"resource": web.URL + server, "authorization_servers": []string{web.URL}}
			meta = doc{"issuer": web.URL, "authorization_endpoint": web.URL + "/a", "token_endpoint": web.URL + "/t", "code_challenge_methods_supported": []string{"S256"}}
			if test.edit != nil {
				test.edit(web.URL, res, meta)
			}
			if test.serve != nil {
				serve = test.serve(web.URL)
			}
			s, err := newClient(t).Discover(t.Context(), web.URL+server, oauth.Challenge{Metadata: test.meta}, nil)
			if err != nil || !oauth.SameIdentifier(s.Issuer, web.URL+test.issuer) || s.Token != web.URL+"/t" || !strings.HasPrefix(s.Resource, web.URL) || s.PKCEUnlisted || s.Guessed {
				t.Errorf("%+v, error %v", s, err)
			}
		})
	}
}

// TestWiderResource: whoever has one path of a host that many share can't ask for
// tokens that are good at all of it.
func TestWiderResource(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mine/meta", "/mine/mcp/.well-known/oauth-protected-resource":
			fmt.Fprintf(w, `{"resource":"http://%s/","authorization_servers":["http://%[1]s"]}`, r.Host)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	for _, named := range []string{web.URL + "/mine/meta", "meta", ""} {
		s, err := newClient(t).Discover(t.Context(), web.URL+"/mine/mcp", oauth.Challenge{Metadata: named}, nil)
		if err == nil || !strings.Contains(err.Error(), "more than this server") {
			t.Errorf("%q: %+v, %v", named, s, err)
		}
	}
}

// TestNothingGuessed: the endpoints of 2025-03-26 are guessed only if all places say
// that they have nothing.
func TestNothingGuessed(t *testing.T) {
	for what, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"nothing":                {404, "", ""},
		"a failure of one place": {404, "", "503"},
		"not allowed":            {401, "", ""},
		"a page":                 {200, "<html>", "a web page"},
		"a failure":              {503, "", "503"},
		"no document":            {200, "ok", "something else than that document"},
		"another's":              {200, `{"resource":"https://evil.example/"}`, "not about this server"},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if what == "a failure of one place" && r.URL.Path == "/.well-known/oauth-protected-resource" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		}))
		s, err := newClient(t).Discover(t.Context(), web.URL+"/mcp", oauth.Challenge{}, nil)
		if test.want == "" && (err != nil || !s.Guessed || s.Token != web.URL+"/token") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
		web.Close()
	}
}

// TestAnswerOfAnother: the iss of an answer is compared as a string with the issuer as
// its own document has it. Nothing is normalised there: the code would be sent on.
func TestAnswerOfAnother(t *testing.T) {
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, `{"access_token":"abc"}`)
	}))
	t.Cleanup(web.Close)
	const issuer = "https://a.example/tenant"
	for _, test := range []struct {
		iss     []string
		promise bool
		ok      bool
	}{
		{[]string{issuer}, true, true},
		{[]string{issuer}, false, true},
		{nil, false, true},
		{nil, true, false},
		{[]string{""}, false, false},
		{[]string{issuer + "/"}, true, false},
		{[]string{"https://A.example/tenant"}, true, false},
		{[]string{"HTTPS://a.example/tenant"}, false, false},
		{[]string{"https://a.example:443/tenant"}, true, false},
		{[]string{"https://a.example/%74enant"}, true, false},
		{[]string{"https://evil.example"}, false, false},
		{[]string{issuer, "https://evil.example"}, true, false},
	} {
		before := asked
		r := oauth.Begin(oauth.Service{Issuer: issuer, Authorization: web.URL + "/a", Token: web.URL + "/t", NamesItself: test.promise}, oauth.Registration{ID: "x", Method: "none"}, "http://127.0.0.1/cb", nil)
		q := url.Values{"code": {"c"}, "state": {r.State}}
		if test.iss != nil {
			q["iss"] = test.iss
		}
		_, err := newClient(t).Finish(t.Context(), r, q, time.Now())
		if (err == nil) != test.ok || !test.ok && (!errors.Is(err, oauth.ErrIssuer) || asked != before) {
			t.Errorf("%q, promised %v: %v, %d requests", test.iss, test.promise, err, asked-before)
		}
	}
}

// FuzzChallenge: no header ends the daemon, or makes more of itself than it is.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a.example/x", scope="a b", error="invalid_token"`)
	f.Add(`Basic realm="x", Bearer scope=a`)
	f.Add(`Bearer scope="a\"b`)
	f.Add(`Bearer: resource_metadata='https://a.example', "=,;=`)
	f.Fuzz(func(t *testing.T, header string) {
		if c := oauth.ParseChallenge([]string{header}); len(c.Scopes) > 100 || !c.Bearer && (c.Metadata != "" || c.Scopes != nil) {
			t.Errorf("%q: %+v", header, c)
		}
	})
}

// FuzzTokenAnswer: no answer ends the daemon, and none gives a token that no header
// can carry.
func FuzzTokenAnswer(f *testing.F) {
	for _, seed := range []string{`{"access_token":"abc","scope":["a"],"expires_in":"1"}`, `access_token=a&scope=b%2Cc`, `{"error":{"code":1}}`, `[]`, `{"error":[1]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := &oauth.Client{HTTP: &http.Client{Transport: answer(body)}}
		g, err := c.Renew(t.Context(), oauth.Grant{Service: oauth.Service{Token: "https://a.example/token"}}, time.Now())
		if token := g.Access.Reveal(); (err == nil) != (token != "") || strings.ContainsAny(token, " \r\n\x00") {
			t.Errorf("%q: %q, %v", body, token, err)
		}
	})
}

// answer is an HTTP transport with one answer.
type answer string

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

// FuzzDocuments: whatever stands at all places, a service that is found is for the very
// server, and secrets go to it over TLS or stay on this machine.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		`{"resource":"https://a.example/mcp","authorization_servers":["https://a.example"],"issuer":"https://A.example:443/","authorization_endpoint":"https://b.example/a","token_endpoint":"https://b.example/t","code_challenge_methods_supported":"S256"}`,
		`{"resource":"https://a.example","authorization_servers":"https://a.example/x","issuer":5}`,
		`{"resource":["https://a.example/mcp"],"authorization_servers":[null,{}]}`, `<html>`, `[]`,
	} {
		f.Add(seed, "/.well-known/oauth-protected-resource")
	}
	f.Fuzz(func(t *testing.T, body, named string) {
		c := &oauth.Client{HTTP: &http.Client{Transport: answer(body)}}
		s, err := c.Discover(t.Context(), "https://a.example/mcp", oauth.Challenge{Metadata: named}, nil)
		if err != nil {
			return
		}
		if u, err := url.Parse(s.Resource); err != nil || !strings.EqualFold(u.Hostname(), "a.example") || u.User != nil {
			t.Errorf("%q: a token for %q", body, s.Resource)
		}
		for _, e := range []string{s.Token, s.Authorization} {
			if u, err := url.Parse(e); err != nil || u.Scheme != "https" && !oauth.IsLoopback(u.Hostname()) {
				t.Errorf("%q: endpoint %q", body, e)
			}
		}
	})
}

// TestRegistrationAnswers: a registration is what names a client; its id may be a
// number.
func TestRegistrationAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"client_id":"abc"}`: "abc",
		`{"client_id":77}`:    "77",
		`{"client_id":"77"}`:  "77",
		`{"client_id":9007199254740993,"client_secret_expires_at":"0"}`:               "9007199254740993",
		`{"client_id":"abc","redirect_uris":null,"client_id_issued_at":"2024-01-01"}`: "abc",
		"\xef\xbb\xbf" + `{"client_id":"abc"}`:                                        "abc",
		`{"client_id":null}`:                                                          "error: it answered without a client_id",
		`{"client_id":""}`:                                                            "error: it answered without a client_id",
		`{"client_id":["abc"]}`:                                                       "error: it answered without a client_id",
		`{"client_id":true}`:                                                          "error: it answered without a client_id",
		`{"client":{"id":"abc"}}`:                                                     "error: it answered without a client_id",
		`<html>abc</html>`:                                                            "error: it answered without a client_id",
		`{"error":"invalid_redirect_uri","error_description":"not this one"}`:         "error: the sign-in service answered invalid_redirect_uri: not this one",
		`{"client_id":"abc","token_endpoint_auth_method":"private_key_jwt"}`:          `error: it requires the client authentication "private_key_jwt"`,
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, body)
		}))
		got, err := newClient(t).Register(context.Background(), oauth.Service{Issuer: web.URL, Registration: web.URL + "/register"}, "http://127.0.0.1:1/callback")
		if why, isError := strings.CutPrefix(want, "error: "); isError && (err == nil || !strings.Contains(err.Error(), why)) || !isError && (err != nil || got.ID != want) {
			t.Errorf("%s: %q, %v; want %s", body, got.ID, err, want)
		}
		web.Close()
	}
}

// TestRegistrationTriesOtherWays: a service that refuses one way for clients to prove
// themselves is asked for the next; one that registers nobody like nize is said to.
func TestRegistrationTriesOtherWays(t *testing.T) {
	refuse := func(status int, body string) func(string) (int, string) {
		return func(string) (int, string) { return status, body }
	}
	only := func(taken string) func(string) (int, string) {
		return func(method string) (int, string) {
			if method != taken {
				return 400, `{"error":"invalid_client_metadata","error_description":"Only token_endpoint_auth_method='` + taken + `' is supported"}`
			}
			return 201, `{"client_id":"abc","client_secret":"s3cret"}`
		}
	}
	for name, test := range map[string]struct {
		listed []string
		answer func(method string) (int, string)
		want   string // how nize proves itself; "error: …"
		asked  int
	}{
		"public clients alone, lists nothing":    {nil, only("none"), "client_secret_basic", 3}, // it gave a secret
		"public clients alone, lists all":        {[]string{"none", "client_secret_basic", "client_secret_post"}, only("none"), "client_secret_basic", 3},
		"the form alone":                         {[]string{"client_secret_basic", "client_secret_post"}, only("client_secret_post"), "client_secret_post", 2},
		"a secret is promised and not given":     {nil, refuse(201, `{"client_id":"abc","token_endpoint_auth_method":"client_secret_basic"}`), "none", 1},
		"an empty secret":                        {nil, refuse(200, `{"client_id":"abc","client_secret":"","token_endpoint_auth_method":"client_secret_post"}`), "none", 1},
		"a secret that is of no use":             {nil, refuse(201, `{"client_id":"abc","client_secret":"s","token_endpoint_auth_method":"none"}`), "none", 1},
		"none of those that it lists":            {[]string{"client_secret_basic"}, only("none"), "error: Only token_endpoint_auth_method", 1},
		"an address that it does not take":       {nil, refuse(400, `{"error":"invalid_redirect_uri"}`), "error: invalid_redirect_uri", 1},
		"a token is needed (Okta)":               {nil, refuse(401, `{"errorCode":"E0000011"}`), "error: does not register nize by itself (it answered 401", 1},
		"hosts are trusted or not (Keycloak)":    {nil, refuse(403, `{"error":"insufficient_scope","error_description":"Policy 'Trusted Hosts' rejected request"}`), "error: does not register nize by itself (the sign-in service answered insufficient_scope: Policy", 1},
		"a page that is not there":               {nil, refuse(404, `<html>`), "error: does not register nize by itself (it answered 404", 1},
		"not allowed":                            {nil, refuse(405, ``), "error: does not register nize by itself (it answered 405", 1},
		"a failure of a moment is not a refusal": {nil, refuse(503, ``), "error: it answered 503", 1},
	} {
		asked := 0
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			var m struct {
				Method string `json:"token_endpoint_auth_method"`
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			status, body := test.answer(m.Method)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		got, err := newClient(t).Register(t.Context(), oauth.Service{Issuer: web.URL, Registration: web.URL, AuthMethods: test.listed}, "http://127.0.0.1:1/callback")
		why, isError := strings.CutPrefix(test.want, "error: ")
		if isError && (err == nil || !strings.Contains(err.Error(), why) || errors.Is(err, oauth.ErrUnregistered) != strings.HasPrefix(why, "does not")) || !isError && (err != nil || got.Method != test.want) || asked != test.asked {
			t.Errorf("%s: proves itself by %q, asked %d times, error %v", name, got.Method, asked, err)
		}
		web.Close()
	}
}

// TestSecretInTheForm: a service that does not see a client's secret in the header
// gets it in the form, unless it says that it takes the header alone. Nothing else is
// sent again: a code is good once.
func TestSecretInTheForm(t *testing.T) {
	const ok = `{"access_token":"abc"}`
	for name, test := range map[string]struct {
		listed []string
		basic  string // the answer to a secret in the header
		form   string // and in the form
		want   string // how nize proves itself after it; "error: …"
		asked  int
	}{
		"the header is seen":                {nil, ok, ok, "client_secret_basic", 1},
		"the header is not seen":            {nil, `{"error":"invalid_client"}`, ok, "client_secret_post", 2},
		"both are listed":                   {[]string{"client_secret_basic", "client_secret_post"}, `{"error":"invalid_client"}`, ok, "client_secret_post", 2},
		"under another name (Slack)":        {nil, `{"ok":false,"error":"bad_client_secret"}`, ok, "client_secret_post", 2},
		"the client is missing":             {nil, `{"error":"invalid_request","error_description":"client_id is required"}`, ok, "client_secret_post", 2},
		"the header alone is listed":        {[]string{"client_secret_basic"}, `{"error":"invalid_client"}`, ok, "error: invalid_client", 1},
		"neither":                           {nil, `{"error":"invalid_client"}`, `{"error":"invalid_client"}`, "error: invalid_client", 2},
		"the form fails otherwise":          {nil, `{"error":"invalid_client"}`, `{"error":"invalid_grant"}`, "error: invalid_grant", 2},
		"a code that was used":              {nil, `{"error":"invalid_grant"}`, ok, "error: invalid_grant", 1},
		"a request that is wrong in itself": {nil, `{"error":"invalid_request","error_description":"no code"}`, ok, "error: invalid_request", 1},
		"a failure":                         {nil, `no`, ok, "error: without an access token", 1},
	} {
		asked := 0
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			_, secret, basic := r.BasicAuth()
			switch {
			case basic && secret == "s3cret" && !r.PostForm.Has("client_secret"):
				fmt.Fprint(w, test.basic)
			case !basic && r.PostFormValue("client_secret") == "s3cret" && r.PostFormValue("client_id") == "x" && r.PostFormValue("refresh_token") == "r":
				fmt.Fprint(w, test.form)
			default:
				t.Errorf("%s: a secret in neither place, or in both", name)
			}
		}))
		g := oauth.Grant{Service: oauth.Service{Issuer: web.URL, Token: web.URL, AuthMethods: test.listed}, Client: oauth.Registration{ID: "x", Secret: store.NewSecret("s3cret"), Method: "client_secret_basic"}, Refresh: store.NewSecret("r")}
		got, err := newClient(t).Renew(t.Context(), g, time.Now())
		why, isError := strings.CutPrefix(test.want, "error: ")
		if isError && (err == nil || !strings.Contains(err.Error(), why)) || !isError && (err != nil || got.Client.Method != test.want) || asked != test.asked {
			t.Errorf("%s: %q, asked %d times, error %v", name, got.Client.Method, asked, err)
		}
		web.Close()
	}
}

// TestResourceBehindAProxy: a server that does not know that it is reached over TLS is
// not believed, and the error says what to do about it.
func TestResourceBehindAProxy(t *testing.T) {
	for resource, want := range map[string]string{
		"http://a.example/mcp":       "X-Forwarded-Proto",
		"http://a.example":           "X-Forwarded-Proto",
		"http://a.example:8080/mcp":  "not about this server",
		"http://evil.example/mcp":    "not about this server",
		"http://a.example/mcp-other": "not about this server",
		"https://evil.example/mcp":   "not about this server",
	} {
		c := &oauth.Client{HTTP: &http.Client{Transport: answer(`{"resource":"` + resource + `","authorization_servers":["https://a.example"]}`)}}
		if s, err := c.Discover(t.Context(), "https://a.example/mcp", oauth.Challenge{}, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Forwarded") != strings.Contains(want, "Forwarded") {
			t.Errorf("%s: %+v, %v", resource, s, err)
		}
	}
}
