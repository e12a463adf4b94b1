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
	"nize/daemon/fileconfig"
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

// openModel creates a provider's client for the router.
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

// observed adds metrics and traces to a model's requests.
func (d *Daemon) observed(p store.Provider, m llm.Model) llm.Model {
	return d.tracer.Model(p.Kind, d.metrics.Model(p.Name, m))
}

// sendTraces configures the destination of spans: from the setting, else from the standard
// OpenTelemetry environment variable.
func (d *Daemon) sendTraces(config store.Config, env func(string) string, log *slog.Logger) {
	endpoint := cmp.Or(config.Get("", "otel.endpoint"), env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err := d.tracer.Send(endpoint, env("OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
		log.Error("traces are not sent", "err", err)
	}
}

// guarded prevents changes of what nized.toml defines.
func guarded(db fileconfig.Store) fileconfig.Guarded {
	return fileconfig.Guarded{Store: db, HowToChange: func() string { return fmt.Sprintf("kill -HUP %d", os.Getpid()) }}
}

// settingChanged applies a changed setting to components that cache it.
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
	// Restart a bot for a new address or new commands only. A restart drops its connection,
	// and with it button presses in the meantime; the other settings are read each time.
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

// newTransport returns the transport for requests to model providers. An admin configures
// their addresses, so none is forbidden; proxies of the environment are used.
func newTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: idleConn}
	return t
}
