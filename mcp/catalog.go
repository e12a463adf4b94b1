package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"nize/mcp/policy"
	"nize/store"
)

// ToolStore keeps servers and their tools.
type ToolStore interface {
	GetServer(ctx context.Context, name string) (store.Server, error)
	ListServers(ctx context.Context) ([]store.Server, error)
	ListTools(ctx context.Context, server string) ([]store.Tool, error)
	GetTool(ctx context.Context, id string) (store.Tool, error)
}

// Catalog holds every server and tool decoded, so that a call costs no
// reading. The store stays the truth: whoever changes a server refreshes it
// here before answering, and the feed's follower does for all others.
type Catalog struct {
	from ToolStore

	mu      sync.RWMutex
	loaded  bool
	servers map[string]*store.Server
	tools   map[string]*policy.Tool // by id
}

// Load reads everything, once.
func (c *Catalog) Load(ctx context.Context) error {
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
	c.tools = make(map[string]*policy.Tool, len(tools)+len(builtinTools))
	for _, s := range servers {
		s = s.Normal()
		c.servers[s.Name] = &s
	}
	for _, t := range tools {
		t.Around, t.Was = store.Around{}, nil // for admins who look at a change
		if s, ok := c.servers[t.Server]; ok {
			c.addLocked(policy.NewTool(t, s))
		}
	}
	for _, t := range builtinTools {
		c.addLocked(policy.NewTool(t, &builtinRecord))
	}
	c.loaded = true
	return nil
}

// Refresh reads one server and its tools again. Whoever changes them calls it
// before answering, so that the change holds from the next call on; Run
// follows the feed for all others. The lock is held across the reads, so that
// the later of two refreshes also reads later.
func (c *Catalog) Refresh(ctx context.Context, name string) error {
	if err := c.Load(ctx); err != nil {
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
	old := make(map[string]*policy.Tool, len(tools))
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
		t.Around, t.Was = store.Around{}, nil
		if e := old[t.ID()]; e != nil && e.Tool.Equal(t) {
			t = e.Tool // the index has its texts from here
		}
		c.addLocked(policy.NewTool(t, &s))
	}
	return nil
}

// addLocked needs c.mu.
func (c *Catalog) addLocked(e *policy.Tool) { c.tools[e.ID()] = e }

// Get returns the tool of that id; server.tool is accepted where it names just
// one tool.
func (c *Catalog) Get(id string) (*policy.Tool, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.tools[id]; ok {
		return e, true
	}
	if strings.Contains(id, ":") {
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

// Each calls f for every tool while it returns true.
func (c *Catalog) Each(f func(*policy.Tool) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.tools {
		if !f(e) {
			return
		}
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

// server returns the record of a server, one with its name alone if it is gone.
func (c *Catalog) server(name string) store.Server {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, ok := c.servers[name]; ok {
		return *s
	}
	return store.Server{Name: name}.Normal()
}

// AnyUntrusted says whether the output of any server is untrusted.
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

// Untrusted is true of a server that is gone, too: fail closed.
func (c *Catalog) Untrusted(server string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, ok := c.servers[server]; ok {
		return s.UntrustedOutput
	}
	return server != policy.BuiltinServer
}

// private is true of a server that is gone, too: fail closed.
func (c *Catalog) private(server string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, ok := c.servers[server]; ok {
		return s.Private
	}
	return server != policy.BuiltinServer
}

// ToolIDs names every tool of every server, also those that are held.
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

// Definitions are the tools of one server, or of all for "", by id, also those
// that are held. What is kept of them shares its memory with the gateway.
func (c *Catalog) Definitions(ctx context.Context, server string) ([]store.Tool, error) {
	if err := c.Load(ctx); err != nil {
		return nil, err
	}
	var list []store.Tool
	c.Each(func(e *policy.Tool) bool {
		if e.Server != policy.BuiltinServer && (server == "" || e.Server == server) {
			list = append(list, e.Tool)
		}
		return true
	})
	slices.SortFunc(list, func(a, b store.Tool) int { return strings.Compare(a.ID(), b.ID()) })
	return list, nil
}

// ToolCounts counts the tools of one server.
type ToolCounts struct {
	Tools int
	Held  int // neither found nor callable until an admin accepts them
}

// CountTools counts the tools of every server, without reading them.
func (c *Catalog) CountTools(ctx context.Context) (map[string]ToolCounts, error) {
	if err := c.Load(ctx); err != nil {
		return nil, err
	}
	out := map[string]ToolCounts{}
	c.Each(func(e *policy.Tool) bool {
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
