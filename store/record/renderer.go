package record

import (
	"context"

	"nize/store"
	"nize/store/display"
	"nize/store/kv"
)

// Renderers implements [display.Store].
type Renderers struct{ db kv.DB }

var _ display.Store = Renderers{}

var renderers = noun{"renderer", "renderers"}

// PutRenderer implements [display.Store].
func (n Renderers) PutRenderer(ctx context.Context, by store.Caller, r display.Renderer) error {
	if err := checkID("tool", r.Tool); err != nil {
		return err
	}
	return n.db.Update(ctx, "setting the renderer of "+r.Tool, func(tx kv.Tx) error {
		r := r
		r.Updated = tx.Now()
		return renderers.put(tx, by, r.Tool, r)
	})
}

// ListRenderers implements [display.Store].
func (n Renderers) ListRenderers(ctx context.Context) ([]display.Renderer, error) {
	return readAll[display.Renderer](ctx, n.db, "listing renderers", renderers.bucket)
}

// DeleteRenderer implements [display.Store].
func (n Renderers) DeleteRenderer(ctx context.Context, by store.Caller, tool string) error {
	return renderers.remove(ctx, n.db, by, tool)
}
