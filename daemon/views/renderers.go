package views

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/display"
	"nize/store/kv"
)

// Renderers that admins set for tools of any server or extension.

// Load loads the stored renderers. It skips one that can no longer be decoded: its tool's
// results are then shown as text.
func (v *Views) Load(ctx context.Context) error {
	list, err := v.listRenderers(ctx)
	for _, one := range list {
		read, err := view.ParseRenderer([]byte(one.Document))
		if err != nil {
			v.Renderers.Log.Warn("a stored renderer can't be read; its results are shown as text", "tool", one.Tool, "err", store.Line(err.Error()))
			continue
		}
		v.Renderers.Choose(one.Tool, read)
	}
	return err
}

// GetRenderer returns a tool's renderer.
func (v *Views) GetRenderer(ctx context.Context, _ store.Caller, req api.ToolRequest) (none display.Renderer, err error) {
	list, err := v.listRenderers(ctx)
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

// PutRenderer sets a tool's renderer.
func (v *Views) PutRenderer(ctx context.Context, by store.Caller, req api.PutRendererRequest) (none display.Renderer, err error) {
	t, ok := v.Tools.Get(req.ID)
	if !ok || t.Server == policy.BuiltinServer {
		ids, err := v.Tools.ToolIDs(ctx)
		if err != nil {
			return none, err
		}
		return none, store.Unknown("tool", req.ID, ids)
	}
	read, err := view.ParseRenderer([]byte(req.Document))
	if err != nil {
		return none, fmt.Errorf("%w renderer: %w", store.ErrInvalid, err)
	}
	if err := v.putRenderer(ctx, by, display.Renderer{Tool: t.ID(), Document: req.Document}); err != nil {
		return none, err
	}
	v.Renderers.Choose(t.ID(), read)
	return v.GetRenderer(ctx, by, api.ToolRequest{ID: t.ID()})
}

// RemoveRenderer removes a tool's renderer. The one of its extension is then used again, or
// text.
func (v *Views) RemoveRenderer(ctx context.Context, by store.Caller, req api.ToolRequest) (none api.Empty, err error) {
	if _, err := v.GetRenderer(ctx, by, req); err != nil {
		return none, err
	}
	if err := renderers.Remove(ctx, v.DB, by, req.ID); err != nil {
		return none, err
	}
	v.Renderers.Choose(req.ID, nil)
	return none, nil
}

var renderers = kv.Noun{Kind: "renderer", Bucket: "renderers"}

func (v *Views) listRenderers(ctx context.Context) ([]display.Renderer, error) {
	return kv.ReadAllJSON[display.Renderer](ctx, v.DB, "listing renderers", renderers.Bucket)
}

func (v *Views) putRenderer(ctx context.Context, by store.Caller, r display.Renderer) error {
	if err := kv.CheckID("tool", r.Tool); err != nil {
		return err
	}
	return v.DB.Update(ctx, "setting the renderer of "+r.Tool, func(tx kv.Tx) error {
		r := r
		r.Updated = tx.Now()
		return renderers.Put(tx, by, r.Tool, r)
	})
}
