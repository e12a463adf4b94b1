package threads

import (
	"context"

	"nize/store"
	"nize/store/commit"
)

// fallBehind records that a conversation's chat may lack turns from turn n on. An existing
// entry reaches back further and is kept.
func fallBehind(t *commit.Tx, th store.Thread, n int) error {
	if th.Address.Channel == "" || t.Get("behind", []byte(th.ID)) != nil {
		return nil
	}
	return t.Put("behind", []byte(th.ID), commit.SeqKey(uint64(n)))
}

// CardFalls records that the card of a call may be out of date, if the call ever waited for
// people.
func CardFalls(t *commit.Tx, c store.Call) error {
	if c.Thread == "" || c.Expires.IsZero() || t.Get("behind", []byte(c.Thread)) != nil {
		return nil
	}
	v := t.Get("threads", []byte(c.Thread))
	if v == nil {
		return nil // calls outlive their conversation
	}
	th, err := commit.DecodeJSON[store.Thread](v)
	if err != nil {
		return err
	}
	return fallBehind(t, th, nextTurn(t, th.ID))
}

// LaggingThreads implements [store.Backlog].
func (d Threads) LaggingThreads(ctx context.Context) (map[string]int, error) {
	list := map[string]int{}
	err := d.db.Read(ctx, "listing conversations whose chat is behind", func(t *commit.Tx) error {
		return t.Each("behind", nil, func(k, v []byte) error {
			list[string(k)] = int(commit.DecodeSeq(v))
			return nil
		})
	})
	return list, err
}

// RecordShown implements [store.Backlog].
func (d Threads) RecordShown(ctx context.Context, thread string, next int) error {
	noted := false
	err := d.db.Read(ctx, "looking whether a chat is behind", func(t *commit.Tx) error {
		noted = t.Get("behind", []byte(thread)) != nil
		return nil
	})
	if err != nil || !noted {
		return err
	}
	return d.db.Write(ctx, "noting what a chat shows", func(t *commit.Tx) error {
		v := t.Get("threads", []byte(thread))
		if v == nil {
			return t.Delete("behind", []byte(thread))
		}
		th, err := commit.DecodeJSON[store.Thread](v)
		if err != nil {
			return err
		}
		if !th.Open && next >= nextTurn(t, thread) {
			return t.Delete("behind", []byte(thread))
		}
		was := t.Get("behind", []byte(thread))
		if was != nil && int(commit.DecodeSeq(was)) >= next {
			return nil
		}
		return t.Put("behind", []byte(thread), commit.SeqKey(uint64(next)))
	})
}
