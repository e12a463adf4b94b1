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
	// handOver is how long who is connected may go on there once this nized works.
	handOver = 10 * time.Second
	// goodbye is how long what is under way may then take, or at a stop: a stream has
	// no end of its own.
	goodbye = time.Second
)

// Served is a listener with what answers there; Serve serves it.
type Served struct {
	Listener net.Listener
	Server   *http.Server
	Serve    func(*http.Server, net.Listener) error
}

// Answer answers on listeners, and passes on by f, while this nized stands by. leave
// ends that: who connects from then on waits for whoever listens there next, and so
// does what waits for an owner. done is called when who is connected has gone, too;
// ctx ends all at once.
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
				f.log.Error("answering while standing by", "err", err)
			}
		})
	}
	return func() {
		f.left.Store(true)
		for _, ln := range in {
			_ = ln.Close() // it stays open
		}
		accepting.Wait()
		for _, ln := range in {
			_ = ln.until(time.Time{}) // who waits there is let in by the next
		}
		done.Go(func() {
			defer stop()
			select { // to close what is idle at once would cut who just uses it
			case <-time.After(handOver):
			case <-ctx.Done():
			}
			last, end := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer end()
			var ending sync.WaitGroup
			for _, s := range list {
				ending.Go(func() {
					if s.Server.Shutdown(last) != nil {
						_ = s.Server.Close() // whoever is still there asks again
					}
				})
			}
			ending.Wait()
		})
	}, done
}

// kept is a listener that stays open when its server has left it, so that who
// connects meanwhile waits.
type kept struct {
	net.Listener
	left atomic.Bool
}

func (k *kept) until(at time.Time) error {
	return k.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(at)
}

// Accept ends by Close.
func (k *kept) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err != nil && k.left.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close makes the server leave.
func (k *kept) Close() error {
	if k.left.Swap(true) {
		return nil // the server closes what it leaves as well
	}
	return k.until(time.Unix(1, 0))
}
