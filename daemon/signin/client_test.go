package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/mcp/egress"
	"nize/store"
	"nize/store/oauth"
)

// answers is an http.RoundTripper.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// endless is a body without an end, which counts what is read of it.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.n += len(p)
	return len(p), nil
}

// nobody has no clients that registered.
type nobody struct{ oauth.Store }

func (nobody) GetClient(context.Context, string) (oauth.Client, error) {
	return oauth.Client{}, store.ErrNotFound
}

// TestDocuments: what a client's metadata document may be.
func TestDocuments(t *testing.T) {
	const id = "https://client.example/meta.json"
	good := `{"client_id":"` + id + `","client_name":"C","redirect_uris":["https://client.example/cb","http://evil.example/"]}`
	reply := func(status int, kind, body string, headers ...string) answers {
		return func(*http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {kind}}
			for i := 0; i < len(headers); i += 2 {
				h.Set(headers[i], headers[i+1])
			}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
	}
	find := func(id string, from http.RoundTripper) (client, error) {
		s := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now}, Store: nobody{}, Transport: from})
		return s.clients.find(t.Context(), id, "192.0.2.1")
	}
	one, err := find(id, reply(200, "application/json", good))
	if err != nil || one.Host != "client.example" || one.Name != "C" || len(one.Redirects) != 1 {
		t.Fatalf("a good one: %+v %v", one, err)
	}
	if _, err := find(id, reply(200, "application/json; charset=utf-8", strings.Replace(good, `"C"`, `"C","token_endpoint_auth_method":"private_key_jwt"`, 1))); err != nil {
		t.Errorf("private_key_jwt: %v", err)
	}
	huge := &endless{}
	for name, from := range map[string]http.RoundTripper{
		"a redirect":    reply(302, "application/json", "", "Location", "https://client.example/other"),
		"not found":     reply(404, "application/json", good),
		"HTML":          reply(200, "text/html", good),
		"no JSON":       reply(200, "application/json", "{"),
		"another's":     reply(200, "application/json", strings.Replace(good, "meta.json", "other.json", 1)),
		"no name":       reply(200, "application/json", strings.Replace(good, `"C"`, `" "`, 1)),
		"bad redirects": reply(200, "application/json", strings.Replace(good, "https://client.example/cb", "javascript:alert(1)", 1)),
		"a secret":      reply(200, "application/json", strings.Replace(good, `"C"`, `"C","token_endpoint_auth_method":"client_secret_basic"`, 1)),
		"without an end": answers(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(huge)}, nil
		}),
	} {
		if _, err := find(id, from); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if huge.n > 256<<10 {
		t.Errorf("of an endless one %d bytes were read", huge.n)
	}
	guarded := egress.NewTransport(egress.Options{})
	for _, bad := range []string{
		"https://127.0.0.1/c.json", "https://localhost/c.json", "https://[::1]/c.json", "https://169.254.169.254/latest", "https://10.0.0.1/c", "https://2130706433/c", "https://client.example", "https://client.example/",
		"https://u:p@client.example/c", "https://client.example/c#x", "https://client.example/../c", "http://client.example/c", "c_unknown", "",
	} {
		wrong := (*oauthError)(nil)
		if _, err := find(bad, guarded); !errors.As(err, &wrong) || wrong.code != "invalid_client" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestFetchesAreBounded: nobody makes nize ask others as often as they like.
func TestFetchesAreBounded(t *testing.T) {
	asked := 0
	s := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now, Origin: func(*http.Request) string { return "http://127.0.0.1:1" }}, Store: nobody{}, Transport: answers(func(*http.Request) (*http.Response, error) {
		asked++
		return nil, errors.New("nobody is there")
	})})
	begin := func(from string) int {
		r := httptest.NewRequest("GET", "/oauth/authorize?client_id=https://client.example/meta.json", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	for range 10 {
		if got := begin("192.0.2.1:1"); got != http.StatusBadRequest {
			t.Errorf("status %d", got)
		}
	}
	if got := begin("192.0.2.1:2"); got != http.StatusTooManyRequests || asked != 10 {
		t.Errorf("the next one: %d, after %d requests", got, asked)
	}
	if got := begin("192.0.2.2:1"); got != http.StatusBadRequest || asked != 11 {
		t.Errorf("somebody else: %d, after %d requests", got, asked)
	}
}

// TestDocumentsAreCached: one that changes each time counts as it was for a minute
// at least, and for a day at most.
func TestDocumentsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = "https://client.example/meta.json"
		asked, control := 0, "no-store"
		s := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now}, Store: nobody{}, Transport: answers(func(*http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {control}},
				Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"client_id":"%s","client_name":"C%d","redirect_uris":["https://client.example/cb"]}`, id, asked)))}, nil
		})})
		name := func() string {
			t.Helper()
			one, err := s.clients.find(t.Context(), id, "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			return one.Name
		}
		if a, b := name(), name(); a != "C1" || b != "C1" {
			t.Errorf("at once: %s, %s", a, b)
		}
		control = "max-age=99999999"
		time.Sleep(time.Minute)
		if got := name(); got != "C2" {
			t.Errorf("after a minute: %s", got)
		}
		time.Sleep(24*time.Hour - time.Second)
		if got := name(); got != "C2" {
			t.Errorf("within a day: %s", got)
		}
		time.Sleep(time.Second)
		if got := name(); got != "C3" {
			t.Errorf("after a day: %s", got)
		}
	})
}

func TestCacheTime(t *testing.T) {
	for header, want := range map[string]time.Duration{"": time.Minute, "max-age=10": time.Minute, "public, max-age=3600": time.Hour, "max-age=9999999999": 24 * time.Hour, "max-age=-5": time.Minute, "no-cache, max-age=3600": time.Minute, "max-age=x": time.Minute} {
		if got := cacheTime(http.Header{"Cache-Control": {header}}); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func FuzzRedirect(f *testing.F) {
	f.Add("https://client.example/cb", "https://client.example/cb")
	f.Add("http://127.0.0.1:1/", "http://127.0.0.1:2/")
	f.Add("http://[::1]:1/x?y", "http://[::1]/x?y")
	f.Fuzz(func(t *testing.T, known, asked string) {
		s := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now}, Store: nobody{}})
		one := client{Redirects: s.clients.allowed([]string{known})}
		if !one.redirect(asked) || known == asked {
			return
		}
		if !s.clients.allows(asked) {
			return // authorize refuses it, too
		}
		if !strings.HasPrefix(known, "http://") || !strings.HasPrefix(asked, "http://") || withoutPort(known) != withoutPort(asked) {
			t.Errorf("%q stands for %q", asked, known)
		}
	})
}

// TestAuthorizationMUSTs: what both versions demand of who reads metadata documents
// of clients, and of where an authorization server is; the rest is in package daemon.
func TestAuthorizationMUSTs(t *testing.T) {
	const id = "https://client.example/meta.json"
	read := func(t *testing.T, doc string, redirect string) bool {
		t.Helper()
		s := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now}, Store: nobody{}, Transport: answers(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(doc))}, nil
		})})
		one, err := s.clients.find(t.Context(), id, "192.0.2.1")
		return err == nil && one.redirect(redirect)
	}
	const good, redirect = `{"client_id":"` + id + `","client_name":"C","redirect_uris":["https://client.example/cb"]}`, "https://client.example/cb"
	for name, test := range map[string]func(t *testing.T) bool{
		"a good one is taken": func(t *testing.T) bool { return read(t, good, redirect) },
		"MUST validate that client_id matches the URL exactly": func(t *testing.T) bool {
			return !read(t, strings.Replace(good, "meta.json", "Meta.json", 1), redirect) && !read(t, strings.Replace(good, "https://client", "https://CLIENT", 1), redirect)
		},
		"MUST validate redirect URIs against the document": func(t *testing.T) bool {
			return !read(t, good, redirect+"/") && !read(t, good, "https://evil.example/cb")
		},
		"MUST validate that the document is JSON with the required fields": func(t *testing.T) bool {
			return !read(t, good[:len(good)-1], redirect) && !read(t, strings.Replace(good, "client_name", "name", 1), redirect) &&
				!read(t, strings.Replace(good, "redirect_uris", "redirects", 1), redirect) && !read(t, strings.Replace(good, `"client_id"`, `"id"`, 1), redirect)
		},
		"endpoints MUST be served over HTTPS, or on this machine": func(t *testing.T) bool {
			h := New(Options{Sessions: &Sessions{Config: values{}, Now: time.Now, Origin: func(*http.Request) string { return "" }}}).Handler()
			all := true
			for _, at := range []string{"GET /oauth/authorize", "POST /oauth/token", "POST /oauth/register", "POST /oauth/revoke", "GET /login", "POST /login", "POST /login/end", "GET " + serverMetadata, "GET " + resourceMetadata + mcpPath} {
				method, path, _ := strings.Cut(at, " ")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(method, "http://nize.example"+path, nil))
				all = all && w.Code == http.StatusNotFound
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !test(t) {
				t.Error("it is not so")
			}
		})
	}
}
