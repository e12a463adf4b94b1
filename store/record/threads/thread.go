package threads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// Threads stores conversations: threads and turns, their places and files, incoming
// messages.
type Threads struct{ db *commit.DB }

// Over returns the conversations stored in db.
func Over(db *commit.DB) Threads { return Threads{db} }

// Conversations are not part of the audit trail: these methods append no events.

// ThreadKeys returns the index entries of a conversation.
func ThreadKeys(th store.Thread) [][]byte {
	tail := append(commit.TimeKey(th.Updated), th.ID...)
	keys := [][]byte{append([]byte("a"), tail...), append([]byte("u"+th.User+"\x00"), tail...)}
	if th.Open {
		keys = append(keys, append([]byte("o"), th.ID...))
	}
	return keys
}

// ownerEntry is the index in ThreadKeys of the entry by user, whose value is the size of
// the turns in bytes.
const ownerEntry = 1

// saveThread writes the thread and moves its index entries; its turns have grown by added
// bytes.
func saveThread(t *commit.Tx, old *store.Thread, th store.Thread, added int) error {
	size := commit.SeqKey(uint64(added))
	if old != nil {
		before := ThreadKeys(*old)
		switch was := t.Get("threads_by", before[ownerEntry]); {
		case len(was) == 8:
			size = commit.SeqKey(commit.DecodeSeq(was) + uint64(added))
		case added == 0: // an earlier version wrote it without counting its turns
			size = nil
		}
		for _, k := range before {
			if err := t.Delete("threads_by", k); err != nil {
				return err
			}
		}
	}
	for i, k := range ThreadKeys(th) {
		var v []byte
		if i == ownerEntry {
			v = size
		}
		if err := t.Put("threads_by", k, v); err != nil {
			return err
		}
	}
	return t.PutJSON("threads", []byte(th.ID), th)
}

// PutThread implements [store.Threads]. A missing time is set to now.
func (d Threads) PutThread(ctx context.Context, _ store.Caller, th store.Thread) error {
	return d.db.Write(ctx, "storing conversation "+th.ID, func(t *commit.Tx) error {
		_, err := putThread(t, th)
		return err
	})
}

func putThread(t *commit.Tx, th store.Thread) (store.Thread, error) {
	if err := commit.CheckIDs("conversation id", th.ID); err != nil {
		return th, err
	}
	if err := commit.CheckOptional("user", th.User); err != nil {
		return th, err
	}
	var before *store.Thread
	if v := t.Get("threads", []byte(th.ID)); v != nil {
		old, err := commit.DecodeJSON[store.Thread](v)
		if err != nil {
			return th, err
		}
		before = &old
		th.Created = old.Created
	}
	if th.Created.IsZero() {
		th.Created = t.Now
	}
	if th.Updated.IsZero() {
		th.Updated = t.Now
	}
	if th.Address.Channel != "" && t.Get("threads_at", AddressKey(th.Address)) == nil {
		if err := t.Put("threads_at", AddressKey(th.Address), []byte(th.ID)); err != nil {
			return th, err
		}
	}
	t.Change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return th, saveThread(t, before, th, 0)
}

// GetThread implements [store.Threads].
func (d Threads) GetThread(ctx context.Context, id string) (th store.Thread, err error) {
	if th, ok := d.db.Uncommitted(threadShown(id)).(*store.Thread); ok {
		return *th, nil
	}
	err = d.db.ReadRecent(ctx, "reading conversation "+id, func(t *commit.Tx) (err error) {
		th, err = commit.GetJSON[store.Thread](t, "threads", []byte(id))
		return err
	})
	th.User = d.db.Alias(th.User)
	return th, err
}

// ListThreads implements [store.Threads]; limit 0 is 100.
func (d Threads) ListThreads(ctx context.Context, user string, limit int) (list []store.Thread, err error) {
	if err := d.db.Sync(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	prefixes := []string{"a"}
	if user != "" {
		prefixes = d.db.EntriesOf(user)
	}
	err = d.db.Read(ctx, "listing conversations", func(t *commit.Tx) error {
		var tails [][]byte // time and id
		for _, p := range prefixes {
			for k := range t.Scan("threads_by", kv.Range{Prefix: []byte(p), Reverse: true, Limit: limit, Record: "threads", At: len(p) + 8}) {
				tails = append(tails, commit.CloneBytes(k[len(p):]))
			}
		}
		slices.SortFunc(tails, func(a, b []byte) int { return bytes.Compare(b, a) })
		for _, tail := range tails[:min(len(tails), limit)] {
			th, err := commit.GetJSON[store.Thread](t, "threads", tail[8:])
			if err != nil {
				return err
			}
			th.User = d.db.Alias(th.User)
			list = append(list, th)
		}
		return nil
	})
	return list, err
}

// Open implements [store.Threads].
func (d Threads) Open(ctx context.Context) (list []store.Thread, err error) {
	err = d.db.Read(ctx, "listing open conversations", func(t *commit.Tx) error {
		return t.EachIn("threads_by", kv.Range{Prefix: []byte("o"), Record: "threads", At: 1}, func(k, _ []byte) error {
			th, err := commit.GetJSON[store.Thread](t, "threads", k[1:])
			th.User = d.db.Alias(th.User)
			list = append(list, th)
			return err
		})
	})
	return list, err
}

func turnKey(thread string, n int) []byte {
	return append(commit.Key(thread, ""), commit.SeqKey(uint64(n))...)
}

// nextTurn returns the first free number of a thread.
func nextTurn(t *commit.Tx, thread string) int {
	prefix := commit.Key(thread, "")
	k := t.Last("turns", prefix)
	if len(k) != len(prefix)+8 {
		return 0
	}
	return int(commit.DecodeSeq(k[len(prefix):])) + 1
}

// Append implements [store.Threads]. A number beyond the next one returns ErrConflict: the
// turns before it were deleted.
func (d Threads) Append(ctx context.Context, _ store.Caller, turn store.Turn, open bool) error {
	return d.db.Write(ctx, fmt.Sprintf("adding turn %d of conversation %s", turn.N, turn.Thread), func(t *commit.Tx) error {
		turn := turn
		if turn.Role == store.FromUser {
			if err := record.TakeViewContexts(t.KV(), &turn); err != nil {
				return err
			}
		}
		return appendTurns(t, []store.Turn{turn}, open)
	})
}

// appendTurns adds turns to one conversation.
func appendTurns(t *commit.Tx, turns []store.Turn, open bool) error {
	if len(turns) == 0 {
		return nil
	}
	old, err := commit.GetJSON[store.Thread](t, "threads", []byte(turns[0].Thread))
	if err != nil {
		return err
	}
	th, added := old, 0
	for i, next := 0, nextTurn(t, old.ID); i < len(turns); i, next = i+1, next+1 {
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
			turn.At = t.Now
		}
		opaque := turn.Opaque
		turn.Opaque = nil
		head, err := json.Marshal(record.OfTurn(turn))
		if err != nil {
			return err
		}
		packed := commit.Pack(head, opaque)
		if old.Address.Shared() { // others write there, too, which must not count for the user who began it
			added++
		} else {
			added += len(packed)
		}
		if err := t.Put("turns", turnKey(turn.Thread, turn.N), packed); err != nil {
			return err
		}
		for _, f := range turn.Files {
			if err := t.Delete("uploads", commit.Key(turn.Thread, f.ID)); err != nil {
				return err
			}
		}
		if err := fallBehind(t, old, turn.N); err != nil {
			return err
		}
		th.Tainted = th.Tainted || turn.Untrusted()
		if th.Title == "" && turn.Role == store.FromUser && turn.By.User == th.User {
			th.Title = record.TitleOf(turn.Text)
		}
		t.Change(store.Change{Kind: "turn", ID: turn.Thread + "/" + strconv.Itoa(turn.N), Thread: turn.Thread})
	}
	th.Open, th.Updated = open, t.Now
	return saveThread(t, &old, th, added)
}

// Turns implements [store.Threads].
func (d Threads) Turns(ctx context.Context, thread string) ([]store.Turn, error) {
	return d.TurnsBefore(ctx, thread, 0, 0)
}

// TurnsBefore returns a page of a thread: the last n turns before number before, in order.
// before 0 is the end of the thread, and n 0 is all of them.
func (d Threads) TurnsBefore(ctx context.Context, thread string, before, n int) (list []store.Turn, err error) {
	if err := d.db.Sync(ctx); err != nil {
		return nil, err
	}
	err = d.db.Read(ctx, "reading conversation "+thread, func(t *commit.Tx) error {
		if t.Get("threads", []byte(thread)) == nil {
			return store.ErrNotFound
		}
		before := cmp.Or(max(before, 0), nextTurn(t, thread))
		for _, v := range t.Scan("turns", kv.Range{From: turnKey(thread, max(0, before-cmp.Or(n, before))), Before: turnKey(thread, before)}) {
			p, err := commit.UnpackN(v, 2)
			if err != nil {
				return err
			}
			r, err := commit.DecodeJSON[record.Turn](p[0])
			turn := r.Value()
			turn.Opaque = commit.CloneBytes(p[1])
			turn.By.User, turn.For, turn.SharedBy = d.db.Alias(turn.By.User), d.db.Alias(turn.For), d.db.Alias(turn.SharedBy)
			if list = append(list, turn); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// DeleteThread deletes a conversation, or a chunk of its turns if it has more.
func DeleteThread(t *commit.Tx, th store.Thread) (whole bool, err error) {
	turns := t.Keys("turns", commit.Key(th.ID, ""), commit.Chunk)
	for _, k := range turns {
		if err := t.Delete("turns", k); err != nil {
			return false, err
		}
	}
	if len(turns) == commit.Chunk {
		return false, nil
	}
	if err := errors.Join(DropFiles(t, th.ID), t.DeletePrefix("view_contexts", commit.Key(th.ID, ""))); err != nil {
		return false, err
	}
	for _, k := range ThreadKeys(th) {
		if err := t.Delete("threads_by", k); err != nil {
			return false, err
		}
	}
	if err := ForgetPlaces(t, th); err != nil {
		return false, err
	}
	t.Change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return true, t.Delete("threads", []byte(th.ID))
}
