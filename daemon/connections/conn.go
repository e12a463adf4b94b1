package connections

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stall is how long a client may read nothing of what is written to it. Streams
	// too end then: nobody is there.
	stall = 2 * time.Minute
	// slow is how long a write may wait before its connection may be ended for others.
	slow = 5 * time.Second
	// chunk is what has to go out within that time.
	chunk = 64 << 10
)

// conn is a connection that counts.
type conn struct {
	net.Conn
	place
	set     *Set
	address string
	owner   string // who was known to be at its other end from the start, or ""
	counted bool   // among the people's of its address; guarded by set.mu

	working atomic.Int32 // handlers that wait for no body
	writing atomic.Int64 // since when a write has waited, in nanoseconds; 0: none does
	cap     atomic.Int64 // the deadline of writes that the server set; 0 is none
	gone    sync.Once
}

// isIdle says whether nobody would miss work if it were ended.
func (c *conn) isIdle() bool {
	if c.working.Load() <= 0 {
		return true
	}
	since := c.writing.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > slow
}

// cut ends it at once. Its server finds out by its next read or write.
func (c *conn) cut() { _ = c.Close() } // whatever was on it is given up

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.gone.Do(func() {
		c.set.mu.Lock()
		defer c.set.mu.Unlock()
		c.leave()
		if c.counted {
			if c.set.addresses[c.address]--; c.set.addresses[c.address] <= 0 {
				delete(c.set.addresses, c.address)
			}
		}
	})
	return c.Conn.Close()
}

// CloseWrite lets the server say that nothing more comes, and the client read it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn is what the system knows it by.
func (c *conn) NetConn() net.Conn { return c.Conn }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements [net.Conn]. A write that waits gets it, too.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.cap.Store(0)
		return nil // the next write has its own
	}
	c.cap.Store(t.UnixNano())
	return c.Conn.SetWriteDeadline(t)
}

// Write fails if the client reads nothing for a while.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		now := time.Now()
		due := now.Add(stall)
		if limit := c.cap.Load(); limit != 0 && time.Unix(0, limit).Before(due) {
			due = time.Unix(0, limit)
		}
		if err := c.Conn.SetWriteDeadline(due); err != nil {
			return n, err
		}
		c.writing.Store(now.UnixNano())
		m, err := c.Conn.Write(p[n:min(len(p), n+chunk)])
		c.writing.Store(0)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

type connKey struct{}

// ConnContext is an http.Server's.
func ConnContext(ctx context.Context, nc net.Conn) context.Context {
	if c := connOf(nc); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connOf finds the connection below others, such as TLS.
func connOf(nc net.Conn) *conn {
	for {
		switch c := nc.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}
