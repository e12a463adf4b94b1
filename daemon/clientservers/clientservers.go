// Package clientservers keeps the MCP servers that programs bring with their requests.
//
// A server is known by its project, label, URL and headers: requests that bring
// the same one share a session, which ends when nobody has used it for a while.
// It is contacted through a pool of its own, over the guarded client, since a
// program names the address.
//
// Its tools are accepted as they were first listed. One whose definition changes
// is held from then on; the next request for the server gets a new generation of
// it, under a new name, while calls that wait for a yes stay with the one that
// they were proposed for. So what a call was proposed for is what runs, by the
// very checks that hold for registered servers.
//
// What a generation is made of is stored, sealed, beside the database's rounds:
// a call that waited over a restart, or longer than its session, finds it there.
package clientservers

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
	idleTime  = 10 * time.Minute // after which a server that nobody uses is closed
	freshTime = 10 * time.Second // for which a list is taken as it is
	startTime = 10 * time.Second // to connect and list
	maxKept   = 512              // servers with sessions at once
	maxCalls  = 32               // at once, of one server
)

// Options is what a pool works with. Store and Upstream are needed.
type Options struct {
	Store       project.Servers
	Credentials store.Credentials
	// Upstream makes the pool of sessions; its servers, tools and credentials are
	// set here.
	Upstream upstream.Options
	Now      func() time.Time
	Log      *slog.Logger
}

// Pool keeps temporary servers. It is safe for concurrent use.
type Pool struct {
	opt    Options
	pool   *upstream.Pool
	secret [32]byte // of the fingerprints, which are made of secrets

	mu     sync.Mutex
	byName map[string]*server
	newest map[[32]byte]*server // by fingerprint
}

// server is one generation of one.
type server struct {
	pool        *Pool
	fingerprint [32]byte
	project     string
	given       project.Server
	record      store.Server // its headers name themselves as credentials

	opening chan struct{} // holds 1: whoever put it in lists the server

	mu     sync.Mutex
	tools  []store.Tool
	byID   map[string]*policy.Tool
	first  map[string]string // tool → the pin that it was first listed with
	listed time.Time
	used   time.Time
	users  int // calls and lists under way
}

// New returns a pool.
func New(opt Options) *Pool {
	p := &Pool{opt: opt, byName: map[string]*server{}, newest: map[[32]byte]*server{}}
	_, _ = rand.Read(p.secret[:]) // it never fails
	up := opt.Upstream
	up.Servers, up.Tools, up.Credentials, up.Members, up.OnTools, up.Known = servers{p}, tools{p}, credentials{p}, nil, nil, nil
	up.Now, up.Log, up.Gate = opt.Now, opt.Log, withoutIcons{up.Gate}
	p.pool = upstream.New(up)
	return p
}

// withoutIcons is a gate whose pins leave icons out: nobody sees those of a
// temporary server, and a stored generation keeps the pins of its tools.
type withoutIcons struct{ upstream.Gate }

// Pin implements [upstream.Gate].
func (g withoutIcons) Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string) {
	tool.Icons = nil
	return g.Gate.Pin(server, instructions, tool)
}

// Close ends all sessions.
func (p *Pool) Close(ctx context.Context) error { return p.pool.Close(ctx) }

// Keep closes servers that nobody uses, until ctx ends.
func (p *Pool) Keep(ctx context.Context) error {
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

// Open lists the tools of a server for a project: those whose definition was not
// held. A [*project.NoCredentialError] where a credential lacks.
func (p *Pool) Open(ctx context.Context, of project.Project, given project.Server) (listed []store.Tool, err error) {
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
	if below.URL != "" && p.isOpen(of.ID, below) { // the root answered otherwise before
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

// mcpPath is where servers listen whose URL was given without a path.
const mcpPath = "/mcp"

// belowRoot returns the server at [mcpPath], if its URL has no path, and the zero
// Server otherwise.
func belowRoot(given project.Server) project.Server {
	u, err := url.Parse(given.URL)
	if err != nil || u.Path != "" && u.Path != "/" {
		return project.Server{}
	}
	u.Path = mcpPath
	given.URL = u.String()
	return given
}

// isOpen says whether a server has a session that was listed.
func (p *Pool) isOpen(of string, given project.Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest[p.fingerprint(of, given)] != nil
}

// list lists the tools of a server, of a new generation if it changed one.
func (p *Pool) list(ctx context.Context, of string, given project.Server) (listed []store.Tool, err error) {
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

// openError is why a server could not be listed, without the name that it has here.
type openError struct {
	text  string
	cause error
}

func (e *openError) Error() string { return e.text }
func (e *openError) Unwrap() error { return e.cause }

// fingerprint tells servers apart. It is keyed: it stands for secrets.
func (p *Pool) fingerprint(of string, given project.Server) (sum [32]byte) {
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

// errFull says that every server that may be kept is in use.
var errFull = fmt.Errorf("%d servers of programs are in use, and no more at once; try again in a moment", maxKept)

// generation returns the newest one of a server, made if there is none. Its use has
// begun.
func (p *Pool) generation(of string, given project.Server) (*server, error) {
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
	p.closeIdle(context.Background(), p.opt.Now()) // it has no session that would be waited for long
	if s, ok := use(); ok {
		return s, nil
	}
	return nil, errFull
}

func (p *Pool) newServer(of string, given project.Server, name string) *server {
	headers := make(map[string]store.Value, len(given.Headers))
	for h := range given.Headers {
		headers[h] = store.Value{SecretKey: h}
	}
	record := store.Server{Name: name, Transport: store.HTTP, URL: given.URL, Headers: headers, StartTimeout: store.Duration(startTime), MaxConcurrency: maxCalls, AcceptNew: true, Visibility: []string{project.Actor(of)}}
	return &server{pool: p, project: of, given: given, record: record.Normal(), opening: make(chan struct{}, 1), first: map[string]string{}, used: p.opt.Now()}
}

// retire has the next request make a new generation.
func (p *Pool) retire(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest[s.fingerprint] == s {
		delete(p.newest, s.fingerprint)
	}
}

// closeIdle closes what was last used before a time and is not in use.
func (p *Pool) closeIdle(ctx context.Context, before time.Time) {
	p.close(ctx, func(s *server) bool { return !s.used.After(before) })
}

// closeUnlisted closes a server that was never reached: nobody would reconnect to
// one like it.
func (p *Pool) closeUnlisted(ctx context.Context, failed *server) {
	p.close(ctx, func(s *server) bool { return s == failed && s.byID == nil })
}

// close ends the sessions of servers that nobody uses and forgets them; what was
// stored of them stays.
func (p *Pool) close(ctx context.Context, which func(*server) bool) {
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
		if _, err := p.pool.Sync(ctx, store.System, name); err != nil && ctx.Err() == nil { // it has no record any more
			p.opt.Log.Warn("closing a temporary server", "server", name, "err", err)
		}
	}
}

// get returns a server that is kept; nil is none.
func (p *Pool) get(name string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// find returns a server by its name, also one of which only the record is left;
// nil is none.
func (p *Pool) find(name string) *server {
	s := p.get(name)
	if s != nil || !policy.IsTemporary(name) {
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // who looks a tool up has no context
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
		return other // somebody was first
	}
	p.byName[name] = s
	return s
}

// FindTool returns a tool by its id.
func (p *Pool) FindTool(id string) (*policy.Tool, bool) {
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
func (p *Pool) FindServer(name string) (*store.Server, bool) {
	s := p.find(name)
	if s == nil {
		return nil, false
	}
	return &s.record, true
}

// Run runs a call of a temporary server's tool; it is the mcp.Runner of them.
func (p *Pool) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	for s := p.find(c.Server); s != nil; s = p.find(c.Server) {
		s.begin()
		defer s.end()
		if p.get(c.Server) == s { // and not closed in between
			break
		}
	}
	r, err := p.pool.Run(ctx, by, c, progress)
	var refused *store.CallError
	if errors.As(err, &refused) && refused.Code == store.CodeRefused { // no admin accepts its definitions
		err = &store.CallError{Code: store.CodeRefused, Message: store.Textf("%s has another definition than the one that was asked for", c.ToolID())}
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

// list returns the tools, asked for again where they were a while ago.
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

// setTools takes over what the server lists. A tool that is another than it was
// when it was first listed is held, also if it was away in between.
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

// kept is a server as it is stored, with its secrets.
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

// save stores what the server is made of.
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

func (p *Pool) restore(name string, raw json.RawMessage) (*server, error) {
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
