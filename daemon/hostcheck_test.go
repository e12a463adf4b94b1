package daemon

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nize/daemon/settings"
	"nize/daemon/standby"
)

func newTestHostCheck(t *testing.T, public, proxies string) *hostCheck {
	t.Helper()
	o := &hostCheck{host: "127.0.0.1", port: "19560"}
	var err error
	if o.public, err = settings.ParsePublicURL(public); err != nil {
		t.Fatal(err)
	}
	if o.proxies, err = settings.ParseProxies(proxies); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestHostCheck(t *testing.T) {
	t.Parallel()
	const public = "https://nize.example.com"
	for _, c := range []struct {
		name            string
		public, proxies string
		peer, host      string
		header          []string // name, value, …
		client          string   // as the audit has it; "" is refused
	}{
		{"loopback", "", "", "127.0.0.1:5", "127.0.0.1:19560", nil, "127.0.0.1:5"},
		{"another host", "", "", "127.0.0.1:5", "nize.example.com", nil, ""},
		{"the public host", public, "", "127.0.0.1:5", "nize.example.com", nil, "127.0.0.1:5"},
		{"the public host with its port", public, "", "127.0.0.1:5", "NIZE.example.com:443", nil, "127.0.0.1:5"},
		{"the public host with another port", public, "", "127.0.0.1:5", "nize.example.com:80", nil, ""},
		{"a host below the public one", public, "", "127.0.0.1:5", "x.nize.example.com", nil, ""},
		{"the public origin", public, "", "127.0.0.1:5", "nize.example.com", []string{"Origin", public}, "127.0.0.1:5"},
		{"the public origin in clear", public, "", "127.0.0.1:5", "nize.example.com", []string{"Origin", "http://nize.example.com"}, ""},
		{"another origin", public, "", "127.0.0.1:5", "nize.example.com", []string{"Origin", "https://evil.example"}, ""},
		{"the opaque origin", public, "", "127.0.0.1:5", "nize.example.com", []string{"Origin", "null"}, ""},

		{"nobody is trusted", public, "", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "203.0.113.7"}, "127.0.0.1:5"},
		{"a stranger is not trusted", public, "10.0.0.0/8", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "203.0.113.7", "X-Forwarded-Host", "evil.example"}, "127.0.0.1:5"},
		{"a proxy is", public, "127.0.0.1", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https"}, "203.0.113.7:0"},
		{"what the client made up", public, "127.0.0.1", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.7"}, "203.0.113.7:0"},
		{"two proxies", public, "127.0.0.0/8,10.0.0.0/8", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.7, 10.1.2.3"}, "203.0.113.7:0"},
		{"two headers", public, "127.0.0.0/8,10.0.0.0/8", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "203.0.113.7", "X-Forwarded-For", "10.1.2.3"}, "203.0.113.7:0"},
		{"only proxies", public, "127.0.0.0/8", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "127.0.0.9"}, "127.0.0.9:0"},
		{"IPv6 with a port", public, "::1", "[::1]:5", "nize.example.com", []string{"X-Forwarded-For", "[2001:db8::7]:4711"}, "[2001:db8::7]:0"},
		{"no address", public, "127.0.0.1", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-For", "unknown"}, "127.0.0.1:5"},
		{"an IPv4 proxy on an IPv6 socket", public, "127.0.0.1", "[::ffff:127.0.0.1]:5", "nize.example.com", []string{"X-Forwarded-For", "203.0.113.7"}, "203.0.113.7:0"},
		{"the proxy's host counts", public, "127.0.0.1", "127.0.0.1:5", "127.0.0.1:19560", []string{"X-Forwarded-Host", "evil.example"}, ""},
		{"the proxy's host is ours", public, "127.0.0.1", "127.0.0.1:5", "127.0.0.1:19560", []string{"X-Forwarded-Host", "nize.example.com", "X-Forwarded-For", "203.0.113.7"}, "203.0.113.7:0"},
		{"in clear text at the proxy", public, "127.0.0.1", "127.0.0.1:5", "nize.example.com", []string{"X-Forwarded-Proto", "http"}, ""},
		{"in clear text on loopback", public, "127.0.0.1", "127.0.0.1:5", "127.0.0.1:19560", []string{"X-Forwarded-Proto", "http"}, "127.0.0.1:5"},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Host, r.RemoteAddr = c.host, c.peer
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Add(c.header[i], c.header[i+1])
		}
		got := ""
		if in, err := newTestHostCheck(t, c.public, c.proxies).check(r); err == nil {
			got = in.RemoteAddr
		}
		if got != c.client {
			t.Errorf("%s: client %q, want %q", c.name, got, c.client)
		}
	}
}

// A host of views is one with the name of a server in it, whoever passes it on; and it
// is no host or origin of nize's.
func TestViewsHost(t *testing.T) {
	t.Parallel()
	const label = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		widgets, host, forwarded, peer string
		want                           bool
	}{
		{"https://*.apps.example.com", label + ".apps.example.com", "", "127.0.0.1:5", true},
		{"https://*.apps.example.com", strings.ToUpper(label) + ".Apps.example.com:443", "", "127.0.0.1:5", true},
		{"https://*.apps.example.com", "nize.example.com", label + ".apps.example.com", "10.0.0.1:5", true},
		{"https://*.apps.example.com", "nize.example.com", label + ".apps.example.com", "127.0.0.1:5", false},
		{"https://*.apps.example.com", label + ".apps.example.com:8443", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com", label + ".apps.example.com:80", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com", label + "x.apps.example.com", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com", "x." + label + ".apps.example.com", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com", label[1:] + "g.apps.example.com", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com", "apps.example.com", "", "127.0.0.1:5", false},
		{"https://*.apps.example.com:8443", label + ".apps.example.com:8443", "", "127.0.0.1:5", true},
		{"http://*.localhost:19560", label + ".localhost:19560", "", "127.0.0.1:5", true},
		{"http://*.localhost:19560", "localhost:19560", "", "127.0.0.1:5", false},
		{"", label + ".apps.example.com", "", "127.0.0.1:5", false},
		{"", label, "", "127.0.0.1:5", false},
	} {
		o := newTestHostCheck(t, "https://nize.example.com", "10.0.0.0/8")
		o.widgets = c.widgets
		r := httptest.NewRequest("GET", "/app/frames/x", nil)
		r.Host, r.RemoteAddr = c.host, c.peer
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-Host", c.forwarded)
		}
		if got := o.viewsHost(r); got != map[bool]string{true: label}[c.want] {
			t.Errorf("%+v: %q", c, got)
		}
		r = httptest.NewRequest("GET", "/mcp", nil)
		r.Host, r.RemoteAddr = "nize.example.com", c.peer
		r.Header.Set("Origin", strings.Replace(c.widgets, "*", label, 1))
		if _, err := o.check(r); c.widgets != "" && err == nil {
			t.Errorf("a view at %s may ask", c.widgets)
		}
	}
}

// Beyond loopback the address that was reached is served; a name is not.
func TestHostCheckBeyondLoopback(t *testing.T) {
	t.Parallel()
	o := &hostCheck{host: "::", port: "443", tls: true}
	ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}))
	for host, want := range map[string]bool{"192.0.2.1": true, "192.0.2.1:443": true, "192.0.2.2": false, "evil.example": false, "localhost": true} {
		r := httptest.NewRequest("POST", "/mcp", nil).WithContext(ctx)
		r.Host, r.RemoteAddr = host, "203.0.113.7:5"
		if _, err := o.check(r); (err == nil) != want {
			t.Errorf("Host %s: %v, want served: %t", host, err, want)
		}
	}
}

// A browser that opens nized's address reads what that is; all else is not found.
// TestPass: what one that stands by passes on comes in at the one that works, and says
// of others what its own check accepts.
func TestPass(t *testing.T) {
	t.Parallel()
	const public = "https://nize.example.com"
	for _, c := range []struct {
		name, proxies, host, origin string
		want, wantOrigin, forwarded string // "" is refused
	}{
		{"by its own address", "", "127.0.0.1:19560", "http://127.0.0.1:19560", standby.Host, "http://" + standby.Host, ""},
		{"by the public one", "", "nize.example.com", public, "nize.example.com", public, ""},
		{"of a proxy", "10.0.0.0/8", "nize.example.com", "", "nize.example.com", "", "1.2.3.4"},
		{"of another site", "", "nize.example.com", "https://evil.example", "", "", ""},
		{"by another name", "", "evil.example", "", "", "", ""},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.RemoteAddr, r.Host = "10.0.0.9:7", c.host
		r.Header.Set("X-Forwarded-For", "1.2.3.4")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		out, err := newTestHostCheck(t, public, c.proxies).checkForwarding(r)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: it is passed on", c.name)
			}
			continue
		}
		if err != nil || out.Host != c.want || out.Header.Get("Origin") != c.wantOrigin || out.Header.Get("X-Forwarded-For") != c.forwarded {
			t.Errorf("%s: %v, %s %v", c.name, err, out.Host, out.Header)
			continue
		}
		if _, err := newTestHostCheck(t, public, "").check(out); err != nil {
			t.Errorf("%s: the active node: %v", c.name, err)
		}
	}
}

func TestFrontPage(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", frontPage)
	for path, want := range map[string]string{"/": "This is a nize daemon", "/x": "404 page not found"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %q", path, w.Body)
		}
	}
}

func TestParsePublicURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "https://nize.example.com": "https://nize.example.com", "https://Nize.Example.com:8443/": "https://nize.example.com:8443",
		"http://nize.example.com": "!", "https://": "!", "nize.example.com": "!", "https://u@nize.example.com": "!", "https://nize.example.com/x": "!", "https://nize.example.com?x": "!", "https://nize.example.com#x": "!",
	} {
		got := "!"
		if u, err := settings.ParsePublicURL(text); err == nil {
			got = ""
			if u != nil {
				got = u.String()
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for _, c := range []struct {
		addr          string
		tls, insecure bool
		ok            bool
	}{
		{"127.0.0.1:1", false, false, true}, {"[::1]:1", false, false, true}, {"127.9.9.9:1", false, false, true},
		{"0.0.0.0:1", false, false, false}, {":1", false, false, false}, {"192.0.2.1:1", false, false, false},
		{"0.0.0.0:1", true, false, true}, {"0.0.0.0:1", false, true, true},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkListen(addr, c.tls, c.insecure); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What a client sends in X-Forwarded-For ends nothing, and never makes it a
// proxy of ours.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "203.0.113.7", "1.2.3.4, 10.0.0.1", "[::1]:80", ",,,", "unknown", "::ffff:10.0.0.1", "fe80::1%eth0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, forwarded string) {
		o := newTestHostCheck(t, "https://nize.example.com", "10.0.0.0/8")
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Host, r.RemoteAddr = "nize.example.com", "10.0.0.1:5"
		r.Header.Set("X-Forwarded-For", forwarded+", 203.0.113.7")
		in, err := o.check(r)
		if err != nil || !strings.HasPrefix(in.RemoteAddr, "203.0.113.7:") {
			t.Errorf("%q: client %v, %v", forwarded, in, err)
		}
	})
}
