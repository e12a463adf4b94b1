package database

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"nize/store/kv"
)

const (
	// maxVectors bounds the cache of one model: a hundred thousand tools.
	maxVectors = 100_000
	// vectorChunk bounds one transaction, about 2 MB of long vectors.
	vectorChunk = 256
)

// GetVectors implements [store.Vectors].
func (d *DB) GetVectors(ctx context.Context, model string, keys []string) (map[string][]float32, error) {
	out := make(map[string][]float32, len(keys))
	err := d.view(ctx, "reading vectors", func(t *tx) error {
		for _, k := range keys {
			v := t.get(vectorsOf(model), []byte(k))
			if v == nil {
				continue
			}
			if len(v)%4 != 0 {
				return errRecord
			}
			vec := make([]float32, len(v)/4)
			for i := range vec {
				vec[i] = math.Float32frombits(binary.LittleEndian.Uint32(v[4*i:]))
			}
			out[k] = vec
		}
		return nil
	})
	return out, err
}

// PutVectors implements [store.Vectors]. It is a cache: beyond 100,000 vectors
// of a model, others give way.
func (d *DB) PutVectors(ctx context.Context, model string, vecs map[string][]float32) error {
	if err := checkIDs("model", model); err != nil {
		return err
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(vecs)), vectorChunk) {
		err := d.update(ctx, "storing vectors", func(t *tx) error {
			n := t.countVectors(model)
			for _, k := range chunk {
				if err := checkIDs("vector key", k); err != nil {
					return err
				}
				added, err := t.putVector(model, k, vecs[k])
				if err != nil {
					return err
				}
				n += added
			}
			return t.trimVectors(model, n, maxVectors)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// vectorsOf is the bucket of a model's vectors.
func vectorsOf(model string) string { return "vectors/" + model }

// countVectors is how many a model has. The number stands beside them, since an
// engine can only count by walking.
func (t *tx) countVectors(model string) (n int) {
	if v := t.get("meta", []byte(vectorsOf(model))); v != nil {
		return int(decodeSeq(v))
	}
	for range t.scan(vectorsOf(model), kv.Range{}) {
		n++
	}
	return n
}

// putVector stores one vector and says how many were added by it.
func (t *tx) putVector(model, k string, vec []float32) (added int, err error) {
	if len(vec) == 0 {
		return 0, fmt.Errorf("vector %q is empty", k)
	}
	v := make([]byte, 0, 4*len(vec))
	for _, f := range vec {
		v = binary.LittleEndian.AppendUint32(v, math.Float32bits(f))
	}
	if t.get(vectorsOf(model), []byte(k)) == nil {
		added = 1
	}
	return added, t.put(vectorsOf(model), []byte(k), v)
}

// trimVectors deletes what is over the limit and notes how many are left. It
// deletes from a random place on: keys are hashes, so that is a fair choice
// without a second index.
func (t *tx) trimVectors(model string, n, limit int) error {
	for _, k := range t.someKeys(vectorsOf(model), n-limit) {
		if err := t.del(vectorsOf(model), k); err != nil {
			return err
		}
	}
	return t.put("meta", []byte(vectorsOf(model)), seqKey(uint64(min(n, limit))))
}

// someKeys copies n keys from a random place on, around the end.
func (t *tx) someKeys(bucket string, n int) (out [][]byte) {
	from := []byte{"0123456789abcdef"[rand.IntN(16)], "0123456789abcdef"[rand.IntN(16)]}
	for _, r := range []kv.Range{{From: from}, {Before: from}} {
		if r.Limit = n - len(out); r.Limit <= 0 {
			break
		}
		for k := range t.scan(bucket, r) {
			out = append(out, cloneBytes(k))
		}
	}
	return out
}
