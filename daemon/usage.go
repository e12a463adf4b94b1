package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
)

// usage answers what was spent. Members see what they spent themselves,
// whatever they group by.
func (d *Daemon) usage(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p := r.URL.Query()
	q := store.UsageQuery{By: p.Get("by")}
	if q.By == "" {
		q.By = "day"
	}
	if !slices.Contains(store.UsageGroupings, q.By) {
		return nil, fmt.Errorf("%w grouping %q: use %s", store.ErrInvalid, q.By, strings.Join(store.UsageGroupings, ", "))
	}
	var err error
	if q.Since, err = sinceOf(p.Get("since")); err != nil {
		return nil, err
	}
	if name := p.Get("zone"); name != "" {
		if q.Zone, err = time.LoadLocation(name); err != nil {
			return nil, fmt.Errorf("%w time zone %q: use a name such as Europe/Berlin", store.ErrInvalid, name)
		}
	}
	if v := p.Get("top"); v != "" {
		if q.Top, err = strconv.Atoi(v); err != nil || q.Top < 0 {
			return nil, fmt.Errorf("%w top %q: use a whole number", store.ErrInvalid, v)
		}
	}
	if who := p.Get("user"); who != "" || !by.IsAdmin() {
		if q.User, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	if q.By == "provider" && !by.IsAdmin() {
		return nil, fmt.Errorf("only admins see providers: %w; use --by model", store.ErrRefused)
	}
	report, err := d.db.Usage(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("summing usage: %w", err)
	}
	if !by.IsAdmin() {
		if err := d.logicalModels(ctx, by, &report); err != nil {
			return nil, err
		}
	}
	if q.By == "user" {
		names, err := d.directory.Names(ctx)
		if err != nil {
			return nil, err
		}
		for i := range report.Rows {
			if n := names[report.Rows[i].Key]; n != "" {
				report.Rows[i].Key = n
			}
		}
	}
	return report, nil
}

// logicalModels puts the names that are meant for a member in place of the
// models behind them, which are for admins.
func (d *Daemon) logicalModels(ctx context.Context, by store.Caller, r *store.UsageReport) error {
	names, err := d.db.ListModels(ctx)
	if err != nil {
		return fmt.Errorf("listing models: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	known := func(model string) string {
		for _, m := range names {
			if m.MayUse(by, groups) && (m.Target == model || slices.Contains(m.Fallbacks, model)) {
				return m.Name
			}
		}
		return "other"
	}
	for i := range r.Unpriced {
		r.Unpriced[i] = known(r.Unpriced[i])
	}
	slices.Sort(r.Unpriced)
	r.Unpriced = slices.Compact(r.Unpriced)
	if r.By != "model" {
		return nil
	}
	var rows []store.UsageRow
	for _, row := range r.Rows {
		row.Key = known(row.Key)
		at := slices.IndexFunc(rows, func(o store.UsageRow) bool { return o.Key == row.Key })
		if at < 0 {
			rows = append(rows, row)
			continue
		}
		rows[at] = rows[at].Plus(row)
	}
	r.Rows = rows
	return nil
}

// price is what a model of this daemon costs.
func (d *Daemon) price(ctx context.Context, model string) (api.PriceView, error) {
	provider, name, _ := strings.Cut(model, "/")
	view := api.PriceView{Price: store.Price{Model: model}}
	set, err := d.db.GetPrice(ctx, model)
	if err == nil {
		view.Price, view.Known, view.Source = set, true, "admin"
		return view, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return view, err
	}
	kind := provider
	if p, err := d.provider(ctx, provider); err == nil {
		kind = p.Kind
	} else if !errors.Is(err, store.ErrNotFound) {
		return view, err
	}
	switch {
	case llm.Free(kind):
		view.Known, view.Source = true, "local"
		return view, nil
	case kind == "openrouter":
		view.Source = "provider"
	}
	if p, ok := llm.TablePrice(kind, name); ok {
		view.Known, view.Source, view.AsOf = true, "table", llm.PricesAsOf()
		view.In, view.Cached, view.Out = p.In, p.Cached, p.Out
		if a := p.Above; a != nil {
			view.Above = &api.PriceAbove{Tokens: a.Tokens, In: a.In, Cached: a.Cached, Out: a.Out}
		}
	}
	return view, nil
}

func (d *Daemon) getPrice(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	model := r.PathValue("model")
	if err := d.checkTarget(ctx, model); err != nil {
		return nil, err
	}
	return d.price(ctx, model)
}

// maxPrice is in dollars per million tokens: far above what anything costs, far
// below what a sum of costs can hold.
const maxPrice = 100_000

func (d *Daemon) setPrice(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.SetPrice](r)
	if err != nil {
		return nil, err
	}
	model := r.PathValue("model")
	if err := d.checkTarget(ctx, model); err != nil {
		return nil, err
	}
	p := store.Price{Model: model, In: req.In, Cached: req.In, Out: req.Out}
	if req.Cached != nil {
		p.Cached = *req.Cached
	}
	for name, usd := range map[string]float64{"in": p.In, "out": p.Out, "cached": p.Cached} {
		if !(usd >= 0 && usd <= maxPrice) || math.IsNaN(usd) {
			return nil, fmt.Errorf("%w price %s of %s: want US dollars per million tokens, 0 to %d", store.ErrInvalid, name, model, maxPrice)
		}
	}
	if err := d.db.PutPrice(ctx, by, p); err != nil {
		return nil, fmt.Errorf("storing the price of %s: %w", model, err)
	}
	return d.price(ctx, model)
}

func (d *Daemon) unsetPrice(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	model := r.PathValue("model")
	if err := d.db.DeletePrice(ctx, by, model); errors.Is(err, store.ErrNotFound) {
		list, listErr := d.db.ListPrices(ctx)
		if listErr != nil {
			return nil, fmt.Errorf("listing prices: %w", listErr)
		}
		names := make([]string, len(list))
		for i, p := range list {
			names[i] = p.Model
		}
		return nil, store.Unknown("price", model, names)
	} else if err != nil {
		return nil, fmt.Errorf("forgetting the price of %s: %w", model, err)
	}
	return d.price(ctx, model)
}
