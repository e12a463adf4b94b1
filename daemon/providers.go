package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/daemon/configured"
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
		return d.observed(p, offline.New(func(locale string, t store.Text) string { return phrases.For(locale).Text(t) })), nil
	}
	client, err := d.openProvider(p)
	if err != nil {
		return nil, err
	}
	return d.observed(p, client), nil
}

// observed counts and traces the requests to a model.
func (o *observation) observed(p store.Provider, m llm.Model) llm.Model {
	return o.tracer.Model(p.Kind, o.metrics.Model(p.Name, m))
}

// sendTraces tells the tracer where spans go: by the setting, else by the
// environment variable that all programs with OpenTelemetry know.
func (o *observation) sendTraces(config store.Config, env func(string) string, log *slog.Logger) {
	endpoint := cmp.Or(config.Get("", "otel.endpoint"), env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err := o.tracer.Send(endpoint, env("OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
		log.Error("traces are not sent", "err", err)
	}
}

// guarded keeps what nized.toml has from being changed elsewhere.
func guarded(db configured.Store) configured.Guarded {
	return configured.Guarded{Store: db, HowToChange: func() string { return fmt.Sprintf("kill -HUP %d", os.Getpid()) }}
}

// settingChanged makes a changed setting true of what holds on to it.
func (d *Daemon) settingChanged(key string) {
	switch key {
	case "alerts.to":
		d.alerts.Again()
	case "oidc.admin_groups":
		d.ops.company.AdminsChanged(d.closing)
	case "mcp.enabled":
		if !store.GetBool(d.config, "", key) {
			d.mcp.EndStreams()
		}
	case "otel.endpoint":
		d.sendTraces(d.config, d.opt.Env, d.log)
	}
	// A bot begins anew with another address or other commands; what it asks for each
	// time is no reason to drop its link, and what was pressed meanwhile.
	name, what, _ := strings.Cut(key, ".")
	for _, bot := range d.bots.All() {
		if string(bot.Surface()) == name && what != "access" {
			d.ops.bots.StartAgain(d.closing, bot)
		}
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
