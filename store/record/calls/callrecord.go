package calls

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
	"nize/store/record/spending"
	"nize/store/record/threads"
)

// One record for each call. A transition rewrites its head only; the sealed
// parts are carried over as they are.

// StoredCall is a call as it stands on disk. Its head has neither arguments
// nor result.
type StoredCall struct {
	Head         store.Call
	Args, Result []byte // sealed
}

// sealCall makes the stored form. Arguments that stand in a decision (an edit)
// are sealed together with the call's own.
func sealCall(t *commit.Tx, c store.Call) (StoredCall, error) {
	parts := [][]byte{c.Args}
	c.Decisions = slices.Clone(c.Decisions)
	for i := range c.Decisions {
		parts = append(parts, c.Decisions[i].Args)
		c.Decisions[i].Args = nil
	}
	s := StoredCall{Args: t.Seal("calls/args", c.ID, commit.Pack(parts...))}
	if c.Result != nil {
		var err error
		if s.Result, err = sealResult(t, c.ID, c.Result); err != nil {
			return s, err
		}
	}
	c.Args, c.Result = nil, nil
	s.Head = c
	return s, nil
}

func sealResult(t *commit.Tx, id string, r *store.Result) ([]byte, error) {
	plain, err := packResult(r)
	if err != nil {
		return nil, err
	}
	return t.Seal("calls/result", id, plain), nil
}

func packResult(r *store.Result) ([]byte, error) {
	bare := *r
	bare.Raw, bare.Shown, bare.Late = nil, nil, false
	head, err := json.Marshal(bare)
	return commit.Pack(head, r.Raw, r.Shown), err
}

func unpackResult(plain []byte) (*store.Result, error) {
	parts, err := commit.UnpackN(plain, 3)
	if err != nil {
		return nil, err
	}
	r, err := commit.DecodeJSON[store.Result](parts[0])
	r.Raw, r.Shown = commit.CloneBytes(parts[1]), commit.CloneBytes(parts[2])
	return &r, err
}

// openCall is the way back.
func (d Calls) openCall(s StoredCall) (store.Call, error) {
	c := s.Head
	c.By = d.db.Alias(c.By)
	bad := func(err error) (store.Call, error) { return c, fmt.Errorf("opening call %s: %w", c.ID, err) }
	plain, err := d.db.Unseal("calls/args", c.ID, s.Args)
	if err != nil {
		return bad(err)
	}
	parts, err := commit.UnpackN(plain, 1)
	if err != nil {
		return bad(err)
	}
	c.Args = commit.CloneBytes(parts[0])
	for i := range c.Decisions {
		if i+1 < len(parts) {
			c.Decisions[i].Args = commit.CloneBytes(parts[i+1])
		}
	}
	if len(s.Result) == 0 {
		return c, nil
	}
	if plain, err = d.db.Unseal("calls/result", c.ID, s.Result); err != nil {
		return bad(err)
	}
	if c.Result, err = unpackResult(plain); err != nil {
		return bad(err)
	}
	return c, nil
}

// DecodeCall copies what is stored, so that it may leave the transaction.
func DecodeCall(v []byte) (StoredCall, error) {
	if v == nil {
		return StoredCall{}, store.ErrNotFound
	}
	p, err := commit.UnpackN(v, 3)
	if err != nil {
		return StoredCall{}, err
	}
	r, err := commit.DecodeJSON[record.Call](p[0])
	head := r.Value()
	head.Args = nil
	return StoredCall{Head: head, Args: commit.CloneBytes(p[1]), Result: commit.CloneBytes(p[2])}, err
}

// heads are the decoded heads of the calls that waited when they were last listed, so
// that the list is made anew after a change without decoding what did not change.
type heads struct {
	mu   sync.Mutex // guards what follows
	byID map[string]head
}

type head struct {
	raw  []byte
	call store.Call
}

// decode is DecodeCall without the sealed parts.
func (hs *heads) decode(id string, v []byte) (head, error) {
	p, err := commit.UnpackN(v, 1)
	if err != nil {
		return head{}, err
	}
	hs.mu.Lock()
	known := hs.byID[id]
	hs.mu.Unlock()
	if bytes.Equal(known.raw, p[0]) {
		return known, nil
	}
	r, err := commit.DecodeJSON[record.Call](p[0])
	c := r.Value()
	c.Args = nil
	return head{commit.CloneBytes(p[0]), c}, err
}

// keep replaces what is known.
func (hs *heads) keep(byID map[string]head) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.byID = byID
}

// EncodeCall is the way back from DecodeCall.
func EncodeCall(s StoredCall) ([]byte, error) {
	head, err := json.Marshal(record.OfCall(s.Head))
	if err != nil {
		return nil, err
	}
	return commit.Pack(head, s.Args, s.Result), nil
}

// LoadCall reads one. ErrNotFound if there is none.
func LoadCall(t *commit.Tx, id string) (StoredCall, error) {
	if s, ok := t.Began[id].(StoredCall); ok {
		return s, nil
	}
	s, err := DecodeCall(t.Get("calls", []byte(id)))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s, store.Errorf("call %q %w", id, store.ErrNotFound)
	case err != nil:
		return s, fmt.Errorf("call %q %w", id, err)
	}
	return s, nil
}

// SaveCall writes the call and moves its index entries and its feed entry;
// old is nil for a new call.
func SaveCall(t *commit.Tx, old *StoredCall, s StoredCall) error {
	v, err := EncodeCall(s)
	if err != nil {
		return err
	}
	if err := t.Put("calls", []byte(s.Head.ID), v); err != nil {
		return err
	}
	if s.Head.State == store.Running && t.Began != nil {
		t.Began[s.Head.ID] = s
	}
	var before [][]byte
	if old != nil {
		before = CallKeys(*old)
	}
	after := CallKeys(s)
	for _, k := range before {
		if !containsKey(after, k) {
			if err := t.Delete("calls_by", k); err != nil {
				return err
			}
		}
	}
	for _, k := range after {
		// The entry of a waiting call is always written: ListWaiting reads the calls
		// again only if one of these entries was.
		if k[0] == waitingKey || !containsKey(before, k) {
			if err := t.Put("calls_by", k, nil); err != nil {
				return err
			}
		}
	}
	c := s.Head
	if err := threads.CardFalls(t, c); err != nil {
		return err
	}
	t.Change(store.Change{
		Kind: "call", ID: c.ID, Thread: c.Thread, State: c.State, Approved: c.State == store.Pending && !c.Approved.IsZero(),
		Waited: c.Waiting() || old != nil && old.Head.Waiting(),
	})
	if c.Ask == nil && c.State.Final() && (old == nil || !old.Head.State.Final()) {
		return spending.CountCall(t, c)
	}
	return nil
}

// CallKeys are the index entries of a call: each one of the prefixes that
// ListCalls knows, then its time and id.
func CallKeys(s StoredCall) [][]byte {
	c := s.Head
	tail := append(commit.TimeKey(c.Created), c.ID...)
	heads := []string{"a", "s" + string(c.State) + "\x00", "u" + c.By + "\x00"}
	if c.Thread != "" {
		heads = append(heads, "t"+c.Thread+"\x00")
		if c.Taints && (c.State == store.Done || c.State == store.Failed) {
			heads = append(heads, "x"+c.Thread+"\x00")
		}
	}
	if c.Waiting() {
		heads = append(heads, string(waitingKey), waitingOf(c.By))
	}
	if c.Ask != nil {
		heads = append(heads, "q")
	}
	if c.Ask != nil && c.Ask.Key != "" {
		heads = append(heads, askedAs(c.By, c.Ask.Key))
	}
	if len(s.Result) > 0 {
		heads = append(heads, "r")
	}
	keys := make([][]byte, len(heads))
	for i, h := range heads {
		keys[i] = append([]byte(h), tail...)
	}
	return keys
}

// waitingKey is the first byte of the index entries of all waiting calls.
const waitingKey byte = 'w'

// askedAs is the prefix of the asks of a caller under one key.
func askedAs(user, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "k" + user + "\x00" + string(sum[:])
}

// waitingOf is the prefix of the waiting calls that a person, or a project, asked for.
func waitingOf(user string) string { return "p" + user + "\x00" }

// IndexWaiting completes the index of waiting calls by requester. A version before
// it wrote none of its entries, and left those of calls that it decided, so it is
// called whenever a database is opened. It reads the waiting calls and writes only if
// something differs.
func (d Calls) IndexWaiting(ctx context.Context) error {
	compare := func(t *commit.Tx) (missing, stale [][]byte, err error) {
		there := map[string]bool{}
		for k := range t.Scan("calls_by", kv.Range{Prefix: []byte("p")}) {
			there[string(k)] = true
		}
		for k := range t.Scan("calls_by", kv.Range{Prefix: []byte("w"), Record: "calls", At: 1 + 8}) {
			s, err := LoadCall(t, string(k[1+8:]))
			if err != nil {
				return nil, nil, err
			}
			key := append([]byte(waitingOf(s.Head.By)), k[1:]...)
			if !there[string(key)] {
				missing = append(missing, key)
			}
			delete(there, string(key))
		}
		for k := range there {
			stale = append(stale, []byte(k))
		}
		return missing, stale, nil
	}
	return d.db.Reindex(ctx, "indexing waiting calls", "calls_by", compare)
}

func containsKey(keys [][]byte, k []byte) bool {
	return slices.ContainsFunc(keys, func(o []byte) bool { return string(o) == string(k) })
}
