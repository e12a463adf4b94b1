package views

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"nize/store"
	"nize/store/kv"
)

// keyLife is how long a key signs. Its signatures are valid for at most as long again,
// which is the maximum of web.link_expiry.
const keyLife = 30 * 24 * time.Hour

type linkKey struct {
	Key  []byte    `json:"key"`
	Made time.Time `json:"made"`
}

// signingKeys returns the keys for links: the first one signs, and signatures of the others
// are valid. Keys are rotated automatically.
func signingKeys(ctx context.Context, db kv.DB) (keys [][]byte, err error) {
	const doing = "reading the keys of links"
	var list []linkKey
	fresh := false
	look := func(r kv.Reader) (err error) {
		list, err = kv.UnsealJSON[[]linkKey](r, linkKeys, []byte("keys"))
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		fresh = len(list) > 0 && r.Now().Sub(list[0].Made) < keyLife
		return err
	}
	if err := db.View(ctx, doing, look); err != nil {
		return nil, err
	}
	if !fresh {
		err := db.Update(ctx, doing, func(tx kv.Tx) error {
			if err := look(tx); err != nil || fresh {
				return err
			}
			made := linkKey{make([]byte, sha256.Size), tx.Now()}
			rand.Read(made.Key) // never fails since Go 1.24
			list = append([]linkKey{made}, list[:min(len(list), 1)]...)
			if err := kv.SealJSON(tx, linkKeys, []byte("keys"), list); err != nil {
				return err
			}
			return tx.Event(store.System, store.Event{Kind: "link_key.made", Subject: "links"}, nil)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, k := range list {
		keys = append(keys, k.Key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w", doing, kv.ErrDamaged)
	}
	return keys, nil
}
