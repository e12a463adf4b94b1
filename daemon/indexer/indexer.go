// Package indexer keeps the index of tools in sync with the store.
//
// It updates the index at the start, after each change of a server's tools, and when a
// refresh is requested. It scans new definitions, gets example requests written for them,
// and sets the index's embedding model.
package indexer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/llm"
	"nize/mcp"
	"nize/mcp/feature"
	"nize/mcp/index"
	"nize/mcp/upstream"
	"nize/store"
)

// Indexer keeps one index in sync.
type Indexer struct {
	Store interface {
		store.Examples
		GetServer(ctx context.Context, name string) (store.Server, error)
		ListServers(ctx context.Context) ([]store.Server, error)
		ListTools(ctx context.Context, server string) ([]store.Tool, error)
	}
	Index     *index.Index
	Gate      *Gate
	Pool      *upstream.Pool
	Gateway   *mcp.Gateway
	Servers   *control.Servers
	Providers *control.Providers
	Router    *llm.Router
	Config    store.Config
	Changed   func() // called after tools were added to or removed from the index
	Now       func() time.Time
	Log       *slog.Logger

	unusable atomic.Pointer[error] // last result of UseEmbedder

	writing sync.Mutex // held while a model writes examples
}

// Mount registers the operations.
func (x *Indexer) Mount(m *mux.Mux) {
	mux.HandleStream(m, api.Reindex, x.Reindex)
}

// Rebuild fills the index from the store, at the start and for a full reindex.
func (x *Indexer) Rebuild(ctx context.Context) error {
	defer x.Changed()
	err := x.Gateway.Catalog.EachDefinitions(ctx, func(s store.Server, tools []store.Tool) error {
		return x.indexServer(ctx, s, tools)
	})
	if err != nil {
		return err
	}
	return x.Gateway.Feedback.Load(ctx)
}

// indexServer adds a server's searchable tools to the index.
func (x *Indexer) indexServer(ctx context.Context, s store.Server, tools []store.Tool) error {
	if s.Disabled {
		x.Index.Remove(s.Name)
		return nil
	}
	usable := make([]store.Tool, 0, len(tools))
	for _, t := range tools {
		if t.State == store.ToolAccepted && feature.IsTool(t.Name) {
			usable = append(usable, t)
		}
	}
	if err := x.Index.Replace(ctx, s.Normal(), usable); err != nil {
		return fmt.Errorf("indexing the tools of %s: %w", s.Name, err)
	}
	return x.useExamples(ctx, usable)
}

// ToolsChanged is called by the pool after every stored change of a server's tools.
func (x *Indexer) ToolsChanged(ctx context.Context, server string, tools []store.Tool) {
	if err := x.Gateway.Catalog.Refresh(ctx, server); err != nil {
		x.Log.Error("refreshing tools", "server", server, "err", err)
	} else if kept, err := x.Gateway.Catalog.Definitions(ctx, server); err == nil && len(tools) > 0 {
		tools = kept // the same tools, sharing memory with the gateway
	}
	x.Gate.ForgetNames()
	defer x.Changed()
	s, err := x.Store.GetServer(ctx, server)
	if err != nil {
		x.Index.Remove(server) // the server was removed
		return
	}
	if err := x.indexServer(ctx, s, tools); err != nil {
		x.Log.Error("indexing", "server", server, "err", err)
	}
}
