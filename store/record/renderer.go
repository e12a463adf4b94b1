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

var renderers = kv.Noun{Kind: "renderer", Bucket: "renderers"}

// PutRenderer implements [display.Store].
func (n Renderers) PutRenderer(ctx context.Context, by store.Caller, r display.Renderer) error {
	if err := kv.CheckID("tool", r.Tool); err != nil {
		return err
	}
	return n.db.Update(ctx, "setting the renderer of "+r.Tool, func(tx kv.Tx) error {
		r := r
		r.Updated = tx.Now()
		return renderers.Put(tx, by, r.Tool, r)
	})
}

// ListRenderers implements [display.Store].
func (n Renderers) ListRenderers(ctx context.Context) ([]display.Renderer, error) {
	return kv.ReadAllJSON[display.Renderer](ctx, n.db, "listing renderers", renderers.Bucket)
}

// DeleteRenderer implements [display.Store].
func (n Renderers) DeleteRenderer(ctx context.Context, by store.Caller, tool string) error {
	return renderers.Remove(ctx, n.db, by, tool)
}
