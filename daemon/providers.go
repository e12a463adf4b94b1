package daemon

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/llm"
	"nize/llm/offline"
	"nize/llm/openai"
	"nize/store"
)

func (d *Daemon) openProvider(p store.Provider) (*openai.Client, error) {
	return openai.New(openai.Options{
		Provider: p, Transport: d.transport, Log: d.log.With("component", "llm", "provider", p.Name),
		Timeouts: func() (idle, total time.Duration) {
			return store.GetSpan(d.config, "", "providers.timeout.idle"), store.GetSpan(d.config, "", "providers.timeout.total")
		},
	})
}

// openModel makes the client of a provider for the router.
func (d *Daemon) openModel(p store.Provider) (llm.Model, error) {
	if p.Kind == llm.Offline {
		return d.metrics.Model(p.Name, offline.New(func(locale string, t store.Text) string { return phrases.For(locale).Text(t) })), nil
	}
	client, err := d.openProvider(p)
	if err != nil {
		return nil, err
	}
	return d.metrics.Model(p.Name, client), nil
}

// settingChanged makes a changed setting true of what holds on to it.
func (d *Daemon) settingChanged(key string) {
	if key == "alerts.to" {
		d.alerts.Again()
	}
	if name, _, _ := strings.Cut(key, "."); slices.ContainsFunc(d.bots.All(), func(b bots.Bot) bool { return string(b.Surface()) == name }) {
		d.ops.bots.Start(d.closing) // with the new value, such as another address
	}
	if key == "index.examples" {
		if err := d.indexer.UseExamples(d.closing); err != nil && !errors.Is(err, context.Canceled) {
			d.log.Error("changing the example requests", "err", err)
		}
	}
	if key != "embed.model" {
		return
	}
	if err := d.indexer.UseEmbedder(d.closing); err != nil && !errors.Is(err, context.Canceled) {
		d.log.Error("changing the embedding model", "err", err)
	}
}

// newTransport carries what goes to model providers. They are named by an
// admin, so no address is refused; proxies of the environment are used.
func newTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: idleConn}
	return t
}
