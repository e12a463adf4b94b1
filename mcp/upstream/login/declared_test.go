package login_test

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/mcp/upstream/authtest"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/credential"
)

// What an admin declared is signed in to without asking anybody about it; many calls at
// once refresh it once, and a login that is lost is one that nobody has.
func TestDeclared(t *testing.T) {
	w := newWorld(t)
	w.auth.Set(func(f *authtest.Faults) { f.Plain = true })
	w.auth.AddClient("our-id", "our-s3cret", redirect)
	d := credential.Declaration{ID: "mail", Name: "Mail", Mode: credential.UserOAuth, Host: "api.example.com",
		OAuth: &credential.OAuth{AuthorizationURL: w.auth.URL + "/authorize", TokenURL: w.auth.URL + "/token", RevocationURL: w.auth.URL + "/revoke", ClientID: "our-id"}}
	ann := store.Holder{Scope: "user", Owner: "ann"}
	if err := w.logins.PutClient(t.Context(), admin, d, store.NewSecret("our-s3cret")); err != nil {
		t.Fatal(err)
	}
	token := func(d credential.Declaration) (string, error) {
		s, _, err := w.logins.DeclaredToken(t.Context(), d, []store.Holder{{Scope: "user", Owner: "ben"}, ann})
		return s.Reveal(), err
	}
	missing := func(d credential.Declaration) {
		t.Helper()
		if got, err := token(d); got != "" || err == nil || err.Error() != d.Missing().Error() {
			t.Errorf("token %q, error %v", got, err)
		}
		if ok, err := w.logins.DeclaredSignedIn(t.Context(), d, []store.Holder{ann}); ok || err != nil {
			t.Errorf("signed in: %t, %v", ok, err)
		}
	}
	missing(d)

	// An answer of another issuer is not used, and costs nize nothing that it was given.
	r := w.logins.BeginDeclared(t.Context(), d, redirect)
	q := w.browse(r.URL())
	other := url.Values{"code": q["code"], "state": q["state"], "iss": {"https://evil.example"}}
	if _, err := w.logins.Finish(t.Context(), admin, login.ServerOf(d), r, other); !errors.Is(err, oauth.ErrIssuer) {
		t.Errorf("another issuer: %v", err)
	}
	g, err := w.logins.Finish(t.Context(), admin, login.ServerOf(d), r, q)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.logins.Keep(t.Context(), admin, login.ServerOf(d), ann, g); err != nil {
		t.Fatal(err)
	}
	first, err := token(d)
	if err != nil || !strings.HasPrefix(first, "access-") {
		t.Fatalf("token %q, error %v", first, err)
	}

	// Declared for other addresses, it is nobody's, and the client's secret stays behind.
	moved := d
	moved.OAuth = new(credential.OAuth)
	*moved.OAuth = *d.OAuth
	moved.OAuth.TokenURL, moved.OAuth.AuthorizationURL = "https://evil.example/token", "https://evil.example/a"
	missing(moved)
	if r := w.logins.BeginDeclared(t.Context(), moved, redirect); !r.Client.Secret.IsZero() {
		t.Error("the secret would go elsewhere")
	}

	w.skew.Store(int64(59*time.Minute + time.Second))
	asked := w.auth.Count("POST /token")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := token(d); err != nil || got == first {
				t.Errorf("token as before: %t, error %v", got == first, err)
			}
		})
	}
	wg.Wait()
	if got := w.auth.Count("POST /token") - asked; got != 1 {
		t.Errorf("%d refreshes", got)
	}
	w.auth.EndAll()
	w.skew.Store(int64(119 * time.Minute))
	missing(d)
	asked = w.auth.Count("POST /token")
	missing(d)
	if w.auth.Count("POST /token") != asked {
		t.Error("it asks with a token that is dead")
	}
}
