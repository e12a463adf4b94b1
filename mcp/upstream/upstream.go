// Package upstream is the pool of MCP servers: it dials them, keeps one session
// with each, makes the stored tools match what they list, and sends the calls. A service
// that has an OpenAPI document is a server whose MCP half is mcp/upstream/openapi.
//
// # How a call travels
//
// [Pool.Run] finds the server and the session of who calls, checks the tool
// against what that session listed (call.go), and sends the arguments verbatim
// over the session's connection (mcp/upstream/wire). Child processes are
// mcp/upstream/process.
//
// # What the pool consists of
//
//	Pool ── server (one registered one)
//	          ├─ keeper: one goroutine that reconnects, re-lists, debounces
//	          └─ lanes: one session for each credential owner; "" is shared
//	               └─ session ── wire.Conn: over HTTP, stdio or SSE, or to a service
//
// The store is the truth. [Pool.Sync] is the one path that makes reality match
// it: it reads the record, connects, lists, asks the [Gate], compares pins with
// the accepted ones, and stores the tools. The keeper does the same by itself
// after a reconnect and after list_changed, as [store.System], which never
// accepts anything.
//
// # What is never assumed
//
// An upstream is hostile: bodies, events and lines end at 8 MiB, lists at 50
// pages and 2,000 tools, nesting at 64, every wait at a deadline on its total
// time; redirects are followed to the same address with a slash more or less, and
// nowhere else; headers with secrets go to the registered
// host only, and what comes back goes through a mask of the secrets that were
// sent (masking.go). A session in which one reply was bad or one pipe got stuck is
// closed, and a new one made.
//
// What it sends without being asked is paid for out of a budget (wire.Budget):
// readers sleep once it is used up, and a server that goes on is disconnected
// and left alone for longer each time. Looks after list_changed are at least
// listShare times as far apart as one costs. So what a server costs falls with
// how badly it behaves, and calls of others don't notice.
//
// A call is sent a second time only if the first cannot have reached the tool
// (wire.HTTPConn.checkSession says how a lost session shows that), or the tool says that it may be repeated and its server is trusted.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/store"
	"nize/store/credential"
)

// Bounds on what an upstream may send: it is hostile until shown otherwise.
const (
	maxPages = 50   // of one tools/list
	maxTools = 2000 // of one server

	spawnTime   = 30 * time.Second // to spawn and initialize over stdio
	listTime    = 15 * time.Second // for a whole tools/list
	relistTime  = 5 * time.Minute  // between lists of a quiet server
	settleTime  = time.Second      // at least, between two lists after list_changed
	connectSlot = 2 * time.Second  // at most, that one connect keeps its place among those at once
	idleLane    = 10 * time.Minute // after which a person's own session is closed, unless the record says
)

// Options says what a pool works with. Servers, Tools and Gate are needed.
type Options struct {
	Log         *slog.Logger
	Now         func() time.Time
	Servers     store.Servers
	Tools       store.Tools
	Credentials store.Credentials
	// Declared finds the values of declared credentials; nil is none.
	// *[credential.Resolver] is the real one.
	Declared Declared
	// Logins has the tokens of logins; nil is none. mcp/upstream/login is the real one.
	Logins Logins
	// Known lists all stored tools for Start, by server, where somebody has them in
	// memory; nil reads them.
	Known func(ctx context.Context) (map[string][]store.Tool, error)
	// Members tells which teams a requester is in, whose credentials count for
	// them; nil is none.
	Members store.Members
	// Gate judges definitions; mcp/scan is the real one.
	Gate Gate
	// OnTools is called with the tools of a server after each stored change, and
	// of none when the server is removed or disabled. The caller fills its
	// index from the store at start. Calls for one server come one at a time.
	OnTools func(ctx context.Context, server string, tools []store.Tool)
	// Attendant puts servers' questions before people and keeps their tasks; nil lets
	// servers neither ask nor make tasks.
	Attendant Attendant
	// Guard spawns the stdio servers; nil spawns them directly, and then they
	// may outlive a daemon that was killed.
	Guard *process.Guard
	// Traceparent is the W3C header of the span that a call is a part of, which
	// its server is told in _meta; nil, or "" where nobody traces.
	Traceparent func(ctx context.Context) string
	// Base carries all HTTP but that of OpenAPI servers; nil is a keep-alive transport
	// made for this.
	Base http.RoundTripper
	// Egress is the setting egress.allow as it is now: what may be reached of an OpenAPI
	// server besides public addresses and the hosts that an admin named; nil is nothing.
	Egress func() string
	// MaxParallel bounds the connects at once at start; 0 is 16.
	MaxParallel int
	// Version is what servers are told of nize's; "" is "dev".
	Version string
}

// Gate judges the definition of a tool before anything else touches it.
type Gate interface {
	// Check is the schema gate: an error refuses the tool by name, and the
	// other tools of its server work.
	Check(tool store.Tool) error
	// Pin returns the hash of the definition and what a scan found in it.
	Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string)
}

// Declared finds the values of declared credentials: whose a call uses, and what one
// holder has.
type Declared interface {
	Get(ctx context.Context, id string) (credential.Declaration, error)
	Find(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
	Of(ctx context.Context, id string, h store.Holder) (credential.Declaration, credential.Value, error)
}

// Logins are the OAuth logins with which servers are called.
type Logins interface {
	// Token is the access token of the first of the holders who is logged in,
	// good for the moment. It is zero where the credential is a key that was set by
	// hand. The error of a holder who has to log in is an *oauth.LoginError.
	Token(ctx context.Context, server store.Server, holders []store.Holder) (store.Secret, error)
	// Denied says what follows from an answer 401 or 403: again is that the
	// request may be sent once more; nil without again that it is no matter of
	// logins.
	Denied(ctx context.Context, server store.Server, holders []store.Holder, d oauth.Denial) (again bool, err error)
	// Offered reports whether somebody can sign in at a server that answered 401 or
	// 403 and did not say so.
	Offered(ctx context.Context, server store.Server) bool
	// DeclaredDenied says that of a request with what a holder has of a declared
	// credential.
	DeclaredDenied(ctx context.Context, decl credential.Declaration, h store.Holder, d oauth.Denial) (again bool, err error)
}

// Pool keeps the sessions. It is safe for concurrent use.
type Pool struct {
	opt            Options
	base           http.RoundTripper
	ctx            context.Context // the life of all background work; ended by Close
	cancel         context.CancelFunc
	wg             sync.WaitGroup
	connecting     chan struct{} // MaxParallel tokens: background connects at once
	children       children
	watchingMemory sync.Once // begins to watch it, with the first child process
	probes         probes

	readingRecords sync.Mutex // held from reading a record until servers has what follows from it

	mu      sync.Mutex
	servers map[string]*server
	closed  bool
}

// New returns a pool that does nothing until Start, Sync, Run or Probe.
func New(opt Options) *Pool {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Version == "" {
		opt.Version = "dev"
	}
	if opt.MaxParallel <= 0 {
		opt.MaxParallel = 16
	}
	if opt.Known == nil {
		opt.Known = func(ctx context.Context) (map[string][]store.Tool, error) {
			tools, err := opt.Tools.ListTools(ctx, "")
			byServer := map[string][]store.Tool{}
			for _, t := range tools {
				byServer[t.Server] = append(byServer[t.Server], t)
			}
			return byServer, err
		}
	}
	p := &Pool{
		opt:        opt,
		base:       opt.Base,
		connecting: make(chan struct{}, opt.MaxParallel),
		servers:    map[string]*server{},
	}
	if p.base == nil {
		p.base = wire.NewTransport()
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Start begins the background work: it connects all enabled servers, in
// parallel and bounded, and keeps them connected and listed until Close or the
// end of ctx. It does not wait for them.
func (p *Pool) Start(ctx context.Context) error {
	p.readingRecords.Lock()
	defer p.readingRecords.Unlock()
	all, err := p.opt.Servers.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	byServer, err := p.opt.Known(ctx)
	if err != nil {
		return fmt.Errorf("reading tools: %w", err)
	}
	for _, cfg := range all {
		if _, ok := p.findServer(cfg.Name); ok || cfg.Transport == store.External {
			continue
		}
		if err := p.addServer(newServer(p, cfg, byServer[cfg.Name])); err != nil {
			return err
		}
	}
	context.AfterFunc(ctx, p.cancel)
	return nil
}

// errClosed is what a closed pool answers.
var errClosed = errors.New("the pool of servers is closed")

// entryLocked returns the entry of a server, made and started if there was none.
// It needs p.readingRecords.
func (p *Pool) entryLocked(ctx context.Context, cfg store.Server) (*server, error) {
	if s, ok := p.findServer(cfg.Name); ok {
		return s, nil
	}
	s, err := p.loadServer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return s, p.addServer(s)
}

// loadServer makes the entry of a server with the tools that the store has of it.
func (p *Pool) loadServer(ctx context.Context, cfg store.Server) (*server, error) {
	stored, err := p.opt.Tools.ListTools(ctx, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the tools of %s: %w", cfg.Name, err)
	}
	return newServer(p, cfg, stored), nil
}

// addServer puts an entry among those of the pool, and starts it unless it is
// disabled.
func (p *Pool) addServer(s *server) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.servers[s.name] = s
	if !s.config().Disabled {
		p.wg.Go(s.keepConnected)
	}
	return nil
}

// removeServer takes an entry from the pool, for good, and returns it; nil is none.
func (p *Pool) removeServer(name string) *server {
	p.mu.Lock()
	s := p.servers[name]
	delete(p.servers, name)
	p.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		s.removed = true
		s.cancel()
		s.mu.Unlock()
	}
	return s
}

// findServer returns the entry of a server that the pool knows.
func (p *Pool) findServer(name string) (*server, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.servers[name]
	return s, ok
}

// allServers returns the entries.
func (p *Pool) allServers() []*server {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*server, 0, len(p.servers))
	for _, s := range p.servers {
		out = append(out, s)
	}
	return out
}

// Restart ends the sessions of a server and connects it again.
func (p *Pool) Restart(ctx context.Context, name string) error {
	s, err := p.enabledServer(ctx, name)
	if err != nil {
		return err
	}
	s.closeLanes()
	_, err = s.refresh(ctx, store.System, nil)
	return err
}

// Reconnect ends the session over which the calls of one holder of credentials go,
// and the shared one with all others where that is the shared one: the next
// call is made with what is stored now.
func (p *Pool) Reconnect(ctx context.Context, name string, h store.Holder) error {
	if h.Label() == "" {
		return p.Restart(ctx, name)
	}
	if s, ok := p.findServer(name); ok {
		s.closeLane(h.Label())
	}
	return nil
}

// LogIn runs what stores a login of a holder at a server, and then has that used:
// the sessions of the holder are made again. For the shared login the tools are
// listed, too, by whoever logged in, who accepts what an admin who registers the
// server would: nobody else lists it between the two.
func (p *Pool) LogIn(ctx context.Context, by store.Caller, name string, h store.Holder, change func() error) error {
	s, err := p.enabledServer(ctx, name)
	if err != nil {
		return err
	}
	select {
	case s.syncing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for a sync of %s: %w", name, ctx.Err())
	}
	defer func() { <-s.syncing }()
	if err := change(); err != nil {
		return err
	}
	if h.Label() != "" {
		s.closeLane(h.Label())
		return nil
	}
	s.closeLanes()
	_, err = s.refreshOverLocked(ctx, by, "", nil)
	return err
}

// enabledServer returns the entry of an enabled server, looking into the store for one
// that the pool has not met.
func (p *Pool) enabledServer(ctx context.Context, name string) (*server, error) {
	s, ok := p.findServer(name)
	if !ok {
		var err error
		if s, err = p.readServer(ctx, name); err != nil {
			return nil, err
		}
	}
	if s.config().Disabled {
		return nil, store.Mark(fmt.Errorf("server %s is disabled; enable it with nizectl servers enable %s", name, name), store.ErrRefused)
	}
	return s, nil
}

func (p *Pool) readServer(ctx context.Context, name string) (*server, error) {
	p.readingRecords.Lock()
	defer p.readingRecords.Unlock()
	cfg, err := p.opt.Servers.GetServer(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	return p.entryLocked(ctx, cfg)
}

// Close ends all sessions and process groups and waits for them, at most until
// ctx ends.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	var wg sync.WaitGroup
	for _, s := range p.allServers() {
		wg.Go(func() { s.closeLanes() })
	}
	done := make(chan struct{})
	go func() { // ends when the last session has, which has deadlines of its own
		defer close(done)
		wg.Wait()
		p.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("closing the servers: %w", ctx.Err())
	}
	if t, ok := p.base.(*http.Transport); ok && p.opt.Base == nil {
		t.CloseIdleConnections()
	}
	return nil
}
