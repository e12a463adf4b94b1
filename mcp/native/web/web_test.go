package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/mcp/egress"
	"nize/mcp/egress/egresstest"
	"nize/mcp/native"
)

// scrape runs the tool and returns its text.
func scrape(t *testing.T, client *http.Client, args string) (text string, failed bool) {
	t.Helper()
	r, err := Tool(client, "0.1.0").Run(t.Context(), native.Context{User: "u"}, []byte(args))
	if err != nil || len(r.Content) != 1 || r.Content[0].Type != "text" {
		t.Fatalf("%s: %+v, %v", args, r, err)
	}
	return r.Content[0].Text, r.IsError
}

func guarded(allow string, l egress.Limits) *http.Client {
	return egress.NewTransport(egress.Options{Allow: func() string { return allow }}).Client(l)
}

const blocked = "Failed to fetch: blocked: only public addresses on ports 80 and 443 are fetched, unless an admin allows them in egress.allow"

// TestSpellings: no way to write an address inside leads there, and what is said of
// those that are kept away tells nothing of them.
func TestSpellings(t *testing.T) {
	client := guarded("", egress.Limits{Time: time.Minute})
	for _, address := range egresstest.Refused {
		got, failed := scrape(t, client, fmt.Sprintf(`{"url":%q}`, address))
		if !failed || got != blocked && !strings.HasPrefix(got, "Invalid URL: ") && !strings.HasPrefix(got, "Invalid protocol: ") {
			t.Errorf("%s: %q", address, got)
		}
	}
	for address, want := range map[string]string{
		"":                    "Invalid URL: ",
		"example.com":         "Invalid URL: example.com",
		"/etc/passwd":         "Invalid URL: /etc/passwd",
		"http://":             "Invalid URL: http://",
		"http://a b/":         "Invalid URL: http://a b/",
		"ftp://example.com/":  "Invalid protocol: ftp:",
		"file:///etc/passwd":  "Invalid protocol: file:",
		"JavaScript:alert(1)": "Invalid protocol: javascript:",
	} {
		if got, failed := scrape(t, client, fmt.Sprintf(`{"url":%q}`, address)); got != want || !failed {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// site is a real server on loopback, with a second one that nothing may reach.
func site(t *testing.T) (address string, inner *atomic.Int64) {
	t.Helper()
	inner = new(atomic.Int64)
	hidden := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner.Add(1) }))
	t.Cleanup(hidden.Close)
	_, port, err := net.SplitHostPort(hidden.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(make([]byte, 1<<20)) // memory takes it all
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	as := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(body)) // the client may leave; so below
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/page", as("text/html; charset=iso-8859-1", "<title>T</title><h1>Caf\xe9</h1><script>x</script><p>See <a href='/b'>b</a>.</p>"))
	mux.HandleFunc("/json", as("application/json", `{"n": 9007199254740993}`))
	mux.HandleFunc("/text", as("text/plain", "a\n  b <i>c</i>\n"))
	mux.HandleFunc("/image", as("image/png", "\x89PNG\r\n\x1a\n"))
	mux.HandleFunc("/long", as("text/plain", strings.Repeat("é", 60_000)))
	mux.HandleFunc("/missing", http.NotFound)
	mux.HandleFunc("/agent", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.UserAgent(), r.Header["Cookie"]) })
	mux.HandleFunc("/inward", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:"+port+"/", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/spelled", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://2130706433:"+port+"/", http.StatusFound)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/on", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/text", http.StatusFound) })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	mux.HandleFunc("/twice", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip, gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, inner
}

func TestScrape(t *testing.T) {
	at, inner := site(t)
	client := guarded("127.0.0.1", egress.Limits{})
	for path, want := range map[string]string{
		"/page":    "# T\n\n## Café\n\nSee [b](" + at + "/b).",
		"/json":    `{"n": 9007199254740993}`,
		"/text":    "a\n  b <i>c</i>\n",
		"/on":      "a\n  b <i>c</i>\n",
		"/agent":   "Mozilla/5.0 (compatible; nize/0.1.0)[]",
		"/image":   "Failed to fetch: it is image/png, which is not text",
		"/missing": "HTTP error: 404",
		"/inward":  blocked,
		"/spelled": blocked,
		"/file":    blocked,
		"/round":   blocked,
		"/bomb":    "Failed to fetch: the answer is too large",
		"/twice":   "Failed to fetch: the server sent it in an encoding that was not asked for",
	} {
		got, failed := scrape(t, client, fmt.Sprintf(`{"url":%q}`, at+path))
		if got != want || failed != (strings.HasPrefix(want, "Failed") || strings.HasPrefix(want, "HTTP")) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for args, want := range map[string]int{"": 50_000, `,"maxLength":100`: 100, `,"maxLength":3`: 3, `,"maxLength":0`: 50_000, `,"maxLength":1e300`: 60_000} {
		if got, _ := scrape(t, client, fmt.Sprintf(`{"url":%q%s}`, at+"/long", args)); len([]rune(got)) != want || want == 100 && !strings.HasSuffix(got, "[Cut after 100 characters.]") {
			t.Errorf("%s: %d characters, want %d", args, len([]rune(got)), want)
		}
	}
	if got, _ := scrape(t, guarded("127.0.0.1", egress.Limits{Time: 50 * time.Millisecond}), fmt.Sprintf(`{"url":%q}`, at+"/slow")); got != "Failed to fetch: the server did not answer in time" {
		t.Errorf("/slow: %q", got)
	}
	if got, _ := scrape(t, guarded("", egress.Limits{}), fmt.Sprintf(`{"url":%q}`, at+"/text")); got != blocked {
		t.Errorf("what nobody allowed: %q", got)
	}
	if inner.Load() != 0 {
		t.Errorf("%d requests reached the inner server", inner.Load())
	}
}

// TestRebinding: a name that pointed outside a moment ago, and points inside now.
func TestRebinding(t *testing.T) {
	at, _ := site(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(at, "http://")) // a listener's
	was := net.DefaultResolver
	net.DefaultResolver = egresstest.Resolver(map[string][]string{"rebind.example": {"127.0.0.1", "127.0.0.1", "127.0.0.2"}, "metadata.google.internal": {"169.254.169.254"}})
	t.Cleanup(func() { net.DefaultResolver = was })
	client := guarded("127.0.0.1", egress.Limits{})
	for i, want := range []string{"a\n  b <i>c</i>\n", "a\n  b <i>c</i>\n", blocked} {
		if got, _ := scrape(t, client, fmt.Sprintf(`{"url":"http://rebind.example:%s/text"}`, port)); got != want {
			t.Errorf("time %d: %q", i+1, got)
		}
	}
	if got, _ := scrape(t, client, `{"url":"http://metadata.google.internal/computeMetadata/v1/"}`); got != blocked {
		t.Errorf("the cloud's metadata: %q", got)
	}
}

func TestStopsWithItsCall(t *testing.T) {
	at, _ := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Tool(guarded("127.0.0.1", egress.Limits{}), "x").Run(ctx, native.Context{User: "u"}, []byte(`{"url":"`+at+`/slow"}`))
	if err != nil || !r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
}
