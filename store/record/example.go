package record

import (
	"context"
	"errors"

	"nize/store"
	"nize/store/kv"
)

// Examples implements [store.Examples].
type Examples struct{ db kv.DB }

var _ store.Examples = Examples{}

const examples = "examples"

// GetExamples implements [store.Examples].
func (e Examples) GetExamples(ctx context.Context, keys []string) (map[string]store.Example, error) {
	out := make(map[string]store.Example)
	err := e.db.View(ctx, "reading example requests", func(r kv.Reader) error {
		for _, k := range keys {
			one, err := kv.GetJSON[store.Example](r, examples, k)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			out[k] = one
		}
		return nil
	})
	return out, err
}

// PutExample implements [store.Examples].
func (e Examples) PutExample(ctx context.Context, key string, one store.Example) error {
	if err := kv.CheckID("example key", key); err != nil {
		return err
	}
	var requests []string
	for _, r := range one.Requests {
		if len(requests) < store.MaxExamples && r != "" && len(r) <= store.MaxExampleBytes {
			requests = append(requests, r)
		}
	}
	one.Requests = requests
	return e.db.Update(ctx, "storing example requests", func(tx kv.Tx) error { return kv.PutJSON(tx, examples, key, one) })
}

// TrimExamples implements [store.Examples].
func (e Examples) TrimExamples(ctx context.Context, keep []string) error {
	kept := make(map[string]bool, len(keep))
	for _, k := range keep {
		kept[k] = true
	}
	return e.db.Update(ctx, "trimming example requests", func(tx kv.Tx) error {
		var drop [][]byte // a bucket must not change during iteration
		err := tx.Each(examples, nil, nil, func(k, _ []byte) error {
			if !kept[string(k)] {
				drop = append(drop, append([]byte(nil), k...))
			}
			return nil
		})
		for _, k := range drop {
			err = errors.Join(err, tx.Delete(examples, k))
		}
		return err
	})
}
