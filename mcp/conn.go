package mcp

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/reply"
	"nize/store"
)

// ServeConn serves one client on a connection of its own, whose messages are
// lines, until it leaves or ctx ends; calls that wait for it end then as if it
// had left. Who comes in is a program that speaks for by, so that what it calls
// asks as over HTTP, whoever by is. It closes the connection.
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
	defer context.AfterFunc(ctx, func() { _ = own.Close() })() // what is read then ends, and with it the session
	return ss.Wait()
}

// nopCloser leaves the connection to its reader, which closes it.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// ownConn gives each message of a connection its caller, and knows what is
// under way on it: the SDK's own way to close one cancels that.
type ownConn struct {
	sdk.Connection
	caller *auth.TokenInfo
	serve  func(*jsonrpc.Request) bool // answers what is not the SDK's, and reports whether it does

	mu        sync.Mutex
	inflight  map[jsonrpc.ID]struct{} // requests that an answer ends
	finishing bool
}

// Connect makes it its own transport.
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

// begin counts a request in, unless no more are taken.
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

// finish lets the connection end with the last request that is under way.
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
		_ = c.Connection.Close() // its session's Wait tells how it ended
	}
}

// conns are the clients that have a connection of their own.
type conns struct {
	mu   sync.Mutex
	open map[*ownConn]struct{}
	gone chan struct{} // made by finish, closed when none is open
}

// add counts a connection in; the function returned counts it out.
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

// finish lets each connection end with the last request that it has under way.
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

// closeGoneLocked closes c.gone once there is nothing to wait for; c.mu is held.
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

// WaitConns waits for the connections to end after CloseStreams, or for ctx.
func (s *Server) WaitConns(ctx context.Context) {
	s.conns.mu.Lock()
	gone := s.conns.gone
	s.conns.mu.Unlock()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}
