package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/calls"
	"nize/store/record/threads"
)

// forgetPrefix is the key prefix of conversations in the bucket erasures.
const forgetPrefix = "thread:"

// ForgetThread implements [store.Privacy]. The first transaction makes the conversation
// inaccessible: nothing finds it or adds to it any more. Its content is then deleted in
// small transactions.
func (d Retention) ForgetThread(ctx context.Context, by store.Caller, thread string) (store.Forgotten, error) {
	var f store.Forgotten
	if err := commit.CheckIDs("conversation id", thread); err != nil {
		return f, fmt.Errorf("forgetting a conversation: %w", err)
	}
	if err := d.db.Flush(ctx); err != nil { // so that its newest calls are included
		return f, err
	}
	if err := d.trail.LockErasing(ctx); err != nil {
		return f, err
	}
	defer d.trail.UnlockErasing()
	err := d.db.Write(ctx, "forgetting conversation "+thread, func(t *commit.Tx) error {
		if t.Get("erasures", []byte(forgetPrefix+thread)) != nil {
			return nil // an earlier erasure was interrupted
		}
		th, err := commit.GetJSON[store.Thread](t, "threads", []byte(thread))
		if err != nil {
			return err
		}
		if th.Open {
			return fmt.Errorf("%w: a message in it waits for an answer; stop it first", store.ErrConflict)
		}
		return beginForgetting(t, by, th)
	})
	if err != nil {
		return f, err
	}
	return d.forgetThread(ctx, thread)
}

// beginForgetting makes a conversation inaccessible and records what must be erased.
func beginForgetting(t *commit.Tx, by store.Caller, th store.Thread) error {
	e, err := t.Erasure()
	if err != nil {
		return err
	}
	e.Thread = th.ID
	prefix := "t" + th.ID + "\x00"
	for _, k := range t.Keys("calls_by", []byte(prefix), 0) {
		s, err := calls.LoadCall(t, string(k[len(prefix)+8:]))
		if err != nil {
			return err
		}
		if !s.Head.State.Final() {
			return fmt.Errorf("%w: its call %s has not ended; stop it first", store.ErrConflict, s.Head.ID)
		}
		e.Calls = append(e.Calls, s.Head.ID)
	}
	slices.Sort(e.Calls)
	for _, k := range threads.ThreadKeys(th) {
		if err := t.Delete("threads_by", k); err != nil {
			return err
		}
	}
	if err := errors.Join(threads.ForgetPlaces(t, th), t.Delete("threads", []byte(th.ID)), t.PutJSON("erasures", []byte(forgetPrefix+th.ID), e)); err != nil {
		return err
	}
	if th.Address.Channel != "" {
		if err := t.Put("forgotten", threads.AddressKey(th.Address), commit.TimeKey(t.Now)); err != nil {
			return err
		}
	}
	t.Change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return t.Event(commit.Note{By: by, Kind: "thread.forget", Subject: th.ID, Data: struct {
		Calls int `json:"calls"`
	}{len(e.Calls)}})
}

// forgetThread erases the rest of an inaccessible conversation. It may be repeated; the
// caller holds the erasure lock.
func (d Retention) forgetThread(ctx context.Context, thread string) (store.Forgotten, error) {
	f := store.Forgotten{Conversations: 1}
	var e commit.Erasure
	err := d.db.Read(ctx, "forgetting conversation "+thread, func(t *commit.Tx) (err error) {
		e, err = commit.GetJSON[commit.Erasure](t, "erasures", []byte(forgetPrefix+thread))
		return err
	})
	if err != nil {
		return f, err
	}
	f.Calls = len(e.Calls)
	for more := true; more; {
		n := 0
		err := d.db.Write(ctx, "forgetting what was said", func(t *commit.Tx) error {
			turns := t.Keys("turns", commit.Key(thread, ""), commit.Chunk)
			n, more = len(turns), len(turns) == commit.Chunk
			for _, k := range turns {
				if err := t.Delete("turns", k); err != nil {
					return err
				}
			}
			if !more {
				return threads.DropFiles(t, thread)
			}
			return nil
		})
		if err != nil {
			return f, err
		}
		f.Turns += n
	}
	for chunk := range slices.Chunk(e.Calls, commit.Chunk) {
		err := d.db.Write(ctx, "forgetting what was called", func(t *commit.Tx) error {
			for _, id := range chunk {
				if err := forgetCall(t, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	f.Events, err = d.trail.ResumeErasure(ctx, forgetPrefix+thread)
	return f, err
}

// forgetCall reduces a call to what is counted.
func forgetCall(t *commit.Tx, id string) error {
	s, err := calls.LoadCall(t, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // retention deleted it
	}
	if err != nil {
		return err
	}
	if err := stripCall(t, &s); err != nil {
		return err
	}
	v, err := calls.EncodeCall(t, s)
	if err != nil {
		return err
	}
	return errors.Join(t.Put("calls", []byte(id), v), t.DeletePrefix("places", commit.Key(id, "")))
}

// ResumeErasures implements [store.Erasures].
func (d Retention) ResumeErasures(ctx context.Context) (int, error) {
	if err := d.trail.LockErasing(ctx); err != nil {
		return 0, err
	}
	defer d.trail.UnlockErasing()
	var users [][]byte
	err := d.db.Read(ctx, "listing erasures", func(t *commit.Tx) error {
		users = t.Keys("erasures", nil, 0)
		return nil
	})
	erased := 0
	for _, user := range users {
		n, eerr := d.resumeErasure(ctx, string(user))
		erased, err = erased+n, errors.Join(err, eerr)
	}
	return erased, err
}

func (d Retention) resumeErasure(ctx context.Context, key string) (int, error) {
	if thread, ok := strings.CutPrefix(key, forgetPrefix); ok {
		f, err := d.forgetThread(ctx, thread)
		return f.Events, err
	}
	return d.trail.ResumeErasure(ctx, key)
}
