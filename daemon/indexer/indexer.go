// Package indexer keeps the index of tools as the store has them: at start, after
// each change of a server's tools, and when it is asked to refresh them all. It
// judges new definitions, has example requests written for them, and gives the
// index its embedding model.
package indexer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/control"
	"nize/llm"
	"nize/mcp"
	"nize/mcp/feature"
	"nize/mcp/index"
	"nize/mcp/upstream"
	"nize/store"
)

// Indexer keeps one index.
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
	Changed   func() // is told after the index took in or lost tools
	Now       func() time.Time
	Log       *slog.Logger

	unusable atomic.Pointer[error] // what UseEmbedder returned last

	writing sync.Mutex // held while a model writes example requests
}

// Rebuild fills the index from the store, at start and for a full reindex.
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

// indexServer puts the tools that may be found into the index.
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

// ToolsChanged is told by the pool of every stored change of a server's tools.
func (x *Indexer) ToolsChanged(ctx context.Context, server string, tools []store.Tool) {
	if err := x.Gateway.Catalog.Refresh(ctx, server); err != nil {
		x.Log.Error("refreshing tools", "server", server, "err", err)
	} else if kept, err := x.Gateway.Catalog.Definitions(ctx, server); err == nil && len(tools) > 0 {
		tools = kept // the same, in memory that the gateway holds anyhow
	}
	x.Gate.ForgetNames()
	defer x.Changed()
	s, err := x.Store.GetServer(ctx, server)
	if err != nil {
		x.Index.Remove(server) // it is gone
		return
	}
	if err := x.indexServer(ctx, s, tools); err != nil {
		x.Log.Error("indexing", "server", server, "err", err)
	}
}
