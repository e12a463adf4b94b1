package indexer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/mcp/feature"
	"nize/store"
)

// Refresh is Reindex for the schedule; it logs errors.
func (x *Indexer) Refresh(ctx context.Context) {
	quiet := func(api.ReindexLine) error { return nil }
	sum, err := x.refresh(ctx, "", quiet)
	if err != nil && ctx.Err() == nil {
		x.Log.Error("scheduled reindex", "err", err)
		return
	}
	_, err = x.writeExamples(ctx, "", quiet)
	x.logExamples(ctx, err)
	x.Log.Info("scheduled reindex", "servers", sum.Servers, "failed", sum.Failed, "tools", sum.Tools)
}

// Reindex refreshes tools and vectors and reports changes, server by server. Concurrent
// calls share each server's refresh; queries use the old index meanwhile.
func (x *Indexer) Reindex(ctx context.Context, by store.Caller, req api.ReindexRequest, send func(api.ReindexLine) error) (err error) {
	if req.Server != "" {
		if _, err := x.Servers.Find(ctx, by, req.Server); err != nil {
			return err
		}
	}
	began, forgotten := x.Now(), 0
	if req.ForgetUsage {
		if forgotten, err = x.Gateway.Feedback.Forget(ctx, by, ""); err != nil {
			return err
		}
	}
	computed := x.Index.Computed()
	if req.Full {
		if err := x.Rebuild(ctx); err != nil {
			return err
		}
		x.Index.RecomputeVectors()
	}
	sum, err := x.refresh(ctx, req.Server, send)
	if err != nil {
		return err
	}
	sum.Forgotten = forgotten
	// The tools are refreshed; a later error isn't a server's.
	failed := func(what string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return send(api.ReindexLine{Server: what, Error: strings.ReplaceAll(err.Error(), "\n", " ")})
	}
	err = x.Index.WaitForVectors(ctx, func() error {
		return send(api.ReindexLine{Embedded: x.Index.Computed() - computed})
	})
	if err != nil {
		if err := failed("embed.model", err); err != nil {
			return err
		}
	}
	sum.Embedded = x.Index.Computed() - computed
	if sum.Examples, err = x.writeExamples(ctx, req.Server, send); err != nil {
		if err := failed("index.examples", err); err != nil {
			return err
		}
	}
	sum.TookMS = float64(x.Now().Sub(began)) / float64(time.Millisecond)
	return send(api.ReindexLine{Summary: &sum})
}

// refresh lists the tools of all servers, or of only one, and reports each.
func (x *Indexer) refresh(ctx context.Context, only string, report func(api.ReindexLine) error) (api.ReindexSummary, error) {
	began := x.Now()
	servers, err := x.Store.ListServers(ctx)
	if err != nil {
		return api.ReindexSummary{}, fmt.Errorf("listing servers: %w", err)
	}
	var sum api.ReindexSummary
	for _, s := range servers {
		if s.Disabled || only != "" && s.Name != only {
			continue
		}
		sum.Servers++
		line := api.ReindexLine{Server: s.Name}
		diff, err := x.Pool.Sync(ctx, store.System, s.Name)
		if ctx.Err() != nil {
			return sum, ctx.Err()
		}
		if err != nil {
			sum.Failed++
			line.Error = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		line.Added, line.Changed, line.Removed, line.Held = diff.Added, diff.Changed, diff.Removed, diff.Held
		if err := x.Gateway.Catalog.Refresh(ctx, s.Name); err != nil {
			return sum, err
		}
		if err := report(line); err != nil {
			return sum, err
		}
	}
	tools, err := x.Store.ListTools(ctx, only)
	if err != nil {
		return sum, fmt.Errorf("counting tools: %w", err)
	}
	for _, t := range tools {
		if feature.IsTool(t.Name) {
			sum.Tools++
		}
	}
	sum.TookMS = float64(x.Now().Sub(began)) / float64(time.Millisecond)
	return sum, nil
}
