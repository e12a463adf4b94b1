package database

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// Record implements [store.Calls]. The call's bytes (arguments, result) must
// not be changed afterwards; sealing and encoding are done by the writer. On a
// full disk records wait in memory, up to 32 MiB, then Record waits; see
// [DB.Healthy].
func (d *DB) Record(by store.Caller, c store.Call) {
	by.User = cmp.Or(by.User, c.By)
	c.Hooks, c.Warnings, c.Decisions = slices.Clone(c.Hooks), slices.Clone(c.Warnings), slices.Clone(c.Decisions)
	size := 1024 + len(c.Args)
	if c.Result != nil {
		r := *c.Result
		c.Result = &r
		size += len(r.Raw) + len(r.Shown)
	}
	ok := d.writeLater(lazyOp{call: &c, size: size}, func(t *tx) error {
		if err := t.record(by, c); err != nil {
			return fmt.Errorf("recording call %s: %w", c.ID, err)
		}
		return nil
	})
	if !ok {
		d.logLost("recording call " + c.ID)
	}
}

// RecordUnmetRequest implements [store.UnmetRequests].
func (d *DB) RecordUnmetRequest(text string) {
	text = store.UnmetRequestText(text)
	words := store.RequestWords(text)
	if len(words) > 0 && !d.writeLater(lazyOp{size: 512}, func(t *tx) error { return record.RecordUnmetRequest(kvTx{t}, text, words) }) {
		d.logLost("counting an unmet request")
	}
}

func (t *tx) record(by store.Caller, c store.Call) error {
	if !c.State.Final() {
		return fmt.Errorf("%w state %q: only calls that ended are recorded", store.ErrInvalid, c.State)
	}
	if err := checkCall(c); err != nil {
		return err
	}
	if err := isNew(t, "calls", []byte(c.ID)); err != nil {
		return err
	}
	return t.addCall(by, c)
}

// GetCall implements [store.Calls].
func (d *DB) GetCall(ctx context.Context, id string) (store.Call, error) {
	if c, ok := d.unwrittenCall(id); ok {
		return c, nil
	}
	var s storedCall
	err := d.view(ctx, "reading call", func(t *tx) (err error) {
		s, err = t.loadCall(id)
		return err
	})
	if err != nil {
		return store.Call{}, err
	}
	return d.openCall(s)
}

// unwrittenCall is a call whose record is on its way to the disk.
func (d *DB) unwrittenCall(id string) (c store.Call, ok bool) {
	d.mu.Lock()
	unwritten := d.unwritten[id]
	d.mu.Unlock()
	if unwritten == nil {
		return c, false
	}
	c = copyCall(*unwritten)
	c.By = d.alias(c.By)
	return c, true
}

func copyCall(c store.Call) store.Call {
	c.Args = cloneBytes(c.Args)
	c.Hooks, c.Warnings, c.Decisions = slices.Clone(c.Hooks), slices.Clone(c.Warnings), slices.Clone(c.Decisions)
	if c.Result != nil {
		r := *c.Result
		r.Raw, r.Shown = cloneBytes(r.Raw), cloneBytes(r.Shown)
		c.Result = &r
	}
	return c
}

// ListCalls implements [store.Calls]. Each condition of a query is a set of
// index prefixes: the narrowest is walked, and in the others the entry is
// looked up, so that no call is decoded that is not an answer.
func (d *DB) ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if !q.Waiting && !q.Tainted && q.Thread == "" { // what the journal has is nothing of those
		if err := d.commitEarly(ctx); err != nil {
			return nil, err
		}
	}
	if q.Waiting { // which the gateway asks at each call, and mostly there is none
		none, err := recall(ctx, d, "listing calls", allOf(waitingCalls), func(t *tx) (bool, error) { return t.first("calls_by", []byte("w")) == nil, nil }, waitingCalls)
		if err != nil || none {
			return []store.Call{}, err
		}
	}
	conds := d.callConditions(q)
	var found [][]byte
	err := d.view(ctx, "listing calls", func(t *tx) error {
		var tails [][]byte
		for _, prefix := range conds[0] {
			tails = append(tails, t.walkCalls(prefix, conds[1:], q.Limit)...)
		}
		slices.SortFunc(tails, func(a, b []byte) int { return bytes.Compare(b, a) })
		for _, tail := range tails[:min(len(tails), q.Limit)] {
			if v := t.get("calls", tail[8:]); v != nil {
				found = append(found, cloneBytes(v))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	calls := make([]store.Call, 0, len(found))
	for _, v := range found {
		s, err := decodeCall(v)
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

// callConditions are the index prefixes of a query, the narrowest condition
// first; within one, any prefix will do.
func (d *DB) callConditions(q store.CallQuery) [][]string {
	var conds [][]string
	if q.Waiting {
		conds = append(conds, []string{"w"})
	}
	if q.Tainted {
		conds = append(conds, []string{"x" + q.Thread + "\x00"})
	}
	if q.Thread != "" {
		conds = append(conds, []string{"t" + q.Thread + "\x00"})
	}
	if len(q.States) > 0 {
		var any []string
		for _, s := range q.States {
			any = append(any, "s"+string(s)+"\x00")
		}
		slices.Sort(any)
		conds = append(conds, slices.Compact(any))
	}
	if q.User != "" {
		conds = append(conds, d.entriesOf(q.User))
	}
	if len(conds) == 0 {
		conds = append(conds, []string{"a"})
	}
	return conds
}

// entriesOf are the prefixes of a user's entries, of calls by requester and of
// conversations by who began them.
func (d *DB) entriesOf(user string) (prefixes []string) {
	for _, id := range d.allIDs(user) {
		prefixes = append(prefixes, "u"+id+"\x00")
	}
	return prefixes
}

// walkCalls returns the newest entries under prefix that meet the other
// conditions too, without the prefix: time and id.
func (t *tx) walkCalls(prefix string, others [][]string, limit int) [][]byte {
	var tails [][]byte
	r := kv.Range{Prefix: []byte(prefix), Reverse: true}
	if len(others) == 0 {
		r.Limit, r.Record, r.At = limit, "calls", len(prefix)+8
	}
	for k := range t.scan("calls_by", r) {
		if len(tails) == limit {
			break
		}
		tail := k[len(prefix):]
		meets := len(tail) > 8
		for _, any := range others {
			meets = meets && slices.ContainsFunc(any, func(p string) bool { return t.get("calls_by", append([]byte(p), tail...)) != nil })
		}
		if meets {
			tails = append(tails, cloneBytes(tail))
		}
	}
	return tails
}

// cut is a redacted look at a JSON document for the audit trail.
func cut(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return store.Redact(raw, limit)
}
