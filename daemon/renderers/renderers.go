// Package renderers stores the renderers that admins set for tools of any server or
// extension.
package renderers

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/mcp/policy"
	"nize/mcp/renderer"
	"nize/store"
	"nize/store/display"
)

// Renderers implements the operations on renderers.
type Renderers struct {
	Store display.Store
	Set   *renderer.Set
	// Tool returns a current tool.
	Tool func(id string) (*policy.Tool, bool)
	// IDs returns the ids of all tools.
	IDs func(ctx context.Context) ([]string, error)
}

// Mount registers the operations.
func (r *Renderers) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetRenderer, r.Get)
	mux.Handle(m, api.PutRenderer, r.Put)
	mux.Handle(m, api.RemoveRenderer, r.Remove)
}

// Load loads the stored renderers. It skips one that can no longer be decoded: its tool's
// results are then shown as text.
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

// Get returns a tool's renderer.
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

// Put sets a tool's renderer.
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

// Remove removes a tool's renderer. The one of its extension is then used again, or text.
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
