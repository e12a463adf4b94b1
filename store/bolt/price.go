package bolt

import (
	"context"

	"nize/store"
)

// PutPrice implements [store.Prices].
func (d *DB) PutPrice(ctx context.Context, by store.Caller, p store.Price) error {
	return d.update(ctx, "storing the price of "+p.Model, func(t *tx) error {
		p := p
		if err := checkIDs("model", p.Model); err != nil {
			return err
		}
		p.Updated = t.now
		return t.putThing(by, thing{"price", "prices", p.Model}, p)
	})
}

// GetPrice implements [store.Prices].
func (d *DB) GetPrice(ctx context.Context, model string) (p store.Price, err error) {
	err = d.view(ctx, "reading the price of "+model, func(t *tx) (err error) {
		p, err = getJSON[store.Price](t, "prices", []byte(model))
		return err
	})
	return p, err
}

// ListPrices implements [store.Prices].
func (d *DB) ListPrices(ctx context.Context) (list []store.Price, err error) {
	err = d.view(ctx, "listing prices", func(t *tx) (err error) {
		list, err = listJSON[store.Price](t, "prices", nil)
		return err
	})
	return list, err
}

// DeletePrice implements [store.Prices].
func (d *DB) DeletePrice(ctx context.Context, by store.Caller, model string) error {
	return d.remove(ctx, by, thing{"price", "prices", model})
}
