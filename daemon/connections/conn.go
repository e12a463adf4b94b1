package connections

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stall is the timeout of a write that the client doesn't read. It ends streams, too,
	// whose client is then considered gone.
	stall = 2 * time.Minute
	// slow is how long a write may block before its connection may be closed to make room.
	slow = 5 * time.Second
	// chunk is the number of bytes that must be written within that time.
	chunk = 64 << 10
)

// conn is a counted connection.
type conn struct {
	net.Conn
	place
	set     *Set
	address string
	owner   string // the peer, if known from the start, else ""
	counted bool   // counted among its address's authenticated connections; guarded by set.mu

	working atomic.Int32 // number of handlers that aren't waiting for a body
	writing atomic.Int64 // start of a blocked write, in nanoseconds; 0 if none
	cap     atomic.Int64 // write deadline set by the server; 0 if none
	gone    sync.Once
}

// isIdle reports whether the connection can be closed without losing work.
func (c *conn) isIdle() bool {
	if c.working.Load() <= 0 {
		return true
	}
	since := c.writing.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > slow
}

// cut closes it immediately. Its server notices at its next read or write.
func (c *conn) cut() { _ = c.Close() } // anything in progress on it is dropped

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

// CloseWrite closes the sending side, so that the client can still read what was sent.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the underlying connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements [net.Conn]. It also applies to a blocked write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.cap.Store(0)
		return nil // the next write sets its own
	}
	c.cap.Store(t.UnixNano())
	return c.Conn.SetWriteDeadline(t)
}

// Write returns an error if the client doesn't read for a while.
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

// ConnContext is for [http.Server.ConnContext].
func ConnContext(ctx context.Context, nc net.Conn) context.Context {
	if c := connOf(nc); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connOf returns the counted connection wrapped by others, such as TLS.
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
