package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// refreshAll refreshes the tools by the schedule.
func (d *Daemon) refreshAll(ctx context.Context) {
	sum, err := d.reindexAll(ctx, "", func(api.ReindexLine) error { return nil })
	if err != nil && ctx.Err() == nil {
		d.log.Error("scheduled reindex", "err", err)
		return
	}
	_, err = d.writeExamples(ctx, "", func(api.ReindexLine) error { return nil })
	d.logExamples(ctx, err)
	d.log.Info("scheduled reindex", "servers", sum.Servers, "failed", sum.Failed, "tools", sum.Tools)
}

// reindex refreshes tools and vectors and tells what changed, server by
// server. Two at once share each server's refresh; queries go on being
// answered from the old index meanwhile.
func (d *Daemon) reindex(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	req, err := decode[api.Reindex](r)
	if err != nil {
		return err
	}
	if req.Server != "" {
		if _, err := d.ops.servers.Find(ctx, by, req.Server); err != nil {
			return err
		}
	}
	began, forgotten := d.now(), 0
	if req.ForgetUsage {
		if forgotten, err = d.gateway.Feedback.Forget(ctx, by, ""); err != nil {
			return err
		}
	}
	computed := d.index.Computed()
	if req.Full {
		if err := d.rebuildIndex(ctx); err != nil {
			return err
		}
		d.index.RecomputeVectors()
	}
	sum, err := d.reindexAll(ctx, req.Server, func(l api.ReindexLine) error { return send(l) })
	if err != nil {
		return err
	}
	sum.Forgotten = forgotten
	// What fails from here on is no server's: the tools are refreshed.
	failed := func(what string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return send(api.ReindexLine{Server: what, Error: strings.ReplaceAll(err.Error(), "\n", " ")})
	}
	err = d.index.WaitForVectors(ctx, func() error {
		return send(api.ReindexLine{Embedded: d.index.Computed() - computed})
	})
	if err != nil {
		if err := failed("embed.model", err); err != nil {
			return err
		}
	}
	sum.Embedded = d.index.Computed() - computed
	if sum.Examples, err = d.writeExamples(ctx, req.Server, func(l api.ReindexLine) error { return send(l) }); err != nil {
		if err := failed("index.examples", err); err != nil {
			return err
		}
	}
	sum.TookMS = float64(d.now().Sub(began)) / float64(time.Millisecond)
	return send(api.ReindexLine{Summary: &sum})
}

func (d *Daemon) reindexAll(ctx context.Context, only string, tell func(api.ReindexLine) error) (api.ReindexSummary, error) {
	began := d.now()
	servers, err := d.db.ListServers(ctx)
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
		diff, err := d.pool.Sync(ctx, store.System, s.Name)
		if ctx.Err() != nil {
			return sum, ctx.Err()
		}
		if err != nil {
			sum.Failed++
			line.Error = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		line.Added, line.Changed, line.Removed, line.Held = diff.Added, diff.Changed, diff.Removed, diff.Held
		if err := d.gateway.Catalog.Refresh(ctx, s.Name); err != nil {
			return sum, err
		}
		if err := tell(line); err != nil {
			return sum, err
		}
	}
	tools, err := d.db.ListTools(ctx, only)
	if err != nil {
		return sum, fmt.Errorf("counting tools: %w", err)
	}
	sum.Tools = len(tools)
	sum.TookMS = float64(d.now().Sub(began)) / float64(time.Millisecond)
	return sum, nil
}

// rebuildIndex fills the index from the store, at start and for a full
// reindex.
func (d *Daemon) rebuildIndex(ctx context.Context) error {
	servers, err := d.db.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	tools, err := d.gateway.Catalog.Definitions(ctx, "")
	if err != nil {
		return err
	}
	defer d.memory.Changed()
	byServer := map[string][]store.Tool{}
	for _, t := range tools {
		byServer[t.Server] = append(byServer[t.Server], t)
	}
	for _, s := range servers {
		if err := d.indexServer(ctx, s, byServer[s.Name]); err != nil {
			return err
		}
	}
	return d.gateway.Feedback.Load(ctx)
}

// indexServer puts the tools that may be found into the index.
func (d *Daemon) indexServer(ctx context.Context, s store.Server, tools []store.Tool) error {
	if s.Disabled {
		d.index.Remove(s.Name)
		return nil
	}
	usable := make([]store.Tool, 0, len(tools))
	for _, t := range tools {
		if t.State == store.ToolAccepted {
			usable = append(usable, t)
		}
	}
	if err := d.index.Replace(ctx, s.Normal(), usable); err != nil {
		return fmt.Errorf("indexing the tools of %s: %w", s.Name, err)
	}
	return d.suggest(ctx, usable)
}

// onTools is told by the pool of every stored change of a server's tools.
func (d *Daemon) onTools(ctx context.Context, server string, tools []store.Tool) {
	if err := d.gateway.Catalog.Refresh(ctx, server); err != nil {
		d.log.Error("refreshing tools", "server", server, "err", err)
	} else if kept, err := d.gateway.Catalog.Definitions(ctx, server); err == nil && len(tools) > 0 {
		tools = kept // the same, in memory that the gateway holds anyhow
	}
	d.gate.changed()
	defer d.memory.Changed()
	s, err := d.db.GetServer(ctx, server)
	if err != nil {
		d.index.Remove(server) // it is gone
		return
	}
	if err := d.indexServer(ctx, s, tools); err != nil {
		d.log.Error("indexing", "server", server, "err", err)
	}
}
