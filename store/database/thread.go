package database

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// Conversations are no audit: these methods leave no events.

func threadKeys(th store.Thread) [][]byte {
	tail := append(timeKey(th.Updated), th.ID...)
	keys := [][]byte{append([]byte("a"), tail...), append([]byte("u"+th.User+"\x00"), tail...)}
	if th.Open {
		keys = append(keys, append([]byte("o"), th.ID...))
	}
	return keys
}

// saveThread writes the thread and moves its index entries.
func (t *tx) saveThread(old *store.Thread, th store.Thread) error {
	if old != nil {
		for _, k := range threadKeys(*old) {
			if err := t.del("threads_by", k); err != nil {
				return err
			}
		}
	}
	for _, k := range threadKeys(th) {
		if err := t.put("threads_by", k, nil); err != nil {
			return err
		}
	}
	return t.putJSON("threads", []byte(th.ID), th)
}

// PutThread implements [store.Threads]. A missing time is now.
func (d *DB) PutThread(ctx context.Context, _ store.Caller, th store.Thread) error {
	return d.update(ctx, "storing conversation "+th.ID, func(t *tx) error {
		_, err := t.putThread(th)
		return err
	})
}

func (t *tx) putThread(th store.Thread) (store.Thread, error) {
	if err := checkIDs("conversation id", th.ID); err != nil {
		return th, err
	}
	if err := checkOptional("user", th.User); err != nil {
		return th, err
	}
	var before *store.Thread
	if v := t.get("threads", []byte(th.ID)); v != nil {
		old, err := decodeJSON[store.Thread](v)
		if err != nil {
			return th, err
		}
		before = &old
		th.Created = old.Created
	}
	if th.Created.IsZero() {
		th.Created = t.now
	}
	if th.Updated.IsZero() {
		th.Updated = t.now
	}
	if th.Address.Channel != "" && t.get("threads_at", addressKey(th.Address)) == nil {
		if err := t.put("threads_at", addressKey(th.Address), []byte(th.ID)); err != nil {
			return th, err
		}
	}
	t.change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return th, t.saveThread(before, th)
}

// GetThread implements [store.Threads].
func (d *DB) GetThread(ctx context.Context, id string) (th store.Thread, err error) {
	d.mu.Lock()
	uncommitted := d.early.threads[id]
	d.mu.Unlock()
	if uncommitted != nil {
		return *uncommitted, nil
	}
	err = d.view(ctx, "reading conversation "+id, func(t *tx) (err error) {
		th, err = getJSON[store.Thread](t, "threads", []byte(id))
		return err
	})
	th.User = d.alias(th.User)
	return th, err
}

// ListThreads implements [store.Threads]; limit 0 is 100.
func (d *DB) ListThreads(ctx context.Context, user string, limit int) (list []store.Thread, err error) {
	if err := d.Sync(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	prefixes := []string{"a"}
	if user != "" {
		prefixes = d.entriesOf(user)
	}
	err = d.view(ctx, "listing conversations", func(t *tx) error {
		var tails [][]byte // time and id
		for _, p := range prefixes {
			for k := range t.scan("threads_by", kv.Range{Prefix: []byte(p), Reverse: true, Limit: limit, Record: "threads", At: len(p) + 8}) {
				tails = append(tails, cloneBytes(k[len(p):]))
			}
		}
		slices.SortFunc(tails, func(a, b []byte) int { return bytes.Compare(b, a) })
		for _, tail := range tails[:min(len(tails), limit)] {
			th, err := getJSON[store.Thread](t, "threads", tail[8:])
			if err != nil {
				return err
			}
			th.User = d.alias(th.User)
			list = append(list, th)
		}
		return nil
	})
	return list, err
}

// Open implements [store.Threads].
func (d *DB) Open(ctx context.Context) (list []store.Thread, err error) {
	err = d.view(ctx, "listing open conversations", func(t *tx) error {
		return t.eachFrom("threads_by", kv.Range{Prefix: []byte("o"), Record: "threads", At: 1}, func(k, _ []byte) error {
			th, err := getJSON[store.Thread](t, "threads", k[1:])
			th.User = d.alias(th.User)
			list = append(list, th)
			return err
		})
	})
	return list, err
}

func turnKey(thread string, n int) []byte {
	return append(key(thread, ""), seqKey(uint64(n))...)
}

// nextTurn is the first free place of a thread.
func (t *tx) nextTurn(thread string) int {
	prefix := key(thread, "")
	k := t.last("turns", prefix)
	if len(k) != len(prefix)+8 {
		return 0
	}
	return int(decodeSeq(k[len(prefix):])) + 1
}

// Append implements [store.Threads]. A place beyond the next one is
// ErrConflict: the turns before it are gone.
func (d *DB) Append(ctx context.Context, _ store.Caller, turn store.Turn, open bool) error {
	return d.update(ctx, fmt.Sprintf("adding turn %d of conversation %s", turn.N, turn.Thread), func(t *tx) error {
		turn := turn
		if turn.Role == store.FromUser {
			if err := record.TakeViewContexts(kvTx{t}, &turn); err != nil {
				return err
			}
		}
		return t.appendTurns([]store.Turn{turn}, open)
	})
}

// appendTurns adds turns to one conversation.
func (t *tx) appendTurns(turns []store.Turn, open bool) error {
	if len(turns) == 0 {
		return nil
	}
	old, err := getJSON[store.Thread](t, "threads", []byte(turns[0].Thread))
	if err != nil {
		return err
	}
	th := old
	for i, next := 0, t.nextTurn(old.ID); i < len(turns); i, next = i+1, next+1 {
		turn := turns[i]
		switch {
		case turn.N < 0:
			return fmt.Errorf("%w place", store.ErrInvalid)
		case turn.N < next:
			return store.ErrExists
		case turn.N > next:
			return fmt.Errorf("%w: the next place is %d", store.ErrConflict, next)
		}
		if turn.At.IsZero() {
			turn.At = t.now
		}
		opaque := turn.Opaque
		turn.Opaque = nil
		head, err := json.Marshal(record.OfTurn(turn))
		if err != nil {
			return err
		}
		if err := t.put("turns", turnKey(turn.Thread, turn.N), pack(head, opaque)); err != nil {
			return err
		}
		for _, f := range turn.Files {
			if err := t.del("uploads", key(turn.Thread, f.ID)); err != nil {
				return err
			}
		}
		if err := t.fallBehind(old, turn.N); err != nil {
			return err
		}
		th.Tainted = th.Tainted || turn.Untrusted()
		if th.Title == "" && turn.Role == store.FromUser && turn.By.User == th.User {
			th.Title = record.TitleOf(turn.Text)
		}
		t.change(store.Change{Kind: "turn", ID: turn.Thread + "/" + strconv.Itoa(turn.N), Thread: turn.Thread})
	}
	th.Open, th.Updated = open, t.now
	return t.saveThread(&old, th)
}

// Turns implements [store.Threads].
func (d *DB) Turns(ctx context.Context, thread string) ([]store.Turn, error) {
	return d.TurnsBefore(ctx, thread, 0, 0)
}

// TurnsBefore returns the last n turns of a thread before a place, in order: a page of
// it. 0 is the end of the thread, and all of them.
func (d *DB) TurnsBefore(ctx context.Context, thread string, before, n int) (list []store.Turn, err error) {
	if err := d.Sync(ctx); err != nil {
		return nil, err
	}
	err = d.view(ctx, "reading conversation "+thread, func(t *tx) error {
		if t.get("threads", []byte(thread)) == nil {
			return store.ErrNotFound
		}
		before := cmp.Or(max(before, 0), t.nextTurn(thread))
		for _, v := range t.scan("turns", kv.Range{From: turnKey(thread, max(0, before-cmp.Or(n, before))), Before: turnKey(thread, before)}) {
			p, err := unpackN(v, 2)
			if err != nil {
				return err
			}
			r, err := decodeJSON[record.Turn](p[0])
			turn := r.Value()
			turn.Opaque = cloneBytes(p[1])
			turn.By.User, turn.For, turn.SharedBy = d.alias(turn.By.User), d.alias(turn.For), d.alias(turn.SharedBy)
			if list = append(list, turn); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}
