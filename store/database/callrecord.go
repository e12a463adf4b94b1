package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/record"
)

// One record for each call. A transition rewrites its head only; the sealed
// parts are carried over as they are.

// storedCall is a call as it stands on disk. Its head has neither arguments
// nor result.
type storedCall struct {
	head         store.Call
	args, result []byte // sealed
}

// sealCall makes the stored form. Arguments that stand in a decision (an edit)
// are sealed together with the call's own.
func (t *tx) sealCall(c store.Call) (storedCall, error) {
	parts := [][]byte{c.Args}
	c.Decisions = slices.Clone(c.Decisions)
	for i := range c.Decisions {
		parts = append(parts, c.Decisions[i].Args)
		c.Decisions[i].Args = nil
	}
	s := storedCall{args: t.seal("calls/args", c.ID, pack(parts...))}
	if c.Result != nil {
		var err error
		if s.result, err = t.sealResult(c.ID, c.Result); err != nil {
			return s, err
		}
	}
	c.Args, c.Result = nil, nil
	s.head = c
	return s, nil
}

func (t *tx) sealResult(id string, r *store.Result) ([]byte, error) {
	plain, err := packResult(r)
	if err != nil {
		return nil, err
	}
	return t.seal("calls/result", id, plain), nil
}

func packResult(r *store.Result) ([]byte, error) {
	bare := *r
	bare.Raw, bare.Shown, bare.Late = nil, nil, false
	head, err := json.Marshal(bare)
	return pack(head, r.Raw, r.Shown), err
}

func unpackResult(plain []byte) (*store.Result, error) {
	parts, err := unpackN(plain, 3)
	if err != nil {
		return nil, err
	}
	r, err := decodeJSON[store.Result](parts[0])
	r.Raw, r.Shown = cloneBytes(parts[1]), cloneBytes(parts[2])
	return &r, err
}

// openCall is the way back.
func (d *DB) openCall(s storedCall) (store.Call, error) {
	c := s.head
	c.By = d.alias(c.By)
	bad := func(err error) (store.Call, error) { return c, fmt.Errorf("opening call %s: %w", c.ID, err) }
	plain, err := d.unseal("calls/args", c.ID, s.args)
	if err != nil {
		return bad(err)
	}
	parts, err := unpackN(plain, 1)
	if err != nil {
		return bad(err)
	}
	c.Args = cloneBytes(parts[0])
	for i := range c.Decisions {
		if i+1 < len(parts) {
			c.Decisions[i].Args = cloneBytes(parts[i+1])
		}
	}
	if len(s.result) == 0 {
		return c, nil
	}
	if plain, err = d.unseal("calls/result", c.ID, s.result); err != nil {
		return bad(err)
	}
	if c.Result, err = unpackResult(plain); err != nil {
		return bad(err)
	}
	return c, nil
}

// decodeCall copies what is stored, so that it may leave the transaction.
func decodeCall(v []byte) (storedCall, error) {
	if v == nil {
		return storedCall{}, store.ErrNotFound
	}
	p, err := unpackN(v, 3)
	if err != nil {
		return storedCall{}, err
	}
	r, err := decodeJSON[record.Call](p[0])
	head := r.Value()
	head.Args = nil
	return storedCall{head: head, args: cloneBytes(p[1]), result: cloneBytes(p[2])}, err
}

func encodeCall(s storedCall) ([]byte, error) {
	head, err := json.Marshal(record.OfCall(s.head))
	if err != nil {
		return nil, err
	}
	return pack(head, s.args, s.result), nil
}

func (t *tx) loadCall(id string) (storedCall, error) {
	if s, ok := t.running[id]; ok {
		return s, nil
	}
	s, err := decodeCall(t.get("calls", []byte(id)))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s, store.Errorf("call %q %w", id, store.ErrNotFound)
	case err != nil:
		return s, fmt.Errorf("call %q %w", id, err)
	}
	return s, nil
}

// saveCall writes the call and moves its index entries and its feed entry;
// old is nil for a new call.
func (t *tx) saveCall(old *storedCall, s storedCall) error {
	v, err := encodeCall(s)
	if err != nil {
		return err
	}
	if err := t.put("calls", []byte(s.head.ID), v); err != nil {
		return err
	}
	if s.head.State == store.Running && t.running != nil {
		t.running[s.head.ID] = s
	}
	var before [][]byte
	if old != nil {
		before = callKeys(*old)
	}
	after := callKeys(s)
	for _, k := range before {
		if !containsKey(after, k) {
			if err := t.del("calls_by", k); err != nil {
				return err
			}
		}
	}
	for _, k := range after {
		if !containsKey(before, k) {
			if err := t.put("calls_by", k, nil); err != nil {
				return err
			}
		}
	}
	c := s.head
	if err := t.cardFalls(c); err != nil {
		return err
	}
	t.change(store.Change{Kind: "call", ID: c.ID, Thread: c.Thread, State: c.State, Approved: c.State == store.Pending && !c.Approved.IsZero()})
	if c.State.Final() && (old == nil || !old.head.State.Final()) {
		return t.countCall(c)
	}
	return nil
}

// callKeys are the index entries of a call: each one of the prefixes that
// ListCalls knows, then its time and id.
func callKeys(s storedCall) [][]byte {
	c := s.head
	tail := append(timeKey(c.Created), c.ID...)
	heads := []string{"a", "s" + string(c.State) + "\x00", "u" + c.By + "\x00"}
	if c.Thread != "" {
		heads = append(heads, "t"+c.Thread+"\x00")
		if c.Taints && (c.State == store.Done || c.State == store.Failed) {
			heads = append(heads, "x"+c.Thread+"\x00")
		}
	}
	if c.Waiting() {
		heads = append(heads, "w")
	}
	if len(s.result) > 0 {
		heads = append(heads, "r")
	}
	keys := make([][]byte, len(heads))
	for i, h := range heads {
		keys[i] = append([]byte(h), tail...)
	}
	return keys
}

func containsKey(keys [][]byte, k []byte) bool {
	return slices.ContainsFunc(keys, func(o []byte) bool { return string(o) == string(k) })
}
