package daemon

import (
	"context"
	"log/slog"
	"sync"

	"nize/mcp/scan"
	"nize/mcp/upstream"
	"nize/store"
)

// gate judges the definitions of upstream tools: the scan of one definition by
// itself, and of its text against the names of other servers' tools, which only
// the roof knows.
type gate struct {
	scan.Gate
	tools store.Tools
	log   *slog.Logger

	mu    sync.Mutex
	names *scan.Names // of all tools; nil until read, and again after a change
}

var _ upstream.Gate = (*gate)(nil)

// Pin implements upstream.Gate.
func (g *gate) Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string) {
	pin, findings = g.Gate.Pin(server, instructions, tool)
	names := g.all()
	if names == nil {
		return pin, append(findings, "it could not be compared with other servers' tools")
	}
	return pin, append(findings, g.Shadow(instructions, tool, names)...)
}

// all reads the names of all tools, once until something changes.
func (g *gate) all() *scan.Names {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.names == nil {
		tools, err := g.tools.ListTools(context.Background(), "")
		if err != nil {
			g.log.Error("reading the names of tools", "err", err)
			return nil
		}
		ids := make([]string, len(tools))
		for i, t := range tools {
			ids[i] = t.ID()
		}
		g.names = scan.NewNames(ids)
	}
	return g.names
}

// changed forgets the names.
func (g *gate) changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = nil
}
