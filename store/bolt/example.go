package bolt

import (
	"context"

	"nize/store"
)

// GetExamples implements [store.Examples].
func (d *DB) GetExamples(ctx context.Context, keys []string) (map[string]store.Example, error) {
	out := make(map[string]store.Example)
	err := d.view(ctx, "reading example requests", func(t *tx) error {
		for _, k := range keys {
			v := t.get("examples", []byte(k))
			if v == nil {
				continue
			}
			e, err := decodeJSON[store.Example](v)
			if err != nil {
				return err
			}
			out[k] = e
		}
		return nil
	})
	return out, err
}

// PutExample implements [store.Examples].
func (d *DB) PutExample(ctx context.Context, k string, e store.Example) error {
	if err := checkIDs("example key", k); err != nil {
		return err
	}
	var requests []string
	for _, r := range e.Requests {
		if len(requests) < store.MaxExamples && r != "" && len(r) <= store.MaxExampleBytes {
			requests = append(requests, r)
		}
	}
	e.Requests = requests
	return d.update(ctx, "storing example requests", func(t *tx) error { return t.putJSON("examples", []byte(k), e) })
}

// TrimExamples implements [store.Examples].
func (d *DB) TrimExamples(ctx context.Context, keep []string) error {
	kept := make(map[string]bool, len(keep))
	for _, k := range keep {
		kept[k] = true
	}
	return d.update(ctx, "trimming example requests", func(t *tx) error {
		for _, k := range t.keys("examples", nil, 0) {
			if kept[string(k)] {
				continue
			}
			if err := t.del("examples", k); err != nil {
				return err
			}
		}
		return nil
	})
}
