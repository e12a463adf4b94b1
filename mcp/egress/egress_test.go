package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nize/mcp/egress/egresstest"
	"nize/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every way to write an address that must not be reached. What looks like an
// address of the internet is refused by the dialer, all else before it.
func TestRefused(t *testing.T) {
	client := NewTransport(Options{}).Client(Limits{})
	for _, address := range egresstest.Refused {
		// A missing check must not reach the network: what is let through ends here.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			cancel()
			continue // net/url refuses it
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		cancel()
		if refused := (*Error)(nil); !errors.As(err, &refused) || !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What is public passes the check of the very address that is dialled; nothing
// is sent to it here.
func TestPublic(t *testing.T) {
	for _, address := range []string{"8.8.8.8:443", "1.1.1.1:80", "[2606:4700:4700::1111]:443", "[::ffff:8.8.8.8]:443", "172.32.0.1:80", "100.128.0.1:80", "192.169.0.1:443", "11.0.0.1:443", "126.255.255.255:80"} {
		network := "tcp4"
		if netip.MustParseAddrPort(address).Addr().Is6() {
			network = "tcp6"
		}
		if err := check(Allow{}, network, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"http://example.com/", "https://EXAMPLE.com:443/a?b#c", "https://xn--bcher-kva.example/", "https://a_b.example/", "http://8.8.8.8/", "http://[2606:4700:4700::1111]:80/", "http://0xyz.example/", "http://1.example/"} {
		u, err := url.Parse(address)
		if err == nil {
			err = CheckURL(u)
		}
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"8.8.8.8:443", "not an address", "8.8.8.8"} {
		if err := check(Allow{}, "udp4", address); err == nil {
			t.Errorf("udp to %s", address)
		}
	}
}

func TestParseAllow(t *testing.T) {
	a, err := ParseAllow("Tools.Example.com, 10.0.0.7,192.168.0.0/16,fd00::/8,::ffff:10.1.1.1,")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"10.0.0.7": true, "10.0.0.8": false, "192.168.255.1": true, "192.169.0.1": false, "fd12::1": true, "10.1.1.1": true, "8.8.8.8": false} {
		if a.Addr(netip.MustParseAddr(text)) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
	for name, want := range map[string]bool{"tools.example.com": true, "TOOLS.example.COM": true, "x.tools.example.com": false, "example.com": false, "": false} {
		if a.Host(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	for _, bad := range []string{"10.0.0.1/8", "10.0.0.0/33", "*.example.com", "http://example.com", "example.com:80", "example.com.", "2130706433", "127.1", "fe80::1%lo", "::ffff:10.0.0.0/104", "a b", "bücher.example"} {
		if _, err := ParseAllow(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// lan is a server that counts connections.
func lan(t *testing.T, address string, h http.HandlerFunc) (port string, conns *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no %s: %v", address, err)
	}
	conns = new(atomic.Int64)
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: h, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}}}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err = net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, conns
}

func get(t *testing.T, client *http.Client, address string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "canary")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// A name that is allowed to lead to one machine leads to another a moment later:
// the second request is resolved and checked again, and no connection of the
// first is used.
func TestRebinding(t *testing.T) {
	port, first := lan(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "first") })
	_, second := lan(t, "127.0.0.2:"+port, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "second") })
	client := NewTransport(Options{Allow: func() string { return "127.0.0.1" },
		testOnlyResolver: egresstest.Resolver(map[string][]string{"rebind.example": {"127.0.0.1", "127.0.0.1", "127.0.0.2"}})}).Client(Limits{})
	for range 2 {
		if got, err := get(t, client, "http://rebind.example:"+port); got != "first" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	_, err := get(t, client, "http://rebind.example:"+port)
	if refused := (*Error)(nil); !errors.As(err, &refused) || strings.Contains(err.Error(), "127.") {
		t.Fatalf("after the name moved: %v", err)
	}
	if first.Load() != 2 || second.Load() != 0 {
		t.Errorf("%d connections to the first (want one for each request), %d to the second", first.Load(), second.Load())
	}
}

// What an admin takes back is closed at once.
func TestAllowIsReadForEachConnection(t *testing.T) {
	port, conns := lan(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") })
	allow := "intranet.example"
	client := NewTransport(Options{Allow: func() string { return allow },
		testOnlyResolver: egresstest.Resolver(map[string][]string{"intranet.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}})}).Client(Limits{})
	if got, err := get(t, client, "http://Intranet.example:"+port); got != "in" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := get(t, client, "http://other.example:"+port); !errors.Is(err, store.ErrRefused) {
		t.Errorf("another name of the same machine: %v", err)
	}
	for _, now := range []string{"", "that, can't be read, intranet.example/"} {
		allow = now
		if _, err := get(t, client, "http://intranet.example:"+port); !errors.Is(err, store.ErrRefused) {
			t.Errorf("with %q: %v", now, err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

// A connection that is kept leads where it was checked, and ends with any change of
// what is allowed.
func TestKeep(t *testing.T) {
	port, conns := lan(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") })
	allow := "intranet.example"
	tr := NewTransport(Options{Allow: func() string { return allow }, Keep: time.Minute, testOnlyResolver: egresstest.Resolver(map[string][]string{"intranet.example": {"127.0.0.1"}})})
	t.Cleanup(tr.CloseIdleConnections)
	for i, step := range []struct {
		allow string
		conns int64 // 0: it is refused
	}{{"intranet.example", 1}, {"intranet.example", 1}, {"intranet.example, other.example", 2}, {"", 0}, {"intranet.example", 3}} {
		allow = step.allow
		got, err := get(t, tr.Client(Limits{}), "http://intranet.example:"+port)
		if step.conns == 0 && !errors.Is(err, store.ErrRefused) || step.conns > 0 && (got != "in" || conns.Load() != step.conns) {
			t.Errorf("%d: %q, %v over %d connections", i, got, err, conns.Load())
		}
	}
}

func TestRedirects(t *testing.T) {
	inward, inner := lan(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) {})
	var seen http.Header
	var port string
	port, _ = lan(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/inward":
			http.Redirect(w, r, "http://inner.example:"+inward+"/", http.StatusTemporaryRedirect)
		case "/spelled":
			http.Redirect(w, r, "http://2130706434/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/other":
			http.Redirect(w, r, "http://other.example:"+port+"/seen", http.StatusFound)
		case "/seen":
			seen = r.Header.Clone()
		}
	})
	client := NewTransport(Options{Allow: func() string { return "outer.example,other.example" },
		testOnlyResolver: egresstest.Resolver(map[string][]string{"outer.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}, "inner.example": {"127.0.0.2"}})}).Client(Limits{})
	for path, want := range map[string]string{"/inward": "not a public one", "/spelled": "usual form", "/file": "http or https", "/round": "more than 5 times"} {
		if _, err := get(t, client, "http://outer.example:"+port+path); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if inner.Load() != 0 {
		t.Errorf("%d connections to the inner server", inner.Load())
	}
	if _, err := get(t, client, "http://outer.example:"+port+"/other"); err != nil || seen == nil || seen.Get("X-Api-Key") != "" || seen.Get("Referer") != "" {
		t.Errorf("another host was sent %v, %v", seen, err)
	}
	if _, err := get(t, client, "http://outer.example:"+port+"/seen"); err != nil || seen.Get("X-Api-Key") != "canary" {
		t.Errorf("the host itself was sent %v, %v", seen, err)
	}
	from, to := &http.Request{URL: &url.URL{Scheme: "https", Host: "a.example"}}, &http.Request{URL: &url.URL{Scheme: "http", Host: "a.example"}}
	if err := checkRedirect(to, []*http.Request{from}); err == nil {
		t.Error("from https to http")
	}
}

func TestBodies(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(make([]byte, 1<<20)) // memory takes it all
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	port, _ := lan(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes()) // the client may leave
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/told":
			w.Header().Set("Content-Length", "2000")
			_, _ = w.Write(make([]byte, 2000)) // as above
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
		case "/fits":
			_, _ = w.Write(make([]byte, 1000)) // as above
		}
	})
	client := NewTransport(Options{Allow: func() string { return "127.0.0.0/8" }}).Client(Limits{Bytes: 1000})
	for _, path := range []string{"/bomb", "/endless", "/told"} {
		if got, err := get(t, client, "http://127.0.0.1:"+port+path); !errors.Is(err, ErrTooLarge) || len(got) > 1000 {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	if _, err := get(t, client, "http://127.0.0.1:"+port+"/header"); err == nil {
		t.Error("headers of 128 KiB are read")
	}
	if got, err := get(t, client, "http://127.0.0.1:"+port+"/fits"); len(got) != 1000 || err != nil {
		t.Errorf("what just fits: %d bytes, %v", len(got), err)
	}
}

// A server that sends a byte now and then doesn't hold a client.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewTransport(Options{}).Client(Limits{})
		ours, theirs := net.Pipe()
		c.Transport.(bounded).base.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		var server sync.WaitGroup
		defer server.Wait()
		server.Go(func() {
			defer theirs.Close()
			_, _ = theirs.Read(make([]byte, 4<<10)) // the request; what is in it doesn't matter
			_, err := theirs.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"))
			for err == nil {
				time.Sleep(time.Second)
				_, err = theirs.Write([]byte("."))
			}
		})
		began := time.Now()
		got, err := get(t, c, "http://8.8.8.8/")
		if took := time.Since(began); err == nil || took != defaultTime {
			t.Errorf("%d bytes, %v after %v", len(got), err, took)
		}
	})
}

// Neither a proxy of the environment nor the machine's name server is named.
func TestErrors(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	tr := NewTransport(Options{testOnlyResolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: &net.UDPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 53}, Err: errors.New("no answer")}
	}}})
	if tr.base.Proxy != nil || !tr.base.DisableKeepAlives {
		t.Error("a proxy is used, or connections are kept")
	}
	if _, err := get(t, tr.Client(Limits{}), "http://nowhere.example/"); err == nil || strings.Contains(err.Error(), "10.1.2.3") {
		t.Errorf("%v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String()) // a listener's
	ln.Close()
	open := NewTransport(Options{Allow: func() string { return "closed.example" }, testOnlyResolver: egresstest.Resolver(map[string][]string{"closed.example": {"127.0.0.1"}})})
	if _, err := get(t, open.Client(Limits{}), "http://closed.example:"+port); err == nil || strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(err.Error(), "closed.example") {
		t.Errorf("%v", err)
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"http://127.1/", "http://[::1%25lo]/", "http://①②⑦.0.0.1/", "https://example.com:443/", "http://0x7f.1."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil || CheckURL(u) != nil {
			return
		}
		// What passes is an address that the dialer sees as it is, or a plain name
		// that no resolver takes for a number.
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if ip.Zone() != "" {
				t.Fatalf("%q has a zone", s)
			}
			return
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		if last == "" || last[0] >= '0' && last[0] <= '9' && strings.Trim(last, "0123456789") == "" || u.User != nil {
			t.Fatalf("%q passes", s)
		}
	})
}
