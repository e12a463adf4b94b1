package catalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"nize/store/commit"
	"nize/store/kv"
)

const (
	// maxVectors limits the cache of one model: a hundred thousand tools.
	maxVectors = 100_000
	// vectorChunk limits one transaction, about 2 MB of long vectors.
	vectorChunk = 256
)

// GetVectors implements [store.Vectors].
func (d Catalog) GetVectors(ctx context.Context, model string, keys []string) (map[string][]float32, error) {
	out := make(map[string][]float32, len(keys))
	err := d.db.Read(ctx, "reading vectors", func(t *commit.Tx) error {
		for _, k := range keys {
			v := t.Get(VectorsOf(model), []byte(k))
			if v == nil {
				continue
			}
			if len(v)%4 != 0 {
				return commit.ErrDamaged
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

// PutVectors implements [store.Vectors]. Beyond 100,000 vectors of a model, others are
// evicted.
func (d Catalog) PutVectors(ctx context.Context, model string, vecs map[string][]float32) error {
	if err := commit.CheckIDs("model", model); err != nil {
		return err
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(vecs)), vectorChunk) {
		err := d.db.Write(ctx, "storing vectors", func(t *commit.Tx) error {
			n := countVectors(t, model)
			for _, k := range chunk {
				if err := commit.CheckIDs("vector key", k); err != nil {
					return err
				}
				added, err := putVector(t, model, k, vecs[k])
				if err != nil {
					return err
				}
				n += added
			}
			return trimVectors(t, model, n, maxVectors)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// VectorsOf returns the bucket of a model's vectors.
func VectorsOf(model string) string { return "vectors/" + model }

// countVectors returns the number of a model's vectors. It is stored separately, because an
// engine can only count by iterating.
func countVectors(t *commit.Tx, model string) (n int) {
	if v := t.Get("meta", []byte(VectorsOf(model))); v != nil {
		return int(commit.DecodeSeq(v))
	}
	for range t.Scan(VectorsOf(model), kv.Range{}) {
		n++
	}
	return n
}

// putVector stores one vector and returns the number of added vectors, 0 or 1.
func putVector(t *commit.Tx, model, k string, vec []float32) (added int, err error) {
	if len(vec) == 0 {
		return 0, fmt.Errorf("vector %q is empty", k)
	}
	v := make([]byte, 0, 4*len(vec))
	for _, f := range vec {
		v = binary.LittleEndian.AppendUint32(v, math.Float32bits(f))
	}
	if t.Get(VectorsOf(model), []byte(k)) == nil {
		added = 1
	}
	return added, t.Put(VectorsOf(model), []byte(k), v)
}

// trimVectors deletes the vectors beyond the limit and stores how many are left. It deletes
// from a random position on: keys are hashes, so the choice is uniform without a second
// index.
func trimVectors(t *commit.Tx, model string, n, limit int) error {
	for _, k := range someKeys(t, VectorsOf(model), n-limit) {
		if err := t.Delete(VectorsOf(model), k); err != nil {
			return err
		}
	}
	return t.Put("meta", []byte(VectorsOf(model)), commit.SeqKey(uint64(min(n, limit))))
}

// someKeys returns copies of n keys from a random position on, wrapping at the end.
func someKeys(t *commit.Tx, bucket string, n int) (out [][]byte) {
	from := []byte{"0123456789abcdef"[rand.IntN(16)], "0123456789abcdef"[rand.IntN(16)]}
	for _, r := range []kv.Range{{From: from}, {Before: from}} {
		if r.Limit = n - len(out); r.Limit <= 0 {
			break
		}
		for k := range t.Scan(bucket, r) {
			out = append(out, commit.CloneBytes(k))
		}
	}
	return out
}
