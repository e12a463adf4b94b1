package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/llm"
	"nize/llm/offline"
	"nize/llm/openai"
	"nize/mcp/index"
	"nize/store"
)

// openModel makes the client of a provider for the router.
func (d *Daemon) openModel(p store.Provider) (llm.Model, error) {
	if p.Kind == llm.Offline {
		return offline.New(func(locale, english string) string { return phrases.For(locale).Translate(english) }), nil
	}
	return d.providers.Open(p)
}

// embedder is a configured embedding model as the index wants it.
type embedder struct{ *openai.Embedder }

func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.Embeddings(ctx, texts)
}

// useEmbedder makes the setting embed.model true of the index. While it cannot
// be used the embedded vectors serve.
func (d *Daemon) useEmbedder(ctx context.Context) error {
	name := d.config.Get("", "embed.model")
	var e index.Embedder
	if name != "" {
		provider, model, _ := strings.Cut(name, "/") // checked when it was set
		p, err := d.providers.Find(ctx, provider)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		c, err := d.providers.Open(p)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		own := c.Embedder(model)
		own.Spent = func(ctx context.Context, u llm.Usage, took time.Duration) {
			d.router.Meter.RecordSpend(ctx, llm.Target{Provider: p, Model: model}, llm.Bill{By: store.System}, u, took)
		}
		e = embedder{own}
	}
	return d.index.SetEmbedder(ctx, e)
}

// settingChanged makes a changed setting true of what holds on to it.
func (d *Daemon) settingChanged(key string) {
	if key == "alerts.to" {
		d.alerts.Again()
	}
	if key == "slack.api_url" {
		d.ops.bots.Start(d.closing) // with the new address
	}
	if key == "index.examples" {
		if err := d.suggestAll(d.closing); err != nil && !errors.Is(err, context.Canceled) {
			d.log.Error("changing the example requests", "err", err)
		}
	}
	if key != "embed.model" {
		return
	}
	if err := d.useEmbedder(d.closing); err != nil && !errors.Is(err, context.Canceled) {
		d.log.Error("changing the embedding model", "err", err)
	}
}

// newTransport carries what goes to model providers. They are named by an
// admin, so no address is refused; proxies of the environment are used.
func newTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: idleConn}
	return t
}
