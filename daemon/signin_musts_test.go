package daemon_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// clock is a daemon's that a test sets.
func clock(off *atomic.Int64) func(*daemon.Options) {
	return func(o *daemon.Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) } }
}

// TestAuthorizationMUSTs: what the authorization chapters of 2025-11-25 and
// 2026-07-28 demand of a server and an authorization server, by their words. What
// they demand of metadata documents of clients is in package signin.
func TestAuthorizationMUSTs(t *testing.T) {
	t.Parallel()
	var off atomic.Int64
	dir := t.TempDir()
	r := open(t, dir, nil, clock(&off))
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "read", Description: "Read a thing.", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	}}}})
	if _, err := api.AddServer.Call(t.Context(), r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Approval: store.ApproveNever}}); err != nil {
		t.Fatal(err)
	}
	const redirect = "http://localhost:1/cb"
	home := newBrowser(t, r)
	client := home.register("Editor", redirect, "https://client.example/cb")
	signIn := func(t *testing.T, b *browser, pairs ...string) tokens {
		t.Helper()
		got, p := b.redeem(client, redirect, b.grant(r, client, redirect, pairs...).Get("code"))
		if got.Access == "" {
			t.Fatalf("no token: %d %s", p.status, p.body)
		}
		return got
	}
	call := func(b *browser, token string) page {
		body, headers := rpcCall("execute_tool", `{"tool_id":"box:read","params":{}}`)
		if token != "" {
			headers = append(headers, "Authorization", "Bearer "+token)
		}
		return b.post("/mcp", inJSON, body, headers...)
	}
	document := func(t *testing.T, b *browser, path string) (doc map[string]any) {
		t.Helper()
		p := b.get(path)
		if err := json.Unmarshal([]byte(p.body), &doc); err != nil || p.status != http.StatusOK || p.header.Get("Content-Type") != inJSON {
			t.Fatalf("%s: %d %s", path, p.status, p.body)
		}
		return doc
	}
	const both, second = "both: ", "2026-07-28: "
	const server, resource = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"
	for name, test := range map[string]func(t *testing.T, b *browser){
		both + "authorization servers MUST implement OAuth 2.1 for confidential and public clients": func(t *testing.T, b *browser) {
			p := b.post("/oauth/register", inJSON, `{"client_name":"c","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"client_secret_basic","grant_types":["implicit"]}`)
			if !strings.Contains(p.body, `"token_endpoint_auth_method":"none"`) || strings.Contains(p.body, "client_secret") || strings.Contains(p.body, "implicit") {
				t.Errorf("a confidential client: %s", p.body)
			}
			for _, grant := range []string{"password", "client_credentials", "implicit", ""} {
				if got, p := b.token("grant_type", grant, "client_id", client, "username", "root", "password", "x"); got.Error != "unsupported_grant_type" || p.status != http.StatusBadRequest {
					t.Errorf("grant_type %q: %d %s", grant, p.status, p.body)
				}
			}
			for _, pairs := range [][]string{{"code_challenge", ""}, {"code_challenge_method", "plain"}, {"response_type", "token"}} {
				if p := b.get(authorizeURL(client, redirect, pairs...)); !strings.Contains(p.location, "error=") {
					t.Errorf("%v: %d %s", pairs, p.status, p.location)
				}
			}
		},
		both + "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata": func(t *testing.T, b *browser) {
			for _, path := range []string{resource, strings.TrimSuffix(resource, "/mcp")} {
				if doc := document(t, b, path); doc["resource"] != b.base+"/mcp" {
					t.Errorf("%s: %v", path, doc)
				}
			}
		},
		both + "its document MUST include authorization_servers, with at least one": func(t *testing.T, b *browser) {
			if list, _ := document(t, b, resource)["authorization_servers"].([]any); len(list) != 1 || list[0] != b.base {
				t.Errorf("authorization_servers: %v", list)
			}
		},
		both + "MCP servers MUST tell its place by WWW-Authenticate or a well-known URI": func(t *testing.T, b *browser) {
			if got := call(b, "").header.Get("WWW-Authenticate"); !strings.Contains(got, `resource_metadata="`+b.base+resource+`"`) {
				t.Errorf("WWW-Authenticate: %s", got)
			}
		},
		both + "authorization servers MUST provide RFC 8414 or OpenID discovery": func(t *testing.T, b *browser) {
			doc := document(t, b, server)
			if doc["issuer"] != b.base {
				t.Errorf("issuer %v, want %s", doc["issuer"], b.base)
			}
			for _, endpoint := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"} {
				if at, _ := doc[endpoint].(string); !strings.HasPrefix(at, b.base+"/oauth/") {
					t.Errorf("%s: %q", endpoint, at)
				}
			}
		},
		both + "without code_challenge_methods_supported clients MUST refuse": func(t *testing.T, b *browser) {
			if list, _ := document(t, b, server)["code_challenge_methods_supported"].([]any); len(list) != 1 || list[0] != "S256" {
				t.Errorf("code_challenge_methods_supported: %v", list)
			}
		},
		second + "servers that include iss MUST advertise it": func(t *testing.T, b *browser) {
			doc := document(t, b, server)
			if doc["authorization_response_iss_parameter_supported"] != true || b.grant(r, client, redirect).Get("iss") != doc["issuer"] {
				t.Errorf("iss: %v", doc)
			}
			u, err := url.Parse(b.get(authorizeURL(client, redirect, "scope", "nonsense")).location)
			if err != nil || u.Query().Get("iss") != doc["issuer"] || u.Query().Get("error") != "invalid_scope" {
				t.Errorf("an error: %v %v", u, err)
			}
		},
		both + "servers MUST validate access tokens; invalid or expired ones MUST receive 401": func(t *testing.T, b *browser) {
			got := signIn(t, b)
			if p := call(b, got.Access); p.status != http.StatusOK {
				t.Fatalf("a good token: %d %s", p.status, p.body)
			}
			for _, bad := range []string{got.Access + "x", got.Access[:len(got.Access)-1], got.Refresh, "x", strings.ToUpper(got.Access)} {
				if p := call(b, bad); p.status != http.StatusUnauthorized || !strings.Contains(p.header.Get("WWW-Authenticate"), `error="invalid_token"`) || strings.Contains(p.body, got.Access) {
					t.Errorf("a bad token: %d %s", p.status, p.body)
				}
			}
			off.Store(int64(time.Hour))
			defer off.Store(0)
			if p := call(b, got.Access); p.status != http.StatusUnauthorized || !strings.Contains(p.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("an expired token: %d %s", p.status, p.body)
			}
			if next, p := b.refresh(client, got.Refresh); next.Access == "" {
				t.Errorf("refreshed after an hour: %d %s", p.status, p.body)
			}
		},
		both + "authorization MUST be in every request, also within a session": func(t *testing.T, b *browser) {
			bearer := []string{"Authorization", "Bearer " + signIn(t, b).Access, "Accept", "application/json, text/event-stream"}
			p := b.post("/mcp", inJSON, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, bearer...)
			session := p.header.Get("Mcp-Session-Id")
			if session == "" {
				t.Fatalf("no session: %d %s", p.status, p.body)
			}
			if p := b.post("/mcp", inJSON, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", session, "Accept", "application/json, text/event-stream"); p.status != http.StatusUnauthorized {
				t.Errorf("a request of a session without a token: %d", p.status)
			}
			end, err := http.NewRequest(http.MethodDelete, b.base+"/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			end.Header.Set("Authorization", bearer[1])
			end.Header.Set("Mcp-Session-Id", session)
			b.send(end)
		},
		both + "access tokens MUST NOT be in the URI": func(t *testing.T, b *browser) {
			token := signIn(t, b).Access
			for _, name := range []string{"access_token", "token"} {
				if p := b.post("/mcp?"+name+"="+token, inJSON, `{}`); p.status != http.StatusUnauthorized {
					t.Errorf("%s: %d", name, p.status)
				}
			}
		},
		both + "servers MUST only accept tokens issued for themselves": func(t *testing.T, b *browser) {
			made, err := api.CreateToken.Call(t.Context(), r.Client, api.CreateTokenRequest{Name: "for-the-api", Audience: store.ForAPI})
			if err != nil {
				t.Fatal(err)
			}
			if p := call(b, made.Secret.Reveal()); p.status != http.StatusUnauthorized {
				t.Errorf("a token of another audience: %d", p.status)
			}
			req, err := http.NewRequest(http.MethodGet, b.base+"/api/models", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+signIn(t, b).Access)
			if p := b.send(req); p.status != http.StatusUnauthorized {
				t.Errorf("an access token at the API: %d", p.status)
			}
			code := b.grant(r, client, redirect, "resource", b.base+"/mcp").Get("code")
			if got, p := b.token("grant_type", "authorization_code", "client_id", client, "redirect_uri", redirect, "code", code, "code_verifier", verifier, "resource", "https://elsewhere.example/mcp"); got.Error != "invalid_target" {
				t.Errorf("a token for another resource: %s", p.body)
			}
			if p := b.get(authorizeURL(client, redirect, "resource", "https://elsewhere.example/mcp")); !strings.Contains(p.location, "error=invalid_target") {
				t.Errorf("a code for another resource: %s", p.location)
			}
		},
		both + "servers MUST NOT pass a token through": func(t *testing.T, b *browser) {
			token := signIn(t, b).Access
			if p := call(b, token); !strings.Contains(p.body, "done") {
				t.Fatalf("the call: %d %s", p.status, p.body)
			}
			for _, h := range up.Headers() {
				for name, values := range h {
					if name == "Cookie" || name == "Authorization" || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, token) }) {
						t.Errorf("the upstream was sent %s: %q", name, values)
					}
				}
			}
		},
		both + "servers MUST return 401, 403 and 400 for what they mean": func(t *testing.T, b *browser) {
			body, headers := rpcCall("execute_tool", `{"tool_id":"box:read","params":{}}`)
			narrow := b.post("/mcp", inJSON, body, append(headers, "Authorization", "Bearer "+signIn(t, b, "scope", "tools:none:*").Access)...)
			if p := call(b, ""); p.status != http.StatusUnauthorized || narrow.status != http.StatusForbidden || b.get("/oauth/authorize").status != http.StatusBadRequest {
				t.Errorf("without a token %d, without the scope %d, without anything %d", p.status, narrow.status, b.get("/oauth/authorize").status)
			}
		},
		second + "servers MUST account for scope hierarchies": func(t *testing.T, b *browser) {
			for _, scope := range []string{"mcp", "tools:*", "tools:box:*", "tools:box:read"} {
				if p := call(b, signIn(t, b, "scope", scope).Access); p.status != http.StatusOK {
					t.Errorf("%s: %d %s", scope, p.status, p.body)
				}
			}
		},
		both + "tokens MUST be stored securely": func(t *testing.T, b *browser) {
			q := b.grant(r, client, redirect)
			got, _ := b.redeem(client, redirect, q.Get("code"))
			next, _ := b.refresh(client, got.Refresh)
			for _, secret := range []string{q.Get("code"), got.Access, got.Refresh, next.Access, next.Refresh} {
				for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:20], hex.EncodeToString([]byte(secret))} {
					err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
						if err != nil || !e.Type().IsRegular() {
							return err
						}
						text, err := os.ReadFile(path)
						if bytes.Contains(text, []byte(form)) {
							t.Errorf("%s holds a secret", path)
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		},
		both + "authorization servers MUST rotate refresh tokens of public clients": func(t *testing.T, b *browser) {
			got := signIn(t, b)
			if next, p := b.refresh(client, got.Refresh); next.Refresh == "" || next.Refresh == got.Refresh || next.Access == got.Access {
				t.Errorf("refreshed: %d %s", p.status, p.body)
			}
		},
		both + "all redirect URIs MUST be localhost or use HTTPS": func(t *testing.T, b *browser) {
			for _, bad := range []string{"http://client.example/cb", "http://10.0.0.1/cb", "javascript:alert(1)", "ftp://client.example/"} {
				if p := b.post("/oauth/register", inJSON, `{"redirect_uris":["`+bad+`"]}`); p.status != http.StatusBadRequest && p.status != http.StatusTooManyRequests {
					t.Errorf("%s: %d %s", bad, p.status, p.body)
				}
			}
		},
		both + "authorization servers MUST validate exact redirect URIs": func(t *testing.T, b *browser) {
			for _, bad := range []string{"https://client.example/cb/", "https://client.example/cb?x=1", "https://client.example/CB", "https://evil.example/cb"} {
				if p := b.get(authorizeURL(client, bad)); p.status != http.StatusBadRequest || p.location != "" {
					t.Errorf("%s: %d to %q", bad, p.status, p.location)
				}
			}
		},
		both + "user agents MUST NOT be redirected to untrusted URIs": func(t *testing.T, b *browser) {
			for _, bad := range []string{authorizeURL("c_unknown", "https://evil.example/"), authorizeURL(client, "https://evil.example/", "response_type", "x")} {
				if p := b.get(bad); p.status != http.StatusBadRequest || p.location != "" || strings.Contains(p.body, "evil.example") {
					t.Errorf("%s: %d to %q", bad, p.status, p.location)
				}
			}
		},
		both + "the redirect host MUST be displayed": func(t *testing.T, b *browser) {
			for at, want := range map[string]string{"https://client.example/cb": "client.example", redirect: "a program on this computer"} {
				_, p := b.open(authorizeURL(client, at))
				host := strings.Split(at, "/")[2]
				if !strings.Contains(p.body, host) || !strings.Contains(p.body, want) || !strings.Contains(p.body, "unverified name") {
					t.Errorf("%s: %s", at, p.body)
				}
				b.deny(r, p) // an address has few that are open
			}
		},
		both + "MCP proxies MUST obtain consent for each registered client": func(t *testing.T, b *browser) {
			b.enter(r)
			first := b.get(authorizeURL(client, redirect))
			shown := b.get(first.location)
			if p := b.post("/oauth/requests/"+strings.TrimPrefix(first.location, "/oauth/authorize?request="), form, url.Values{"form": {formOf(shown)}, "allow": {"yes"}}.Encode()); !strings.Contains(p.body, "code=") {
				t.Fatalf("allowed: %d %s", p.status, p.body)
			}
			for _, id := range []string{client, b.register("another", redirect)} { // and the same one again
				if p := b.get(authorizeURL(id, redirect)); !strings.HasPrefix(p.location, "/oauth/authorize?request=") {
					t.Errorf("without a page: %d %s", p.status, p.location)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t, r)
			test(t, b)
		})
	}
}

// deny ends the request of a page.
func (b *browser) deny(r *testDaemon, p page) {
	b.t.Helper()
	if _, err := api.DenyLogin.Call(b.t.Context(), r.Client, api.LoginCodeRequest{Code: codeOf(p)}); err != nil {
		b.t.Fatal(err)
	}
}

// enter signs the browser in as the caller at the socket.
func (b *browser) enter(r *testDaemon) {
	b.t.Helper()
	made, err := api.StartLogin.Call(b.t.Context(), r.Client, api.StartLoginRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	_, secret, _ := strings.Cut(made.URL.Reveal(), "#")
	p := b.get(b.get("/login").location)
	if p = b.post("/login", form, url.Values{"form": {formOf(p)}, "secret": {secret}}.Encode()); p.status != http.StatusSeeOther {
		b.t.Fatalf("signing in: %d %s", p.status, p.body)
	}
}
