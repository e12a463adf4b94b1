package record

import (
	"context"
	"fmt"

	"nize/store"
	"nize/store/kv"
)

// Prices implements [store.Prices].
type Prices struct{ db kv.DB }

var _ store.Prices = Prices{}

var prices = kv.Noun{Kind: "price", Bucket: "prices"}

// PutPrice implements [store.Prices].
func (p Prices) PutPrice(ctx context.Context, by store.Caller, price store.Price) error {
	return p.db.Update(ctx, "storing the price of "+price.Model, func(tx kv.Tx) error {
		price := price
		if err := kv.CheckID("model", price.Model); err != nil {
			return err
		}
		price.Updated = tx.Now()
		return prices.Put(tx, by, price.Model, price)
	})
}

// GetPrice implements [store.Prices].
func (p Prices) GetPrice(ctx context.Context, model string) (store.Price, error) {
	what := "reading the price of " + model
	all, err := p.db.Recall(ctx, what, kv.WholeBucket(prices.Bucket), func(r kv.Reader) (any, error) { // every model call reads it
		all := map[string]store.Price{}
		err := r.Each(prices.Bucket, nil, nil, func(k, v []byte) (err error) {
			all[string(k)], err = kv.DecodeJSON[store.Price](v)
			return err
		})
		return all, err
	}, prices.Bucket)
	if err != nil {
		return store.Price{}, err
	}
	price, ok := all.(map[string]store.Price)[model]
	if !ok {
		return price, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return price, nil
}

// ListPrices implements [store.Prices].
func (p Prices) ListPrices(ctx context.Context) ([]store.Price, error) {
	return kv.ReadAllJSON[store.Price](ctx, p.db, "listing prices", prices.Bucket)
}

// DeletePrice implements [store.Prices].
func (p Prices) DeletePrice(ctx context.Context, by store.Caller, model string) error {
	return prices.Remove(ctx, p.db, by, model)
}
