package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// TestOwnTokens: a program with a token for the API makes, lists and revokes
// its owner's tokens for MCP clients, within its own scopes, and nothing else.
func TestOwnTokens(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	status, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	mint := func(name, audience string, scopes ...string) string {
		made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: name, User: "mia", Audience: audience, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return made.Secret.Reveal()
	}
	all, narrow, mcp := mint("all", store.ForAPI), mint("narrow", store.ForAPI, "tools:files:*"), mint("client", store.ForMCP)
	admins, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "client"}) // somebody else's of the same name
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+status.Listen+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for _, test := range []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{"", "GET", "/auth/mcp-tokens", "", 401, "a token is needed"},
		{"nize_nonsense", "GET", "/auth/mcp-tokens", "", 401, `"type":"invalid_token"`},
		{mcp, "GET", "/auth/mcp-tokens", "", 401, "is for mcp, not for the API"},
		{all, "POST", "/mcp", "{}", 401, "is for api, not for mcp"},
		{all, "POST", "/auth/mcp-tokens", `{"name":"ide"}`, 200, `"token":"nize_`},
		{all, "POST", "/auth/mcp-tokens", `{"name":"ide"}`, 409, `overwrite`},
		{all, "POST", "/auth/mcp-tokens", `{"name":"ide","overwrite":true}`, 200, `"audience":"mcp"`},
		{all, "POST", "/auth/mcp-tokens", `{"name":"no name"}`, 400, "token name"},
		{all, "POST", "/auth/mcp-tokens", `{"name":`, 400, "invalid"},
		{all, "POST", "/auth/mcp-tokens", `{"name":"wide","scopes":["tools:*"]}`, 200, `tools:*`},
		{narrow, "POST", "/auth/mcp-tokens", `{"name":"n1"}`, 200, `"scopes":["tools:files:*"]`},
		{narrow, "POST", "/auth/mcp-tokens", `{"name":"n2","scopes":["tools:files:read"]}`, 200, `tools:files:read`},
		{narrow, "POST", "/auth/mcp-tokens", `{"name":"n3","scopes":["tools:*"]}`, 403, "has only tools:files:*"},
		{narrow, "POST", "/auth/mcp-tokens", `{"name":"n3","scopes":["tools:files:*","tools:mail:send"]}`, 403, "tools:mail:send"},
		{all, "DELETE", "/auth/mcp-tokens/narrow", "", 404, "not found"}, // it is for the API
		{all, "DELETE", "/auth/mcp-tokens/n1", "", 200, `"revoked":1`},
		{all, "DELETE", "/auth/mcp-tokens/n1", "", 404, "not found"},
		{all, "POST", "/auth/logout-all", "", 200, `"revoked":6`},
		{all, "GET", "/auth/mcp-tokens", "", 401, "revoked"},
	} {
		code, text := ask(test.token, test.method, test.path, test.body)
		if code != test.status || !strings.Contains(text, test.says) {
			t.Errorf("%s %s %s: %d %s", test.method, test.path, test.body, code, text)
		}
		if test.path == "/auth/mcp-tokens" && test.method == "GET" && strings.Contains(text, `"token"`) {
			t.Errorf("a list shows secrets: %s", text)
		}
	}
	var body struct{ Items []api.TokenView }
	own := mint("again", store.ForAPI)
	if code, text := ask(own, "GET", "/auth/mcp-tokens", ""); code != 200 || json.Unmarshal([]byte(text), &body) != nil || len(body.Items) != 0 {
		t.Errorf("mia's list after she logged out everywhere: %d %s", code, text)
	}
	mint("laptop", store.ForMCP)
	if _, err := api.RotateToken.Call(ctx, r.Client, api.RotateTokenRequest{Name: "laptop", User: "mia", Grace: store.Duration(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if code, text := ask(own, "GET", "/auth/mcp-tokens", ""); code != 200 || json.Unmarshal([]byte(text), &body) != nil || len(body.Items) != 2 {
		t.Fatalf("mia's list in the grace of a rotation: %d %s", code, text)
	}
	for i, rotated := range []bool{true, false} {
		if tok := body.Items[i]; tok.UserName != "mia" || tok.State != "active" || tok.Revoked.IsZero() == rotated {
			t.Errorf("token %d: %+v", i, tok)
		}
	}
	tokens, err := api.ListTokens.Call(ctx, r.Client, api.ListTokensRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range tokens.Items {
		if tok.ID == admins.Token.ID && tok.State != "active" {
			t.Error("somebody else's token was revoked")
		}
	}
}

// TestOwnTokensByCookie: who is signed in to a browser makes tokens from nize's own
// page, as a program does by its token; from another site's page nobody does, and a
// header goes before the cookie.
func TestOwnTokensByCookie(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	if _, err := api.AddUser.Call(t.Context(), r.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	mia, nobody := newBrowser(t, r), newBrowser(t, r)
	mia.signIn(r.Client, "mia")
	const path, body = "/auth/mcp-tokens", `{"name":"nize-desktop-chat","overwrite":true}`
	same := []string{"Sec-Fetch-Site", "same-origin"}
	for _, test := range []struct {
		name    string
		from    *browser
		kind    string
		headers []string
		status  int
		says    string
	}{
		{"the page", mia, inJSON, same, 200, `"token":"nize_`},
		{"again", mia, inJSON, same, 200, `"audience":"mcp"`},
		{"an older browser", mia, inJSON, []string{"Origin", mia.base}, 200, `"user":"`},
		{"another site", mia, inJSON, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403, "may not ask here"},
		{"a site beside it", mia, inJSON, []string{"Sec-Fetch-Site", "same-site"}, 403, `"type":"refused"`},
		{"an older browser elsewhere", mia, inJSON, []string{"Origin", "https://evil.example"}, 403, ""},
		{"who says nothing", mia, inJSON, nil, 403, "only nize's own page"},
		{"a form", mia, form, same, 400, "the body must be application/json"},
		{"a text", mia, "text/plain", same, 400, "application/json"},
		{"nobody", nobody, inJSON, same, 401, "a token is needed"},
		{"a bad token beside the cookie", mia, inJSON, append([]string{"Authorization", "Bearer nize_nonsense"}, same...), 401, `"type":"invalid_token"`},
	} {
		p := test.from.post(path, test.kind, body, test.headers...)
		if p.status != test.status || !strings.Contains(p.body, test.says) {
			t.Errorf("%s: %d %s, want %d %s", test.name, p.status, p.body, test.status, test.says)
		}
	}
	list, err := api.ListTokens.Call(t.Context(), r.Client, api.ListTokensRequest{User: "mia", Unrevoked: true})
	if err != nil || len(list.Items) != 1 || list.Items[0].UserName != "mia" || list.Items[0].State != "active" {
		t.Errorf("got %+v, %v", list.Items, err)
	}
	if all, err := api.ListTokens.Call(t.Context(), r.Client, api.ListTokensRequest{User: "mia"}); err != nil || len(all.Items) != 3 {
		t.Errorf("got %+v, %v", all.Items, err)
	}
}
