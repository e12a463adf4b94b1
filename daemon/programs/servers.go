package programs

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/mcp/policy"
	"nize/mcp/upstream"
	"nize/mcp/upstream/wire"
	"nize/store"
	"nize/store/project"
)

const (
	idleTime  = 10 * time.Minute // after which an unused server is closed
	freshTime = 10 * time.Second // for which a list is not refreshed
	startTime = 10 * time.Second // to connect and list
	maxKept   = 512              // servers with sessions
	maxCalls  = 32               // concurrent calls per server
)

// ServerOptions are a pool's dependencies. Store and Upstream are required.
type ServerOptions struct {
	Store       project.Servers
	Credentials store.Credentials
	// Upstream configures the pool of sessions; its servers, tools and credentials are set
	// by NewServerPool.
	Upstream upstream.Options
	Now      func() time.Time
	Log      *slog.Logger
}

// ServerPool manages the MCP servers that programs bring with their requests. It is safe for
// concurrent use.
//
// A server is identified by its project, label, URL and headers: requests with the same
// ones share a session, which ends when it has not been used for a while. It is contacted
// through a separate pool, over a client with egress checks, since a program chooses the
// address.
//
// Its tools are accepted as they were first listed. If a definition changes, the tool is
// held from then on, and the next request for the server gets a new generation of it, under
// a new name. Pending calls stay with the generation for which they were proposed. Exactly
// what was proposed is therefore what runs, by the same checks as for registered servers.
//
// A generation's definition is stored, sealed, beside the database's rounds: a call that is
// still pending after a restart, or after its session has ended, finds it there.
type ServerPool struct {
	opt    ServerOptions
	pool   *upstream.Pool
	secret [32]byte // keys the fingerprints, which are computed from secrets

	mu     sync.Mutex
	byName map[string]*server
	newest map[[32]byte]*server // by fingerprint
}

// server is one generation of a server.
type server struct {
	pool        *ServerPool
	fingerprint [32]byte
	project     string
	given       project.Server
	record      store.Server // each header refers to the credential of its own name

	opening chan struct{} // capacity 1: a lock; the holder lists the server

	mu     sync.Mutex
	tools  []store.Tool
	byID   map[string]*policy.Tool
	first  map[string]string // tool → the pin when it was first listed
	listed time.Time
	used   time.Time
	users  int // calls and lists in progress
}

// NewServerPool returns a Pool.
func NewServerPool(opt ServerOptions) *ServerPool {
	p := &ServerPool{opt: opt, byName: map[string]*server{}, newest: map[[32]byte]*server{}}
	_, _ = rand.Read(p.secret[:]) // it never fails
	up := opt.Upstream
	up.Servers, up.Tools, up.Credentials, up.Members, up.OnTools, up.Known = servers{p}, tools{p}, credentials{p}, nil, nil, nil
	up.Now, up.Log, up.Gate = opt.Now, opt.Log, withoutIcons{up.Gate}
	p.pool = upstream.New(up)
	return p
}

// withoutIcons is a gate whose pins omit icons: a temporary server's are never shown, and a
// stored generation keeps its tools' pins.
type withoutIcons struct{ upstream.Gate }

// Pin implements [upstream.Gate].
func (g withoutIcons) Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string) {
	tool.Icons = nil
	return g.Gate.Pin(server, instructions, tool)
}

// Close ends all sessions.
func (p *ServerPool) Close(ctx context.Context) error { return p.pool.Close(ctx) }

// Keep closes unused servers periodically, until ctx ends.
func (p *ServerPool) Keep(ctx context.Context) error {
	tick := time.NewTicker(idleTime / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.closeIdle(ctx, p.opt.Now().Add(-idleTime))
		}
	}
}

// Open returns a server's tools for a project, except held ones. It returns a
// [*project.NoCredentialError] if a credential is missing.
func (p *ServerPool) Open(ctx context.Context, of project.Project, given project.Server) (listed []store.Tool, err error) {
	for _, name := range slices.Sorted(maps.Keys(given.Headers)) {
		if h := given.Headers[name]; h.SecretKey != "" {
			if _, err := p.opt.Credentials.GetCredential(ctx, given.CredentialKey(of.ID, h)); errors.Is(err, store.ErrNotFound) {
				return nil, &project.NoCredentialError{Header: name}
			} else if err != nil {
				return nil, err
			}
		}
	}
	at, below := given, belowRoot(given)
	if below.URL != "" && p.isOpen(of.ID, below) { // the root was found not to be the endpoint before
		at = below
	}
	listed, err = p.list(ctx, of.ID, at)
	var status *wire.StatusError
	if below.URL != "" && at.URL != below.URL && errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed) {
		second, err2 := p.list(ctx, of.ID, below)
		if err2 == nil {
			return second, nil
		}
		err = fmt.Errorf("%w; and at %s: %w", err, mcpPath, err2)
	}
	if err != nil {
		return nil, errors.New(store.RedactText(err.Error()))
	}
	return listed, nil
}

// mcpPath is the path that is tried for servers whose URL has none.
const mcpPath = "/mcp"

// belowRoot returns the server at [mcpPath] if its URL has no path, and the zero Server
// otherwise.
func belowRoot(given project.Server) project.Server {
	u, err := url.Parse(given.URL)
	if err != nil || u.Path != "" && u.Path != "/" {
		return project.Server{}
	}
	u.Path = mcpPath
	given.URL = u.String()
	return given
}

// isOpen reports whether a server has a session that was listed.
func (p *ServerPool) isOpen(of string, given project.Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest[p.fingerprint(of, given)] != nil
}

// list returns the tools of a server, from a new generation if one has changed.
func (p *ServerPool) list(ctx context.Context, of string, given project.Server) (listed []store.Tool, err error) {
	for range 2 {
		s, err := p.generation(of, given)
		if err != nil {
			return nil, err
		}
		listed, err = s.list(ctx)
		s.end()
		if err != nil {
			p.closeUnlisted(ctx, s)
			return nil, &openError{strings.TrimPrefix(err.Error(), "server "+s.record.Name+": "), err}
		}
		if !slices.ContainsFunc(listed, func(t store.Tool) bool { return t.State == store.ToolQuarantined && t.Accepted != "" }) {
			break
		}
		p.retire(s)
	}
	return listed, nil
}

// openError is why a server could not be listed, without its internal name.
type openError struct {
	text  string
	cause error
}

func (e *openError) Error() string { return e.text }
func (e *openError) Unwrap() error { return e.cause }

// fingerprint identifies a server. It is keyed, because it is computed from secrets.
func (p *ServerPool) fingerprint(of string, given project.Server) (sum [32]byte) {
	h := hmac.New(sha256.New, p.secret[:])
	part := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	part(of)
	part(given.Label)
	part(given.URL)
	for _, name := range slices.Sorted(maps.Keys(given.Headers)) {
		v := given.Headers[name]
		part(name)
		part(v.SecretKey)
		part(v.Text.Reveal())
	}
	return [32]byte(h.Sum(nil))
}

// errFull is returned if the maximum number of servers is in use.
var errFull = fmt.Errorf("%d servers of programs are in use, which is the limit; try again in a moment", maxKept)

// generation returns the newest generation of a server, a new one if there is none, and
// counts the caller as a user of it.
func (p *ServerPool) generation(of string, given project.Server) (*server, error) {
	mark := p.fingerprint(of, given)
	use := func() (*server, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		s := p.newest[mark]
		if s == nil && len(p.byName) >= maxKept {
			return nil, false
		}
		if s == nil {
			s = p.newServer(of, given, policy.TemporaryName(given.Slug, store.NewID(p.opt.Now())))
			s.fingerprint = mark
			p.byName[s.record.Name], p.newest[mark] = s, s
		}
		s.begin()
		return s, true
	}
	if s, ok := use(); ok {
		return s, nil
	}
	p.closeIdle(context.Background(), p.opt.Now()) // closing idle sessions doesn't block for long
	if s, ok := use(); ok {
		return s, nil
	}
	return nil, errFull
}

func (p *ServerPool) newServer(of string, given project.Server, name string) *server {
	headers := make(map[string]store.Value, len(given.Headers))
	for h := range given.Headers {
		headers[h] = store.Value{SecretKey: h}
	}
	record := store.Server{Name: name, Transport: store.HTTP, URL: given.URL, Headers: headers, StartTimeout: store.Duration(startTime), MaxConcurrency: maxCalls, AcceptNew: true, Visibility: []string{project.Actor(of)}}
	return &server{pool: p, project: of, given: given, record: record.Normal(), opening: make(chan struct{}, 1), first: map[string]string{}, used: p.opt.Now()}
}

// retire makes the next request create a new generation.
func (p *ServerPool) retire(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest[s.fingerprint] == s {
		delete(p.newest, s.fingerprint)
	}
}

// closeIdle closes servers that are not in use and were last used before a time.
func (p *ServerPool) closeIdle(ctx context.Context, before time.Time) {
	p.close(ctx, func(s *server) bool { return !s.used.After(before) })
}

// closeUnlisted closes a server that was never reached, so that it isn't reconnected.
func (p *ServerPool) closeUnlisted(ctx context.Context, failed *server) {
	p.close(ctx, func(s *server) bool { return s == failed && s.byID == nil })
}

// close closes the sessions of unused servers and drops them; their stored definitions
// stay.
func (p *ServerPool) close(ctx context.Context, which func(*server) bool) {
	var closed []string
	p.mu.Lock()
	for name, s := range p.byName {
		s.mu.Lock()
		if s.users == 0 && which(s) {
			closed = append(closed, name)
			delete(p.byName, name)
			if p.newest[s.fingerprint] == s {
				delete(p.newest, s.fingerprint)
			}
		}
		s.mu.Unlock()
	}
	p.mu.Unlock()
	for _, name := range closed {
		if _, err := p.pool.Sync(ctx, store.System, name); err != nil && ctx.Err() == nil { // its record is gone, so Sync closes the session
			p.opt.Log.Warn("closing a temporary server", "server", name, "err", err)
		}
	}
}

// get returns an open server; nil if there is none.
func (p *ServerPool) get(name string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// find returns a server by its name, restored from its stored definition if it was closed;
// nil if there is none.
func (p *ServerPool) find(name string) *server {
	s := p.get(name)
	if s != nil || !policy.IsTemporary(name) {
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // tool lookups have no context
	defer cancel()
	raw, err := p.opt.Store.GetTemporaryServer(ctx, name)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			p.opt.Log.Error("reading a temporary server", "server", name, "err", err)
		}
		return nil
	}
	if s, err = p.restore(name, raw); err != nil {
		p.opt.Log.Error("reading a temporary server", "server", name, "err", err)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.byName[name]; other != nil {
		return other // another goroutine was faster
	}
	p.byName[name] = s
	return s
}

// FindTool returns a tool by its id.
func (p *ServerPool) FindTool(id string) (*policy.Tool, bool) {
	name, _, _ := store.SplitToolID(id)
	s := p.find(name)
	if s == nil {
		return nil, false
	}
	return s.tool(id)
}

func (s *server) tool(id string) (*policy.Tool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.byID[id]
	return t, ok
}

// FindServer returns the record of a server.
func (p *ServerPool) FindServer(name string) (*store.Server, bool) {
	s := p.find(name)
	if s == nil {
		return nil, false
	}
	return &s.record, true
}

// Run runs a call of a temporary server's tool; it implements mcp.Runner.
func (p *ServerPool) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	for s := p.find(c.Server); s != nil; s = p.find(c.Server) {
		s.begin()
		defer s.end()
		if p.get(c.Server) == s { // and it was not closed in between
			break
		}
	}
	r, err := p.pool.Run(ctx, by, c, progress)
	var refused *store.CallError
	if errors.As(err, &refused) && refused.Code == store.CodeRefused { // no admin can accept its definitions
		err = &store.CallError{Code: store.CodeRefused, Message: store.Textf("the definition of %s differs from the one that the call was made for", c.ToolID())}
	}
	return r, err
}

func (s *server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.used = s.pool.opt.Now()
}

// list returns the tools, and lists them again unless that was done recently.
func (s *server) list(ctx context.Context) ([]store.Tool, error) {
	select {
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.opening }()
	s.mu.Lock()
	fresh := !s.listed.IsZero() && s.pool.opt.Now().Sub(s.listed) < freshTime
	s.mu.Unlock()
	if !fresh {
		if _, err := s.pool.pool.Sync(ctx, store.System, s.record.Name); err != nil {
			s.mu.Lock()
			s.listed = time.Time{}
			s.mu.Unlock()
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fresh {
		s.listed = s.pool.opt.Now()
	}
	return slices.Clone(s.tools), nil
}

// setTools takes over the server's list. A tool whose definition differs from the first one
// is held, even if it was missing in between.
func (s *server) setTools(list []store.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = slices.Clone(list)
	s.byID = make(map[string]*policy.Tool, len(list))
	for i := range s.tools {
		t := &s.tools[i]
		switch first := s.first[t.Name]; {
		case t.State != store.ToolAccepted:
		case first == "":
			s.first[t.Name] = t.Pin
		case first != t.Pin:
			t.State, t.Accepted, t.Findings = store.ToolQuarantined, first, []string{"its definition changed"}
		}
		s.byID[t.ID()] = policy.NewTemporaryTool(*t, &s.record)
	}
}

// kept is a server as stored, with its secrets.
type kept struct {
	Project string                `json:"project"`
	Label   string                `json:"label"`
	URL     string                `json:"url"`
	Headers map[string]keptHeader `json:"headers,omitempty"`
	Tools   []store.Tool          `json:"tools"`
	First   map[string]string     `json:"first"`
}

type keptHeader struct {
	Text      string `json:"text,omitempty"`
	SecretKey string `json:"secret_key,omitempty"`
}

// save stores the server's definition.
func (s *server) save(ctx context.Context) error {
	k := kept{Project: s.project, Label: s.given.Label, URL: s.given.URL, Headers: map[string]keptHeader{}}
	for name, h := range s.given.Headers {
		k.Headers[name] = keptHeader{h.Text.Reveal(), h.SecretKey}
	}
	s.mu.Lock()
	k.Tools, k.First = s.tools, maps.Clone(s.first)
	s.mu.Unlock()
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return s.pool.opt.Store.PutTemporaryServer(ctx, s.project, s.record.Name, raw)
}

func (p *ServerPool) restore(name string, raw json.RawMessage) (*server, error) {
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, err
	}
	given := project.Server{Label: k.Label, URL: k.URL, Headers: map[string]project.Header{}}
	for name, h := range k.Headers {
		given.Headers[name] = project.Header{Text: store.NewSecret(h.Text), SecretKey: h.SecretKey}
	}
	s := p.newServer(k.Project, given, name)
	if k.First != nil {
		s.first = k.First
	}
	s.setTools(k.Tools)
	return s, nil
}
