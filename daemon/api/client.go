package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxAnswer bounds a response that is not a stream: 5,000 tools with their schemas fit,
	// and a faulty daemon can't exhaust the memory.
	maxAnswer = 64 << 20
	// dialTime bounds how long a socket may take to accept a connection.
	dialTime = 5 * time.Second
	// maxLine bounds one line of a stream: a result of 8 MiB, escaped.
	maxLine = 32 << 20
)

// Client sends requests to one daemon over its socket. It is safe for concurrent use.
// Methods return *[Error] (which unwraps to the sentinel) if the daemon rejects a request,
// and ErrNoDaemon if nothing listens on the socket.
type Client struct {
	// Socket is the path of the daemon's socket.
	Socket string
	// Find, if set, returns the Socket to use. It is called before the first request, and
	// if it fails, again before the next one.
	Find func() (socket string, err error)
	// Language, if set, selects the language of texts and errors in responses; the default
	// is English.
	Language string
	// Warn, if set, is called at most once, if the daemon's version is too far from the
	// client's.
	Warn func(line string)
	// Distrust, if set, is called for each new connection. If it returns an error, nothing
	// is sent on that connection.
	Distrust func(net.Conn) error

	http     *http.Client
	patience patience
	warned   sync.Once

	mu    sync.Mutex // guards Socket and found while Find is set
	found bool
}

// New returns a client for the socket. It connects on first use.
func New(socket string) *Client {
	dialer := &net.Dialer{Timeout: dialTime}
	c := &Client{Socket: socket, patience: usualPatience}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := dialRoom(ctx, dialer, c.at())
				if err == nil && c.Distrust != nil {
					if err = c.Distrust(conn); err != nil {
						_ = conn.Close() // no request was sent
						return nil, err
					}
				}
				return conn, err
			},
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Locate calls Find unless a socket is already chosen. It returns the error of Find, which
// every request would then return.
func (c *Client) Locate() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Find == nil || c.found {
		return nil
	}
	socket, err := c.Find()
	if err != nil {
		return err
	}
	c.Socket, c.found = socket, true
	return nil
}

// at returns the socket to dial.
func (c *Client) at() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Socket
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one request before encoding.
type request struct {
	method, path string
	query        url.Values
	body         any       // not sent if nil
	raw          io.Reader // a file of size bytes, in place of body
	size         int64
	upgrade      bool // the connection, to [DuplexProtocol]
}

// do sends a request and decodes its response.
func do[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	resp, err := c.send(ctx, r)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return out, c.readError(ctx, r, err)
	}
	if len(body) > maxAnswer {
		return out, fmt.Errorf("reading the answer to %s %s: it is over %d MiB", r.method, r.path, maxAnswer>>20)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	return out, nil
}

// stream sends a request and yields the lines of its response. The request is sent when the
// sequence is first read; an error is the last thing yielded.
func stream[T any](ctx context.Context, c *Client, r request) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		resp, err := c.send(ctx, r)
		if err != nil {
			yield(zero, err)
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue // keep-alive
			}
			v, err := decodeLine[T](line)
			if !yield(v, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(zero, c.readError(ctx, r, err))
		}
	}
}

// keep-alive
func decodeLine[T any](line []byte) (T, error) {
	var v T
	if bytes.HasPrefix(line, []byte(`{"error":{`)) {
		var f Failure
		if err := json.Unmarshal(line, &f); err == nil && f.Error != nil && f.Error.Code != "" {
			return v, f.Error
		}
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return v, fmt.Errorf("reading the daemon's stream: %w", err)
	}
	return v, nil
}

// send makes the round trip and returns an error for any status other than 2xx.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(b)
	}
	if r.raw != nil {
		body = r.raw
	}
	target := "http://" + Host + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("asking for %s %s: %w", r.method, r.path, err)
	}
	req.Header.Set(VersionHeader, Version)
	if c.Language != "" {
		req.Header.Set("Accept-Language", c.Language)
	}
	switch {
	case r.upgrade:
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", DuplexProtocol)
	case r.raw != nil:
		req.ContentLength = r.size
		req.Header.Set("Content-Type", "application/octet-stream")
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.Locate(); err != nil {
		return nil, err
	}
	resp, err := c.do(req)
	if err != nil {
		return nil, c.dialError(ctx, err)
	}
	c.checkVersion(resp.Header.Get(VersionHeader))
	if resp.StatusCode/100 == 2 || r.upgrade && resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readFailure(resp, r)
}

// readFailure reads the error from a response whose status is not 2xx.
func readFailure(resp *http.Response, r request) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the refusal of %s %s: %w", r.method, r.path, err)
	}
	var f Failure
	if err := json.Unmarshal(b, &f); err == nil && f.Error != nil && f.Error.Code != "" {
		return f.Error
	}
	if resp.StatusCode/100 == 3 {
		// The mux redirects if cleaning changes the path: a name was "", "." or "..".
		return &Error{Code: "invalid", Message: fmt.Sprintf("%s contains an invalid name", r.path)}
	}
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed {
		return &Error{Code: "unknown_route", Message: fmt.Sprintf("this nized does not support %s %s: use nized and nizectl of the same version", r.method, r.path)}
	}
	return &Error{Code: "internal", Message: fmt.Sprintf("the daemon answered %s %s with HTTP %d and no reason", r.method, r.path, resp.StatusCode)}
}

// dialError returns the error for a request that got no response: whether the daemon isn't
// running, can't be opened or dropped the connection.
func (c *Client) dialError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *Error
	if errors.As(err, &refused) { // not trusted, or unresponsive
		return refused
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
			return ForbiddenSocket(c.at())
		}
		if isMute(err) { // its connection queue is full
			return Mute(c.at(), dialTime)
		}
		return NoDaemon(c.at())
	}
	return brokenOff(err)
}

// NoDaemon returns the error for sockets on which nothing listens.
func NoDaemon(sockets ...string) error {
	if len(sockets) == 1 {
		return &Error{Code: "no_daemon", Message: fmt.Sprintf("nized is not running at %s: start it with `nized &` or `systemctl start nized`", sockets[0])}
	}
	return &Error{Code: "no_daemon", Message: fmt.Sprintf("nized is not running: nothing listens at %s; if it runs with another socket, name that with --socket or NIZE_SOCKET; else start it with `nized &` or `systemctl start nized`", strings.Join(sockets, ", "))}
}

// ForbiddenSocket returns the error for a socket that the user may not open.
func ForbiddenSocket(socket string) error {
	return &Error{Code: "refused", Message: fmt.Sprintf("you may not open %s: run nizectl as the user that runs nized, as root, or as a member of its socket group", socket)}
}

func (c *Client) readError(ctx context.Context, r request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("reading the stream of %s %s: a line is over %d MiB", r.method, r.path, maxLine>>20)
	}
	return brokenOff(err)
}

func brokenOff(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // drop the placeholder URL
	}
	return fmt.Errorf("nized dropped the connection (%w): see its log, then try again", err)
}

// checkVersion warns once if the daemon is more than one minor version away.
func (c *Client) checkVersion(theirs string) {
	if c.Warn == nil || Near(Version, theirs) {
		return
	}
	c.warned.Do(func() {
		if theirs == "" {
			theirs = "unknown"
		}
		c.Warn(fmt.Sprintf("nized is version %s, nizectl is %s: use versions that are at most one minor version apart", theirs, Version))
	})
}

// Near reports whether two versions are at most one minor version apart.
func Near(a, b string) bool {
	aMajor, aMinor, ok1 := parseVersion(a)
	bMajor, bMinor, ok2 := parseVersion(b)
	if !ok1 || !ok2 {
		return a == b
	}
	return aMajor == bMajor && aMinor-bMinor <= 1 && bMinor-aMinor <= 1
}

func parseVersion(v string) (major, minor int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	digits, _, _ := strings.Cut(parts[1], "-")
	minor, err2 := strconv.Atoi(digits)
	return major, minor, err1 == nil && err2 == nil
}
