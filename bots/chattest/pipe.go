package chattest

import (
	"context"
	"net"
	"sync"
)

// Pipe is a listener with in-memory connections, so that a test can run the fake and its
// app in a testing/synctest bubble, which has its own time:
//
//	pipe := chattest.NewPipe()
//	fake.Start(pipe)
//	client := &http.Client{Transport: &http.Transport{DialContext: pipe.Dial}}
type Pipe struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipe returns a listener; [Base.End] closes it.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the listener, whatever the address.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next connection.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr returns a fixed name.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:1" }
