package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/llm"
	"nize/llm/offline"
	"nize/llm/openai"
	"nize/mcp/index"
	"nize/store"
)

// kinds are the services that llm/openai speaks to, and whether they
// need a key.
var kinds = map[string]bool{"openai": true, "azure": true, "openrouter": true, "deepseek": true, "groq": true, "ollama": false, "openai-compatible": false}

// checkProvider refuses a provider that could never answer.
func checkProvider(p store.Provider) error {
	needsKey, ok := kinds[p.Kind]
	if !ok {
		names := make([]string, 0, len(kinds))
		for k := range kinds {
			names = append(names, k)
		}
		slices.Sort(names)
		return fmt.Errorf("%w provider kind %q: use --kind with one of %s", store.ErrInvalid, p.Kind, strings.Join(names, ", "))
	}
	if needsKey && p.Key.IsZero() {
		return fmt.Errorf("%w provider %s: it needs a key: nizectl providers add %s < key.txt", store.ErrInvalid, p.Name, p.Name)
	}
	_, err := openai.New(openai.Options{Provider: p})
	return err
}

// openModel makes the client of a provider for the router.
func (d *Daemon) openModel(p store.Provider) (llm.Model, error) {
	if p.Kind == llm.Offline {
		return offline.New(func(locale, english string) string { return phrases.For(locale).Translate(english) }), nil
	}
	return d.openProvider(p)
}

func (d *Daemon) openProvider(p store.Provider) (*openai.Client, error) {
	return openai.New(openai.Options{Provider: p, Transport: d.transport, Log: d.log.With("component", "llm", "provider", p.Name)})
}

func (d *Daemon) listModelsOf(ctx context.Context, p store.Provider) ([]string, error) {
	c, err := d.openProvider(p)
	if err != nil {
		return nil, err
	}
	return c.ListModels(ctx)
}

// environmentProviders are providers that need no record: an OpenAI key in the
// daemon's environment is enough for a first try.
func environmentProviders(env func(string) string) []store.Provider {
	key := env("OPENAI_API_KEY")
	if key == "" {
		return nil
	}
	return []store.Provider{{Name: "openai", Kind: "openai", BaseURL: env("OPENAI_BASE_URL"), Key: store.NewSecret(key), HasKey: true, Enabled: true}}
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
		p, err := d.provider(ctx, provider)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		c, err := d.openProvider(p)
		if err != nil {
			return fmt.Errorf("embed.model %s: %w", name, err)
		}
		own := c.Embedder(model)
		own.Spent = func(ctx context.Context, u llm.Usage, took time.Duration) {
			d.router.Meter.Book(ctx, llm.Target{Provider: p, Model: model}, llm.Bill{By: store.System}, u, took)
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
		d.startBots(d.closing) // with the new address
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
