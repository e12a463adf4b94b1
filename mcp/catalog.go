package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"nize/store"
)

// entry is one tool with the server that it belongs to, whose record all of its
// tools share. It never changes.
type entry struct {
	store.Tool
	server *store.Server
	id     string // server:name, made once: a search asks it of every tool
}

func newEntry(t store.Tool, s *store.Server) *entry { return &entry{t, s, t.ID()} }

// ID is server:name.
func (e *entry) ID() string { return e.id }

// readOnly says whether the tool may be taken at its server's word to change
// nothing: annotations count only where an admin trusts them.
func (e *entry) readOnly() bool {
	return e.server.TrustAnnotations && e.Annotations.ReadOnly != nil && *e.Annotations.ReadOnly
}

// destructive says whether the tool may destroy something: all may of which an
// admin has not believed the opposite.
func (e *entry) destructive() bool {
	return !e.readOnly() && !(e.server.TrustAnnotations && e.Annotations.Destructive != nil && !*e.Annotations.Destructive)
}

// secrets names the credentials that the server is called with.
func (e *entry) secrets() []string {
	var names []string
	for _, vals := range []map[string]store.Value{e.server.Headers, e.server.Env} {
		for _, v := range vals {
			if v.SecretKey != "" {
				names = append(names, v.SecretKey)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// catalog holds every server and tool decoded, so that a call costs no
// reading. The store stays the truth: whoever changes a server refreshes it
// here before answering, and the feed's follower does for all others.
type catalog struct {
	from interface {
		store.Servers
		store.Tools
	}

	mu      sync.RWMutex
	loaded  bool
	servers map[string]*store.Server
	tools   map[string]*entry // by id
}

func newCatalog(from interface {
	store.Servers
	store.Tools
}) *catalog {
	return &catalog{from: from}
}

// load reads everything, once.
func (c *catalog) load(ctx context.Context) error {
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
	tools, err := c.from.ListTools(ctx, "")
	if err != nil {
		return fmt.Errorf("reading tools: %w", err)
	}
	c.servers = make(map[string]*store.Server, len(servers))
	c.tools = make(map[string]*entry, len(tools)+len(ownTools))
	for _, s := range servers {
		s = s.Normal()
		c.servers[s.Name] = &s
	}
	for _, t := range tools {
		if s, ok := c.servers[t.Server]; ok {
			c.addLocked(newEntry(t, s))
		}
	}
	for _, t := range ownTools {
		c.addLocked(newEntry(t, &ownRecord))
	}
	c.loaded = true
	return nil
}

// refresh reads one server and its tools anew. The lock is held across the
// reads, so that the later of two refreshes also reads later.
func (c *catalog) refresh(ctx context.Context, name string) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
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
	old := make(map[string]*entry, len(tools))
	for id, e := range c.tools {
		if e.Server == name {
			old[id] = e
			delete(c.tools, id)
		}
	}
	delete(c.servers, name)
	if gone {
		return nil
	}
	s = s.Normal()
	c.servers[name] = &s
	for _, t := range tools {
		if e := old[t.ID()]; e != nil && e.Tool.Equal(t) {
			t = e.Tool // the index has its texts from here
		}
		c.addLocked(newEntry(t, &s))
	}
	return nil
}

// addLocked needs c.mu.
func (c *catalog) addLocked(e *entry) { c.tools[e.id] = e }

// get returns the tool of that id; server.tool is accepted where it names just
// one tool.
func (c *catalog) get(id string) (*entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.tools[id]; ok {
		return e, true
	}
	if strings.Contains(id, ":") {
		return nil, false
	}
	var found *entry
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

// each calls f for every tool while it returns true.
func (c *catalog) each(f func(*entry) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.tools {
		if !f(e) {
			return
		}
	}
}

// eachServer calls f for every server.
func (c *catalog) eachServer(f func(store.Server)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.servers {
		f(*s)
	}
}

// ToolIDs names every tool of every server, also those that are held.
func (g *Gateway) ToolIDs(ctx context.Context) ([]string, error) {
	if err := g.tools.load(ctx); err != nil {
		return nil, err
	}
	var ids []string
	g.tools.each(func(e *entry) bool {
		if e.Server != ownServer {
			ids = append(ids, e.ID())
		}
		return true
	})
	return ids, nil
}

// Definitions are the tools of one server, or of all for "", by id, also those
// that are held. What is kept of them shares its memory with the gateway.
func (g *Gateway) Definitions(ctx context.Context, server string) ([]store.Tool, error) {
	if err := g.tools.load(ctx); err != nil {
		return nil, err
	}
	var list []store.Tool
	g.tools.each(func(e *entry) bool {
		if e.Server != ownServer && (server == "" || e.Server == server) {
			list = append(list, e.Tool)
		}
		return true
	})
	slices.SortFunc(list, func(a, b store.Tool) int { return strings.Compare(a.ID(), b.ID()) })
	return list, nil
}

// Tally counts the tools of one server.
type ToolCounts struct {
	Tools int
	Held  int // neither found nor callable until an admin accepts them
}

// Tallies counts the tools of every server, without reading them.
func (g *Gateway) CountTools(ctx context.Context) (map[string]ToolCounts, error) {
	if err := g.tools.load(ctx); err != nil {
		return nil, err
	}
	out := map[string]ToolCounts{}
	g.tools.each(func(e *entry) bool {
		t := out[e.Server]
		t.Tools++
		if e.State != store.ToolAccepted {
			t.Held++
		}
		out[e.Server] = t
		return true
	})
	return out, nil
}

// Listed is a tool with the domain of its server.
type Listed struct {
	store.Tool
	Domain string
}

// List returns the tools of one server, or of all for "", by id: every one for
// admins, also those that are held, and for others those that they may use.
func (g *Gateway) List(ctx context.Context, by store.Caller, server string) ([]Listed, error) {
	v, err := g.view(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	var list []Listed
	g.tools.each(func(e *entry) bool {
		if e.Server != ownServer && (server == "" || e.Server == server) && (by.IsAdmin() || v.usable(e) == nil) {
			list = append(list, Listed{e.Tool, e.server.Domain})
		}
		return true
	})
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.ID(), b.ID()) })
	return list, nil
}
