package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	bbolt "go.etcd.io/bbolt"
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
		b := t.bucket("vectors").Bucket([]byte(model))
		if b == nil {
			return nil
		}
		for _, k := range keys {
			v := b.Get([]byte(k))
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
			if err := t.makeVectorBucket(model); err != nil {
				return err
			}
			for _, k := range chunk {
				if err := checkIDs("vector key", k); err != nil {
					return err
				}
				if err := t.putVector(model, k, vecs[k]); err != nil {
					return err
				}
			}
			return t.trimVectors(model, maxVectors)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) makeVectorBucket(model string) error {
	t.writes++
	_, err := t.bucket("vectors").CreateBucketIfNotExists([]byte(model))
	return err
}

// putVector stores one vector. The bucket's sequence counts its vectors, since
// bbolt can only count by walking.
func (t *tx) putVector(model, k string, vec []float32) error {
	b := t.bucket("vectors").Bucket([]byte(model))
	if len(vec) == 0 {
		return fmt.Errorf("vector %q is empty", k)
	}
	v := make([]byte, 0, 4*len(vec))
	for _, f := range vec {
		v = binary.LittleEndian.AppendUint32(v, math.Float32bits(f))
	}
	t.writes++
	if b.Get([]byte(k)) == nil {
		if err := b.SetSequence(b.Sequence() + 1); err != nil {
			return err
		}
	}
	return b.Put([]byte(k), v)
}

// trimVectors deletes vectors from a random place on: keys are hashes, so that
// is a fair choice without a second index.
func (t *tx) trimVectors(model string, limit uint64) error {
	b := t.bucket("vectors").Bucket([]byte(model))
	if b.Sequence() <= limit {
		return nil
	}
	for _, k := range someKeys(b, int(b.Sequence()-limit)) {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return b.SetSequence(limit)
}

// someKeys copies n keys from a random place on, around the end.
func someKeys(b *bbolt.Bucket, n int) [][]byte {
	var out [][]byte
	c := b.Cursor()
	k, _ := c.Seek([]byte{"0123456789abcdef"[rand.IntN(16)], "0123456789abcdef"[rand.IntN(16)]})
	for wrapped := false; len(out) < n; k, _ = c.Next() {
		if k == nil {
			if wrapped {
				break
			}
			wrapped = true
			k, _ = c.First()
		}
		out = append(out, cloneBytes(k))
	}
	return out
}
