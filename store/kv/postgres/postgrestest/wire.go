package postgrestest

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"nize/store"
)

// Wire is a proxy between a client and the test server that can be slowed down and cut.
type Wire struct {
	Trips // the trips over it

	listener      net.Listener
	network, addr string       // of the server
	delay         atomic.Int64 // delay of the server's messages in nanoseconds
	commits       atomic.Int64 // additional delay of the responses to commits
	running       sync.WaitGroup

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// NewWire returns a proxy to the server of an address, and the proxy's address.
func NewWire(address store.Secret) (*Wire, store.Secret, error) {
	config, err := pgconn.ParseConfig(address.Reveal())
	if err != nil {
		return nil, address, err
	}
	here, err := url.Parse(address.Reveal())
	if err != nil {
		return nil, address, err
	}
	w := &Wire{open: map[net.Conn]bool{}}
	w.network, w.addr = pgconn.NetworkAddress(config.Host, config.Port)
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, address, err
	}
	here.Host, here.RawQuery = w.listener.Addr().String(), ""
	w.running.Go(func() {
		for {
			near, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.running.Go(func() { w.carry(near) })
		}
	})
	return w, store.NewSecret(here.String()), nil
}

// Slow delays the server's messages.
func (w *Wire) Slow(by time.Duration) { w.delay.Store(int64(by)) }

// SlowCommits delays the responses to commits: others may read the committed data before
// they arrive.
func (w *Wire) SlowCommits(by time.Duration) { w.commits.Store(int64(by)) }

// Cut(true) ends all connections and refuses new ones until Cut(false).
func (w *Wire) Cut(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = yes
	for c := range w.open {
		if yes {
			_ = c.Close()
		}
	}
}

// Close stops the proxy.
func (w *Wire) Close() {
	_ = w.listener.Close()
	w.Cut(true)
	w.running.Wait()
}

// hold registers a connection for Cut, or closes it at once.
func (w *Wire) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = c.Close()
	} else {
		w.open[c] = true
	}
	return !w.cut
}

func (w *Wire) drop(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

func (w *Wire) carry(near net.Conn) {
	if !w.hold(near) {
		return
	}
	defer w.drop(near)
	far, err := net.Dial(w.network, w.addr)
	if err != nil || !w.hold(far) {
		return
	}
	defer w.drop(far)
	var late atomic.Int64 // of the next answer
	w.running.Go(func() {
		w.listen(far, near, func(trip string) {
			if strings.HasSuffix(trip, "commit") {
				late.Store(w.commits.Load())
			}
		})
		_ = far.Close()
	})
	said := make([]byte, 32<<10)
	for {
		n, err := far.Read(said)
		if late := late.Swap(0) + w.delay.Load(); late > 0 {
			time.Sleep(time.Duration(late))
		}
		if _, failed := near.Write(said[:n]); err != nil || failed != nil {
			return
		}
	}
}
