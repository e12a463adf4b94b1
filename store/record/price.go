package record

import (
	"context"

	"nize/store"
	"nize/store/kv"
)

// Prices implements [store.Prices].
type Prices struct{ db kv.DB }

var _ store.Prices = Prices{}

var prices = noun{"price", "prices"}

// PutPrice implements [store.Prices].
func (p Prices) PutPrice(ctx context.Context, by store.Caller, price store.Price) error {
	return p.db.Update(ctx, "storing the price of "+price.Model, func(tx kv.Tx) error {
		price := price
		if err := checkID("model", price.Model); err != nil {
			return err
		}
		price.Updated = tx.Now()
		return prices.put(tx, by, price.Model, price)
	})
}

// GetPrice implements [store.Prices].
func (p Prices) GetPrice(ctx context.Context, model string) (store.Price, error) {
	return read[store.Price](ctx, p.db, "reading the price of "+model, prices.bucket, model)
}

// ListPrices implements [store.Prices].
func (p Prices) ListPrices(ctx context.Context) ([]store.Price, error) {
	return readAll[store.Price](ctx, p.db, "listing prices", prices.bucket)
}

// DeletePrice implements [store.Prices].
func (p Prices) DeletePrice(ctx context.Context, by store.Caller, model string) error {
	return prices.remove(ctx, p.db, by, model)
}
