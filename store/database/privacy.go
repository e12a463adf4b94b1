package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/store"
	"nize/store/record"
)

// ShareTurns implements [store.Privacy].
func (d *DB) ShareTurns(ctx context.Context, by store.Caller, thread string, n int) (turn store.Turn, err error) {
	err = d.update(ctx, fmt.Sprintf("sharing turn %d of conversation %s", n, thread), func(t *tx) error {
		turn = store.Turn{}
		turns, raw, err := t.turnsOf(thread)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(turns, func(o store.Turn) bool { return o.N == n })
		if at < 0 || turns[at].Role != store.FromModel {
			return store.Mark(store.Errorf("there is nothing to share"), store.ErrRefused)
		}
		owner := d.alias(by.User)
		switch {
		case turns[at].For == "" && turns[at].SharedBy != "" && d.alias(turns[at].SharedBy) == owner:
			turn = turns[at]
			return store.Errorf("it was shared: %w", store.ErrDecided)
		case turns[at].For == "" || d.alias(turns[at].For) != owner:
			return store.Mark(store.Errorf("there is nothing of yours to share"), store.ErrRefused)
		}
		shared := 0
		for i := at; i >= 0 && (i == at || !answers(turns[i])); i-- {
			if turns[i].For == "" || d.alias(turns[i].For) != owner {
				continue
			}
			turns[i].For, turns[i].SharedBy = "", by.User
			head, err := json.Marshal(record.OfTurn(turns[i]))
			if err != nil {
				return err
			}
			if err := t.put("turns", turnKey(thread, turns[i].N), pack(head, raw[i])); err != nil {
				return err
			}
			shared++
		}
		turn = turns[at]
		t.change(store.Change{Kind: "turn", ID: thread + "/" + strconv.Itoa(n), Thread: thread})
		return t.event(auditNote{by: by, kind: "thread.share", subject: thread, data: struct {
			Turn   int `json:"turn"`
			Shared int `json:"shared"` // turns, with the results behind the answer
		}{n, shared}})
	})
	return turn, err
}

// answers says whether a turn ends what was asked before it.
func answers(t store.Turn) bool {
	return t.Role == store.FromModel && len(t.Calls) == 0 || t.Final
}

// turnsOf reads a conversation; raw is what the provider of each turn wants
// back.
func (t *tx) turnsOf(thread string) (turns []store.Turn, raw [][]byte, err error) {
	if t.get("threads", []byte(thread)) == nil {
		return nil, nil, store.ErrNotFound
	}
	err = t.each("turns", key(thread, ""), func(_, v []byte) error {
		p, err := unpackN(v, 2)
		if err != nil {
			return err
		}
		r, err := decodeJSON[record.Turn](p[0])
		turn := r.Value()
		turns, raw = append(turns, turn), append(raw, cloneBytes(p[1]))
		return err
	})
	return turns, raw, err
}

// forgetPrefix heads the keys in the bucket erasures that are of conversations.
const forgetPrefix = "thread:"

// ForgetThread implements [store.Privacy]. The first transaction takes the
// conversation out of reach: nothing finds it or adds to it any more. What it
// held goes in small ones behind it.
func (d *DB) ForgetThread(ctx context.Context, by store.Caller, thread string) (store.Forgotten, error) {
	var f store.Forgotten
	if err := checkIDs("conversation id", thread); err != nil {
		return f, fmt.Errorf("forgetting a conversation: %w", err)
	}
	if err := d.Flush(ctx); err != nil { // its newest calls, too
		return f, err
	}
	if err := d.lockErasing(ctx); err != nil {
		return f, err
	}
	defer d.unlockErasing()
	err := d.update(ctx, "forgetting conversation "+thread, func(t *tx) error {
		if t.get("erasures", []byte(forgetPrefix+thread)) != nil {
			return nil // it was interrupted
		}
		th, err := getJSON[store.Thread](t, "threads", []byte(thread))
		if err != nil {
			return err
		}
		if th.Open {
			return fmt.Errorf("%w: a message in it waits for an answer; stop it first", store.ErrConflict)
		}
		return t.beginForgetting(by, th)
	})
	if err != nil {
		return f, err
	}
	return d.forgetThread(ctx, thread)
}

// beginForgetting takes a conversation out of reach and notes what is to be
// erased behind it.
func (t *tx) beginForgetting(by store.Caller, th store.Thread) error {
	e := erasure{Thread: th.ID, Until: t.head.seq}
	prefix := "t" + th.ID + "\x00"
	for _, k := range t.keys("calls_by", []byte(prefix), 0) {
		s, err := t.loadCall(string(k[len(prefix)+8:]))
		if err != nil {
			return err
		}
		if !s.head.State.Final() {
			return fmt.Errorf("%w: its call %s has not ended; stop it first", store.ErrConflict, s.head.ID)
		}
		e.Calls = append(e.Calls, s.head.ID)
	}
	slices.Sort(e.Calls)
	base, err := loadBase(t, t.db.auditKey)
	if err != nil {
		return err
	}
	e.Next = base.seq + 1
	for _, k := range threadKeys(th) {
		if err := t.del("threads_by", k); err != nil {
			return err
		}
	}
	if err := errors.Join(t.forgetPlaces(th), t.del("threads", []byte(th.ID)), t.putJSON("erasures", []byte(forgetPrefix+th.ID), e)); err != nil {
		return err
	}
	if th.Address.Channel != "" {
		if err := t.put("forgotten", addressKey(th.Address), timeKey(t.now)); err != nil {
			return err
		}
	}
	t.change(store.Change{Kind: "thread", ID: th.ID, Thread: th.ID})
	return t.event(auditNote{by: by, kind: "thread.forget", subject: th.ID, data: struct {
		Calls int `json:"calls"`
	}{len(e.Calls)}})
}

// forgetThread erases what is left of a conversation that is out of reach. It
// may be repeated; erasing is locked.
func (d *DB) forgetThread(ctx context.Context, thread string) (store.Forgotten, error) {
	f := store.Forgotten{Conversations: 1}
	var e erasure
	err := d.view(ctx, "forgetting conversation "+thread, func(t *tx) (err error) {
		e, err = getJSON[erasure](t, "erasures", []byte(forgetPrefix+thread))
		return err
	})
	if err != nil {
		return f, err
	}
	f.Calls = len(e.Calls)
	for more := true; more; {
		n := 0
		err := d.update(ctx, "forgetting what was said", func(t *tx) error {
			turns := t.keys("turns", key(thread, ""), pruneChunk)
			n, more = len(turns), len(turns) == pruneChunk
			for _, k := range turns {
				if err := t.del("turns", k); err != nil {
					return err
				}
			}
			if !more {
				return t.dropFiles(thread)
			}
			return nil
		})
		if err != nil {
			return f, err
		}
		f.Turns += n
	}
	for chunk := range slices.Chunk(e.Calls, pruneChunk) {
		err := d.update(ctx, "forgetting what was called", func(t *tx) error {
			for _, id := range chunk {
				if err := t.forgetCall(id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	f.Events, err = d.erase(ctx, forgetPrefix+thread)
	return f, err
}

// forgetCall leaves of a call what is counted.
func (t *tx) forgetCall(id string) error {
	s, err := t.loadCall(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // retention took it
	}
	if err != nil {
		return err
	}
	if err := t.stripCall(&s); err != nil {
		return err
	}
	v, err := encodeCall(s)
	if err != nil {
		return err
	}
	return errors.Join(t.put("calls", []byte(id), v), t.delPrefix("places", key(id, "")))
}

// ofThread says whether an event tells something of the conversation that is
// being erased: it is about one of its calls, or names it. That it was
// forgotten, by whom and when, stays.
func (e *erasure) ofThread(p [][]byte) bool {
	kind, subject := string(p[evKind]), string(p[evSubject])
	if kind == "thread.forget" || strings.HasPrefix(kind, "audit.") {
		return false
	}
	_, call := slices.BinarySearch(e.Calls, subject)
	return call || subject == e.Thread || strings.Contains(string(p[evPayload]), `"`+e.Thread+`"`)
}

// forgottenAt is when the last conversation in a place was forgotten, zero if
// none was.
func (t *tx) forgottenAt(at store.Address) time.Time {
	v := t.get("forgotten", addressKey(at))
	if v == nil {
		return time.Time{}
	}
	return timeOf(v)
}

// pruneForgotten forgets where conversations were, as long after as one is kept.
func (t *tx) pruneForgotten(before time.Time) (int, bool, error) {
	for _, k := range t.keys("forgotten", nil, 0) {
		if !timeOf(t.get("forgotten", k)).Before(before) {
			continue
		}
		if err := t.del("forgotten", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}
