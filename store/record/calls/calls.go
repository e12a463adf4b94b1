package calls

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
)

// Record implements [store.Calls]. The caller must not change the call's bytes (arguments,
// result) afterwards, since the writer seals and encodes them. On a full disk records wait
// in memory, up to 32 MiB; beyond that Record blocks. See [commit.DB.Healthy].
func (d Calls) Record(by store.Caller, c store.Call) {
	by.User = cmp.Or(by.User, c.By)
	c.Hooks, c.Warnings, c.Decisions = slices.Clone(c.Hooks), slices.Clone(c.Warnings), slices.Clone(c.Decisions)
	size := 1024 + len(c.Args)
	if c.Result != nil {
		r := *c.Result
		c.Result = &r
		size += len(r.Raw) + len(r.Shown)
	}
	ok := d.db.WriteLater(commit.Later{Key: shownAs(c.ID), Shown: &c, Size: size}, func(t *commit.Tx) error {
		if err := recordCall(t, by, c); err != nil {
			return fmt.Errorf("recording call %s: %w", c.ID, err)
		}
		return nil
	})
	if !ok {
		d.db.LogLost("recording call " + c.ID)
	}
}

// RecordUnmetRequest implements [store.UnmetRequests].
func (d Calls) RecordUnmetRequest(user, text string) {
	text = store.UnmetRequestText(text)
	words := store.RequestWords(text)
	if len(words) > 0 && d.unmet.take(user, d.db.Now()) && !d.db.WriteLater(commit.Later{Size: 512}, func(t *commit.Tx) error { return record.RecordUnmetRequest(t.KV(), text, words) }) {
		d.db.LogLost("counting an unmet request")
	}
}

// unmetToday counts the unmet requests of each person on one day. It is in memory only, so
// that requesters are not stored.
type unmetToday struct {
	mu  sync.Mutex // guards what follows
	day int64
	of  map[string]int
}

// take reports whether a person's request counts.
func (u *unmetToday) take(user string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if day := now.Unix() / (24 * 60 * 60); u.of == nil || day != u.day {
		u.day, u.of = day, map[string]int{}
	}
	u.of[user]++
	return u.of[user] <= store.MaxUnmetRequests
}

func recordCall(t *commit.Tx, by store.Caller, c store.Call) error {
	if !c.State.Final() {
		return fmt.Errorf("%w state %q: only calls that ended are recorded", store.ErrInvalid, c.State)
	}
	if err := checkCall(c); err != nil {
		return err
	}
	if err := t.IsNew("calls", []byte(c.ID)); err != nil {
		return err
	}
	return addCall(t, by, c)
}

// GetCall implements [store.Calls].
func (d Calls) GetCall(ctx context.Context, id string) (store.Call, error) {
	if c, ok := d.uncommittedCall(id); ok {
		return c, nil
	}
	var s StoredCall
	err := d.db.ReadRecent(ctx, "reading call", func(t *commit.Tx) (err error) {
		s, err = LoadCall(t, id)
		return err
	})
	if err != nil {
		return store.Call{}, err
	}
	return d.openCall(s)
}

// uncommittedCall returns a call whose record is not committed yet.
func (d Calls) uncommittedCall(id string) (c store.Call, ok bool) {
	shown, ok := d.db.Uncommitted(shownAs(id)).(*store.Call)
	if !ok {
		return c, false
	}
	c = copyCall(*shown)
	c.By = d.db.Alias(c.By)
	return c, true
}

func copyCall(c store.Call) store.Call {
	c.Args = commit.CloneBytes(c.Args)
	c.Hooks, c.Warnings, c.Decisions = slices.Clone(c.Hooks), slices.Clone(c.Warnings), slices.Clone(c.Decisions)
	if c.Result != nil {
		r := *c.Result
		r.Raw, r.Shown = commit.CloneBytes(r.Raw), commit.CloneBytes(r.Shown)
		c.Result = &r
	}
	return c
}

// ListCalls implements [store.Calls]. Each condition of a query is a set of index prefixes.
// It walks the narrowest and looks up the others, so that it decodes only matching calls.
func (d Calls) ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if !q.Waiting && !q.Tainted && q.Thread == "" { // the journal has no such calls
		settle := d.db.CatchUp
		if q.Exact {
			settle = d.db.CommitJournal
		}
		if err := settle(ctx); err != nil {
			return nil, err
		}
	}
	if q.Waiting { // the gateway asks for each call, and mostly there is none
		waiting := commit.Part("calls_by", waitingKey)
		none, err := commit.Recall(ctx, d.db, "listing calls", waiting, func(t *commit.Tx) (bool, error) { return t.First("calls_by", []byte("w")) == nil, nil }, waiting)
		if err != nil || none {
			return []store.Call{}, err
		}
	}
	conds, states := d.callConditions(q)
	var list []found
	read := d.db.Read
	if q.Tainted { // it is asked for each call of a conversation
		read = d.db.ReadRecent
	}
	err := read(ctx, "listing calls", func(t *commit.Tx) error {
		list = nil
		var tails [][]byte
		for _, prefix := range conds[0] {
			some, err := walkCalls(t, prefix, conds[1:], states, q.Limit)
			if err != nil {
				return err
			}
			tails = append(tails, some...)
		}
		slices.SortFunc(tails, func(a, b []byte) int { return bytes.Compare(b, a) })
		for _, tail := range tails[:min(len(tails), q.Limit)] {
			if v := t.Get("calls", tail[8:]); v != nil {
				list = append(list, found{string(tail[8:]), commit.CloneBytes(v)})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	calls := make([]store.Call, 0, len(list))
	for _, f := range list {
		s, err := DecodeCall(f.id, f.v)
		if err != nil {
			return nil, fmt.Errorf("listing calls: %w", err)
		}
		c, err := d.openCall(s)
		if err != nil {
			return nil, fmt.Errorf("listing calls: %w", err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// found is a stored call.
type found struct {
	id string
	v  []byte
}

// CountRunning implements [store.Calls].
func (d Calls) CountRunning(ctx context.Context) (n int, err error) {
	if err := d.db.CatchUp(ctx); err != nil && d.db.Broken() == nil { // otherwise count what is committed
		return 0, err
	}
	err = d.db.Read(ctx, "counting running calls", func(t *commit.Tx) (err error) {
		n, err = t.Count("calls_by", []byte(stateKey(store.Running)))
		return err
	})
	return n, err
}

// waitingList is the cache key of the list of waiting calls. It has the aliases, since they
// determine [store.Call.By].
type waitingList struct{ aliases any }

// ListWaiting implements [store.Calls].
func (d Calls) ListWaiting(ctx context.Context) ([]store.Call, error) {
	const what = "listing waiting calls"
	return commit.Recall(ctx, d.db, what, waitingList{d.db.Aliases()}, func(t *commit.Tx) ([]store.Call, error) {
		list, known := []store.Call{}, map[string]head{}
		for k := range t.Scan("calls_by", kv.Range{Prefix: []byte{waitingKey}, Reverse: true, Record: "calls", At: 1 + 8}) {
			id := string(k[1+8:])
			h, err := d.waiting.decode(id, t.Get("calls", k[1+8:]))
			if err != nil {
				return nil, fmt.Errorf("%s: call %s: %w", what, id, err)
			}
			known[id] = h
			c := h.call
			c.By = d.db.Alias(c.By)
			list = append(list, c)
		}
		d.waiting.keep(known)
		return list, nil
	}, commit.Part("calls_by", waitingKey))
}

// scanFrom is the number of ids from which GetWaiting reads all entries of waiting calls: on
// a remote engine each call that is read alone costs a message.
const scanFrom = 8

// GetWaiting implements [store.Calls].
func (d Calls) GetWaiting(ctx context.Context, ids []string) ([]store.Call, error) {
	const what = "reading waiting calls"
	stored := make(map[string]StoredCall, len(ids))
	err := d.db.Read(ctx, what, func(t *commit.Tx) error {
		clear(stored)
		wanted := make(map[string]bool, len(ids))
		for _, id := range ids {
			wanted[id] = true
		}
		add := func(id string) error {
			v := t.Get("calls", []byte(id))
			if v == nil {
				return nil
			}
			s, err := d.waiting.decodeCall(id, v)
			if err != nil {
				return fmt.Errorf("call %s: %w", id, err)
			}
			delete(wanted, id)
			stored[id] = s
			return nil
		}
		if len(ids) >= scanFrom {
			for k := range t.Scan("calls_by", kv.Range{Prefix: []byte{waitingKey}, Record: "calls", At: 1 + 8}) {
				if id := string(k[1+8:]); wanted[id] {
					if err := add(id); err != nil {
						return err
					}
				}
			}
		}
		for id := range maps.Clone(wanted) { // few, or decided since they were listed
			if err := add(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	calls := make([]store.Call, 0, len(ids))
	for _, id := range ids {
		if s, ok := stored[id]; ok {
			c, err := d.openCall(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			calls = append(calls, c)
		}
	}
	return calls, nil
}

// callConditions returns the index prefixes of a query, the narrowest condition first; a
// call meets a condition if it has an entry under any of its prefixes. If states is not
// nil, the call's own state must be in it, too, since not all states are indexed.
func (d Calls) callConditions(q store.CallQuery) (conds [][]string, states []store.State) {
	if q.AskKey != "" {
		var any []string
		for _, id := range d.db.AllIDs(q.User) {
			any = append(any, askedAs(id, q.AskKey))
		}
		return append(conds, any), nil
	}
	switch {
	case q.Waiting && q.User != "":
		var any []string
		for _, id := range d.db.AllIDs(q.User) {
			any = append(any, waitingOf(id))
		}
		conds = append(conds, any)
	case q.Waiting:
		conds = append(conds, []string{"w"})
	}
	if q.Asks {
		conds = append(conds, []string{"q"})
	}
	if q.Tainted {
		conds = append(conds, []string{"x" + q.Thread + "\x00"})
	}
	if q.Thread != "" {
		conds = append(conds, []string{"t" + q.Thread + "\x00"})
	}
	if slices.Contains(q.States, unindexed) {
		states = q.States
	} else if len(q.States) > 0 {
		var any []string
		for _, s := range q.States {
			any = append(any, stateKey(s))
		}
		slices.Sort(any)
		conds = append(conds, slices.Compact(any))
	}
	if q.User != "" && !q.Waiting {
		conds = append(conds, d.db.EntriesOf(q.User))
	}
	if len(conds) == 0 {
		conds = append(conds, []string{"a"})
	}
	return conds, states
}

// WalkCalls returns the newest entries under prefix that meet the other
// conditions too, without the prefix: time and id.
func WalkCalls(t *commit.Tx, prefix string, others [][]string, limit int) [][]byte {
	tails, _ := walkCalls(t, prefix, others, nil, limit) // without states it decodes nothing
	return tails
}

func walkCalls(t *commit.Tx, prefix string, others [][]string, states []store.State, limit int) (tails [][]byte, err error) {
	r := kv.Range{Prefix: []byte(prefix), Reverse: true}
	if len(others) == 0 && states == nil {
		r.Limit = limit
	}
	if len(others) == 0 {
		r.Record, r.At = "calls", len(prefix)+8
	}
	for k := range t.Scan("calls_by", r) {
		if len(tails) == limit {
			break
		}
		tail := k[len(prefix):]
		meets := len(tail) > 8
		for _, any := range others {
			meets = meets && slices.ContainsFunc(any, func(p string) bool { return t.Get("calls_by", append([]byte(p), tail...)) != nil })
		}
		if meets && states != nil {
			s, err := LoadCall(t, string(tail[8:]))
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			meets = slices.Contains(states, s.Head.State)
		}
		if meets {
			tails = append(tails, commit.CloneBytes(tail))
		}
	}
	return tails, nil
}
