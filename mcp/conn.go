package mcp

import (
	"context"
	"io"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/reply"
	"nize/store"
)

// ServeConn serves one client on its own connection, with one message per line, until the
// client disconnects or ctx ends; calls that are waiting for it end as if it had
// disconnected. The client is a program that acts for by, so its calls need approval as
// they would over HTTP, whoever by is. ServeConn closes the connection.
func (s *Server) ServeConn(ctx context.Context, by store.Caller, conn io.ReadWriteCloser) error {
	by.Surface = store.OnMCP
	defer conn.Close()
	held := reply.HoldLines(conn)
	lines, err := (&sdk.IOTransport{Reader: held, Writer: nopCloser{held}}).Connect(ctx)
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	own := &ownConn{Connection: lines, caller: ownCaller(by), inflight: map[jsonrpc.ID]struct{}{}}
	own.serve = func(req *jsonrpc.Request) bool { return s.serveTasksOverConn(ctx, own, by, req) }
	ss, err := s.sdk.Connect(ctx, own, nil)
	if err != nil {
		return err
	}
	defer s.conns.add(own)()
	defer context.AfterFunc(ctx, func() { _ = own.Close() })() // this ends the read, and with it the session
	return ss.Wait()
}

// nopCloser is a writer whose Close does nothing: the reader closes the connection.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// ownConn attaches the caller to each message of a connection and tracks its requests in
// flight. The SDK's own way to close a connection would cancel them.
type ownConn struct {
	sdk.Connection
	caller *auth.TokenInfo
	serve  func(*jsonrpc.Request) bool // handles requests that are not the SDK's; reports whether it did

	mu        sync.Mutex
	inflight  map[jsonrpc.ID]struct{} // requests without a response yet
	finishing bool
}

// note adds a fact about a request for its handlers.
func (c *ownConn) note(m *jsonrpc.Request, key string, fact any) {
	info := *c.caller
	if e, ok := m.Extra.(*sdk.RequestExtra); ok && e.TokenInfo != nil {
		info = *e.TokenInfo
	}
	info.Extra = maps.Clone(info.Extra)
	info.Extra[key] = fact
	m.Extra = &sdk.RequestExtra{TokenInfo: &info}
}

// notify sends a notification to the client.
func (c *ownConn) notify(m jsonrpc.Message) error {
	ctx, cancel := context.WithTimeout(context.Background(), notifyPatience)
	defer cancel()
	return c.Write(ctx, m)
}

// Connect returns c, so that it is its own transport.
func (c *ownConn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

func (c *ownConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		req, ok := m.(*jsonrpc.Request)
		if err != nil || !ok {
			return m, err
		}
		req.Extra = &sdk.RequestExtra{TokenInfo: c.caller}
		if c.begin(req) {
			if c.serve(req) {
				continue
			}
			return m, nil
		}
		stopping := &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "nized is stopping; send it again"}}
		if err := c.Connection.Write(ctx, stopping); err != nil {
			return nil, err
		}
	}
}

func (c *ownConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.inflight, r.ID)
		c.mu.Unlock()
		c.closeFinished()
	}
	return err
}

// begin records a request as in flight. It returns false if no more are accepted.
func (c *ownConn) begin(req *jsonrpc.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !req.IsCall() || req.Method == "subscriptions/listen" {
		return true
	}
	if !c.finishing {
		c.inflight[req.ID] = struct{}{}
	}
	return !c.finishing
}

// finish closes the connection after the last request in flight.
func (c *ownConn) finish() {
	c.mu.Lock()
	c.finishing = true
	c.mu.Unlock()
	c.closeFinished()
}

func (c *ownConn) closeFinished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finishing && len(c.inflight) == 0 {
		_ = c.Connection.Close() // the session's Wait returns the error
	}
}

// conns is the set of clients that have their own connection.
type conns struct {
	mu   sync.Mutex
	open map[*ownConn]struct{}
	gone chan struct{} // created by finish, closed when no connection is open
}

// add adds a connection; the returned function removes it.
func (c *conns) add(own *ownConn) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*ownConn]struct{}{}
	}
	c.open[own] = struct{}{}
	if c.gone != nil {
		own.finish()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, own)
		c.closeGoneLocked()
	}
}

func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// finish closes each connection after the last request that it has in flight.
func (c *conns) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = make(chan struct{})
	}
	c.closeGoneLocked()
	for own := range c.open {
		own.finish()
	}
}

// closeGoneLocked closes c.gone if no connection is left. c.mu must be held.
func (c *conns) closeGoneLocked() {
	if c.gone == nil || len(c.open) > 0 {
		return
	}
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
}

// WaitConns waits until the connections have ended after CloseStreams, or until ctx ends.
func (s *Server) WaitConns(ctx context.Context) {
	s.conns.mu.Lock()
	gone := s.conns.gone
	s.conns.mu.Unlock()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}
