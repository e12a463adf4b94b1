package database

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record/calls"
	"nize/store/seal"
)

// Key rotation has two steps, each of which survives a crash at any point:
//
//  1. [DB.Rotate]: one transaction wraps all data keys under the next master
//     key and adds a new data key, which seals from then on. The old ones can
//     still open values.
//  2. [DB.Reseal]: small transactions reseal the values of older data keys,
//     and then the older keys are deleted. After a crash it starts over and
//     skips values that are already resealed.

// resealChunk limits the records of one transaction, so that other writers don't wait long.
const resealChunk = 100

// sealed lists the buckets of which some values are sealed, or parts of them, and how to reseal one of its records; a
// test checks the sources for missing ones. A nil record means that there is nothing to do.
var sealed = []resealing{
	{"meta", func(t *commit.Tx, k, v []byte) ([]byte, error) {
		if string(k) != "audit_key" {
			return nil, nil
		}
		return reseal(t, "meta", "audit_key", v)
	}},
	{"credentials", func(t *commit.Tx, k, v []byte) ([]byte, error) { return resealParts(t, v, k, "", "credentials") }},
	{"providers", func(t *commit.Tx, k, v []byte) ([]byte, error) { return resealParts(t, v, k, "", "providers") }},
	{"bots", func(t *commit.Tx, k, v []byte) ([]byte, error) { return resealParts(t, v, k, "", "bots") }},
	{"inbox", func(t *commit.Tx, k, v []byte) ([]byte, error) {
		if p, err := commit.UnpackN(v, 2); err == nil && len(p) == 2 { // stored before payloads were sealed
			return nil, nil
		}
		return resealParts(t, v, k, "", "", "inbox")
	}},
	{"calls", func(t *commit.Tx, k, v []byte) ([]byte, error) {
		return calls.ResealCall(v, func(place string, sealed []byte) ([]byte, error) { return reseal(t, place, string(k), sealed) })
	}},
}

type resealing struct {
	bucket string
	anew   func(t *commit.Tx, k, v []byte) ([]byte, error)
}

// resealings returns how to reseal each bucket with sealed values, those that PutSealed fills
// included.
func resealings(buckets []kv.Bucket) []resealing {
	list := slices.Clone(sealed)
	for _, b := range buckets {
		if b.Sealed {
			list = append(list, resealing{b.Name, func(t *commit.Tx, k, v []byte) ([]byte, error) { return reseal(t, b.Name, string(k), v) }})
		}
	}
	return list
}

// reseal seals a value of that place under the newest data key. It returns nil if it
// already is.
func reseal(t *commit.Tx, what, id string, value []byte) ([]byte, error) {
	number, err := seal.KeyNumber(value)
	if err != nil || number == t.NewestKey() {
		return nil, err
	}
	plain, err := t.DB.Unseal(what, id, value)
	if err != nil {
		return nil, err
	}
	return t.Seal(what, id, plain), nil
}

// resealParts does so for a packed record: places names the place of each sealed part; ""
// is a part that is not sealed.
func resealParts(t *commit.Tx, v, id []byte, places ...string) ([]byte, error) {
	parts, err := commit.UnpackN(v, len(places))
	if err != nil {
		return nil, err
	}
	changed := false
	for i, what := range places {
		if what == "" || len(parts[i]) == 0 {
			continue
		}
		fresh, err := reseal(t, what, string(id), parts[i])
		if err != nil {
			return nil, err
		}
		if fresh != nil {
			parts[i], changed = fresh, true
		}
	}
	if !changed {
		return nil, nil
	}
	return commit.Pack(parts...), nil
}

// unwrapKeys returns all data keys. It returns seal.ErrWrongKey for another master key.
func unwrapKeys(b kv.Transaction, master *seal.Master) ([]seal.DataKey, error) {
	var keys []seal.DataKey
	err := (&commit.Tx{Raw: b}).Each("keys", nil, func(k, v []byte) error {
		if len(k) != 4 {
			return fmt.Errorf("%w: data key", commit.ErrDamaged)
		}
		dk, err := master.Unwrap(binary.BigEndian.Uint32(k), commit.CloneBytes(v))
		keys = append(keys, dk)
		return err
	})
	return keys, err
}

func keyNumber(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// KeyID returns the id of the master key in use.
func (d *DB) KeyID() string { return d.master.Load().ID() }

// DataKeys returns the number of data keys. More than one means that a rotation is not
// finished; [DB.Reseal] continues it.
func (d *DB) DataKeys(ctx context.Context) (n int, err error) {
	err = d.Read(ctx, "counting data keys", func(t *commit.Tx) error {
		n = len(t.Keys("keys", nil, 0))
		return nil
	})
	return n, err
}

// Rotate wraps every data key under next and adds a new data key, which seals from then on.
// next may be the master key in use. A master key that is not on disk yet is written to its
// file before the transaction commits (see [seal.Master.Wrap]). Rotate returns the new data
// key's number.
func (d *DB) Rotate(ctx context.Context, by store.Caller, next *seal.Master) (uint32, error) {
	var ring *seal.Sealer
	var number uint32
	err := d.Write(ctx, "rotating keys", func(t *commit.Tx) error {
		was := d.master.Load()
		keys, err := unwrapKeys(t.Raw, was)
		if err != nil {
			return err
		}
		number = 0
		for _, k := range keys {
			number = max(number, k.Number)
		}
		number++
		keys = append(keys, seal.NewDataKey(number))
		for _, k := range keys {
			wrapped, err := next.Wrap(k)
			if err != nil {
				return err
			}
			if err := t.Put("keys", keyNumber(k.Number), wrapped); err != nil {
				return err
			}
		}
		if ring, err = seal.NewSealer(keys...); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "keys.rotate", Subject: next.ID(), Data: struct {
			From    string `json:"from"`
			To      string `json:"to"`
			DataKey uint32 `json:"data_key"`
		}{was.ID(), next.ID(), number}})
	})
	if err != nil {
		return 0, err
	}
	d.SetSealer(ring)
	d.master.Store(next)
	return number, nil
}

// Reseal reseals all values of older data keys and deletes the older keys when no value
// needs them. It returns how many records it rewrote. If ctx or a crash ends it, the next
// call continues. If a value can't be opened, it is left unchanged and the keys are kept;
// the error names the first such value.
func (d *DB) Reseal(ctx context.Context) (int, error) {
	total := 0
	var damaged error
	for _, s := range resealings(d.buckets) {
		for after := []byte(nil); ; {
			var n int
			var last []byte
			var bad error
			err := d.Write(ctx, "sealing anew", func(t *commit.Tx) (err error) {
				n, last, bad, err = resealFrom(t, s.bucket, after, s.anew)
				return err
			})
			if err != nil {
				return total, err
			}
			total += n
			if damaged == nil {
				damaged = bad
			}
			if last == nil {
				break
			}
			after = last
		}
	}
	if damaged == nil {
		damaged = d.checkKnown(ctx)
	}
	if damaged != nil {
		return total, fmt.Errorf("sealing anew: the older data keys are kept: %w", damaged)
	}
	return total, d.dropKeys(ctx)
}

// checkKnown returns an error if the database has a bucket that this program doesn't know, as
// after the use of a newer version: its values may need an older data key.
func (d *DB) checkKnown(ctx context.Context) error {
	return d.Read(ctx, "listing buckets", func(t *commit.Tx) error {
		all, err := t.Raw.Buckets()
		if err != nil {
			return err
		}
		for _, name := range all {
			if !slices.ContainsFunc(d.buckets, func(b kv.Bucket) bool { return b.Name == name }) {
				return store.Mark(fmt.Errorf("a newer nized made the bucket %s, which may have secrets; use that version", name), store.ErrRefused)
			}
		}
		return nil
	})
}

// resealFrom rewrites up to a chunk of the records after the given key. last is the last
// examined key, nil at the end of the bucket; bad is the error of the first record that
// can't be opened.
func resealFrom(t *commit.Tx, bucket string, after []byte, anew func(*commit.Tx, []byte, []byte) ([]byte, error)) (n int, last []byte, bad, err error) {
	type record struct{ k, v []byte }
	var fresh []record // a bucket must not change during iteration
	if after != nil {
		after = append(after[:len(after):len(after)], 0)
	}
	looked, atEnd := 0, true
	for k, v := range t.Scan(bucket, kv.Range{From: after, Limit: 100*resealChunk + 1}) {
		if looked++; len(fresh) == resealChunk || looked > 100*resealChunk {
			atEnd = false
			break
		}
		last = commit.CloneBytes(k)
		r, err := anew(t, k, v)
		if err != nil && bad == nil {
			bad = fmt.Errorf("%s %q: %w", bucket, k, err)
		}
		if r != nil {
			fresh = append(fresh, record{last, r})
		}
	}
	if atEnd {
		last = nil
	}
	for _, r := range fresh {
		if err := t.Put(bucket, r.k, r.v); err != nil {
			return 0, nil, nil, err
		}
	}
	return len(fresh), last, bad, nil
}

// dropKeys deletes all data keys except the newest. They stay in memory until the next
// start, because a reader may have read a value just before it was rewritten.
func (d *DB) dropKeys(ctx context.Context) error {
	return d.Write(ctx, "deleting data keys that nothing needs", func(t *commit.Tx) error {
		all := t.Keys("keys", nil, 0)
		if len(all) == 0 {
			return errors.Join(commit.ErrDamaged, errors.New("no data key"))
		}
		for _, k := range all[:len(all)-1] {
			if err := t.Delete("keys", k); err != nil {
				return err
			}
		}
		return nil
	})
}
