package database

import (
	"context"

	"nize/store"
)

// fallBehind notes that a conversation's chat may lack what is there from turn
// n on. A note that is there already reaches back further.
func (t *tx) fallBehind(th store.Thread, n int) error {
	if th.Address.Channel == "" || t.get("behind", []byte(th.ID)) != nil {
		return nil
	}
	return t.put("behind", []byte(th.ID), seqKey(uint64(n)))
}

// cardFalls notes that the card of a call may be behind, where the call ever
// waited for people.
func (t *tx) cardFalls(c store.Call) error {
	if c.Thread == "" || c.Expires.IsZero() || t.get("behind", []byte(c.Thread)) != nil {
		return nil
	}
	v := t.get("threads", []byte(c.Thread))
	if v == nil {
		return nil // calls outlive their conversation
	}
	th, err := decodeJSON[store.Thread](v)
	if err != nil {
		return err
	}
	return t.fallBehind(th, t.nextTurn(th.ID))
}

// LaggingThreads implements [store.Backlog].
func (d *DB) LaggingThreads(ctx context.Context) (map[string]int, error) {
	list := map[string]int{}
	err := d.view(ctx, "listing conversations whose chat is behind", func(t *tx) error {
		return t.each("behind", nil, func(k, v []byte) error {
			list[string(k)] = int(decodeSeq(v))
			return nil
		})
	})
	return list, err
}

// RecordShown implements [store.Backlog].
func (d *DB) RecordShown(ctx context.Context, thread string, next int) error {
	noted := false
	err := d.view(ctx, "looking whether a chat is behind", func(t *tx) error {
		noted = t.get("behind", []byte(thread)) != nil
		return nil
	})
	if err != nil || !noted {
		return err
	}
	return d.update(ctx, "noting what a chat shows", func(t *tx) error {
		v := t.get("threads", []byte(thread))
		if v == nil {
			return t.del("behind", []byte(thread))
		}
		th, err := decodeJSON[store.Thread](v)
		if err != nil {
			return err
		}
		if !th.Open && next >= t.nextTurn(thread) {
			return t.del("behind", []byte(thread))
		}
		was := t.get("behind", []byte(thread))
		if was != nil && int(decodeSeq(was)) >= next {
			return nil
		}
		return t.put("behind", []byte(thread), seqKey(uint64(next)))
	})
}
