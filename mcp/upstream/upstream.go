// Package upstream is the pool of MCP servers: it connects to them, lists their tools and
// sends the calls.
//
// The pool keeps one session with each server, and keeps the stored tools equal to its
// list. A service with an OpenAPI document is a server whose MCP part is implemented in
// mcp/upstream/openapi.
//
// # How a call is sent
//
// [Pool.Run] finds the server and the caller's session, checks the tool against that
// session's list (call.go), and sends the arguments verbatim over the session's connection
// (mcp/upstream/wire). Child processes are handled by mcp/upstream/process.
//
// # Structure of the pool
//
//	Pool ── server (one registered one)
//	          ├─ keeper: one goroutine that reconnects, re-lists, debounces
//	          └─ lanes: one session for each credential owner; "" is shared
//	               └─ session ── wire.Conn: over HTTP, stdio or SSE, or to a service
//
// The store is authoritative. [Pool.Sync] applies a record: it reads it, connects, lists,
// runs the [Gate], compares pins with the accepted ones, and stores the tools. The keeper
// does the same after a reconnect and after list_changed, as [store.System], which never
// accepts anything.
//
// # Protection against upstreams
//
// An upstream is treated as hostile: bodies, events and lines are limited to 8 MiB, lists
// to 50 pages and 2,000 tools, nesting to 64 levels, and every wait has a deadline for its
// total time; redirects are followed only to the same address with a trailing slash added
// or removed; headers with secrets are sent only to the registered host, and responses pass
// through a mask of the secrets that were sent (masking.go). If one reply was invalid or
// one pipe blocked, the session is closed and a new one opened.
//
// Unsolicited messages are charged to a budget (wire.Budget). If it is used up, the readers
// pause, and if the server continues it is disconnected and left alone, for longer each
// time. The pause between lists after list_changed is at least listShare times the cost of
// a list. So the worse a server behaves, the less it costs, and calls of other servers are
// not affected.
//
// A call is sent a second time only if the first attempt cannot have reached the tool
// (wire.HTTPConn.checkSession describes how a lost session shows that), or if the tool
// declares that it is repeatable and its server is trusted.
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

// Limits on the data that an upstream may send: it is treated as hostile.
const (
	maxPages = 50   // per tools/list
	maxTools = 2000 // per server

	spawnTime   = 30 * time.Second // to spawn and initialize over stdio
	listTime    = 15 * time.Second // for a whole tools/list
	relistTime  = 5 * time.Minute  // between lists of a quiet server
	settleTime  = time.Second      // minimum between two lists after list_changed
	connectSlot = 2 * time.Second  // how long one connect may hold its slot
	idleLane    = 10 * time.Minute // idle limit of a personal session, unless the record sets one
)

// Options configures a pool. Servers, Tools and Gate are required.
type Options struct {
	Log         *slog.Logger
	Now         func() time.Time
	Servers     store.Servers
	Tools       store.Tools
	Credentials store.Credentials
	// Declared finds the values of declared credentials; may be nil.
	// daemon/credentials is the real implementation.
	Declared Declared
	// Logins provides the tokens of logins; may be nil. mcp/upstream/login is the real
	// implementation.
	Logins Logins
	// Known returns all stored tools by server for Start, if they are already in memory. If
	// it is nil, Start reads them.
	Known func(ctx context.Context) (map[string][]store.Tool, error)
	// Members provides the teams of a requester, whose credentials the requester may use;
	// may be nil.
	Members store.Members
	// Gate checks definitions; mcp/scan is the real implementation.
	Gate Gate
	// OnTools is called with the tools of a server after each stored change, and with none
	// if the server is removed or disabled. The caller fills its index from the store at
	// start. Calls for one server are sequential.
	OnTools func(ctx context.Context, server string, tools []store.Tool)
	// Attendant asks people the servers' questions and stores their tasks. If it is nil,
	// servers can neither ask nor make tasks.
	Attendant Attendant
	// Guard spawns the stdio servers. If it is nil, the pool spawns them directly, and they
	// may outlive a daemon that was killed.
	Guard *process.Guard
	// Traceparent returns the W3C header of a call's span, which is sent to the server in
	// _meta. It may be nil, and returns "" if tracing is off.
	Traceparent func(ctx context.Context) string
	// Base is the transport for all HTTP except OpenAPI servers; nil means a new keep-alive
	// transport.
	Base http.RoundTripper
	// Egress returns the current setting egress.allow: addresses that an OpenAPI server may
	// use besides public ones and the hosts that an admin entered. nil means none.
	Egress func() string
	// MaxParallel is the maximum number of concurrent connects at start; 0 means 16.
	MaxParallel int
	// Version is nize's version as sent to servers; "" means "dev".
	Version string
}

// Gate checks the definition of a tool before any other code uses it.
type Gate interface {
	// Check is the schema gate: if it returns an error, the tool is refused by name, and
	// the other tools of its server still work.
	Check(tool store.Tool) error
	// Pin returns the hash of the definition and the findings of a scan.
	Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string)
}

// Declared finds the values of declared credentials: the one that a call uses, and the one
// of a given holder.
type Declared interface {
	Get(ctx context.Context, id string) (credential.Declaration, error)
	Find(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
	Of(ctx context.Context, id string, h store.Holder) (credential.Declaration, credential.Value, error)
}

// Logins provides the OAuth logins for servers.
type Logins interface {
	// Token returns a currently valid access token of the first of the holders who is
	// logged in. It returns the zero value if the credential is a key that was set by hand.
	// If a holder has to log in, the error is an *oauth.LoginError.
	Token(ctx context.Context, server store.Server, holders []store.Holder) (store.Secret, error)
	// Denied handles a 401 or 403 response. again means that the request may be sent once
	// more. If again is false and err is nil, the response has nothing to do with logins.
	Denied(ctx context.Context, server store.Server, holders []store.Holder, d oauth.Denial) (again bool, err error)
	// Offered reports whether users can sign in at a server that responded 401 or 403
	// without saying so.
	Offered(ctx context.Context, server store.Server) bool
	// DeclaredDenied is Denied for a request with a holder's value of a declared
	// credential.
	DeclaredDenied(ctx context.Context, decl credential.Declaration, h store.Holder, d oauth.Denial) (again bool, err error)
}

// Pool manages the sessions. It is safe for concurrent use.
type Pool struct {
	opt            Options
	base           http.RoundTripper
	ctx            context.Context // the context of all background work; ended by Close
	cancel         context.CancelFunc
	wg             sync.WaitGroup
	connecting     chan struct{} // MaxParallel tokens for concurrent background connects
	children       children
	watchingMemory sync.Once // starts watchMemory with the first child process
	probes         probes

	readingRecords sync.Mutex // held from reading a record until servers reflects it

	mu      sync.Mutex
	servers map[string]*server
	closed  bool
}

// New returns a pool, which is idle until Start, Sync, Run or Probe is called.
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

// Start starts the background work: it connects all enabled servers, several at a time, and
// keeps them connected and listed until Close is called or ctx ends. It doesn't wait for
// them.
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

// errClosed is returned by a closed pool.
var errClosed = errors.New("the pool of servers is closed")

// entryLocked returns the entry of a server, and creates and starts it if there is none.
// p.readingRecords must be held.
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

// loadServer creates the entry of a server with its stored tools.
func (p *Pool) loadServer(ctx context.Context, cfg store.Server) (*server, error) {
	stored, err := p.opt.Tools.ListTools(ctx, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the tools of %s: %w", cfg.Name, err)
	}
	return newServer(p, cfg, stored), nil
}

// addServer adds an entry to the pool, and starts it unless it is disabled.
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

// removeServer removes an entry from the pool for good, and returns it or nil.
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

// findServer returns the entry of a server, if the pool has one.
func (p *Pool) findServer(name string) (*server, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.servers[name]
	return s, ok
}

// allServers returns all entries.
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

// Reconnect ends the session that calls with one holder's credentials use. If that is the
// shared session, it ends all sessions. The next call uses the credentials that are then
// stored.
func (p *Pool) Reconnect(ctx context.Context, name string, h store.Holder) error {
	if h.Label() == "" {
		return p.Restart(ctx, name)
	}
	if s, ok := p.findServer(name); ok {
		s.closeLane(h.Label())
	}
	return nil
}

// LogIn calls change, which stores a holder's login at a server, and then makes the server
// use it: the holder's sessions are opened again. For the shared login it also lists the
// tools on behalf of the user who logged in, who accepts the same tools as an admin who
// registers the server would. No other list of the tools can happen between the two steps.
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

// enabledServer returns the entry of an enabled server. If the pool has none, it reads the
// store.
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

// Close ends all sessions and process groups and waits for them, until ctx ends at the
// latest.
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
	go func() { // ends with the last session, which has its own deadlines
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
