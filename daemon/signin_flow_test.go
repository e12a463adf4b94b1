package daemon_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/oauth"
)

// browser is a person's: it keeps cookies, and follows nothing by itself.
type browser struct {
	t    *testing.T
	base string
	*http.Client
}

func newBrowser(t *testing.T, r *testDaemon) *browser {
	t.Helper()
	return browserAt(t, r.Client)
}

func browserAt(t *testing.T, c *api.Client) *browser {
	t.Helper()
	st, err := api.GetStatus.Call(t.Context(), c, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, "http://" + st.Listen, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

type page struct {
	status   int
	body     string
	location string
	header   http.Header
}

func (b *browser) send(req *http.Request) page {
	b.t.Helper()
	res, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{res.StatusCode, string(body), res.Header.Get("Location"), res.Header}
}

func (b *browser) get(path string) page {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.base + path
	}
	req, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(req)
}

func (b *browser) post(path, kind, body string, headers ...string) page {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.send(req)
}

const form, inJSON = "application/x-www-form-urlencoded", "application/json"

const verifier = "a-verifier-that-is-long-enough-for-every-one-of-the-rules"

// register registers a client and returns its id.
func (b *browser) register(name string, redirects ...string) string {
	b.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": redirects})
	p := b.post("/oauth/register", inJSON, string(body))
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(p.body), &made); err != nil || p.status != http.StatusCreated {
		b.t.Fatalf("registering: %d %s", p.status, p.body)
	}
	return made.ID
}

// authorizeURL is the address that a client sends its person's browser to; pairs change it.
func authorizeURL(client, redirect string, pairs ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	v := url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"s 1"}, "scope": {"mcp offline_access"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(pairs); i += 2 {
		if v.Del(pairs[i]); pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return "/oauth/authorize?" + v.Encode()
}

var (
	codeOnPage = regexp.MustCompile(`class="code">([A-Z0-9-]{9})<`)
	formOnPage = regexp.MustCompile(`name="form" value="([0-9a-f]+)"`)
	nextOnPage = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]+)"`)
)

// open opens the page of a request and returns its path and the page.
func (b *browser) open(address string) (path string, p page) {
	b.t.Helper()
	first := b.get(address)
	if first.status != http.StatusSeeOther || !strings.HasPrefix(first.location, "/oauth/authorize?request=") {
		b.t.Fatalf("authorize: %d %s %s", first.status, first.location, first.body)
	}
	p = b.get(first.location)
	if p.status != http.StatusOK || !codeOnPage.MatchString(p.body) {
		b.t.Fatalf("the page: %d %s", p.status, p.body)
	}
	return "/oauth/requests/" + strings.TrimPrefix(first.location, "/oauth/authorize?request="), p
}

func codeOf(p page) string { return codeOnPage.FindStringSubmatch(p.body)[1] }
func formOf(p page) string { return formOnPage.FindStringSubmatch(p.body)[1] }

// grant signs in as the caller at the socket and returns the code.
func (b *browser) grant(r *testDaemon, client, redirect string, pairs ...string) url.Values {
	b.t.Helper()
	path, p := b.open(authorizeURL(client, redirect, pairs...))
	approved, err := api.ApproveLogin.Call(b.t.Context(), r.Client, api.LoginCodeRequest{Code: codeOf(p)})
	if err != nil {
		b.t.Fatal(err)
	}
	done := b.post(path, inJSON, `{"number":"`+approved.Number.Reveal()+`"}`)
	var answer struct{ Redirect string }
	if err := json.Unmarshal([]byte(done.body), &answer); err != nil || done.status != http.StatusOK {
		b.t.Fatalf("the number: %d %s", done.status, done.body)
	}
	u, err := url.Parse(answer.Redirect)
	if err != nil || !strings.HasPrefix(answer.Redirect, redirect) {
		b.t.Fatalf("back to %s: %v", answer.Redirect, err)
	}
	return u.Query()
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

func (b *browser) token(pairs ...string) (tokens, page) {
	b.t.Helper()
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	p := b.post("/oauth/token", form, v.Encode())
	var t tokens
	if err := json.Unmarshal([]byte(p.body), &t); err != nil {
		b.t.Fatalf("token: %d %s", p.status, p.body)
	}
	return t, p
}

func (b *browser) redeem(client, redirect, code string) (tokens, page) {
	b.t.Helper()
	return b.token("grant_type", "authorization_code", "client_id", client, "redirect_uri", redirect, "code", code, "code_verifier", verifier)
}

func (b *browser) refresh(client, token string) (tokens, page) {
	b.t.Helper()
	return b.token("grant_type", "refresh_token", "client_id", client, "refresh_token", token)
}

// works says whether an access token is good at /mcp.
func (b *browser) works(token string) bool {
	b.t.Helper()
	p := b.post("/mcp", inJSON, `{}`, "Authorization", "Bearer "+token, "Accept", "application/json, text/event-stream")
	return p.status == http.StatusBadRequest // it came as far as to be read
}

// listen opens the stream of an MCP client.
func (b *browser) listen(token string) io.ReadCloser {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": inJSON, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(name, value)
	}
	res, err := b.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("listening: %v %v", res, err)
	}
	return res.Body
}

// TestSignIn is the whole way of a client: it finds out how, registers, sends its
// person, has a token, refreshes it, and gives it back.
func TestSignIn(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	var about struct {
		Issuer   string   `json:"issuer"`
		Methods  []string `json:"code_challenge_methods_supported"`
		Iss      bool     `json:"authorization_response_iss_parameter_supported"`
		Register string   `json:"registration_endpoint"`
	}
	doc := b.get("/.well-known/oauth-authorization-server")
	if err := json.Unmarshal([]byte(doc.body), &about); err != nil || about.Issuer != b.base || !about.Iss || about.Register != b.base+"/oauth/register" || len(about.Methods) != 1 || about.Methods[0] != "S256" {
		t.Fatalf("metadata: %s %v", doc.body, err)
	}
	redirect := "http://127.0.0.1:4567/callback"
	client := b.register("A <b>client</b>", redirect)
	q := b.grant(r, client, redirect)
	if q.Get("state") != "s 1" || q.Get("iss") != b.base {
		t.Errorf("the answer: %v", q)
	}
	got, p := b.redeem(client, redirect, q.Get("code"))
	if !strings.HasPrefix(got.Access, "nize_") || !strings.HasPrefix(got.Refresh, "nizr_") || got.Type != "Bearer" || got.Expires != 3600 || got.Scope != "mcp" || p.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the token: %d %s", p.status, p.body)
	}
	if !b.works(got.Access) {
		t.Fatal("the access token is refused at /mcp")
	}
	list, err := api.ListTokens.Call(t.Context(), r.Client, api.ListTokensRequest{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "oauth:a-b-client-b" || list.Items[0].SignedIn.Redirect != "127.0.0.1:4567" {
		t.Errorf("tokens list: %+v %v", list, err)
	}
	var kinds []string
	for e, err := range api.ReadAudit.Call(t.Context(), r.Client, api.AuditRequest{Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	for _, kind := range []string{"client.register", "signin.ask", "signin.confirm", "signin.number", "token.create"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("the trail lacks %s: %v", kind, kinds)
		}
	}
	next, p := b.refresh(client, got.Refresh)
	if !b.works(next.Access) || next.Refresh == got.Refresh {
		t.Fatalf("refreshed: %d %s", p.status, p.body)
	}
	// A parallel client of the same family still has the old one: each gets a living pair.
	other, p := b.refresh(client, got.Refresh)
	if !b.works(other.Access) || !b.works(next.Access) {
		t.Fatalf("refreshed at once: %d %s", p.status, p.body)
	}
	if p := b.post("/oauth/revoke", form, url.Values{"token": {next.Refresh}, "client_id": {client}}.Encode()); p.status != http.StatusOK {
		t.Errorf("revoking: %d %s", p.status, p.body)
	}
	if b.works(other.Access) || b.works(got.Access) {
		t.Error("revoked, and its access tokens go on")
	}
	if got, p := b.refresh(client, other.Refresh); p.status != http.StatusBadRequest || got.Error != "invalid_grant" {
		t.Errorf("revoked, and refreshed: %d %s", p.status, p.body)
	}
}

// TestCodes: a code is good once, for its client, address and verifier.
func TestCodes(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	redirect := "https://client.example/cb?x=1"
	client, other := b.register("one", redirect, "https://client.example/other"), b.register("two", redirect)
	for name, change := range map[string][]string{
		"another client":     {"client_id", other},
		"another redirect":   {"redirect_uri", "https://client.example/other"},
		"another verifier":   {"code_verifier", strings.Repeat("b", 50)},
		"the challenge back": {"code_verifier", "plain"},
	} {
		q := b.grant(r, client, redirect)
		send := []string{"grant_type", "authorization_code", "client_id", client, "redirect_uri", redirect, "code", q.Get("code"), "code_verifier", verifier}
		if got, p := b.token(append(send, change...)...); got.Error != "invalid_grant" || p.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, p.status, p.body)
		}
		if got, _ := b.token(send...); got.Error != "invalid_grant" {
			t.Errorf("%s, and then the right one: %+v", name, got)
		}
	}
	q := b.grant(r, client, redirect)
	first, _ := b.redeem(client, redirect, q.Get("code"))
	if !b.works(first.Access) {
		t.Fatal("a code in order gives nothing")
	}
	if got, _ := b.redeem(client, redirect, q.Get("code")); got.Error != "invalid_grant" {
		t.Errorf("a code twice: %+v", got)
	}
	if b.works(first.Access) {
		t.Error("a code was used twice, and what it gave goes on")
	}
}

// TestRedirects: what is not exactly an address of the client's gets no code, and
// no redirect.
func TestRedirects(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	client := b.register("c", "https://client.example/cb", "http://127.0.0.1:33418/", "http://localhost/cb", "cursor://anysphere.cursor-mcp/oauth/callback", "javascript:alert(1)", "http://evil.example/", "https://u:p@client.example/", "data:text/html,x")
	for _, good := range []string{"https://client.example/cb", "http://127.0.0.1:33418/", "http://127.0.0.1:9/", "http://localhost:5555/cb", "cursor://anysphere.cursor-mcp/oauth/callback"} {
		fresh := newBrowser(t, r)
		if p := fresh.get(authorizeURL(client, good)); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location, "/oauth/authorize?request=") {
			t.Errorf("%s: %d %s", good, p.status, p.body)
		}
	}
	for _, bad := range []string{
		"", "https://client.example/cb/", "https://client.example/cb?x", "https://client.example/cB", "https://client.example:443/cb", "http://client.example/cb", "https://client.example.evil.example/cb",
		"https://client.example@evil.example/cb", "https://client.example/cb#x", "https://client.example/../cb", "https://client.example/%63b", `https://client.example\@evil.example/cb`,
		"http://127.0.0.1:9/x", "http://127.0.0.1.evil.example/", "http://localhost:5555/cb2", "http://[::1]:33418/", "javascript:alert(1)", "http://evil.example/", "https://u:p@client.example/", "data:text/html,x", "cursor://evil/oauth/callback",
	} {
		if p := b.get(authorizeURL(client, bad)); p.status != http.StatusBadRequest || p.location != "" {
			t.Errorf("%s: %d to %q", bad, p.status, p.location)
		}
	}
	for _, tt := range []struct{ name, value, want string }{
		{"response_type", "token", "unsupported_response_type"}, {"code_challenge", "", "invalid_request"}, {"code_challenge_method", "plain", "invalid_request"}, {"code_challenge_method", "", "invalid_request"},
		{"code_challenge", "short", "invalid_request"}, {"scope", "admin", "invalid_scope"}, {"resource", "https://elsewhere.example/mcp", "invalid_target"},
	} {
		p := b.get(authorizeURL(client, "https://client.example/cb", tt.name, tt.value))
		u, err := url.Parse(p.location)
		if err != nil || p.status != http.StatusSeeOther || u.Host != "client.example" || u.Query().Get("error") != tt.want || u.Query().Get("state") != "s 1" || u.Query().Get("iss") != b.base {
			t.Errorf("%s=%s: %d %s", tt.name, tt.value, p.status, p.location)
		}
	}
	if p := b.get(authorizeURL("c_unknown", "https://client.example/cb")); p.status != http.StatusBadRequest || p.location != "" {
		t.Errorf("an unknown client: %d %s", p.status, p.location)
	}
	if p := b.get(authorizeURL(client, "https://client.example/cb") + "&client_id=x"); p.status != http.StatusBadRequest || p.location != "" {
		t.Errorf("client_id twice: %d %s", p.status, p.location)
	}
}

// TestStolenRefreshToken: what was rotated before the grace time ends the family.
func TestStolenRefreshToken(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), map[string]string{"NIZE_OAUTH_REFRESH_GRACE": "0s"})
	b := newBrowser(t, r)
	redirect := "http://localhost:1/cb"
	client := b.register("c", redirect)
	first, _ := b.redeem(client, redirect, b.grant(r, client, redirect).Get("code"))
	second, _ := b.refresh(client, first.Refresh)
	third, _ := b.refresh(client, second.Refresh)
	if !b.works(third.Access) {
		t.Fatal("refreshing does not work")
	}
	if got, p := b.refresh("c_other", third.Refresh); got.Error != "invalid_grant" || p.status != http.StatusBadRequest {
		t.Errorf("another client: %d %s", p.status, p.body)
	}
	if !b.works(third.Access) {
		t.Error("what another client tried ended the family")
	}
	for range 40 { // and the last of them is told so like the first, never to wait
		if got, p := b.refresh(client, first.Refresh); got.Error != "invalid_grant" || p.status != http.StatusBadRequest {
			t.Fatalf("a stolen one: %d %s", p.status, p.body)
		}
	}
	if got, _ := b.refresh(client, third.Refresh); got.Error != "invalid_grant" || b.works(third.Access) {
		t.Error("the family goes on")
	}
}

// TestConfirming: who may confirm what, once, and what a wrong number does.
func TestConfirming(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	redirect := "http://localhost:1/cb"
	b := newBrowser(t, r)
	client := b.register("c", redirect)
	path, p := b.open(authorizeURL(client, redirect))
	for _, want := range []string{"frame-ancestors 'none'", "default-src 'none'"} {
		if !strings.Contains(p.header.Get("Content-Security-Policy"), want) {
			t.Errorf("the page's policy lacks %s", want)
		}
	}
	send := func(number string, headers ...string) page {
		return b.post(path, form, url.Values{"form": {formOf(p)}, "number": {number}}.Encode(), headers...)
	}
	if got := send("123456"); got.status != http.StatusConflict {
		t.Errorf("a number before anybody confirmed: %d", got.status)
	}
	approved, err := api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: strings.ToLower(codeOf(p))})
	if err != nil || approved.Client != "c" || approved.Redirect != "localhost:1" || approved.Address != "127.0.0.1" {
		t.Fatalf("approving: %+v %v", approved, err)
	}
	if _, err := api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: codeOf(p)}); err == nil {
		t.Error("a code is confirmed twice")
	}
	number := approved.Number.Reveal()
	// None of these comes from the page: nothing happens.
	stranger := newBrowser(t, r)
	if got := stranger.post(path, inJSON, `{"number":"`+number+`"}`); got.status != http.StatusForbidden {
		t.Errorf("another browser: %d", got.status)
	}
	if got := b.post(path, form, url.Values{"number": {number}}.Encode()); got.status != http.StatusForbidden {
		t.Errorf("without the form's token: %d", got.status)
	}
	if got := send(number, "Sec-Fetch-Site", "cross-site"); got.status != http.StatusForbidden {
		t.Errorf("from another site: %d", got.status)
	}
	if got := send(number, "Origin", "https://evil.example"); got.status != http.StatusForbidden {
		t.Errorf("from another origin: %d", got.status)
	}
	if got := b.post(path, inJSON, `{"allow":true}`); got.status != http.StatusForbidden {
		t.Errorf("allowed by nobody: %d", got.status)
	}
	if got := b.post(path, "text/plain", `{"number":"`+number+`"}`); got.status != http.StatusForbidden {
		t.Errorf("as text: %d", got.status)
	}
	done := send(number)
	next := nextOnPage.FindStringSubmatch(done.body)
	if done.status != http.StatusOK || next == nil || !strings.Contains(next[1], "code=") {
		t.Fatalf("the number: %d %s", done.status, done.body)
	}
	if got := send(number); got.status < 400 {
		t.Errorf("a second time: %d", got.status)
	}
	// Three wrong ones are the end, and the right one comes too late.
	path, p = b.open(authorizeURL(client, redirect))
	approved, err = api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: codeOf(p)})
	if err != nil {
		t.Fatal(err)
	}
	wrong := "000000"
	if approved.Number.Reveal() == wrong {
		wrong = "000001"
	}
	for i := range 3 {
		if got := send(wrong); got.status < 400 || i == 2 && !strings.Contains(got.body, "three times") {
			t.Errorf("wrong number %d: %d %s", i+1, got.status, got.body)
		}
	}
	if got := send(approved.Number.Reveal()); got.status < 400 {
		t.Errorf("the right number after three wrong ones: %d", got.status)
	}
	// Not me: the page is closed, and operators are told.
	path, p = b.open(authorizeURL(client, redirect))
	if _, err := api.DenyLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: codeOf(p)}); err != nil {
		t.Fatal(err)
	}
	if got := send("123456"); got.status < 400 {
		t.Errorf("denied: %d", got.status)
	}
	// Guessing has a limit.
	var last error
	for range 7 {
		_, last = api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: "ABCD-EFGH"})
	}
	if last == nil || !strings.Contains(last.Error(), "too many") {
		t.Errorf("guessing: %v", last)
	}
}

// TestBrowserSession: an address of nizectl's signs a browser in, once; its page
// lists what is signed in, and ends it.
func TestBrowserSession(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	b := newBrowser(t, r)
	made, err := api.StartLogin.Call(ctx, r.Client, api.StartLoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	address, secret, _ := strings.Cut(made.URL.Reveal(), "#")
	if address != b.base+"/login" || len(secret) < 40 {
		t.Fatalf("the address %s", address)
	}
	enter := func(b *browser) page {
		p := b.get("/login")
		if p.status == http.StatusSeeOther {
			p = b.get(p.location)
		}
		return b.post("/login", form, url.Values{"form": {formOf(p)}, "secret": {secret}}.Encode())
	}
	// Shown, it says whom it signs in, and uses nothing up; another secret says nothing.
	show := func(b *browser, from, secret string) page {
		return b.post("/login", form, url.Values{"form": {from}, "secret": {secret}, "show": {"yes"}}.Encode())
	}
	fresh := newBrowser(t, r)
	from := formOf(fresh.get(fresh.get("/login").location))
	for range 2 {
		if p := show(fresh, from, secret); p.status != http.StatusOK || !strings.Contains(p.body, "Sign in to nize on 127.0.0.1 as "+made.UserName) {
			t.Errorf("the link's page: %d %s", p.status, p.body)
		}
	}
	for what, p := range map[string]page{"another secret": show(fresh, from, secret+"x"), "another site's form": show(fresh, "", secret), "no secret": show(fresh, from, "")} {
		if p.status != http.StatusForbidden || strings.Contains(p.body, "as "+made.UserName) {
			t.Errorf("%s: %d %s", what, p.status, p.body)
		}
	}
	if p := enter(b); p.status != http.StatusSeeOther || p.location != "/app/" {
		t.Fatalf("signing in: %d %s", p.status, p.body)
	}
	if p := show(fresh, from, secret); p.status != http.StatusForbidden || !strings.Contains(p.body, "This address was already used") {
		t.Errorf("shown when it was used: %d", p.status)
	}
	if p := enter(newBrowser(t, r)); p.status != http.StatusForbidden {
		t.Errorf("a second time: %d", p.status)
	}
	for range 6 { // what its page asked for with a code of its own is left
		newBrowser(t, r).enter(r)
	}
	p := b.get("/login")
	if p.status != http.StatusOK || !strings.Contains(p.body, "You are signed in as") {
		t.Fatalf("the page: %d %s", p.status, p.body)
	}
	// A client is allowed with a press, and denied with another.
	redirect := "https://client.example/cb"
	client := b.register("c", redirect)
	answer := func(say string) page {
		first := b.get(authorizeURL(client, redirect))
		shown := b.get(first.location)
		if !strings.Contains(shown.body, `name="allow"`) || codeOnPage.MatchString(shown.body) {
			t.Fatalf("signed in, and asked for a code: %s", shown.body)
		}
		return b.post("/oauth/requests/"+strings.TrimPrefix(first.location, "/oauth/authorize?request="), form, url.Values{"form": {formOf(shown)}, "allow": {say}}.Encode())
	}
	no := nextOnPage.FindStringSubmatch(answer("no").body)
	if no == nil || !strings.Contains(no[1], "error=access_denied") {
		t.Errorf("denied: %v", no)
	}
	yes := nextOnPage.FindStringSubmatch(answer("yes").body)
	if yes == nil || !strings.Contains(yes[1], "code=") {
		t.Fatalf("allowed: %v", yes)
	}
	list, err := api.ListLogins.Call(ctx, r.Client, api.ListTokensRequest{})
	if err != nil || len(list.Items) != 7 {
		t.Fatalf("login list: %+v %v", list, err)
	}
	// What is signed in as somebody comes a page at a time, the newest first.
	for i := range 50 {
		if _, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: fmt.Sprintf("made-%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	newest := b.get("/login")
	older := regexp.MustCompile(`<a href="(/login\?before=[^"]+)">Older ones</a>`).FindStringSubmatch(newest.body)
	if older == nil || strings.Count(newest.body, "made-") != 50 || strings.Contains(newest.body, "None.") {
		t.Fatalf("the first page: %s", newest.body)
	}
	if p := b.get(older[1]); strings.Contains(p.body, "made-") || strings.Contains(p.body, "Older ones") || !strings.Contains(p.body, "This browser") {
		t.Errorf("the second page: %s", p.body)
	}
	if p := b.post("/login/end", form, url.Values{"what": {"all"}}.Encode()); p.status != http.StatusForbidden {
		t.Errorf("signing out by a form of another site's: %d", p.status)
	}
	for _, one := range list.Items {
		if _, err := api.RevokeLogin.Call(ctx, r.Client, api.LoginIDRequest{ID: one.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if p := b.get("/login"); strings.Contains(p.body, "You are signed in as") {
		t.Error("signed out from outside, and goes on")
	}
}

// TestDisabledInTheMiddle: somebody who is disabled gets no further, wherever they are.
func TestDisabledInTheMiddle(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	b := newBrowser(t, r)
	redirect := "http://localhost:1/cb"
	client := b.register("c", redirect)
	if _, err := api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	set := func(state store.UserState) {
		t.Helper()
		if _, err := api.PatchUser.Call(ctx, r.Client, api.PatchUserRequest{ID: "ann", State: &state}); err != nil {
			t.Fatal(err)
		}
	}
	confirm := func() (path string, number string) {
		t.Helper()
		path, p := b.open(authorizeURL(client, redirect))
		done, err := api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: codeOf(p), User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		return path, done.Number.Reveal()
	}
	code := func(path, number string) string {
		t.Helper()
		var answer struct{ Redirect string }
		_ = json.Unmarshal([]byte(b.post(path, inJSON, `{"number":"`+number+`"}`).body), &answer)
		u, err := url.Parse(answer.Redirect)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("code")
	}
	path, number := confirm()
	set(store.Disabled)
	if got, _ := b.redeem(client, redirect, code(path, number)); got.Error == "" {
		t.Error("disabled after the confirmation, and has a token")
	}
	_, p := b.open(authorizeURL(client, redirect))
	if _, err := api.ApproveLogin.Call(ctx, r.Client, api.LoginCodeRequest{Code: codeOf(p), User: "ann"}); err == nil {
		t.Error("disabled, and confirmed")
	}
	set(store.Active)
	path, number = confirm()
	given := code(path, number)
	set(store.Disabled)
	if got, _ := b.redeem(client, redirect, given); got.Error != "invalid_grant" {
		t.Errorf("disabled before the token: %+v", got)
	}
	set(store.Active)
	path, number = confirm()
	got, _ := b.redeem(client, redirect, code(path, number))
	if !b.works(got.Access) {
		t.Fatal("no token")
	}
	listening := b.listen(got.Access)
	defer listening.Close()
	began := time.Now()
	set(store.Disabled)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, listening)
		close(ended)
	}()
	select {
	case <-ended:
		t.Logf("the stream ended after %v, of two seconds", time.Since(began))
	case <-time.After(patience):
		t.Error("disabled, and the stream goes on")
	}
	set(store.Active)
	if again, _ := b.refresh(client, got.Refresh); again.Error != "invalid_grant" || b.works(got.Access) {
		t.Error("disabled and active again, and the tokens go on")
	}
}

// TestFloods: registrations and open requests have bounds.
func TestFloods(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	redirect := "https://client.example/cb"
	client := b.register("c", redirect)
	refused := 0
	for range 15 {
		if p := b.post("/oauth/register", inJSON, `{"redirect_uris":["https://x.example/"]}`); p.status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 6 { // of 16 with the first
		t.Errorf("refused %d of 15 registrations, want 6", refused)
	}
	first := newBrowser(t, r)
	at, _ := first.open(authorizeURL(client, redirect))
	for range oauth.MaxPerHost {
		newBrowser(t, r).open(authorizeURL(client, redirect)) // which fails where it does not come in
	}
	if p := first.get(at); p.status != http.StatusNotFound {
		t.Errorf("the oldest one of the address: %d %s", p.status, p.body)
	}
	first.open(authorizeURL(client, redirect)) // and it may begin again
}

// TestNotNavigated: what a page loads, frames or fetches ahead begins no sign-in,
// however often, and takes nothing from the person who opens the page.
func TestNotNavigated(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	b := newBrowser(t, r)
	redirect := "https://client.example/cb"
	client := b.register("c", redirect)
	authorize := authorizeURL(client, redirect)
	navigation := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "cross-site"}
	for _, c := range []struct {
		name    string
		headers []string
		begins  bool
	}{
		{"an image", []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Sec-Fetch-Site", "cross-site"}, false},
		{"a script", []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, false},
		{"a fetch", []string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Site", "same-origin"}, false},
		{"a frame", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
		{"an object", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object"}, false},
		{"only its destination", []string{"Sec-Fetch-Dest", "image"}, false},
		{"only its mode", []string{"Sec-Fetch-Mode", "no-cors"}, false},
		{"fetched ahead", append([]string{"Sec-Purpose", "prefetch;prerender"}, navigation...), false},
		{"fetched ahead, as it was once said", []string{"Purpose", "prefetch"}, false},
		{"only its head", []string{"", "HEAD"}, false},
		{"a navigation", navigation, true},
		{"a browser that does not say", nil, true},
	} {
		for _, path := range []string{"/login", authorize} {
			fresh := newBrowser(t, r)
			for range map[bool]int{true: 1, false: oauth.MaxPerHost + 5}[c.begins] {
				if strings.HasPrefix(path, "/") {
					path = fresh.base + path
				}
				req, err := http.NewRequest(http.MethodGet, path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < len(c.headers); i += 2 {
					if c.headers[i] == "" {
						req.Method = c.headers[i+1]
					} else {
						req.Header.Set(c.headers[i], c.headers[i+1])
					}
				}
				p := fresh.send(req)
				want := map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[c.begins]
				if p.status != want || (p.header.Get("Set-Cookie") != "") != c.begins {
					t.Fatalf("%s %s: %d %q", c.name, path, p.status, p.header.Get("Set-Cookie"))
				}
			}
		}
	}
	// The page of a sign-in that has begun asks how it stands, by a fetch.
	at, _ := b.open(authorize)
	req, err := http.NewRequest(http.MethodGet, b.base+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Mode", "cors")
	req.Header.Set("Sec-Fetch-Dest", "empty")
	if p := b.send(req); p.status != http.StatusOK || !strings.Contains(p.body, `"open"`) {
		t.Errorf("%d %s", p.status, p.body)
	}
}

// TestManyAddresses: a flood from many addresses locks out neither somebody at another
// address nor nizectl login.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), map[string]string{"NIZE_PUBLIC_URL": "https://nize.example.com", "NIZE_HTTP_TRUSTED_PROXIES": "127.0.0.1"})
	b := newBrowser(t, r)
	ask := func(path, from, cookie string) page {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, b.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "nize.example.com"
		req.Header.Set("X-Forwarded-For", from)
		req.Header.Set("X-Forwarded-Proto", "https")
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		return b.send(req)
	}
	for n := range 201 {
		for range 5 {
			if p := ask("/login", fmt.Sprintf("203.0.%d.%d", 113+n/100, 1+n%100), ""); p.status != http.StatusSeeOther {
				t.Fatalf("%d: %d %s", n, p.status, p.body)
			}
		}
	}
	p := ask("/login", "198.51.100.7", "")
	cookie, _, _ := strings.Cut(p.header.Get("Set-Cookie"), ";")
	if p = ask(p.location, "198.51.100.7", cookie); p.status != http.StatusOK || !codeOnPage.MatchString(p.body) {
		t.Fatalf("somebody else: %d %s", p.status, p.body)
	}
	for range oauth.MaxPerUser + 1 {
		if _, err := api.StartLogin.Call(t.Context(), r.Client, api.StartLoginRequest{}); err != nil {
			t.Fatalf("nizectl login: %v", err)
		}
	}
	if _, err := api.ApproveLogin.Call(t.Context(), r.Client, api.LoginCodeRequest{Code: codeOf(p)}); err != nil {
		t.Errorf("confirming it: %v", err)
	}
}
