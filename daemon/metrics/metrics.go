// Package metrics counts nized's work for Prometheus.
//
// Events are counted by wrappers: [Metrics.Calls] wraps the store to which the gateway
// writes calls, [Metrics.MetaTools] wraps one of its hooks, [Metrics.Ledger] the ledger of
// model calls, and [Metrics.Model] each model. State ([Options.State]) is read at each
// scrape, from the same status that nizectl shows.
//
// No label contains a person, a conversation, an argument or a text: labels are names of
// servers, tools, providers and models, and constants of nize. The number of series per
// family is bounded, however many tools there are: those used first keep their names, and
// all others are counted together as [Other].
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/store"
)

// Limits of series. With 12,000 tools in use in every way, the largest family has about
// 10,000 series, which is some 5 MB of text.
const (
	mostTools   = 5000 // for calls by server, tool, outcome and surface
	mostServers = 300  // for families by server
	mostModels  = 200  // for families by model
)

// Other is the label of all servers, tools and models beyond the limits.
const Other = "_other"

var (
	callTime  = []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	metaTime  = []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	modelTime = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600}
	waitTime  = []float64{1, 5, 15, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600}
)

// State is nized's state at one moment.
type State struct {
	api.Status
	IndexTools, IndexVectors int           // in the index; and those of them with a vector
	Commits                  uint64        // of the database since the start
	CommitTime               time.Duration // their total duration
}

// Options are a Metrics' dependencies.
type Options struct {
	State func(ctx context.Context) (State, error)
	Now   func() time.Time
	Log   *slog.Logger
}

// Metrics are the series of one nized. It is safe for concurrent use.
type Metrics struct {
	opt      Options
	registry *prometheus.Registry

	calls      *family[call, prometheus.Counter]
	callTime   *family[string, prometheus.Observer] // by server
	callErrors *family[callError, prometheus.Counter]
	meta       *family[call, prometheus.Counter]
	metaTime   *family[string, prometheus.Observer] // by tool
	rejected   *family[rejection, prometheus.Counter]
	decisions  *family[string, prometheus.Observer] // by verb
	models     modelFamilies
}

// modelFamilies are the metrics of model calls.
type modelFamilies struct {
	calls    *family[modelCall, prometheus.Counter]
	time     *family[model, prometheus.Observer]
	tokens   *family[modelTokens, prometheus.Counter]
	cost     *family[model, prometheus.Counter]
	unpriced *family[model, prometheus.Counter]
}

// New returns a Metrics in which nothing is counted yet.
func New(opt Options) *Metrics {
	m := &Metrics{opt: opt, registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "nize", Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "nize", Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(v)
		return v
	}
	calls := counter("calls_total", "Calls of tools that ended, by outcome.", "server", "tool", "outcome", "surface")
	m.calls = newFamily(mostTools, func(k call) prometheus.Counter {
		return calls.WithLabelValues(label(k.server), label(k.tool), label(string(k.outcome)), label(string(k.surface)))
	}, func(k call) call { k.tool = Other; return k }, func(k call) call { k.server = Other; return k })
	callTimes := histogram("call_duration_seconds", "Time from sending a call to its result.", callTime, "server")
	m.callTime = newFamily(mostServers, func(server string) prometheus.Observer { return callTimes.WithLabelValues(label(server)) }, other)
	callErrors := counter("call_errors_total", "Calls of tools that failed, by error code.", "server", "code")
	m.callErrors = newFamily(mostServers, func(k callError) prometheus.Counter {
		return callErrors.WithLabelValues(label(k.server), label(string(k.code)))
	}, func(k callError) callError { k.server = Other; return k })
	meta := counter("meta_tool_calls_total", "Uses of the meta-tools.", "tool", "outcome", "surface")
	m.meta = newFamily(mostServers, func(k call) prometheus.Counter {
		return meta.WithLabelValues(label(k.tool), label(string(k.outcome)), label(string(k.surface)))
	}, func(k call) call { k.tool = Other; return k })
	metaTimes := histogram("meta_tool_duration_seconds", "Time that the meta-tools took.", metaTime, "tool")
	m.metaTime = newFamily(mostServers, func(tool string) prometheus.Observer { return metaTimes.WithLabelValues(label(tool)) }, other)
	rejected := counter("calls_rejected_total", "Calls that were rejected before they were stored: unknown, forbidden, with invalid arguments, over a limit.", "code", "surface")
	m.rejected = newFamily(mostServers, func(k rejection) prometheus.Counter {
		return rejected.WithLabelValues(label(string(k.code)), label(string(k.surface)))
	}, func(k rejection) rejection { k.code = Other; return k })
	decisions := histogram("approval_wait_seconds", "Time until a pending call was decided or expired.", waitTime, "decision")
	m.decisions = newFamily(mostServers, func(verb string) prometheus.Observer { return decisions.WithLabelValues(label(verb)) }, other)
	modelCalls := counter("model_calls_total", "Requests to models, by outcome.", "provider", "model", "outcome")
	m.models.calls = newFamily(mostModels, func(k modelCall) prometheus.Counter {
		return modelCalls.WithLabelValues(label(k.provider), label(k.name), label(k.outcome))
	}, func(k modelCall) modelCall { k.model = otherModel(k.model); return k })
	modelTimes := histogram("model_call_duration_seconds", "Time until a model's whole answer.", modelTime, "provider", "model")
	m.models.time = newFamily(mostModels, func(k model) prometheus.Observer { return modelTimes.WithLabelValues(label(k.provider), label(k.name)) }, otherModel)
	tokens := counter("model_tokens_total", "Tokens of models, counted or estimated. Those of type cached are of prompts, of type reasoning of completions.", "provider", "model", "type")
	m.models.tokens = newFamily(4*mostModels, func(k modelTokens) prometheus.Counter {
		return tokens.WithLabelValues(label(k.provider), label(k.name), k.kind)
	}, func(k modelTokens) modelTokens { k.model = otherModel(k.model); return k })
	cost := counter("model_cost_usd_total", "Cost of models, if their price is known.", "provider", "model")
	m.models.cost = newFamily(mostModels, func(k model) prometheus.Counter { return cost.WithLabelValues(label(k.provider), label(k.name)) }, otherModel)
	unpriced := counter("model_unpriced_calls_total", "Requests to models whose price is unknown.", "provider", "model")
	m.models.unpriced = newFamily(mostModels, func(k model) prometheus.Counter {
		return unpriced.WithLabelValues(label(k.provider), label(k.name))
	}, otherModel)
	m.registry.MustRegister(stateCollector{m}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func other(string) string { return Other }

// Handler serves all series. The caller must check access.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{m.opt.Log}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}

// errorLog logs what could not be read; the rest is served.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok && !errors.Is(err, context.Canceled) {
			l.log.Error("reading the metrics", "err", err)
		}
	}
}

// observeCall counts a call that ended.
func (m *Metrics) observeCall(c store.Call) {
	if policy.IsTemporary(c.Server) { // programs choose their names, so their number is unbounded
		c.Server, c.Tool = "temporary", Other
	}
	m.calls.get(call{c.Server, c.Tool, c.State, c.Surface}).Inc()
	if !c.Started.IsZero() && !c.Finished.IsZero() {
		m.callTime.get(c.Server).Observe(max(0, c.Finished.Sub(c.Started).Seconds()))
	}
	if c.Result != nil && c.Result.Error != nil {
		m.callErrors.get(callError{c.Server, c.Result.Error.Code}).Inc()
	}
}
