package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// Most records are JSON under a text key. These functions read and write them.

// DecodeJSON decodes a record. It returns ErrDamaged if it can't.
func DecodeJSON[T any](b []byte) (v T, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return v, nil
}

// GetJSON returns one record. It returns store.ErrNotFound if there is none.
func GetJSON[T any](r Reader, bucket, key string) (v T, err error) {
	b, err := r.Get(bucket, []byte(key))
	if err != nil {
		return v, err
	}
	return DecodeJSON[T](b)
}

// ListJSON returns every record whose key starts with prefix, in key order.
func ListJSON[T any](r Reader, bucket, prefix string) (all []T, err error) {
	err = r.Each(bucket, []byte(prefix), nil, func(_, b []byte) error {
		v, err := DecodeJSON[T](b)
		all = append(all, v)
		return err
	})
	return all, err
}

// PutJSON stores a record.
func PutJSON(tx Tx, bucket, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.Put(bucket, []byte(key), b)
}

// UnsealJSON returns one sealed record. It returns store.ErrNotFound if there is none.
func UnsealJSON[T any](r Reader, bucket string, key []byte) (v T, err error) {
	b, err := r.Unseal(bucket, key)
	if err != nil {
		return v, err
	}
	return DecodeJSON[T](b)
}

// SealJSON stores a sealed record.
func SealJSON(tx Tx, bucket string, key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.PutSealed(bucket, key, b)
}

// ReadJSON is GetJSON in a transaction of its own.
func ReadJSON[T any](ctx context.Context, db DB, what, bucket, key string) (v T, err error) {
	err = db.View(ctx, what, func(r Reader) (err error) {
		v, err = GetJSON[T](r, bucket, key)
		return err
	})
	return v, err
}

// ReadAllJSON is ListJSON of a whole bucket in a transaction of its own.
func ReadAllJSON[T any](ctx context.Context, db DB, what, bucket string) (all []T, err error) {
	err = db.View(ctx, what, func(r Reader) (err error) {
		all, err = ListJSON[T](r, bucket, "")
		return err
	})
	return all, err
}

// Noun is a plain kind of record: its kind in feed and trail, and its bucket.
type Noun struct{ Kind, Bucket string }

// Put stores a record, publishes the change, and appends an event.
func (n Noun) Put(tx Tx, by store.Caller, key string, v any) error {
	if err := PutJSON(tx, n.Bucket, key, v); err != nil {
		return err
	}
	tx.Change(store.Change{Kind: n.Kind, ID: key})
	return tx.Event(by, store.Event{Kind: n.Kind + ".put", Subject: key}, v)
}

// Remove deletes a record in a transaction of its own. It returns store.ErrNotFound if there is
// none.
func (n Noun) Remove(ctx context.Context, db DB, by store.Caller, key string) error {
	return db.Update(ctx, "removing "+n.Kind+" "+key, func(tx Tx) error {
		if _, err := tx.Get(n.Bucket, []byte(key)); err != nil {
			return err
		}
		if err := tx.Delete(n.Bucket, []byte(key)); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: n.Kind, ID: key})
		return tx.Event(by, store.Event{Kind: n.Kind + ".delete", Subject: key}, nil)
	})
}

// WholeBucket is the key in [DB.Recall] of a value that is read from a whole bucket.
type WholeBucket string

// maxID limits the size of a key's parts.
const maxID = 1024

// CheckID returns an error if a name can't be a part of a key.
func CheckID(what, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w %s: it is empty", store.ErrInvalid, what)
	case len(id) > maxID:
		return fmt.Errorf("%w %s: longer than %d bytes", store.ErrInvalid, what, maxID)
	case strings.IndexByte(id, 0) >= 0:
		return fmt.Errorf("%w %s: it holds a zero byte", store.ErrInvalid, what)
	}
	return nil
}

var errEnough = errors.New("enough")

// FirstKeys returns up to most keys with a prefix, from one on. The caller may keep them.
func FirstKeys(r Reader, bucket string, prefix, from []byte, most int) (keys [][]byte, err error) {
	err = r.Each(bucket, prefix, from, func(k, _ []byte) error {
		if len(keys) == most {
			return errEnough
		}
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return keys, err
}

// maxDeleted is the number of keys that DeletePrefix deletes in one transaction, so that other
// writers don't wait long.
const maxDeleted = 1000

// DeletePrefix deletes all keys with a prefix, in small transactions.
func DeletePrefix(ctx context.Context, db DB, what, bucket string, prefix []byte) error {
	for more := true; more; {
		err := db.Update(ctx, what, func(tx Tx) error {
			keys, err := FirstKeys(tx, bucket, prefix, nil, maxDeleted)
			more = len(keys) == maxDeleted
			for _, k := range keys {
				err = errors.Join(err, tx.Delete(bucket, k))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
