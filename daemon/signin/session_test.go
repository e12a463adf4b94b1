package signin

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/oauth"
)

// values is a [store.Config]: what is not in it has its default.
type values map[string]string

func (v values) Get(_, key string) string {
	if value, ok := v[key]; ok {
		return value
	}
	for _, k := range slices.Concat(store.Keys, Settings) {
		if k.Name == key {
			return k.Default
		}
	}
	panic("no setting " + key)
}

// TestSessions: a cookie is a person until it ends, under whatever name it has,
// and what somebody put there before is none.
func TestSessions(t *testing.T) {
	db := databasetest.Open(t)
	ann, err := db.EnsureUser(t.Context(), "local:1", "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	skew := time.Duration(0)
	s := &Sessions{Tokens: db, Notices: db, Config: values{}, Origin: originOf, Now: func() time.Time { return time.Now().Add(skew) }}
	ask := func(cookies ...*http.Cookie) *http.Request {
		r := httptest.NewRequest("GET", "http://127.0.0.1:19560/", nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		return r
	}
	begin := func(r *http.Request) *http.Cookie {
		t.Helper()
		w := httptest.NewRecorder()
		if _, err := s.Begin(t.Context(), w, r, oauth.Request{User: ann.ID}); err != nil {
			t.Fatal(err)
		}
		return w.Result().Cookies()[0]
	}
	planted := &http.Cookie{Name: "nize-19560", Value: strings.Repeat("A", 43)}
	first := begin(ask(planted))
	if first.Value == planted.Value || !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || first.Path != "/" {
		t.Errorf("the cookie %+v", first)
	}
	if _, ok := s.Person(ask(planted)); ok {
		t.Error("a cookie that was planted is somebody")
	}
	if by, ok := s.Person(ask(first)); !ok || by.User != ann.ID {
		t.Errorf("signed in: %+v %v", by, ok)
	}
	second := begin(ask(first)) // a new sign-in ends the old session
	if _, ok := s.Person(ask(first)); ok {
		t.Error("the session before goes on")
	}
	skew = 8 * 24 * time.Hour
	if _, ok := s.Person(ask(second)); ok {
		t.Error("a session that nobody used for 8 days goes on")
	}
	skew = 0
	if err := s.End(httptest.NewRecorder(), ask(second)); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Person(ask(second)); ok {
		t.Error("signed out, and still somebody")
	}
	third := begin(ask())
	ann.State = store.Disabled
	if err := db.PutUser(t.Context(), store.System, ann); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Person(ask(third)); ok {
		t.Error("somebody who is disabled is signed in")
	}
	for origin, want := range map[string]string{"https://nize.example.com": "__Host-nize", "http://localhost:8": "nize-8", "http://localhost": "nize-80"} {
		if got := CookieName(origin, "nize"); got != want {
			t.Errorf("%s: %s, want %s", origin, got, want)
		}
	}
	forged := httptest.NewRequest("POST", "http://127.0.0.1:19560/x", strings.NewReader("form="+FormToken(second.Value)))
	forged.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	forged.AddCookie(second)
	if !s.Genuine(forged) {
		t.Error("a form of our own is refused")
	}
	forged.Header.Set("Sec-Fetch-Site", "cross-site")
	if s.Genuine(forged) {
		t.Error("a form of another site is taken")
	}
}

func originOf(r *http.Request) string { return "http://" + r.Host }
