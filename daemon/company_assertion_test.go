package daemon_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"nize/daemon/api"
	"nize/daemon/company/oidctest"
	"nize/store"
)

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// idJAG returns the claims of an identity assertion authorization grant for a client.
func (a *acme) idJAG(b *browser, client, subject string) oidctest.Claims {
	now := time.Now()
	return oidctest.Claims{"iss": a.idp.URL, "aud": b.base, "resource": b.base + "/mcp", "client_id": client, "sub": subject, "jti": store.NewID(now),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
}

// assertion signs claims as the provider does.
func (a *acme) assertion(c oidctest.Claims) string {
	return a.idp.Sign(oidctest.Claims{"typ": "oauth-id-jag+jwt"}, c)
}

func (b *browser) assert(client, assertion string, more ...string) (tokens, page) {
	b.t.Helper()
	return b.token(append([]string{"grant_type", jwtBearer, "client_id", client, "assertion", assertion}, more...)...)
}

// TestCompanyAssertion: a client gets a token for /mcp by what the provider says, without a
// page, and what the provider leaves out stays as it was.
func TestCompanyAssertion(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	a.idp.Person(oidctest.Claims{"sub": "ana-1", "name": "Ana Sommer", "email": "ana@acme.example", "email_verified": true, "groups": []string{"leads"}})
	b := newBrowser(t, a.testDaemon)
	a.login(b)
	if _, err := api.AddGroup.Call(t.Context(), a.Client, api.AddGroupRequest{Name: "leads", OIDCGroup: "leads"}); err != nil {
		t.Fatal(err)
	}
	var about struct {
		Grants   []string `json:"grant_types_supported"`
		Profiles []string `json:"authorization_grant_profiles_supported"`
	}
	if err := json.Unmarshal([]byte(b.get("/.well-known/oauth-authorization-server").body), &about); err != nil || !slices.Contains(about.Grants, jwtBearer) ||
		!slices.Equal(about.Profiles, []string{"urn:ietf:params:oauth:grant-profile:id-jag"}) {
		t.Errorf("the metadata: %+v %v", about, err)
	}
	client := b.register("Inspector", "http://127.0.0.1:9/cb")
	tok, p := b.assert(client, a.assertion(a.idJAG(b, client, "ana-1")), "resource", b.base+"/mcp")
	if tok.Access == "" || tok.Refresh != "" || !b.works(tok.Access) {
		t.Fatalf("%d %s", p.status, p.body)
	}
	u := a.user("Ana Sommer")
	if u.Email != "ana@acme.example" || !slices.Equal(u.Groups, []string{"leads"}) || len(u.Identities) != 1 || len(u.Tokens) != 2 {
		t.Errorf("the user: %+v", u)
	}
	// The scope is that of the assertion; a request can only narrow it.
	narrow := a.idJAG(b, client, "ana-1")
	narrow["scope"] = "mcp tools:toolbox:*"
	if tok, p = b.assert(client, a.assertion(narrow)); tok.Scope != "mcp tools:toolbox:*" {
		t.Errorf("scope %q: %d %s", tok.Scope, p.status, p.body)
	}
	narrow["jti"] = "another"
	if tok, p = b.assert(client, a.assertion(narrow), "scope", "tools:other:*"); tok.Access != "" || !strings.Contains(p.body, "invalid_scope") {
		t.Errorf("a wider scope: %d %s", p.status, p.body)
	}
	// A person who never signed in becomes a member, as by a sign-in.
	if tok, p = b.assert(client, a.assertion(a.idJAG(b, client, "ben-1"))); tok.Access == "" || a.user("ben-1").Role != store.Member {
		t.Errorf("a new person: %d %s", p.status, p.body)
	}
	// Disabling the person ends the token.
	if _, err := api.PatchUser.Call(t.Context(), a.Client, api.PatchUserRequest{ID: "ben-1", State: ptr(store.Disabled)}); err != nil {
		t.Fatal(err)
	}
	if b.works(tok.Access) {
		t.Error("the token of a disabled person works")
	}
	// Without a provider there is no such grant.
	if _, err := api.RemoveOIDC.Call(t.Context(), a.Client, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, p = b.assert(client, a.assertion(a.idJAG(b, client, "ana-1"))); !strings.Contains(p.body, "unsupported_grant_type") {
		t.Errorf("without a provider: %d %s", p.status, p.body)
	}
}

// TestCompanyAssertionAttacks: an assertion that is not exactly for this server, resource,
// client and person, or is used again, gives no token. The client learns no reason; the log
// has it.
func TestCompanyAssertionAttacks(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	b := newBrowser(t, a.testDaemon)
	client, other := b.register("Inspector", "http://127.0.0.1:9/cb"), b.register("Other", "http://127.0.0.1:9/cb")
	a.idp.Person(oidctest.Claims{"sub": "leaver", "name": "Leaver"})
	a.login(newBrowser(t, a.testDaemon))
	if _, err := api.PatchUser.Call(t.Context(), a.Client, api.PatchUserRequest{ID: "Leaver", State: ptr(store.Disabled)}); err != nil {
		t.Fatal(err)
	}
	claim := func(name string, v any) func(oidctest.Claims) string {
		return func(c oidctest.Claims) string {
			if c[name] = v; v == nil {
				delete(c, name)
			}
			return a.assertion(c)
		}
	}
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	used := a.assertion(a.idJAG(b, client, "mallory"))
	if tok, p := b.assert(client, used); tok.Access == "" {
		t.Fatalf("the first use: %d %s", p.status, p.body)
	}
	stranger := oidctest.New(t)
	for _, tt := range []struct {
		name string
		make func(oidctest.Claims) string
		log  string
	}{
		{"replayed", func(oidctest.Claims) string { return used }, "used before"},
		{"wrong issuer", claim("iss", "https://evil.example"), "different provider"},
		{"no issuer", claim("iss", nil), "different provider"},
		{"audience of the client", claim("aud", a.idp.Client), "audience"},
		{"audience of another server", claim("aud", "https://other.example"), "audience"},
		{"two audiences", claim("aud", []string{b.base, "https://other.example"}), "audience"},
		{"no audience", claim("aud", nil), "audience"},
		{"another client", claim("client_id", other), "for the client"},
		{"no client", claim("client_id", nil), "for the client"},
		{"another resource", claim("resource", "https://other.example/mcp"), "resource"},
		{"another path", claim("resource", b.base+"/scim/v2"), "resource"},
		{"no resource", claim("resource", nil), "resource"},
		{"no subject", claim("sub", nil), "subject"},
		{"a long subject", claim("sub", strings.Repeat("x", 256)), "subject"},
		{"a person who left", claim("sub", "leaver"), "disabled"},
		{"expired", claim("exp", time.Now().Add(-10*time.Minute).Unix()), "expired"},
		{"no end", claim("exp", nil), "expired"},
		{"valid for a day", claim("exp", time.Now().Add(24*time.Hour).Unix()), "more than"},
		{"from the future", claim("iat", time.Now().Add(10*time.Minute).Unix()), "issued at"},
		{"no issue time", claim("iat", nil), "issued at"},
		{"no id", claim("jti", nil), "jti"},
		{"an ID token", func(c oidctest.Claims) string { return a.idp.Sign(nil, c) }, "type"},
		{"a logout token", func(c oidctest.Claims) string { return a.idp.Sign(oidctest.Claims{"typ": "logout+jwt"}, c) }, "type"},
		{"alg none", func(c oidctest.Claims) string {
			return encode(map[string]string{"alg": "none", "typ": "oauth-id-jag+jwt"}) + "." + encode(c) + "."
		}, "malformed"},
		{"key confusion", func(c oidctest.Claims) string {
			public, err := json.Marshal(a.idp.JWK())
			if err != nil {
				t.Fatal(err)
			}
			s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: public}, (&jose.SignerOptions{}).WithType("oauth-id-jag+jwt"))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := json.Marshal(c)
			signed, err := s.Sign(body)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := signed.CompactSerialize()
			return text
		}, "malformed"},
		{"a key of somebody else", func(c oidctest.Claims) string {
			return stranger.Sign(oidctest.Claims{"typ": "oauth-id-jag+jwt"}, c)
		}, "signature"},
		{"no token", func(oidctest.Claims) string { return "x" }, "type"},
	} {
		before := len(a.log.String())
		tok, p := b.assert(client, tt.make(a.idJAG(b, client, "mallory")))
		if tok.Access != "" || p.status != http.StatusBadRequest || !strings.Contains(p.body, `"invalid_grant"`) {
			t.Errorf("%s: %d %s", tt.name, p.status, p.body)
		}
		if said := a.log.String()[before:]; !strings.Contains(said, "an identity assertion was refused") || !strings.Contains(said, tt.log) {
			t.Errorf("%s: the log says %s", tt.name, said)
		}
	}
	// Groups that are required are those of the last sign-in, and a client needs them, too.
	a.set("oidc.allowed_groups", "staff")
	if tok, p := b.assert(client, a.assertion(a.idJAG(b, client, "mallory"))); tok.Access != "" {
		t.Errorf("out of the allowed groups: %d %s", p.status, p.body)
	}
	if tok, p := b.assert("nobody", a.assertion(a.idJAG(b, "nobody", "mallory"))); tok.Access != "" || !strings.Contains(p.body, "invalid_client") {
		t.Errorf("an unknown client: %d %s", p.status, p.body)
	}
	// An assertion signs no browser in.
	assertion := a.assertion(a.idJAG(b, client, "mallory"))
	a.idp.Raw(func(oidctest.Claims) string { return assertion })
	a.unset("oidc.allowed_groups")
	if p := a.login(b); p.status != http.StatusBadGateway || b.as() != "" {
		t.Errorf("an assertion as an ID token: %d %s", p.status, mainOf(p))
	}
}
