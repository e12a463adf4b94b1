// Package renderers has the renderers that admins set for tools, whatever server or
// extension these are of.
package renderers

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/mcp/renderer"
	"nize/store"
	"nize/store/display"
)

// Renderers are the operations on them.
type Renderers struct {
	Store display.Store
	Set   *renderer.Set
	// Tool finds a tool that there is now.
	Tool func(id string) (*policy.Tool, bool)
	// IDs are those of all tools.
	IDs func(ctx context.Context) ([]string, error)
}

// Load takes over those that are stored. One that can't be read any more is left out:
// its tool's results are text.
func (r *Renderers) Load(ctx context.Context) error {
	list, err := r.Store.ListRenderers(ctx)
	for _, one := range list {
		read, err := renderer.Parse([]byte(one.Document))
		if err != nil {
			r.Set.Log.Warn("a stored renderer can't be read; its results are shown as text", "tool", one.Tool, "err", store.Line(err.Error()))
			continue
		}
		r.Set.Choose(one.Tool, read)
	}
	return err
}

// Get shows the one of a tool.
func (r *Renderers) Get(ctx context.Context, _ store.Caller, req api.ToolRequest) (none display.Renderer, err error) {
	list, err := r.Store.ListRenderers(ctx)
	if err != nil {
		return none, err
	}
	for _, one := range list {
		if one.Tool == req.ID {
			return one, nil
		}
	}
	return none, store.Mark(fmt.Errorf("no renderer is set for %s; set one with nizectl tools renderer set %s FILE", req.ID, req.ID), store.ErrNotFound)
}

// Put sets the one of a tool.
func (r *Renderers) Put(ctx context.Context, by store.Caller, req api.PutRendererRequest) (none display.Renderer, err error) {
	t, ok := r.Tool(req.ID)
	if !ok || t.Server == policy.BuiltinServer {
		ids, err := r.IDs(ctx)
		if err != nil {
			return none, err
		}
		return none, store.Unknown("tool", req.ID, ids)
	}
	read, err := renderer.Parse([]byte(req.Document))
	if err != nil {
		return none, fmt.Errorf("%w renderer: %w", store.ErrInvalid, err)
	}
	if err := r.Store.PutRenderer(ctx, by, display.Renderer{Tool: t.ID(), Document: req.Document}); err != nil {
		return none, err
	}
	r.Set.Choose(t.ID(), read)
	return r.Get(ctx, by, api.ToolRequest{ID: t.ID()})
}

// Remove takes the one of a tool away: an extension's own is used again, or text.
func (r *Renderers) Remove(ctx context.Context, by store.Caller, req api.ToolRequest) (none api.Empty, err error) {
	if _, err := r.Get(ctx, by, req); err != nil {
		return none, err
	}
	if err := r.Store.DeleteRenderer(ctx, by, req.ID); err != nil {
		return none, err
	}
	r.Set.Choose(req.ID, nil)
	return none, nil
}
