package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"nize/store"
	"nize/store/outage"
)

// Ledger is the part of [store.Meter] that books model calls.
type Ledger interface {
	Reserve(ctx context.Context, by store.Caller, r store.Reservation) error
	SettleSpend(ctx context.Context, by store.Caller, s store.Spend) ([]store.BudgetState, error)
	Release(ctx context.Context, id string) error
}

// Prices is the part of [store.Prices] that the meter reads.
type Prices interface {
	GetPrice(ctx context.Context, model string) (store.Price, error)
}

// Meter books model calls: it reserves the maximum cost, makes the call, and books the
// actual cost. Calls of the offline planner and of models on one's own machine are booked
// without cost, and the offline planner, which has no tokens, needs no budget.
type Meter struct {
	Ledger Ledger
	Prices Prices // prices set by admins, which override the table
	Config store.Config
	Log    *slog.Logger // optional

	Now   func() time.Time       // optional
	NewID func(time.Time) string // optional; default [store.NewID]
}

// answerTokens is the answer length that is reserved if the agent sets no limit.
const answerTokens = 8192

// guessed is the price reserved for an OpenRouter model that is in no table: OpenRouter
// reports the cost only after the call.
var guessed = TokenPrice{In: 15, Cached: 15, Out: 75}

// Generate asks a model of the target and books the call to req.Bill; without a bill,
// nothing is booked. Even with an error, the reply names the model and has the text that
// was shown. It returns a [*store.BudgetError], without a request, if a budget is used up.
func (m *Meter) Generate(ctx context.Context, t Target, model Model, req Request, delta func(Delta)) (Reply, error) {
	if m == nil || req.Bill == nil {
		reply, err := model.Generate(ctx, req, delta)
		reply.Model, reply.Kind = t.Name(), t.Provider.Kind
		return reply, err
	}
	id := m.newID()
	row := store.Spend{
		ID: id, At: m.now(), User: req.Bill.By.User, Team: req.Bill.Team, Thread: req.Bill.Thread, Agent: req.Bill.Agent,
		Provider: t.Provider.Name, Model: t.Model,
	}
	price, err := m.priceOf(ctx, t)
	if err != nil { // a budget can't be checked without the price
		return Reply{Model: t.Name(), Kind: t.Provider.Kind}, err
	}
	if t.Provider.Kind != Offline {
		if err := m.reserveSpend(ctx, t, req, row, price); err != nil {
			return Reply{Model: t.Name(), Kind: t.Provider.Kind}, err
		}
	}
	var shown strings.Builder
	started := m.now()
	reply, err := model.Generate(ctx, req, func(d Delta) {
		shown.WriteString(d.Text)
		if delta != nil {
			delta(d)
		}
	})
	reply.Model, reply.Kind = t.Name(), t.Provider.Kind
	if err != nil && shown.Len() == 0 {
		m.releaseSpend(ctx, id) // nothing was produced, so nothing is charged
		return reply, err
	}
	if err != nil {
		reply.Text = shown.String()
	}
	if reply.Usage == (Usage{}) && reply.Kind != Offline {
		reply.Usage = EstimateUsage(req, reply)
	}
	row.Took = m.now().Sub(started)
	if reply.Usage.Priced {
		reply.MicroUSD = &reply.Usage.MicroUSD
	} else if price != nil {
		cost := price.Cost(reply.Usage)
		reply.MicroUSD = &cost
	}
	reply.Crossed = m.settleSpend(ctx, req.Bill.By, t, row, reply.Usage, price)
	return reply, err
}

// RecordSpend books a completed call without a reservation: the embedding of tools and
// requests, which nize does by itself.
func (m *Meter) RecordSpend(ctx context.Context, t Target, b Bill, u Usage, took time.Duration) {
	row := store.Spend{
		ID: m.newID(), At: m.now(), User: b.By.User, Team: b.Team, Thread: b.Thread, Agent: b.Agent,
		Provider: t.Provider.Name, Model: t.Model, Took: took,
	}
	price, err := m.priceOf(context.WithoutCancel(ctx), t)
	if err != nil {
		m.log().Error("usage is recorded without its price", "model", t.Name(), "error", err)
	}
	m.settleSpend(ctx, b.By, t, row, u, price)
}

// maxTokensOf returns the maximum number of tokens of a prompt whose usual estimate is n:
// two bytes per token, as in Chinese or dense code. If reservations were too small,
// concurrent calls could exceed a budget by more than one call.
func maxTokensOf(n int64) int64 { return int64(float64(n)*tokenBytes/2) + 1 }

// reserveSpend reserves the maximum cost of prompt and answer.
func (m *Meter) reserveSpend(ctx context.Context, t Target, req Request, row store.Spend, price *TokenPrice) error {
	prompt := EstimateUsage(req, Reply{})
	prompt.Completion = 0
	most := Usage{Prompt: maxTokensOf(prompt.Prompt), Completion: answerTokens}
	if req.MaxTokens > 0 {
		most.Completion = int64(req.MaxTokens)
	}
	row.Prompt, row.Estimated = prompt.Prompt, true
	if price == nil && t.Provider.Kind == "openrouter" {
		price = &guessed
	}
	cost := int64(0)
	if row.Priced = price != nil; row.Priced {
		row.MicroUSD, cost = price.Cost(prompt), price.Cost(most)
	}
	by := req.Bill.By
	return m.Ledger.Reserve(ctx, by, store.Reservation{
		Spend: row, Tokens: most.Prompt + most.Completion, MicroUSD: cost,
		UserDaily: int64(store.GetInt(m.Config, "", "budgets.user.daily")),
		Exempt:    by.IsAdmin() && !store.GetBool(m.Config, "", "budgets.admins"),
	})
}

// settleSpend books the actual cost of a call, even if the caller has left.
func (m *Meter) settleSpend(ctx context.Context, by store.Caller, t Target, row store.Spend, u Usage, price *TokenPrice) []store.BudgetState {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	row.Prompt, row.Completion, row.Cached, row.Reasoning, row.Estimated = u.Prompt, u.Completion, u.Cached, u.Reasoning, u.Estimated
	row.MicroUSD, row.Priced = u.MicroUSD, u.Priced
	if !u.Priced && price != nil {
		row.MicroUSD, row.Priced = price.Cost(u), true
	}
	var crossed []store.BudgetState
	err := outage.Await(ctx, func() (err error) {
		crossed, err = m.Ledger.SettleSpend(ctx, by, row)
		return err
	})
	if err != nil {
		m.log().Error("usage was not recorded", "thread", row.Thread, "model", t.Name(), "error", err)
	}
	return crossed
}

func (m *Meter) releaseSpend(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := outage.Await(ctx, func() error { return m.Ledger.Release(ctx, id) }); err != nil {
		m.log().Error("a reservation was not given back", "id", id, "error", err)
	}
}

// priceOf returns the price set by an admin, otherwise the table's; nil if unknown. If the
// admin's price can't be read, it returns an error, because the table's may be lower.
func (m *Meter) priceOf(ctx context.Context, t Target) (*TokenPrice, error) {
	if m.Prices != nil {
		p, err := m.Prices.GetPrice(ctx, t.Name())
		if err == nil {
			return &TokenPrice{In: p.In, Cached: p.Cached, Out: p.Out}, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("reading the price of %s: %w", t.Name(), err)
		}
	}
	if IsFree(t.Provider.Kind) {
		return new(TokenPrice), nil
	}
	if price, known := TablePrice(t.Provider.Kind, t.Model); known {
		return &price, nil
	}
	return nil, nil
}

func (m *Meter) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

func (m *Meter) newID() string {
	if m.NewID != nil {
		return m.NewID(m.now())
	}
	return store.NewID(m.now())
}

func (m *Meter) log() *slog.Logger {
	if m.Log != nil {
		return m.Log
	}
	return slog.New(slog.DiscardHandler)
}
