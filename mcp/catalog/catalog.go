// Package catalog holds all servers and tools decoded, for each search and each call.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// Store stores servers and their tools.
type Store interface {
	GetServer(ctx context.Context, name string) (store.Server, error)
	ListServers(ctx context.Context) ([]store.Server, error)
	ListTools(ctx context.Context, server string) ([]store.Tool, error)
	GetTool(ctx context.Context, id string) (store.Tool, error)
}

// Catalog holds all servers and tools decoded, so that a call doesn't read the store. The
// store stays authoritative: code that changes a server refreshes it here before it
// returns, and the follower of the feed does so for all other changes.
type Catalog struct {
	from Store

	mu      sync.RWMutex
	loaded  bool
	servers map[string]*store.Server
	tools   map[string]*policy.Tool // by id
	// features holds the servers' prompts and resources. Iterations over all tools don't
	// include them.
	features map[string]*policy.Tool
	own      map[string]ownServer  // by name
	counts   map[string]ToolCounts // counts of all servers; nil until needed

	// Temporary, if set before the first use, provides the tools of temporary servers,
	// which are found only by their ids.
	Temporary interface {
		FindTool(id string) (*policy.Tool, bool)
		FindServer(name string) (*store.Server, bool)
	}
}

// ownServer is one of nize's own servers, which are not stored in a database.
type ownServer struct {
	record *store.Server
	tools  []*policy.Tool
}

// New returns the catalog of a store.
func New(from Store) *Catalog { return &Catalog{from: from, own: map[string]ownServer{}} }

// SetOwn replaces the tools of one of nize's own servers. A tool may have its own record
// for properties that differ.
func (c *Catalog) SetOwn(record *store.Server, tools []*policy.Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[record.Name], c.counts = ownServer{record, tools}, nil
	if c.loaded {
		c.addOwnLocked(record.Name)
	}
}

// addOwnLocked adds the tools of one of nize's own servers. c.mu must be held.
func (c *Catalog) addOwnLocked(name string) {
	maps.DeleteFunc(c.tools, func(_ string, t *policy.Tool) bool { return t.Server == name })
	c.servers[name] = c.own[name].record
	for _, t := range c.own[name].tools {
		c.addLocked(t)
	}
}

// Load reads everything, once.
func (c *Catalog) Load(ctx context.Context) error {
	return c.load(ctx, func(store.Server, []*policy.Tool) error { return nil })
}

// load calls each with each server and its tools as soon as they are read, in the order of
// the store, while others are being read. It doesn't call each if everything was read
// before. each must not use the catalog.
func (c *Catalog) load(ctx context.Context, each func(store.Server, []*policy.Tool) error) error {
	c.mu.RLock()
	loaded := c.loaded
	c.mu.RUnlock()
	if loaded {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded {
		return nil
	}
	servers, err := c.from.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("reading servers: %w", err)
	}
	entries := make([][]*policy.Tool, len(servers))
	errs := make([]error, len(servers))
	read := make([]chan struct{}, len(servers))
	for i := range read {
		read[i] = make(chan struct{})
	}
	var next atomic.Int32
	var readers sync.WaitGroup
	for range min(len(servers), runtime.GOMAXPROCS(0)) { // decoding takes much of the startup time
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(servers); i = int(next.Add(1)) - 1 {
				servers[i] = servers[i].Normal()
				entries[i], errs[i] = c.entries(ctx, &servers[i])
				close(read[i])
			}
		})
	}
	defer readers.Wait()
	for i := range servers {
		<-read[i]
		if errs[i] == nil {
			errs[i] = each(servers[i], entries[i])
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.servers = make(map[string]*store.Server, len(servers))
	c.tools = make(map[string]*policy.Tool)
	c.features = map[string]*policy.Tool{}
	for i := range servers {
		c.servers[servers[i].Name] = &servers[i]
		for _, e := range entries[i] {
			c.addLocked(e)
		}
	}
	for name := range c.own {
		c.addOwnLocked(name)
	}
	c.loaded = true
	return nil
}

// entries reads the tools of one server.
func (c *Catalog) entries(ctx context.Context, s *store.Server) ([]*policy.Tool, error) {
	tools, err := c.from.ListTools(ctx, s.Name)
	if err != nil {
		return nil, fmt.Errorf("reading tools of %s: %w", s.Name, err)
	}
	out := make([]*policy.Tool, len(tools))
	for i, t := range tools {
		t.Around, t.Was = store.Around{}, nil // only needed by admins who review a change
		out[i] = policy.NewTool(t, s)
	}
	return out, nil
}

// Refresh reads one server and its tools again. Code that changes them calls it before it
// returns, so that the change applies from the next call on; Run follows the feed for all
// other changes. The lock is held during the reads, so that the later of two refreshes also
// reads later.
func (c *Catalog) Refresh(ctx context.Context, name string) error {
	if err := c.Load(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, own := c.own[name]; own {
		return nil
	}
	c.counts = nil
	s, err := c.from.GetServer(ctx, name)
	gone := errors.Is(err, store.ErrNotFound)
	if err != nil && !gone {
		return fmt.Errorf("reading server %s: %w", name, err)
	}
	var tools []store.Tool
	if !gone {
		if tools, err = c.from.ListTools(ctx, name); err != nil {
			return fmt.Errorf("reading tools of %s: %w", name, err)
		}
	}
	old := make(map[string]*policy.Tool, len(tools))
	for _, kept := range []map[string]*policy.Tool{c.tools, c.features} {
		for id, e := range kept {
			if e.Server == name {
				old[id] = e
				delete(kept, id)
			}
		}
	}
	delete(c.servers, name)
	if gone {
		return nil
	}
	s = s.Normal()
	c.servers[name] = &s
	for _, t := range tools {
		t.Around, t.Was = store.Around{}, nil
		if e := old[t.ID()]; e != nil && e.Tool.Equal(t) {
			t = e.Tool // the index shares its texts with the catalog
		}
		c.addLocked(policy.NewTool(t, &s))
	}
	return nil
}

// addLocked adds a tool or feature. c.mu must be held.
func (c *Catalog) addLocked(e *policy.Tool) {
	if feature.IsTool(e.Name) {
		c.tools[e.ID()] = e
	} else {
		c.features[e.ID()] = e
	}
}

// Get returns the tool, prompt or resource with that id. It also accepts server.tool if
// that is unambiguous among the tools.
func (c *Catalog) Get(id string) (*policy.Tool, bool) {
	if c.Temporary != nil && policy.IsTemporary(id) {
		return c.Temporary.FindTool(id)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.tools[id]; ok {
		return e, true
	}
	if e, ok := c.features[id]; ok {
		return e, true
	}
	if server, name, ok := store.SplitToolID(id); ok {
		if s := c.servers[server]; s != nil {
			return policy.NewAskedTool(s, name)
		}
		return nil, false
	}
	var found *policy.Tool
	for i := range len(id) {
		if id[i] != '.' {
			continue
		}
		if e, ok := c.tools[id[:i]+":"+id[i+1:]]; ok {
			if found != nil {
				return nil, false
			}
			found = e
		}
	}
	return found, found != nil
}

// GetStored returns a tool from the store, which is changed before the catalog is.
func (c *Catalog) GetStored(ctx context.Context, id string) (store.Tool, error) {
	name, _, _ := store.SplitToolID(id)
	c.mu.RLock()
	_, own := c.own[name]
	c.mu.RUnlock()
	if s, ok := c.FindServer(name); !own && !(ok && s.Transport == store.External) {
		return c.from.GetTool(ctx, id)
	}
	if t, ok := c.Get(id); ok {
		return t.Tool, nil
	}
	return store.Tool{}, store.Errorf("tool %s %w", id, store.ErrNotFound)
}

// Each calls f for every tool until f returns false.
func (c *Catalog) Each(f func(*policy.Tool) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.tools {
		if !f(e) {
			return
		}
	}
}

// EachFeature calls f for every prompt, resource and template.
func (c *Catalog) EachFeature(f func(*policy.Tool)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.features {
		f(e)
	}
}

// EachServer calls f for every server.
func (c *Catalog) EachServer(f func(store.Server)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.servers {
		f(*s)
	}
}

// FindServer returns the record of a server, including temporary ones.
func (c *Catalog) FindServer(name string) (*store.Server, bool) {
	if c.Temporary != nil && policy.IsTemporary(name) {
		return c.Temporary.FindServer(name)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.servers[name]
	return s, ok
}

// Server returns the record of a server, or one with only its name if it was removed.
func (c *Catalog) Server(name string) store.Server {
	if s, ok := c.FindServer(name); ok {
		return *s
	}
	return store.Server{Name: name}.Normal()
}

// AnyUntrusted reports whether the output of any server is untrusted.
func (c *Catalog) AnyUntrusted() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.servers {
		if s.UntrustedOutput {
			return true
		}
	}
	return false
}

// Untrusted reports whether the output of a server is untrusted. It fails closed: it
// returns true for a removed server.
func (c *Catalog) Untrusted(server string) bool {
	if s, ok := c.FindServer(server); ok {
		return s.UntrustedOutput
	}
	return server != policy.BuiltinServer
}

// Private reports whether a server is private. It fails closed: it returns true for a
// removed server.
func (c *Catalog) Private(server string) bool {
	if s, ok := c.FindServer(server); ok {
		return s.Private
	}
	return server != policy.BuiltinServer
}

// ToolIDs returns the ids of all tools of all servers, including held ones.
func (c *Catalog) ToolIDs(ctx context.Context) ([]string, error) {
	if err := c.Load(ctx); err != nil {
		return nil, err
	}
	var ids []string
	c.Each(func(e *policy.Tool) bool {
		if e.Server != policy.BuiltinServer {
			ids = append(ids, e.ID())
		}
		return true
	})
	return ids, nil
}

// Definitions returns the tools of one server by name, including held ones. They share
// memory with the gateway.
func (c *Catalog) Definitions(ctx context.Context, server string) ([]store.Tool, error) {
	all, err := c.definitions(ctx, func(name string) bool { return name == server })
	return all[server], err
}

// AllDefinitions returns the definitions of every server.
func (c *Catalog) AllDefinitions(ctx context.Context) (map[string][]store.Tool, error) {
	return c.definitions(ctx, func(string) bool { return true })
}

// EachDefinitions calls f with each server of the store and its tools by name. On first use
// it does so while reading them; f must not use the catalog.
func (c *Catalog) EachDefinitions(ctx context.Context, f func(store.Server, []store.Tool) error) error {
	fresh := false
	err := c.load(ctx, func(s store.Server, entries []*policy.Tool) error {
		fresh = true
		return f(s, sorted(entries))
	})
	if err != nil || fresh {
		return err
	}
	all, err := c.AllDefinitions(ctx)
	if err != nil {
		return err
	}
	servers, err := c.from.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("reading servers: %w", err)
	}
	for _, s := range servers {
		if err := f(s, all[s.Name]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalog) definitions(ctx context.Context, of func(server string) bool) (map[string][]store.Tool, error) {
	if err := c.Load(ctx); err != nil {
		return nil, err
	}
	found := map[string][]*policy.Tool{} // pointers are far smaller to sort
	c.Each(func(e *policy.Tool) bool {
		if e.Server != policy.BuiltinServer && of(e.Server) {
			found[e.Server] = append(found[e.Server], e)
		}
		return true
	})
	all := make(map[string][]store.Tool, len(found))
	for server, entries := range found {
		all[server] = sorted(entries)
	}
	return all, nil
}

// sorted returns the definitions of one server's tools by name, without its features.
func sorted(entries []*policy.Tool) []store.Tool {
	slices.SortFunc(entries, func(a, b *policy.Tool) int { return strings.Compare(a.Name, b.Name) })
	list := make([]store.Tool, 0, len(entries))
	for _, e := range entries {
		if feature.IsTool(e.Name) {
			list = append(list, e.Tool)
		}
	}
	return list
}

// ToolCounts holds the numbers of tools of one server.
type ToolCounts struct {
	Tools   int
	Held    int // neither found nor callable until an admin accepts them; includes prompts and resources
	Refused int // tools with dangerous schemas, which can't be accepted
}

// CountTools counts the tools of every server without reading them. Held includes prompts
// and resources. The result is shared and must not be changed.
func (c *Catalog) CountTools(ctx context.Context) (map[string]ToolCounts, error) {
	if err := c.Load(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts != nil {
		return c.counts, nil
	}
	c.counts = make(map[string]ToolCounts, len(c.servers))
	for _, e := range c.tools {
		t := c.counts[e.Server]
		t.Tools++
		switch e.State {
		case store.ToolAccepted:
		case store.ToolRefused:
			t.Refused++
		default:
			t.Held++
		}
		c.counts[e.Server] = t
	}
	for _, e := range c.features {
		if e.State != store.ToolAccepted && e.State != store.ToolRefused {
			t := c.counts[e.Server]
			t.Held++
			c.counts[e.Server] = t
		}
	}
	return c.counts, nil
}
