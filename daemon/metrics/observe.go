package metrics

import (
	"context"
	"errors"
	"strings"
	"time"

	"nize/llm"
	"nize/mcp"
	"nize/store"
)

// Calls wraps s to count the calls that are written to it.
func (m *Metrics) Calls(s mcp.CallStore) mcp.CallStore { return calls{s, m} }

type calls struct {
	mcp.CallStore
	m *Metrics
}

func (s calls) Begin(ctx context.Context, by store.Caller, c store.Call) error {
	err := s.CallStore.Begin(ctx, by, c)
	if err != nil {
		return err
	}
	if c.State.Final() {
		s.m.observeCall(c)
	}
	if c.Replaces != "" { // an edit ends the old call in the same transaction
		if old, err := s.GetCall(ctx, c.Replaces); err == nil && old.State == store.Cancelled {
			s.m.observeDecision(store.Edit, old)
		}
	}
	return nil
}

func (s calls) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (store.Call, error) {
	c, err := s.CallStore.Decide(ctx, by, id, d)
	if err == nil && !c.Waiting() || errors.Is(err, store.ErrExpired) && c.State == store.Expired && d.Verb != store.Expire {
		s.m.observeDecision(d.Verb, c)
	}
	return c, err
}

func (s calls) Finish(ctx context.Context, by store.Caller, id string, o store.Outcome) (store.Call, error) {
	c, err := s.CallStore.Finish(ctx, by, id, o)
	if c.State.Final() && (err == nil || errors.Is(err, store.ErrDiskFull)) {
		s.m.observeCall(c)
	}
	return c, err
}

func (s calls) Record(by store.Caller, c store.Call) {
	s.CallStore.Record(by, c)
	s.m.observeCall(c)
}

// Rejected counts a call that was rejected before it was stored.
func (m *Metrics) Rejected(by store.Caller, why store.Code) {
	m.rejected.get(rejection{why, by.Surface}).Inc()
}

// observeDecision counts decisions on pending calls.
func (m *Metrics) observeDecision(verb store.Verb, c store.Call) {
	if c.State == store.Expired {
		verb = store.Expire
	}
	m.decisions.get(string(verb)).Observe(max(0, m.opt.Now().Sub(c.Created).Seconds()))
	if c.State.Final() {
		m.observeCall(c)
	}
}

// MetaTools wraps a hook to count the uses of meta-tools. It must be the outermost hook, so
// that it sees their outcome.
func (m *Metrics) MetaTools(h mcp.Hook) mcp.Hook { return metaTools{h, m} }

type metaTools struct {
	mcp.Hook
	m *Metrics
}

func (h metaTools) Limit() time.Duration { return mcp.LimitOf(h.Hook) }

func (h metaTools) After(ctx context.Context, inv *mcp.Invocation, r *store.Result) error {
	if inv.Point == mcp.AroundMeta {
		outcome, tool := store.Done, inv.Tool
		if r.Error != nil {
			outcome = store.Failed
		}
		switch tool {
		case mcp.Discover, mcp.Describe, mcp.Execute, mcp.Domains, mcp.Browse:
		default:
			tool = Other // a name that a model invented
		}
		h.m.meta.get(call{tool: tool, outcome: outcome, surface: inv.By.Surface}).Inc()
		h.m.metaTime.get(tool).Observe(max(0, h.m.opt.Now().Sub(inv.Started).Seconds()))
	}
	return h.Hook.After(ctx, inv, r)
}

// Ledger wraps l to count tokens and cost of the model calls booked in it.
func (m *Metrics) Ledger(l llm.Ledger) llm.Ledger { return ledger{l, m} }

type ledger struct {
	llm.Ledger
	m *Metrics
}

func (l ledger) SettleSpend(ctx context.Context, by store.Caller, s store.Spend) ([]store.BudgetState, error) {
	k := model{s.Provider, strings.TrimPrefix(s.Model, s.Provider+"/")}
	for _, t := range [...]struct {
		kind string
		n    int64
	}{{"prompt", s.Prompt}, {"completion", s.Completion}, {"cached", s.Cached}, {"reasoning", s.Reasoning}} {
		if t.n > 0 {
			l.m.models.tokens.get(modelTokens{k, t.kind}).Add(float64(t.n))
		}
	}
	if s.Priced {
		l.m.models.cost.get(k).Add(max(0, float64(s.MicroUSD)/1e6))
	} else {
		l.m.models.unpriced.get(k).Inc()
	}
	return l.Ledger.SettleSpend(ctx, by, s)
}

// Model wraps a provider's model to count its requests.
func (m *Metrics) Model(provider string, of llm.Model) llm.Model { return modelOf{of, provider, m} }

type modelOf struct {
	llm.Model
	provider string
	m        *Metrics
}

func (o modelOf) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	began := o.m.opt.Now()
	reply, err := o.Model.Generate(ctx, req, delta)
	k := model{o.provider, req.Model}
	o.m.models.calls.get(modelCall{k, outcomeOf(ctx, err)}).Inc()
	o.m.models.time.get(k).Observe(max(0, o.m.opt.Now().Sub(began).Seconds()))
	return reply, err
}

// outcomeOf returns the outcome of a request to a model: done, cancelled, or the kind of
// error.
func outcomeOf(ctx context.Context, err error) string {
	var pe *llm.ProviderError
	switch {
	case err == nil:
		return "done"
	case ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	case errors.As(err, &pe):
		return string(pe.Fault)
	}
	return "failed"
}

// scrapeTime is the timeout of reading nized's state.
const scrapeTime = 5 * time.Second
