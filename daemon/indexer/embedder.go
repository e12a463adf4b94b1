package indexer

import (
	"context"
	"fmt"
	"nize/llm"
	"nize/llm/openai"
	"nize/mcp/index"
	"nize/store"
	"strings"
	"time"
)

// embedder adapts a configured embedding model to the index.
type embedder struct{ *openai.Embedder }

func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.Embeddings(ctx, texts)
}

// UseEmbedder applies the setting embed.model to the index. If that model cannot be used,
// the index falls back to the built-in vectors.
func (x *Indexer) UseEmbedder(ctx context.Context) error {
	err := x.useEmbedder(ctx)
	x.unusable.Store(&err)
	return err
}

// Unusable returns why the model of embed.model can't be used at all, or nil.
func (x *Indexer) Unusable() error {
	if err := x.unusable.Load(); err != nil {
		return *err
	}
	return nil
}

func (x *Indexer) useEmbedder(ctx context.Context) error {
	name := x.Config.Get("", "embed.model")
	var e index.Embedder
	if name != "" {
		provider, model, _ := strings.Cut(name, "/") // validated when it was set
		p, err := x.Providers.Find(ctx, provider)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		c, err := x.Providers.Open(p)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		own := c.Embedder(model)
		own.Spent = func(ctx context.Context, u llm.Usage, took time.Duration) {
			x.Router.Meter.RecordSpend(ctx, llm.Target{Provider: p, Model: model}, llm.Bill{By: store.System}, u, took)
		}
		e = embedder{own}
	}
	return x.Index.SetEmbedder(ctx, e)
}
