package connections

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serving is a server with a set; its handler signs in whoever has a name, and reads
// bodies as its path says.
type serving struct {
	*Set
	*httptest.Server
	at string
}

// serve starts one. A peer at 127.0.0.9 is a proxy.
func serve(t *testing.T, l Limits, withTLS bool) *serving {
	t.Helper()
	proxy := netip.MustParseAddr("127.0.0.9")
	peer := func(text string) netip.Addr { return netip.MustParseAddrPort(text).Addr() }
	s := New(l, Options{
		Log: slog.New(slog.DiscardHandler),
		Client: func(r *http.Request) netip.Addr {
			if forwarded := r.Header.Get("X-Forwarded-For"); peer(r.RemoteAddr) == proxy && forwarded != "" {
				return netip.MustParseAddr(forwarded)
			}
			return peer(r.RemoteAddr)
		},
		Owner: func(c net.Conn) (string, bool, bool) {
			return "proxy", false, peer(c.RemoteAddr().String()) == proxy
		},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "read\n")
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 4 {
			_, _ = io.WriteString(w, ": on\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(l.BodyTime):
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, ": end\n")
	})
	held := make(chan struct{})
	mux.HandleFunc("/hold", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.Header.Get("Name"); name != "" {
			SignedIn(r.Context(), name)
		}
		mux.ServeHTTP(w, r)
	})
	srv := httptest.NewUnstartedServer(s.Handler(named))
	srv.Listener = s.Listener(srv.Listener)
	srv.Config.ConnContext = ConnContext
	if withTLS {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(func() { close(held); srv.CloseClientConnections(); srv.Close() })
	return &serving{s, srv, srv.Listener.Addr().String()}
}

// dial connects from an address of this machine.
func (s *serving) dial(t *testing.T, from string) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", s.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		c.t.Error(err)
	}
}

// answer reads one, whole.
func (c *client) answer() (status int, closes bool) {
	c.t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatalf("reading an answer: %v", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Close
}

// closed waits for the end of the connection.
func (c *client) closed() {
	_, _ = io.Copy(io.Discard, c.in) // it returns when it is closed or reset
}

// asks sends a request and returns its status.
func (c *client) asks(path, headers string) int {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\nHost: x\n" + headers + "\n")
	status, _ := c.answer()
	return status
}

// gone says whether the connection has ended, by asking on it.
func (c *client) gone() bool {
	if _, err := io.WriteString(c.Conn, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return true
	}
	res, err := http.ReadResponse(c.in, nil)
	if err == nil {
		_ = res.Body.Close()
	}
	return err != nil
}

var small = Limits{All: 40, Unknown: 10, Address: 4, Person: 6, BodyTime: 50 * time.Millisecond}

// TestBodies: a body that does not come ends its connection, whether it is read or
// not, also after its answer; one that comes leaves it open.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{All: 100, Unknown: 50, Address: 50, Person: 50, BodyTime: 50 * time.Millisecond}, false)
	for _, c := range []struct {
		name, request string
		status        int
		closes        bool
	}{
		{"never comes", "POST /read HTTP/1.1\nHost: x\nContent-Length: 5\n\n", 408, true},
		{"stops in the middle", "POST /read HTTP/1.1\nHost: x\nContent-Length: 5\n\nab", 408, true},
		{"chunks that don't end", "POST /read HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\nab\n", 408, true},
		{"refused before it came", "POST /refuse HTTP/1.1\nHost: x\nContent-Length: 5\n\n", 401, true},
		{"refused, and more than is read on", "POST /refuse HTTP/1.1\nHost: x\nContent-Length: 5000000\n\n", 401, true},
		{"refused before its chunks came", "POST /refuse HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n", 401, true},
		{"refused before it was asked for", "POST /refuse HTTP/1.1\nHost: x\nContent-Length: 5\nExpect: 100-continue\n\n", 401, true},
		{"not looked at", "GET /nothing HTTP/1.1\nHost: x\nContent-Length: 5\n\n", 200, true},
		{"is there", "POST /read HTTP/1.1\nHost: x\nContent-Length: 5\n\nabcde", 200, false},
		{"is there in chunks", "POST /read HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\nab\n0\n\n", 200, false},
		{"is there, and refused", "POST /refuse HTTP/1.1\nHost: x\nContent-Length: 5\n\nabcde", 401, false},
		{"is there in chunks, and refused", "POST /refuse HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\nab\n0\n\n", 401, false},
		{"none", "GET /read HTTP/1.1\nHost: x\n\n", 200, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := s.dial(t, "127.0.0.1")
			conn.send(c.request)
			if status, closes := conn.answer(); status != c.status || closes != c.closes {
				t.Errorf("status %d, closes %v; want %d, %v", status, closes, c.status, c.closes)
			}
			if c.closes {
				conn.closed()
			} else if status := conn.asks("/nothing", ""); status != 200 {
				t.Errorf("the next request on it: %d", status)
			}
		})
	}
}

// pipes is a listener of pipes, whose time is a bubble's.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestSlowBodies: what comes at a fair rate is read to its end, and a trickle is not.
// The time that a handler takes between its reads is its own.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		part   int           // bytes that are sent at once
		every  time.Duration // between two parts
		pause  time.Duration // that the handler makes after each read
		status int
	}{
		{"fair", 16 << 10, 900 * time.Millisecond, 0, 200},
		{"too slow", 16 << 10, 1500 * time.Millisecond, 0, 408},
		{"a trickle", 1, 900 * time.Millisecond, 0, 408},
		{"a slow handler", 16 << 10, 0, time.Minute, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Limits{All: 40, Unknown: 10, Address: 10, Person: 10, BodyTime: time.Second}, Options{Log: slog.New(slog.DiscardHandler)})
				ln := make(pipes)
				srv := &http.Server{ConnContext: ConnContext, Handler: s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for buf := make([]byte, 16<<10); ; {
						_, err := io.ReadFull(r.Body, buf)
						if err == io.EOF || err == io.ErrUnexpectedEOF {
							return
						}
						if err != nil {
							http.Error(w, err.Error(), http.StatusBadRequest)
							return
						}
						time.Sleep(c.pause)
					}
				}))}
				served := make(chan error, 1) // for its one end
				go func() { served <- srv.Serve(s.Listener(ln)) }()
				mine, its := net.Pipe()
				ln <- its
				go func() {
					_, err := io.WriteString(mine, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 131072\r\n\r\n")
					for sent := 0; err == nil && sent < 128<<10; sent += c.part {
						time.Sleep(c.every)
						_, err = mine.Write(make([]byte, c.part))
					}
				}()
				res, err := http.ReadResponse(bufio.NewReader(mine), nil)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != c.status {
					t.Errorf("status %d, want %d", res.StatusCode, c.status)
				}
				_ = mine.Close()
				_ = srv.Close()
				<-served
				time.Sleep(time.Minute) // for what still waits
			})
		})
	}
}

// A stream has no end but its own, however short the time of a body is.
func TestStream(t *testing.T) {
	t.Parallel()
	s := serve(t, small, false)
	conn := s.dial(t, "127.0.0.1")
	conn.send("POST /stream HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}")
	res, err := http.ReadResponse(conn.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasSuffix(string(text), ": end\n") {
		t.Errorf("the stream broke off after %q: %v", text, err)
	}
}

// TestUnreadAnswers: a client that reads nothing is given up.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Limits{All: 40, Unknown: 10, Address: 1, Person: 1, BodyTime: time.Second}, Options{Log: slog.New(slog.DiscardHandler)})
		ln := make(pipes)
		srv := &http.Server{ConnContext: ConnContext, Handler: s.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		}))}
		served := make(chan error, 1) // for its one end
		go func() { served <- srv.Serve(s.Listener(ln)) }()
		ask := func() net.Conn {
			mine, its := net.Pipe()
			ln <- its
			if _, err := io.WriteString(mine, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			return mine
		}
		ask()
		if n := s.Counts().Open; n != 1 {
			t.Errorf("%d connections are open", n)
		}
		time.Sleep(slow + time.Second)
		second := ask() // for which the first one goes
		if n := s.Counts(); n.Open != 1 || n.Ended != 1 {
			t.Errorf("%+v", n)
		}
		time.Sleep(stall + time.Second)
		if n := s.Counts(); n.Open != 0 {
			t.Errorf("%+v", n)
		}
		_ = second.Close()
		_ = srv.Close()
		<-served
		time.Sleep(time.Minute) // for what still waits
	})
}

// TestHTTP2: a stream whose body does not come ends, and the others on its connection
// go on.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := serve(t, small, true)
	c := s.Client()
	for _, path := range []string{"/read", "/refuse"} {
		out, in := io.Pipe()
		defer in.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, out)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(path, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if want := map[string]int{"/read": 408, "/refuse": 401}[path]; res.StatusCode != want || res.ProtoMajor != 2 {
			t.Errorf("%s: %s %d, want %d", path, res.Proto, res.StatusCode, want)
		}
	}
	if n := s.Counts().Open; n != 1 {
		t.Errorf("%d connections are open", n)
	}
	// One connection does not stand for more requests than its address may have.
	var waiting []*io.PipeWriter
	answers := make(chan int, 3*small.Address) // one for each of the requests
	for range 3 * small.Address {
		out, in := io.Pipe()
		waiting = append(waiting, in)
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/read", out) // as above
			res, err := c.Do(req)
			if err != nil {
				answers <- 0
				return
			}
			_ = res.Body.Close()
			answers <- res.StatusCode
		}()
	}
	for range waiting {
		if status := <-answers; status != 408 {
			t.Errorf("status %d", status)
		}
	}
	for _, in := range waiting {
		_ = in.Close()
	}
	if s.Counts().Ended < 1 {
		t.Error("none had to make room")
	}
}

// TestHandshake: a client that never finishes one is a stranger like any other.
func TestHandshake(t *testing.T) {
	t.Parallel()
	s := serve(t, small, true)
	var idle []*client
	for range 3 * small.Address {
		idle = append(idle, s.dial(t, "127.0.0.1"))
	}
	if res, err := s.Client().Get(s.URL + "/nothing"); err != nil || res.StatusCode != 200 {
		t.Errorf("the next one: %v", err)
	}
	idle[0].closed()
	if n := s.Counts().Open; n > small.Address {
		t.Errorf("%d connections are open", n)
	}
	conn := tls.Client(s.dial(t, "127.0.0.1"), &tls.Config{InsecureSkipVerify: true})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRoom: whoever floods takes room from themselves alone. The newcomer comes in.
func TestRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{All: 40, Unknown: 10, Address: 4, Person: 6, BodyTime: time.Hour}, false)
	ann := s.dial(t, "127.0.0.1")
	if status := ann.asks("/nothing", "Name: ann\n"); status != 200 {
		t.Fatal(status)
	}
	stream := s.dial(t, "127.0.0.1")
	stream.send("GET /hold HTTP/1.1\nHost: x\nName: ben\n\n")
	if res, err := http.ReadResponse(stream.in, nil); err != nil || res.StatusCode != 200 {
		t.Fatal(err)
	}
	quiet := s.dial(t, "127.0.0.2")
	if status := quiet.asks("/nothing", ""); status != 200 {
		t.Fatal(status)
	}
	ends := make(chan struct{}, 50) // one for each connection
	for n := range cap(ends) {
		c := s.dial(t, "127.0.0.1")
		c.send([]string{"POST /read HTTP/1.1\nHost: x\nContent-Length: 5\n\n", "POST /re", ""}[n%3])
		go func() { c.closed(); ends <- struct{}{} }()
	}
	for range cap(ends) - 4 {
		<-ends
	}
	for name, c := range map[string]*client{"ann": ann, "another address": quiet, "a newcomer": s.dial(t, "127.0.0.1")} {
		if c.gone() {
			t.Errorf("%s was put out", name)
		}
	}
	// Many addresses at once: who has most makes room.
	for n := range 30 {
		s.dial(t, fmt.Sprintf("127.0.1.%d", n+1))
	}
	if c := s.dial(t, "127.0.0.3"); c.gone() {
		t.Error("a newcomer was put out by many addresses")
	}
	if ann.gone() {
		t.Error("ann was put out by many addresses")
	}
	// A person has a share too, and uses it up alone.
	left := make(chan struct{}, 20) // as above
	for range cap(left) {
		c := s.dial(t, "127.0.0.4")
		if status := c.asks("/nothing", "Name: mallory\n"); status != 200 {
			t.Fatal(status)
		}
		c.send("POST /read HTTP/1.1\nHost: x\nName: mallory\nContent-Length: 5\n\n")
		go func() { c.closed(); left <- struct{}{} }()
	}
	for range cap(left) - 6 {
		<-left
	}
	if ann.gone() {
		t.Error("ann was put out by mallory")
	}
	if n := s.Counts(); n.Open > 40 || n.Unknown > 10 || n.Ended < 60 {
		t.Errorf("%+v", n)
	}
	_ = stream.SetReadDeadline(time.Unix(1, 0)) // what has been said, and no more
	if _, err := stream.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream was put out: %v", err)
	}
}

// TestBusyPlaces: nothing that works is ended, and whoever finds no room is refused.
func TestBusyPlaces(t *testing.T) {
	t.Parallel()
	s := serve(t, small, false)
	var streams []*client
	for range small.Address {
		c := s.dial(t, "127.0.0.1")
		c.send("GET /hold HTTP/1.1\nHost: x\n\n")
		if res, err := http.ReadResponse(c.in, nil); err != nil || res.StatusCode != 200 {
			t.Fatal(err)
		}
		streams = append(streams, c)
	}
	s.dial(t, "127.0.0.1").closed()
	if n := s.Counts(); n.Refused != 1 || n.Ended != 0 {
		t.Errorf("%+v", n)
	}
	if c := s.dial(t, "127.0.0.2"); c.gone() {
		t.Error("another address was refused")
	}
	_ = streams[0].Close()
	for s.Counts().Open > small.Address { // until the server has noticed
		<-time.After(time.Millisecond)
	}
	if c := s.dial(t, "127.0.0.1"); c.gone() {
		t.Error("refused although one had left")
	}
}

// TestProxy: the connections of a proxy are everybody's; requests count by the address
// that it forwards.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{All: 60, Unknown: 10, Address: 4, Person: 6, BodyTime: time.Hour}, false)
	var slow []*client
	for range 20 {
		c := s.dial(t, "127.0.0.9")
		c.send("POST /read HTTP/1.1\nHost: x\nX-Forwarded-For: 203.0.113.7\nContent-Length: 5\n\n")
		slow = append(slow, c)
	}
	late := make(chan bool, len(slow)) // one for each
	for _, c := range slow {
		go func() {
			res, err := http.ReadResponse(c.in, nil)
			late <- err == nil && res.StatusCode == http.StatusRequestTimeout && res.Close
		}()
	}
	for range 16 { // no more than four of them are worked on, whichever came last
		if !<-late {
			t.Error("a request was not ended by 408 and its connection's end")
		}
	}
	if status := s.dial(t, "127.0.0.9").asks("/nothing", "X-Forwarded-For: 203.0.113.8\n"); status != 200 {
		t.Errorf("somebody else: %d", status)
	}
	if n := s.Counts(); n.Unknown != 0 {
		t.Errorf("%+v", n)
	}
}

func TestSized(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files int
		set   Limits
		want  Limits
	}{
		{0, Limits{}, Limits{4096, 512, 128, 1024, bodyTime}},
		{1 << 20, Limits{}, Limits{4096, 512, 128, 1024, bodyTime}},
		{1024, Limits{}, Limits{512, 64, 16, 128, bodyTime}},
		{20, Limits{}, Limits{64, 16, 8, 16, bodyTime}},
		{20000, Limits{All: 100, Unknown: 5000, BodyTime: time.Second}, Limits{100, 75, 18, 25, time.Second}},
	} {
		if got := c.set.Sized(c.files); got != c.want {
			t.Errorf("%d files, %+v: %+v, want %+v", c.files, c.set, got, c.want)
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64",
	} {
		if got := group(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestWithoutAConnection: a request that came some other way is served.
func TestWithoutAConnection(t *testing.T) {
	t.Parallel()
	SignedIn(context.Background(), "ann")
	s := New(small, Options{Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		SignedIn(r.Context(), "ann")
		_, _ = w.Write(text)
	})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("text")))
	if w.Code != 200 || w.Body.String() != "text" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A request that was read from a connection which was ended for another one is not
// served: its client learns nothing of it, and may send it again.
func TestEndedBeforeItsRequest(t *testing.T) {
	s := New(Limits{All: 8, Unknown: 2, Address: 1, Person: 8, BodyTime: time.Second}, Options{
		Log: slog.New(slog.DiscardHandler), Client: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
	})
	take := func() net.Conn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		return s.take(ours)
	}
	served := 0
	request := func(c net.Conn) (aborted any) {
		defer func() { aborted = recover() }()
		r := httptest.NewRequestWithContext(ConnContext(t.Context(), c), http.MethodGet, "/", nil)
		s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })).ServeHTTP(httptest.NewRecorder(), r)
		return nil
	}
	first := take()
	second := take() // in the place of the first
	if got := request(first); got != http.ErrAbortHandler || served != 0 {
		t.Errorf("on the ended connection: %v, served %d", got, served)
	}
	if got := request(second); got != nil || served != 1 {
		t.Errorf("on the other one: %v, served %d", got, served)
	}
}
