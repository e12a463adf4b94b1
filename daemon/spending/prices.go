package spending

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/llm"
	"nize/store"
)

// Prices implements the operations on models' prices.
type Prices struct {
	Store     store.Prices
	Providers *control.Providers
}

// Mount registers the operations.
func (p *Prices) Mount(m *mux.Mux) {
	mux.Handle(m, api.UnsetPrice, p.Unset)
	mux.Handle(m, api.GetPrice, p.Get)
	mux.Handle(m, api.SetPrice, p.Set)
}

// Of returns a model's price and its source.
func (p *Prices) Of(ctx context.Context, model string) (api.PriceView, error) {
	provider, name, _ := strings.Cut(model, "/")
	view := api.PriceView{Price: store.Price{Model: model}}
	set, err := p.Store.GetPrice(ctx, model)
	if err == nil {
		view.Price, view.Known, view.Source = set, true, "admin"
		return view, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return view, err
	}
	kind := provider
	if known, err := p.Providers.Find(ctx, provider); err == nil {
		kind = known.Kind
	} else if !errors.Is(err, store.ErrNotFound) {
		return view, err
	}
	switch {
	case llm.IsFree(kind):
		view.Known, view.Source = true, "local"
		return view, nil
	case kind == "openrouter":
		view.Source = "provider"
	}
	if listed, ok := llm.TablePrice(kind, name); ok {
		view.Known, view.Source, view.AsOf = true, "table", llm.PricesAsOf(kind)
		view.In, view.Cached, view.Out = listed.In, listed.Cached, listed.Out
		if a := listed.Above; a != nil {
			view.Above = &api.PriceAbove{Tokens: a.Tokens, In: a.In, Cached: a.Cached, Out: a.Out}
		}
	}
	return view, nil
}

// Get returns the price of provider/model.
func (p *Prices) Get(ctx context.Context, _ store.Caller, req api.PriceRequest) (none api.PriceView, err error) {
	provider, model, _ := strings.Cut(req.Model, "/")
	if _, err := p.Providers.Find(ctx, provider); err != nil && model != "" && llm.PricesOf(provider) {
		return p.Of(ctx, req.Model) // the built-in table needs no provider
	}
	if err := p.Providers.CheckTarget(ctx, req.Model); err != nil {
		return none, err
	}
	return p.Of(ctx, req.Model)
}

// maxPrice is in dollars per million tokens: far above any real price, and low enough that
// sums of costs can't overflow.
const maxPrice = 100_000

// Set sets the price of provider/model.
func (p *Prices) Set(ctx context.Context, by store.Caller, req api.SetPriceRequest) (none api.PriceView, err error) {
	if err := p.Providers.CheckTarget(ctx, req.Model); err != nil {
		return none, err
	}
	price := store.Price{Model: req.Model, In: req.In, Cached: req.In, Out: req.Out}
	if req.Cached != nil {
		price.Cached = *req.Cached
	}
	for name, usd := range map[string]float64{"in": price.In, "out": price.Out, "cached": price.Cached} {
		if !(usd >= 0 && usd <= maxPrice) || math.IsNaN(usd) {
			return none, fmt.Errorf("%w price %s of %s: want US dollars per million tokens, 0 to %d", store.ErrInvalid, name, req.Model, maxPrice)
		}
	}
	if err := p.Store.PutPrice(ctx, by, price); err != nil {
		return none, fmt.Errorf("storing the price of %s: %w", req.Model, err)
	}
	return p.Of(ctx, req.Model)
}

// Unset removes a price that was set and returns the one then in force.
func (p *Prices) Unset(ctx context.Context, by store.Caller, req api.PriceRequest) (none api.PriceView, err error) {
	if err := p.Store.DeletePrice(ctx, by, req.Model); errors.Is(err, store.ErrNotFound) {
		list, listErr := p.Store.ListPrices(ctx)
		if listErr != nil {
			return none, fmt.Errorf("listing prices: %w", listErr)
		}
		names := make([]string, len(list))
		for i, known := range list {
			names[i] = known.Model
		}
		return none, store.Unknown("price", req.Model, names)
	} else if err != nil {
		return none, fmt.Errorf("forgetting the price of %s: %w", req.Model, err)
	}
	return p.Of(ctx, req.Model)
}
