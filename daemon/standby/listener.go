package standby

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// handOver is how long existing connections may be used after this node has become
	// active.
	handOver = 10 * time.Second
	// goodbye is how long requests in progress may take after that, or at a stop: a stream
	// doesn't end by itself.
	goodbye = time.Second
)

// Served is a listener with its server; Serve serves it.
type Served struct {
	Listener net.Listener
	Server   *http.Server
	Serve    func(*http.Server, net.Listener) error
}

// Answer serves the listeners and forwards requests through f while this node is a standby.
// leave ends that: new connections then wait until the listener is served again, and so do
// requests that wait for an owner. done is done when existing connections are closed, too.
// If ctx ends, everything ends at once.
func (f *Forwarder) Answer(ctx context.Context, list ...Served) (leave func(), done *sync.WaitGroup) {
	ctx, stop := context.WithCancel(ctx)
	done = &sync.WaitGroup{}
	done.Go(func() { f.Run(ctx) })
	var accepting sync.WaitGroup
	var in []*kept
	for _, s := range list {
		ln := &kept{Listener: s.Listener}
		in = append(in, ln)
		accepting.Go(func() {
			if err := s.Serve(s.Server, ln); !errors.Is(err, net.ErrClosed) {
				f.log.Error("serving as a standby", "err", err)
			}
		})
	}
	return func() {
		f.left.Store(true)
		for _, ln := range in {
			_ = ln.Close() // the listener itself stays open
		}
		accepting.Wait()
		for _, ln := range in {
			_ = ln.until(time.Time{}) // the next server accepts the waiting connections
		}
		done.Go(func() {
			defer stop()
			select { // closing idle connections at once would interrupt clients that are about to use them
			case <-time.After(handOver):
			case <-ctx.Done():
			}
			last, end := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer end()
			var ending sync.WaitGroup
			for _, s := range list {
				ending.Go(func() {
					if s.Server.Shutdown(last) != nil {
						_ = s.Server.Close() // clients that are still connected must retry
					}
				})
			}
			ending.Wait()
		})
	}, done
}

// kept is a listener that stays open after its server has left it, so that new connections
// wait meanwhile.
type kept struct {
	net.Listener
	left atomic.Bool
}

func (k *kept) until(at time.Time) error {
	return k.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(at)
}

// Accept returns net.ErrClosed after Close.
func (k *kept) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err != nil && k.left.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close makes the server leave; the listener stays open.
func (k *kept) Close() error {
	if k.left.Swap(true) {
		return nil // the server also closes the listener when it leaves
	}
	return k.until(time.Unix(1, 0))
}
