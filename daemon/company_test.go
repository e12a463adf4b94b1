package daemon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"nize/daemon"
	"nize/daemon/api"
	"nize/daemon/company/oidctest"
	"nize/store"
)

// acme is a daemon whose people sign in with a provider.
type acme struct {
	*testDaemon
	idp *oidctest.Provider
	log *syncBuffer
	t   *testing.T
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newAcme(t *testing.T, options ...func(*daemon.Options)) *acme {
	t.Helper()
	a := &acme{idp: oidctest.New(t), log: &syncBuffer{}, t: t}
	a.testDaemon = open(t, t.TempDir(), nil, append(options, func(o *daemon.Options) { o.Log = slog.New(slog.NewTextHandler(a.log, nil)) })...)
	p, err := api.SetOIDC.Call(t.Context(), a.Client, api.SetOIDCRequest{Issuer: a.idp.URL, Client: a.idp.Client, ClientSecret: api.NewSecret(a.idp.Secret), Name: "Acme"})
	if err != nil {
		t.Fatal(err)
	}
	a.idp.Register(newBrowser(t, a.testDaemon).base + "/login/oidc")
	if p.Name != "Acme" || !p.HasSecret || p.GroupsClaim != "groups" {
		t.Fatalf("set: %+v", p)
	}
	return a
}

// set sets a setting.
func (a *acme) set(key, value string) {
	a.t.Helper()
	if _, err := api.PutSetting.Call(a.t.Context(), a.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
		a.t.Fatal(err)
	}
}

// unset resets a setting.
func (a *acme) unset(key string) {
	a.t.Helper()
	if _, err := api.UnsetSetting.Call(a.t.Context(), a.Client, api.UnsetSettingRequest{Key: key}); err != nil && !errors.Is(err, store.ErrNotFound) {
		a.t.Fatal(err)
	}
}

// callback goes to the provider and returns the address that it sends the browser back to.
func (a *acme) callback(b *browser) string {
	a.t.Helper()
	start := b.get("/login/oidc/start")
	if start.status != http.StatusSeeOther {
		a.t.Fatalf("start: %d %s", start.status, mainOf(start))
	}
	back := b.get(start.location)
	if back.status != http.StatusFound {
		a.t.Fatalf("the provider: %d %s", back.status, back.body)
	}
	return back.location
}

// login signs a browser in and returns the last page.
func (a *acme) login(b *browser) page { return b.get(a.callback(b)) }

// mainOf is what a page says, without its head.
func mainOf(p page) string {
	_, text, _ := strings.Cut(p.body, "<main>")
	return text
}

// as is who a browser is signed in as, "" for nobody.
func (b *browser) as() string {
	b.t.Helper()
	p := b.get("/login")
	_, rest, ok := strings.Cut(p.body, "You are signed in as ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".</p>")
	return html.UnescapeString(name)
}

func (a *acme) user(name string) api.UserView {
	a.t.Helper()
	u, err := api.GetUser.Call(a.t.Context(), a.Client, api.GetUserRequest{ID: name})
	if err != nil {
		a.t.Fatal(err)
	}
	return u
}

func TestCompanyLogin(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana Sommer", "email": "ana@acme.example", "email_verified": true, "groups": []string{"staff"}})
	b := newBrowser(t, a.testDaemon)
	first := b.get("/login")
	if p := b.get(first.location); !strings.Contains(p.body, `<a href="/login/oidc/start" class="button">Continue with Acme</a>`) || strings.Index(p.body, "Continue with Acme") > strings.Index(p.body, "Confirm this code") && strings.Contains(p.body, "Confirm this code") {
		t.Errorf("the page of a sign-in: %s", p.body)
	}
	done := a.login(b)
	if done.status != http.StatusOK || !nextOnPage.MatchString(done.body) {
		t.Fatalf("signing in: %d %s\n%s", done.status, mainOf(done), a.log)
	}
	cookie := done.header.Values("Set-Cookie")
	if !slices.ContainsFunc(cookie, func(c string) bool {
		return strings.HasPrefix(c, "nize-") && strings.Contains(c, "HttpOnly") && strings.Contains(c, "SameSite=Strict")
	}) {
		t.Errorf("cookies: %q", cookie)
	}
	if got := b.as(); got != "Ana Sommer" {
		t.Errorf("signed in as %q", got)
	}
	u := a.user("Ana Sommer")
	if u.Role != store.Member || u.Email != "ana@acme.example" || !slices.Equal(u.Identities, []string{"oidc:" + a.idp.URL + "#ana-1"}) || !slices.Contains(u.Teams, "local") {
		t.Errorf("the user: %+v", u)
	}
	// The next sign-in is the same person, under the name that the provider has now.
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana Winter", "email": "ana@acme.example", "email_verified": true})
	other := newBrowser(t, a.testDaemon)
	a.login(other)
	if again := a.user("Ana Winter"); again.ID != u.ID {
		t.Errorf("another user: %+v", again)
	}
	// The trail names the person, also where nize acted for them.
	for e, err := range api.ReadAudit.Call(t.Context(), a.Client, api.AuditRequest{User: u.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.UserName != "Ana Sommer" && e.UserName != "Ana Winter" {
			t.Errorf("event %s has the name %q", e.Kind, e.UserName)
		}
	}
	// Neither the log nor the trail has a secret of the sign-in.
	if strings.Contains(a.log.String(), a.idp.Secret) {
		t.Error("the log has the client secret")
	}
}

// TestCompanyConsent: a client whose person signs in with the company's account is let in
// with Allow, and nobody types a code.
func TestCompanyConsent(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana"})
	b := newBrowser(t, a.testDaemon)
	client := b.register("Inspector", "http://127.0.0.1:9/cb")
	path, p := b.open(authorizeURL(client, "http://127.0.0.1:9/cb"))
	if !strings.Contains(p.body, "Continue with Acme") {
		t.Fatalf("the page of a client: %s", p.body)
	}
	done := a.login(b)
	next := nextOnPage.FindStringSubmatch(done.body)
	if next == nil || !strings.HasSuffix(path, strings.TrimPrefix(html.UnescapeString(next[1]), "/oauth/authorize?request=")) {
		t.Fatalf("after the sign-in: %d %s", done.status, mainOf(done))
	}
	asked := b.get(html.UnescapeString(next[1]))
	if !strings.Contains(asked.body, "You are signed in as Ana.") || !strings.Contains(asked.body, `name="allow" value="yes"`) || strings.Contains(asked.body, `class="code"`) {
		t.Fatalf("the consent: %s", asked.body)
	}
	allowed := b.post(path, inJSON, `{"allow":true}`)
	var answer struct{ Redirect string }
	if err := json.Unmarshal([]byte(allowed.body), &answer); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(answer.Redirect)
	if err != nil {
		t.Fatal(err)
	}
	if tok, p := b.redeem(client, "http://127.0.0.1:9/cb", u.Query().Get("code")); tok.Access == "" {
		t.Errorf("redeeming: %d %s", p.status, mainOf(p))
	}
}

// TestCompanyAttacks: what is not as it must be signs nobody in, says on the page what an
// admin does, and why in the log.
func TestCompanyAttacks(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	claim := func(name string, v any) func() {
		return func() { a.idp.Change(func(_, c oidctest.Claims) { c[name] = v }) }
	}
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	const untrusted, clocks = "can&#39;t be trusted", "clocks of Acme"
	for _, tt := range []struct {
		name      string
		do        func()
		page, log string
	}{
		{"wrong issuer", claim("iss", "https://evil.example"), untrusted, "different provider"},
		{"wrong audience", claim("aud", "another-client"), untrusted, "audience"},
		{"many audiences, no party", claim("aud", []string{"nize", "other"}), untrusted, "party"},
		{"another party", claim("azp", "other"), untrusted, "party"},
		{"wrong nonce", claim("nonce", "of-another-sign-in"), untrusted, "nonce"},
		{"no nonce", func() { a.idp.Change(func(_, c oidctest.Claims) { delete(c, "nonce") }) }, untrusted, "nonce"},
		{"expired", claim("exp", time.Now().Add(-10*time.Minute).Unix()), clocks, "ended at"},
		{"from the future", claim("iat", time.Now().Add(10*time.Minute).Unix()), clocks, "in the future"},
		{"no subject", claim("sub", ""), untrusted, "subject"},
		{"a long subject", func() { a.idp.Person(oidctest.Claims{"sub": strings.Repeat("x", 256)}) }, "nize can&#39;t store", "subject"},
		{"alg none", func() {
			a.idp.Raw(func(c oidctest.Claims) string {
				return encode(map[string]string{"alg": "none"}) + "." + encode(c) + "."
			})
		}, untrusted, "malformed"},
		{"key confusion", func() {
			// The public key as a shared secret: an algorithm that the provider even lists.
			public, err := json.Marshal(a.idp.JWK())
			if err != nil {
				t.Fatal(err)
			}
			a.idp.Raw(func(c oidctest.Claims) string {
				s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: public}, nil)
				if err != nil {
					panic(err)
				}
				body, _ := json.Marshal(c)
				signed, err := s.Sign(body)
				if err != nil {
					panic(err)
				}
				text, _ := signed.CompactSerialize()
				return text
			})
		}, untrusted, "malformed"},
		{"a key of somebody else", func() {
			other := oidctest.New(t)
			a.idp.Raw(func(c oidctest.Claims) string { return other.Sign(nil, c) })
		}, untrusted, "signature"},
		{"no ID token", func() { a.idp.Raw(func(oidctest.Claims) string { return "" }) }, untrusted, "no ID token"},
		{"wrong hash of the access token", claim("at_hash", "AAAA"), untrusted, "access token"},
		{"userinfo about another", func() { a.idp.UserInfo(oidctest.Claims{"sub": "somebody-else", "groups": []string{"bosses"}}) }, untrusted, "another subject"},
	} {
		a.idp.Person(oidctest.Claims{"sub": "mallory", "name": "Mallory"})
		a.idp.Change(nil)
		a.idp.Raw(nil)
		tt.do()
		b, before := newBrowser(t, a.testDaemon), len(a.log.String())
		p := a.login(b)
		if p.status < 400 || !strings.Contains(p.body, tt.page) {
			t.Errorf("%s: %d %s", tt.name, p.status, mainOf(p))
		}
		if said := a.log.String()[before:]; !strings.Contains(said, tt.log) {
			t.Errorf("%s: the log says %s", tt.name, said)
		}
		if got := b.as(); got != "" {
			t.Errorf("%s: signed in as %q", tt.name, got)
		}
	}
	users, err := api.ListUsers.Call(t.Context(), a.Client, api.Empty{})
	if err != nil || slices.ContainsFunc(users.Items, func(u store.User) bool { return u.Name == "Mallory" }) {
		t.Errorf("users: %+v %v", users.Items, err)
	}
}

// TestCompanyFailures: if a sign-in fails, the page says what an admin has to do, and the
// log why it failed.
func TestCompanyFailures(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	good := api.SetOIDCRequest{Issuer: a.idp.URL, Client: a.idp.Client, ClientSecret: api.NewSecret(a.idp.Secret), Name: "Acme", Force: true}
	set := func(req api.SetOIDCRequest) {
		t.Helper()
		if _, err := api.SetOIDC.Call(t.Context(), a.Client, req); err != nil {
			t.Fatal(err)
		}
	}
	document := func(key string, v any) func() {
		return func() { a.idp.Document(func(c oidctest.Claims) { c[key] = v }); set(good) }
	}
	answer := func(change func(url.Values)) func(*url.URL) {
		return func(u *url.URL) { q := u.Query(); change(q); u.RawQuery = q.Encode() }
	}
	refusal := func(code string) func(*url.URL) {
		return answer(func(q url.Values) { q.Del("code"); q.Set("error", code) })
	}
	admin := func(name, email string) {
		t.Helper()
		if _, err := api.AddUser.Call(t.Context(), a.Client, api.AddUserRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := api.PatchUser.Call(t.Context(), a.Client, api.PatchUserRequest{ID: name, Email: &email}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name      string
		before    func()         // the sign-in begins
		back      func(*url.URL) // changes the callback
		page, log string
	}{
		{"down", func() { a.idp.Down(true); set(good) }, nil, "nizectl identity oidc test", "503"},
		{"another issuer", document("issuer", "https://elsewhere.example"), nil, "set the right one with nizectl identity oidc set", "elsewhere.example"},
		{"no PKCE", document("code_challenge_methods_supported", []string{"plain"}), nil, "nizectl identity oidc test", "S256"},
		{"no public key", document("id_token_signing_alg_values_supported", []string{"HS256"}), nil, "nizectl identity oidc test", "HS256"},
		{"plain addresses", document("token_endpoint", "http://login.acme.example/token"), nil, "nizectl identity oidc test", "not an https address"},
		{"no keys", document("jwks_uri", a.idp.URL+"/nothing"), nil, "the log of nized", "fetching keys"},
		{"wrong secret", func() { req := good; req.ClientSecret = api.NewSecret("wrong"); set(req) }, nil, "set client id and secret again", "invalid_client"},
		{"cancelled there", nil, refusal("access_denied"), "assign you to nize", "access_denied"},
		{"refused there", nil, refusal("invalid_scope"), "compare the registration there", "invalid_scope"},
		{"an unknown refusal", nil, refusal("<b>"), "compare the registration there", "unknown"},
		{"a code that is over", nil, answer(func(q url.Values) { q.Set("code", "another") }), "compare the redirect address", "invalid_grant"},
		{"down in the middle", nil, func(*url.URL) { a.idp.Down(true) }, "can't be reached", "status 503"},
		{"clocks", func() { a.idp.Change(func(_, c oidctest.Claims) { c["exp"] = time.Now().Add(-time.Hour).Unix() }) }, nil, "set the clock of the machine", "ended at"},
		{"groups that are no list", func() { a.idp.Person(oidctest.Claims{"sub": "x", "groups": map[string]int{"a": 1}}) }, nil, "find the details in the log", "not a list of names"},
		{"no groups", func() { a.set("oidc.allowed_groups", "staff") }, nil, "send the claim that nizectl identity oidc show prints", "oidc.allowed_groups"},
		{"the wrong groups", func() {
			a.set("oidc.allowed_groups", "staff")
			a.idp.Person(oidctest.Claims{"sub": "x", "groups": []string{"guests"}})
		}, nil, "add you to a group of the setting oidc.allowed_groups", "oidc.allowed_groups"},
		{"disabled", func() {
			a.idp.Person(oidctest.Claims{"sub": "leaver", "name": "Leaver"})
			a.login(newBrowser(t, a.testDaemon))
			if _, err := api.PatchUser.Call(t.Context(), a.Client, api.PatchUserRequest{ID: "Leaver", State: ptr(store.Disabled)}); err != nil {
				t.Fatal(err)
			}
		}, nil, "nizectl users enable", "disabled"},
		{"two people of one address", func() {
			a.set("oidc.link_by_email", "true")
			admin("ben", "b@acme.example")
			admin("bea", "B@acme.example")
			a.idp.Person(oidctest.Claims{"sub": "b", "name": "B", "email": "b@acme.example", "email_verified": true})
		}, nil, "remove or link them", "several users"},
		{"no provider", func() {
			if _, err := api.RemoveOIDC.Call(t.Context(), a.Client, api.Empty{}); err != nil {
				t.Fatal(err)
			}
		}, nil, "set one with nizectl identity oidc set", "not found"},
	} {
		a.idp.Down(false)
		a.idp.Document(nil)
		a.idp.Change(nil)
		a.idp.Person(oidctest.Claims{"sub": "x", "name": "X"})
		a.unset("oidc.allowed_groups")
		set(good)
		if tt.before != nil {
			tt.before()
		}
		b, before := newBrowser(t, a.testDaemon), len(a.log.String())
		p := b.get("/login/oidc/start")
		if p.status == http.StatusSeeOther {
			u := mustURL(t, b.get(p.location).location)
			if tt.back != nil {
				tt.back(u)
			}
			p = b.get(u.String())
		}
		if p.status < 400 || !strings.Contains(html.UnescapeString(mainOf(p)), tt.page) {
			t.Errorf("%s: %d %s", tt.name, p.status, mainOf(p))
		}
		if said := a.log.String()[before:]; !strings.Contains(said, "a sign-in with the identity provider failed") || !strings.Contains(said, tt.log) {
			t.Errorf("%s: the log says %s", tt.name, said)
		}
		a.idp.Down(false)
		if got := b.as(); got != "" {
			t.Errorf("%s: signed in as %q", tt.name, got)
		}
	}
	// doctor finds what a sign-in would.
	set(good)
	finding := func(req api.DoctorRequest) (f api.Finding) {
		t.Helper()
		all, err := api.Doctor.Call(t.Context(), a.Client, req)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all.Findings, func(f api.Finding) bool { return f.Check == "identity" })
		if i < 0 {
			t.Fatalf("no finding: %+v", all.Findings)
		}
		return all.Findings[i]
	}
	if f := finding(api.DoctorRequest{Online: true}); f.Level != api.LevelOK || f.Subject != "Acme" {
		t.Errorf("doctor: %+v", f)
	}
	a.idp.Down(true)
	if f := finding(api.DoctorRequest{}); f.Level != api.LevelOK {
		t.Errorf("doctor, without asking: %+v", f)
	}
	if f := finding(api.DoctorRequest{Online: true}); f.Level != api.LevelProblem || f.Cure == "" {
		t.Errorf("doctor: %+v", f)
	}
}

// TestCompanyCallback: a callback works once, and in the browser that began it.
func TestCompanyCallback(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana"})
	refused := func(name string, p page) {
		t.Helper()
		if p.status != http.StatusForbidden && p.status != http.StatusBadGateway {
			t.Errorf("%s: %d %s", name, p.status, mainOf(p))
		}
	}
	// Somebody gets a victim to open their own callback: the victim stays nobody.
	attacker, victim := newBrowser(t, a.testDaemon), newBrowser(t, a.testDaemon)
	theirs := a.callback(attacker)
	refused("in another browser", victim.get(theirs))
	victim.get("/login/oidc/start")
	refused("in a browser that began its own", victim.get(theirs))
	// The code is not spent by that, and works where it belongs, once.
	if p := attacker.get(theirs); p.status != http.StatusOK {
		t.Errorf("in its own browser: %d %s", p.status, mainOf(p))
	}
	refused("replayed", attacker.get(theirs))
	before, _ := a.idp.Counts()
	b := newBrowser(t, a.testDaemon)
	back := a.callback(b)
	kept := b.Jar.Cookies(mustURL(t, b.base))
	b.get(back)
	b.Jar.SetCookies(mustURL(t, b.base), kept) // a thief's copy of all that the browser had
	refused("replayed with its cookie", b.get(back))
	if after, _ := a.idp.Counts(); after != before+1 {
		t.Errorf("the code was sent %d times", after-before)
	}
	for name, change := range map[string]func(url.Values){
		"wrong state":        func(q url.Values) { q.Set("state", "x") },
		"no state":           func(q url.Values) { q.Del("state") },
		"state twice":        func(q url.Values) { q.Add("state", "x") },
		"another's issuer":   func(q url.Values) { q.Set("iss", "https://evil.example") },
		"no issuer":          func(q url.Values) { q.Del("iss") },
		"no code":            func(q url.Values) { q.Del("code") },
		"denied":             func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") },
		"an error of markup": func(q url.Values) { q.Del("code"); q.Set("error", "<script>alert(1)</script>") },
	} {
		b := newBrowser(t, a.testDaemon)
		u := mustURL(t, a.callback(b))
		q := u.Query()
		change(q)
		u.RawQuery = q.Encode()
		p := b.get(u.String())
		refused(name, p)
		if strings.Contains(p.body, "<script>alert") || b.as() != "" {
			t.Errorf("%s: %s", name, p.body)
		}
	}
	// New settings end what was under way.
	b = newBrowser(t, a.testDaemon)
	back = a.callback(b)
	if _, err := api.SetOIDC.Call(t.Context(), a.Client, api.SetOIDCRequest{Issuer: a.idp.URL, Client: a.idp.Client, ClientSecret: api.NewSecret("wrong"), Name: "Acme"}); err != nil {
		t.Fatal(err)
	}
	refused("after new settings", b.get(back))
	if p := a.login(newBrowser(t, a.testDaemon)); p.status != http.StatusBadGateway || !strings.Contains(p.body, "does not accept nize as its client") {
		t.Errorf("a wrong secret: %d %s", p.status, mainOf(p))
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCompanyKeyRotation: a key that the provider has since a moment ago is found.
func TestCompanyKeyRotation(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana"})
	for range 3 {
		b := newBrowser(t, a.testDaemon)
		back := a.callback(b)
		a.idp.Rotate() // in the middle of the sign-in
		if p := b.get(back); p.status != http.StatusOK || b.as() != "Ana" {
			t.Fatalf("after a rotation: %d %s\n%s", p.status, mainOf(p), a.log)
		}
	}
}

// TestCompanyAlgorithmChange: a provider that begins to sign with another algorithm, which
// its document lists from then on, is read again if the last read is seconds old.
func TestCompanyAlgorithmChange(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	a := newAcme(t, clock(&ahead))
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana"})
	lists := func(algorithms ...string) {
		a.idp.Document(func(c oidctest.Claims) { c["id_token_signing_alg_values_supported"] = algorithms })
	}
	lists("RS256")
	b := newBrowser(t, a.testDaemon)
	if p := a.login(b); p.status != http.StatusBadGateway || b.as() != "" {
		t.Fatalf("an algorithm that is not listed: %d %s", p.status, mainOf(p))
	}
	lists("ES256", "HS256")
	ahead.Store(int64(6 * time.Second))
	if p := a.login(b); p.status != http.StatusOK || b.as() != "Ana" {
		t.Errorf("an algorithm that is listed now: %d %s\n%s", p.status, mainOf(p), a.log)
	}
}

// TestCompanyEmail: an address links only if the provider verified it, an admin switched
// it on, and it is one person's.
func TestCompanyEmail(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	login := func(sub, email string, verified any) string {
		t.Helper()
		a.idp.Person(oidctest.Claims{"sub": sub, "name": sub, "email": email, "email_verified": verified})
		b := newBrowser(t, a.testDaemon)
		a.login(b)
		return b.as()
	}
	login("owner", "boss@acme.example", true)
	boss := a.user("owner")
	if _, err := api.RemoveOIDC.Call(t.Context(), a.Client, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	old := a.idp.URL
	a.idp = oidctest.New(t) // the company moves to another provider
	a.idp.Register(newBrowser(t, a.testDaemon).base + "/login/oidc")
	if _, err := api.SetOIDC.Call(t.Context(), a.Client, api.SetOIDCRequest{Issuer: a.idp.URL, Client: a.idp.Client, ClientSecret: api.NewSecret(a.idp.Secret), Name: "New"}); err != nil {
		t.Fatal(err)
	}
	// Switched off: a new member.
	login("off", "boss@acme.example", true)
	if u := a.user("off"); u.ID == boss.ID {
		t.Fatal("linked although it is off")
	}
	if _, err := api.RemoveUser.Call(t.Context(), a.Client, api.RemoveUserRequest{ID: "off"}); err != nil {
		t.Fatal(err)
	}
	a.set("oidc.link_by_email", "true")
	for name, tt := range map[string]struct {
		email    string
		verified any
	}{
		"unverified":    {"boss@acme.example", false},
		"saysnothing":   {"boss@acme.example", nil},
		"anumber":       {"boss@acme.example", 1},
		"another":       {"bos@acme.example", true},
		"kelvin":        {"boss@acme.example\u200b", true},
		"foldingletter": {"bo\u017fs@acme.example", true},
		"twoats":        {"boss@acme.example@evil.example", true},
	} {
		if got := login(name, tt.email, tt.verified); got != name {
			t.Errorf("%s: signed in as %q", name, got)
		}
	}
	if got := login("verified", "Boss@Acme.example", true); got != "owner" {
		t.Errorf("verified: signed in as %q", got)
	}
	if u := a.user(boss.ID); !slices.Contains(u.Identities, "oidc:"+a.idp.URL+"#verified") || !slices.Contains(u.Identities, "oidc:"+old+"#owner") {
		t.Errorf("identities: %q", u.Identities)
	}
	// The address was given to somebody new at the provider: they are not the one before.
	if got := login("successor", "boss@acme.example", true); got != "successor" {
		t.Errorf("a successor: signed in as %q", got)
	}
}

// TestCompanyGroupsOfSettings: who may sign in, and who is an admin, follows from groups.
func TestCompanyGroupsOfSettings(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	login := func(b *browser, groups any) page {
		t.Helper()
		c := oidctest.Claims{"sub": "ana-1", "name": "Ana"}
		if groups != nil {
			c["groups"] = groups
		}
		a.idp.Person(c)
		return a.login(b)
	}
	a.set("oidc.admin_groups", "it-admins,ops")
	b := newBrowser(t, a.testDaemon)
	login(b, []string{"staff", "ops"})
	if u := a.user("Ana"); u.Role != store.Admin || !u.AdminByGroup {
		t.Fatalf("in a group of admins: %+v", u.User)
	}
	login(newBrowser(t, a.testDaemon), []string{"staff"})
	if u := a.user("Ana"); u.Role != store.Member {
		t.Errorf("out of it: %s", u.Role)
	}
	login(b, "ops") // one group as a text
	a.set("oidc.admin_groups", "it-admins")
	if u := a.user("Ana"); u.Role != store.Member {
		t.Errorf("after the setting changed: %s", u.Role)
	}
	// A role by hand is not the provider's to take.
	if _, err := api.PatchUser.Call(t.Context(), a.Client, api.PatchUserRequest{ID: "Ana", Role: ptr(store.Admin)}); err != nil {
		t.Fatal(err)
	}
	login(b, []string{"staff"})
	if u := a.user("Ana"); u.Role != store.Admin || u.AdminByGroup {
		t.Errorf("by hand: %+v", u.User)
	}
	a.set("oidc.allowed_groups", "staff")
	if p := login(b, []string{"staff"}); p.status != http.StatusOK {
		t.Errorf("allowed: %d %s", p.status, mainOf(p))
	}
	stranger := newBrowser(t, a.testDaemon)
	a.idp.Person(oidctest.Claims{"sub": "zed", "name": "Zed", "groups": []string{"guests"}})
	if p := a.login(stranger); p.status != http.StatusForbidden || !strings.Contains(p.body, "oidc.allowed_groups") || stranger.as() != "" {
		t.Errorf("a stranger: %d %s", p.status, mainOf(p))
	}
	if p := login(newBrowser(t, a.testDaemon), nil); p.status != http.StatusForbidden || !strings.Contains(p.body, "did not send your groups") {
		t.Errorf("without the claim: %d %s", p.status, mainOf(p))
	}
	if got := b.as(); got != "" {
		t.Errorf("who may not sign in any more is still signed in as %q", got)
	}
	if _, err := api.GetUser.Call(t.Context(), a.Client, api.GetUserRequest{ID: "Zed"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a stranger became a user: %v", err)
	}
}

func ptr[T any](v T) *T { return &v }

// TestCompanyRequired: with oidc.required nothing else signs a browser in.
func TestCompanyRequired(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	b := newBrowser(t, a.testDaemon)
	before, err := api.StartLogin.Call(t.Context(), a.Client, api.StartLoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	client := b.register("Inspector", "http://127.0.0.1:9/cb")
	path, p := b.open(authorizeURL(client, "http://127.0.0.1:9/cb"))
	approved, err := api.ApproveLogin.Call(t.Context(), a.Client, api.LoginCodeRequest{Code: codeOf(p)})
	if err != nil {
		t.Fatal(err)
	}
	a.set("oidc.required", "true")
	if p := b.post(path, inJSON, `{"number":"`+approved.Number.Reveal()+`"}`); p.status != http.StatusForbidden {
		t.Errorf("a number: %d %s", p.status, mainOf(p))
	}
	if p := b.get(strings.Replace(path, "/oauth/requests/", "/oauth/authorize?request=", 1)); strings.Contains(p.body, `class="code"`) || !strings.Contains(p.body, "Continue with Acme") {
		t.Errorf("the page of a client: %s", p.body)
	}
	_, secret, _ := strings.Cut(before.URL.Reveal(), "#")
	if p := b.post("/login", form, url.Values{"secret": {secret}, "form": {formOf(p)}}.Encode()); b.as() != "" {
		t.Errorf("a link of before: %d %s", p.status, mainOf(p))
	}
	if p := b.get("/login"); p.status != http.StatusOK || strings.Contains(p.body, `class="code"`) || !strings.Contains(p.body, "Continue with Acme") {
		t.Errorf("/login: %d %s", p.status, mainOf(p))
	}
	if _, err := api.StartLogin.Call(t.Context(), a.Client, api.StartLoginRequest{}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a new link: %v", err)
	}
	if _, err := api.ApproveLogin.Call(t.Context(), a.Client, api.LoginCodeRequest{Code: codeOf(p)}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a code: %v", err)
	}
	if _, err := api.RemoveOIDC.Call(t.Context(), a.Client, api.Empty{}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("removing the only way in: %v", err)
	}
	if p := a.login(b); p.status != http.StatusOK {
		t.Errorf("the company's account: %d %s", p.status, mainOf(p))
	}
}

// TestCompanyDown: a provider that answers nothing lets nobody in, and the page says what
// to do; when it is back, so are sign-ins.
func TestCompanyDown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := &now
	var mu sync.Mutex
	a := &acme{idp: oidctest.New(t), log: &syncBuffer{}, t: t}
	a.testDaemon = open(t, t.TempDir(), nil, func(o *daemon.Options) {
		o.Log = slog.New(slog.NewTextHandler(a.log, nil))
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return *clock }
	})
	a.idp.Register(newBrowser(t, a.testDaemon).base + "/login/oidc")
	set := api.SetOIDCRequest{Issuer: a.idp.URL, Client: a.idp.Client, ClientSecret: api.NewSecret(a.idp.Secret), Name: "Acme"}
	a.idp.Down(true)
	if _, err := api.SetOIDC.Call(t.Context(), a.Client, set); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("setting a provider that is down: %v", err)
	}
	set.Force = true
	if _, err := api.SetOIDC.Call(t.Context(), a.Client, set); err != nil {
		t.Fatal(err)
	}
	if p := newBrowser(t, a.testDaemon).get("/login/oidc/start"); p.status != http.StatusBadGateway || !strings.Contains(p.body, "nizectl identity oidc test") {
		t.Errorf("down: %d %s", p.status, mainOf(p))
	}
	found, err := api.TestOIDC.Call(t.Context(), a.Client, api.Empty{})
	if err != nil || found.OK || len(found.Steps) != 1 || found.Steps[0].Cure == "" {
		t.Errorf("test: %+v %v", found, err)
	}
	a.idp.Down(false)
	mu.Lock()
	later := now.Add(6 * time.Second)
	clock = &later
	mu.Unlock()
	if p := a.login(newBrowser(t, a.testDaemon)); p.status != http.StatusOK {
		t.Errorf("back: %d %s", p.status, mainOf(p))
	}
	if found, err = api.TestOIDC.Call(t.Context(), a.Client, api.Empty{}); err != nil || !found.OK || len(found.Steps) != 4 {
		t.Errorf("test: %+v %v", found, err)
	}
	a.idp.Document(func(c oidctest.Claims) { c["issuer"] = "https://elsewhere.example" })
	if _, err := api.SetOIDC.Call(t.Context(), a.Client, api.SetOIDCRequest{Issuer: a.idp.URL, Client: "x"}); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "elsewhere.example") {
		t.Errorf("another issuer: %v", err)
	}
}

// TestCompanyLogout: the provider signs a person out here, once for each token.
func TestCompanyLogout(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana", "sid": "s1"})
	one, two, elsewhere := newBrowser(t, a.testDaemon), newBrowser(t, a.testDaemon), newBrowser(t, a.testDaemon)
	a.login(one)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana", "sid": "s2"})
	a.login(two)
	a.idp.Person(oidctest.Claims{"sub": "bea-1", "name": "Bea", "sid": "s3"})
	a.login(elsewhere)
	token := func(change func(oidctest.Claims)) string {
		c := oidctest.Claims{"iss": a.idp.URL, "aud": a.idp.Client, "iat": time.Now().Unix(), "exp": time.Now().Add(2 * time.Minute).Unix(), "jti": store.NewID(time.Now()),
			"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}
		change(c)
		return a.idp.Sign(oidctest.Claims{"typ": "logout+jwt"}, c)
	}
	send := func(raw string) int {
		return newBrowser(t, a.testDaemon).post("/login/oidc/logout", form, url.Values{"logout_token": {raw}}.Encode()).status
	}
	for name, change := range map[string]func(oidctest.Claims){
		"a nonce":        func(c oidctest.Claims) { c["sub"], c["nonce"] = "ana-1", "x" },
		"no event":       func(c oidctest.Claims) { c["sub"] = "ana-1"; delete(c, "events") },
		"nobody":         func(oidctest.Claims) {},
		"wrong audience": func(c oidctest.Claims) { c["sub"], c["aud"] = "ana-1", "x" },
		"wrong issuer":   func(c oidctest.Claims) { c["sub"], c["iss"] = "ana-1", "https://evil.example" },
		"expired":        func(c oidctest.Claims) { c["sub"], c["exp"] = "ana-1", time.Now().Add(-time.Hour).Unix() },
		"for years":      func(c oidctest.Claims) { c["sub"], c["exp"] = "ana-1", time.Now().Add(9000*time.Hour).Unix() },
	} {
		if got := send(token(change)); got != http.StatusBadRequest || one.as() != "Ana" {
			t.Errorf("%s: %d", name, got)
		}
	}
	bySession := token(func(c oidctest.Claims) { c["sid"] = "s1" })
	if got := send(bySession); got != http.StatusOK || one.as() != "" || two.as() != "Ana" {
		t.Errorf("by session: %d", got)
	}
	if got := send(bySession); got != http.StatusBadRequest {
		t.Errorf("a replayed token: %d", got)
	}
	if got := send(token(func(c oidctest.Claims) { c["sub"] = "ana-1" })); got != http.StatusOK || two.as() != "" || elsewhere.as() != "Bea" {
		t.Errorf("by subject: %d", got)
	}
}

// TestCompanyGroups: groups of the provider share a server and name its approvers. An
// approver who lost the group can't decide about a card that they were shown before.
func TestCompanyGroups(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	login := func(b *browser, groups ...string) {
		t.Helper()
		a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana", "groups": groups})
		if p := a.login(b); p.status != http.StatusOK {
			t.Fatalf("signing in: %d %s", p.status, mainOf(p))
		}
	}
	b := newBrowser(t, a.testDaemon)
	login(b, "Leads", "Staff") // before nize has the group
	must(api.AddGroup.Call(ctx, a.Client, api.AddGroupRequest{Name: "leads", OIDCGroup: "Leads"}))
	must(api.AddGroup.Call(ctx, a.Client, api.AddGroupRequest{Name: "staff", OIDCGroup: "Staff"}))
	if g, err := api.GetGroup.Call(ctx, a.Client, api.GetGroupRequest{Name: "leads"}); err != nil || len(g.Members) != 1 || g.Members[0].Name != "Ana" {
		t.Fatalf("the group: %+v %v", g, err)
	}
	must(api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: store.Server{Name: "agent-steps", Transport: store.External, Visibility: []string{"group:staff"}, Approvers: "group:leads"}}))
	ask := func() api.Ask {
		t.Helper()
		c, err := api.PostAsk.Call(ctx, a.Client, api.AskRequest{Source: "agent-steps", Tool: "Bash", Arguments: []byte(`{"command":"make"}`)})
		if err != nil || c.State != "pending" {
			t.Fatalf("an ask is %s: %s %v", c.State, c.Reason, err)
		}
		return c
	}
	decide := func(b *browser, c api.Ask) page {
		t.Helper()
		return b.ask("approvals/"+c.ID, `{"verb":"approve","digest":"`+c.Digest+`"}`)
	}
	if p := decide(b, ask()); p.status != http.StatusOK {
		t.Fatalf("in the group: %d %s", p.status, p.body)
	}
	shown := ask()
	login(newBrowser(t, a.testDaemon), "Staff") // elsewhere, without the group
	if p := decide(b, shown); p.status == http.StatusOK {
		t.Errorf("out of the group: %d %s", p.status, p.body)
	}
	if now, err := api.GetCall.Call(ctx, a.Client, api.CallRequest{ID: shown.ID}); err != nil || now.State != store.Pending || !now.Approved.IsZero() {
		t.Errorf("the call: %+v %v", now, err)
	}
	// A provider that says nothing about groups puts nobody in any.
	login(newBrowser(t, a.testDaemon), "Leads", "Staff")
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana"})
	a.login(newBrowser(t, a.testDaemon))
	if p := decide(b, shown); p.status == http.StatusOK {
		t.Errorf("without the claim: %d %s", p.status, p.body)
	}
	// What the person had is gone with the provider, and stays gone for another one.
	login(b, "Leads", "Staff")
	other := oidctest.New(t)
	must(api.SetOIDC.Call(ctx, a.Client, api.SetOIDCRequest{Issuer: other.URL, Client: other.Client, ClientSecret: api.NewSecret(other.Secret), Name: "Other"}))
	if p := decide(b, shown); p.status == http.StatusOK {
		t.Errorf("under another provider: %d %s", p.status, p.body)
	}
	if u := a.user("Ana"); len(u.Groups) != 0 {
		t.Errorf("groups under another provider: %q", u.Groups)
	}
}

// Who decides by a group of the provider, or as an admin by one, has it by what the provider
// says now: its groups are read again with the refresh token that it gave. A provider that
// can't be reached, or that ended the person's session, confirms nothing.
func TestCompanyGroupsOfDeciders(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	a := newAcme(t, clock(&ahead))
	later := func() {
		ahead.Add(int64(store.GroupAge + time.Second))
		a.idp.Advance(store.GroupAge + time.Second)
	}
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(groups ...string) { a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana", "groups": groups}) }
	login := func(groups ...string) *browser {
		t.Helper()
		is(groups...)
		b := newBrowser(t, a.testDaemon)
		if p := a.login(b); p.status != http.StatusOK {
			t.Fatalf("signing in: %d %s", p.status, mainOf(p))
		}
		return b
	}
	a.set("oidc.admin_groups", "Chiefs")
	must(api.AddGroup.Call(ctx, a.Client, api.AddGroupRequest{Name: "leads", OIDCGroup: "Leads"}))
	for name, who := range map[string]string{"steps": "group:leads", "risks": string(store.ByAdmins)} {
		must(api.AddServer.Call(ctx, a.Client, api.AddServerRequest{Server: store.Server{Name: name, Transport: store.External, Visibility: []string{"all"}, Approvers: store.Policy(who)}}))
	}
	ask := func(source string) api.Ask {
		t.Helper()
		c, err := api.PostAsk.Call(ctx, a.Client, api.AskRequest{Source: source, Tool: "Bash", Arguments: []byte(`{"command":"make"}`), Expires: "1h"})
		if err != nil || c.State != "pending" {
			t.Fatalf("an ask is %s: %s %v", c.State, c.Reason, err)
		}
		return c
	}
	want := func(b *browser, c api.Ask, when string, want bool) {
		t.Helper()
		p := b.ask("approvals/"+c.ID, `{"verb":"approve","digest":"`+c.Digest+`"}`)
		now, err := api.GetCall.Call(ctx, a.Client, api.CallRequest{ID: c.ID})
		if got := !now.Approved.IsZero(); err != nil || got != want || got != (p.status == http.StatusOK) {
			t.Errorf("%s: the press counts: %v, want %v (%v)\n%d %s\n%s", when, got, want, err, p.status, p.body, a.log)
		}
	}

	a.idp.Refreshes(true)
	b := login("Leads", "Chiefs")
	want(b, ask("steps"), "after the sign-in", true)
	want(b, ask("risks"), "after the sign-in", true)
	later()
	exchanges, _ := a.idp.Counts()
	want(b, ask("steps"), "later", true)
	want(b, ask("risks"), "later", true)
	if now, _ := a.idp.Counts(); now != exchanges+1 {
		t.Errorf("%d requests for two decisions, want one", now-exchanges)
	}
	later()
	want(b, ask("steps"), "with the token that replaced the first", true)

	is("Staff") // removed at the provider, without a sign-in
	steps, risks := ask("steps"), ask("risks")
	want(b, ask("steps"), "read a moment ago", true)
	later()
	want(b, steps, "removed from the group", false)
	want(b, risks, "removed from the admins' group", false)
	if u := a.user("Ana"); u.Role != store.Member || len(u.Groups) != 0 {
		t.Errorf("stored: %+v", u)
	}

	b = login("Leads")
	steps = ask("steps")
	later()
	a.idp.Down(true)
	want(b, steps, "the provider is down", false)
	a.idp.Down(false)
	ahead.Add(int64(10 * time.Second)) // until it is asked again
	a.idp.Person(oidctest.Claims{"sub": "eve-2", "name": "Eve", "groups": []string{"Leads"}})
	want(b, steps, "the provider answers about another", false)

	b = login("Leads")
	want(b, ask("steps"), "signed in again", true) // the earlier call may have ended without an approver
	steps = ask("steps")
	a.idp.Refreshes(false) // it ends the session
	later()
	want(b, steps, "the provider ended the session", false)
	if u := a.user("Ana"); len(u.Groups) != 0 {
		t.Errorf("stored after the end: %+v", u)
	}

	// Without a refresh token the groups count as long as a session lasts.
	b = login("Leads")
	steps = ask("steps")
	later()
	want(b, steps, "without a refresh token", true)
}
