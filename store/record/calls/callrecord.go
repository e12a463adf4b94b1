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
	"nize/store/compact"
	"nize/store/kv"
	"nize/store/record"
	"nize/store/record/spending"
	"nize/store/record/threads"
)

// There is one record for each call. A transition rewrites its head only and copies the
// sealed parts.

// StoredCall is a call as it is stored. Its head has neither arguments nor result.
type StoredCall struct {
	Head         store.Call
	Args, Result []byte // sealed
	// Short has a flag for each of the two that was shortened before it was sealed. The
	// flag stays when the record is rewritten in another form, since that doesn't open the
	// part.
	Short shortParts
}

// shortParts are the flags of a record in the compact form.
type shortParts byte

const (
	shortArgs shortParts = 1 << iota
	shortResult
)

// setArgs seals the arguments of a call and of its decisions.
func (s *StoredCall) setArgs(t *commit.Tx, id string, parts ...[]byte) {
	s.Args = t.Seal("calls/args", id, s.short(t, id, commit.Pack(parts...), shortArgs))
}

func (s *StoredCall) setResult(t *commit.Tx, id string, r *store.Result) error {
	plain, err := packResult(r)
	if err != nil {
		return err
	}
	s.Result = t.Seal("calls/result", id, s.short(t, id, plain, shortResult))
	return nil
}

// short shortens a part in the compact form. It must be called before sealing: sealed bytes
// can't be compressed.
func (s *StoredCall) short(t *commit.Tx, id string, plain []byte, part shortParts) []byte {
	s.Short &^= part
	if !t.DB.Compacts() {
		return plain
	}
	s.Short |= part
	return compact.Encode(plain, id)
}

// EmptyArgs removes the arguments of a call and of its decisions.
func (s *StoredCall) EmptyArgs(t *commit.Tx) error {
	plain, err := s.unseal(t.DB, "calls/args", s.Args, shortArgs)
	if err != nil {
		return err
	}
	if !bytes.Equal(plain, commit.Pack(nil)) {
		s.setArgs(t, s.Head.ID, nil)
	}
	return nil
}

// unseal opens a sealed part and restores its full text.
func (s StoredCall) unseal(db *commit.DB, place string, sealed []byte, part shortParts) ([]byte, error) {
	plain, err := db.Unseal(place, s.Head.ID, sealed)
	if err != nil || s.Short&part == 0 {
		return plain, err
	}
	if plain, err = compact.Decode(plain, s.Head.ID); err != nil {
		err = fmt.Errorf("%w: %w", commit.ErrDamaged, err)
	}
	return plain, err
}

// sealCall makes the stored form. Arguments that stand in a decision (an edit)
// are sealed together with the call's own, and so is what a server asks.
func sealCall(t *commit.Tx, c store.Call) (StoredCall, error) {
	if c.Question != nil {
		return sealQuestion(t, c)
	}
	parts := [][]byte{c.Args}
	c.Decisions = slices.Clone(c.Decisions)
	for i := range c.Decisions {
		parts = append(parts, c.Decisions[i].Args)
		c.Decisions[i].Args = nil
	}
	var s StoredCall
	s.setArgs(t, c.ID, parts...)
	if c.Result != nil {
		if err := s.setResult(t, c.ID, c.Result); err != nil {
			return s, err
		}
	}
	c.Args, c.Result = nil, nil
	s.Head = c
	return s, nil
}

// sealQuestion is sealCall for a question, whose decisions hold no arguments.
func sealQuestion(t *commit.Tx, c store.Call) (StoredCall, error) {
	asked, err := json.Marshal(c.Question)
	if err != nil {
		return StoredCall{}, err
	}
	var s StoredCall
	s.setArgs(t, c.ID, c.Args, asked)
	c.Args, c.Result, c.Question = nil, nil, &store.Question{Of: c.Question.Of}
	s.Head = c
	return s, nil
}

// setAnswer replaces the sealed arguments of a question, which are the defaults of its
// form, by its answer.
func (s *StoredCall) setAnswer(t *commit.Tx, answer []byte) error {
	plain, err := s.unseal(t.DB, "calls/args", s.Args, shortArgs)
	if err != nil {
		return err
	}
	parts, err := commit.UnpackN(plain, 2)
	if err != nil {
		return err
	}
	s.setArgs(t, s.Head.ID, answer, parts[1])
	return nil
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

// openCall opens the sealed parts of a stored call.
func (d Calls) openCall(s StoredCall) (store.Call, error) {
	c := s.Head
	c.By = d.db.Alias(c.By)
	bad := func(err error) (store.Call, error) { return c, fmt.Errorf("opening call %s: %w", c.ID, err) }
	plain, err := s.unseal(d.db, "calls/args", s.Args, shortArgs)
	if err != nil {
		return bad(err)
	}
	parts, err := commit.UnpackN(plain, 1)
	if err != nil {
		return bad(err)
	}
	c.Args = commit.CloneBytes(parts[0])
	if c.Question != nil && len(parts) > 1 {
		if c.Question, err = commit.DecodeJSON[*store.Question](parts[1]); err != nil {
			return bad(err)
		}
		return c, nil
	}
	for i := range c.Decisions {
		if i+1 < len(parts) {
			c.Decisions[i].Args = commit.CloneBytes(parts[i+1])
		}
	}
	if len(s.Result) == 0 {
		return c, nil
	}
	if plain, err = s.unseal(d.db, "calls/result", s.Result, shortResult); err != nil {
		return bad(err)
	}
	if c.Result, err = unpackResult(plain); err != nil {
		return bad(err)
	}
	return c, nil
}

// DecodeCall decodes a stored call. The result is a copy, so it may be used after the
// transaction. It returns ErrNotFound if v is nil.
func DecodeCall(id string, v []byte) (StoredCall, error) {
	if v == nil {
		return StoredCall{}, store.ErrNotFound
	}
	p, short, err := callParts(v)
	if err != nil {
		return StoredCall{}, err
	}
	if len(p) < 3 {
		return StoredCall{}, commit.ErrDamaged
	}
	head, err := decodeHead(id, v, p[0])
	return StoredCall{Head: head, Args: commit.CloneBytes(p[1]), Result: commit.CloneBytes(p[2]), Short: short}, err
}

// callParts returns the head, the sealed arguments and the sealed result of a stored call,
// and its flags, which the first form doesn't have.
func callParts(v []byte) (p [][]byte, short shortParts, err error) {
	compacted, err := commit.IsCompact(v)
	if err != nil {
		return nil, 0, err
	}
	if compacted {
		rest := v[len(commit.CompactForm):]
		if len(rest) == 0 || shortParts(rest[0])&^(shortArgs|shortResult) != 0 {
			return nil, 0, commit.ErrDamaged
		}
		short, v = shortParts(rest[0]), rest[1:]
	}
	p, err = commit.UnpackN(v, 1)
	return p, short, err
}

// decodeHead decodes the head of a stored call.
func decodeHead(id string, v, head []byte) (store.Call, error) {
	if compacted, _ := commit.IsCompact(v); compacted { // callParts returned its error
		var err error
		if head, err = compact.Decode(head, id); err != nil {
			return store.Call{}, fmt.Errorf("%w: %w", commit.ErrDamaged, err)
		}
	}
	r, err := commit.DecodeJSON[record.Call](head)
	c := r.Value()
	c.Args = nil
	return c, err
}

// ResealCall calls again for each sealed part of a stored call, with the part's place, and
// returns the record with the results. again returns nil if a part stays as it is;
// ResealCall returns nil if all do.
func ResealCall(v []byte, again func(place string, sealed []byte) ([]byte, error)) ([]byte, error) {
	p, short, err := callParts(v)
	if err == nil && len(p) < 3 {
		err = commit.ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	changed := false
	for i, place := range []string{"calls/args", "calls/result"} {
		if len(p[i+1]) == 0 {
			continue
		}
		fresh, err := again(place, p[i+1])
		if err != nil {
			return nil, err
		}
		if fresh != nil {
			p[i+1], changed = fresh, true
		}
	}
	if !changed {
		return nil, nil
	}
	if compacted, _ := commit.IsCompact(v); compacted {
		return append(append([]byte(commit.CompactForm), byte(short)), commit.Pack(p...)...), nil
	}
	return commit.Pack(p...), nil
}

// heads caches the decoded heads of the waiting calls of the last list, so that the next
// list decodes only changed ones.
type heads struct {
	mu   sync.Mutex // guards what follows
	byID map[string]head
}

type head struct {
	raw  []byte
	call store.Call
}

// decode decodes a call without its sealed parts.
func (hs *heads) decode(id string, v []byte) (head, error) {
	p, _, err := callParts(v)
	if err != nil {
		return head{}, err
	}
	hs.mu.Lock()
	known := hs.byID[id]
	hs.mu.Unlock()
	if bytes.Equal(known.raw, p[0]) {
		return known, nil
	}
	c, err := decodeHead(id, v, p[0])
	return head{commit.CloneBytes(p[0]), c}, err
}

// decodeCall is [DecodeCall] that decodes no cached head again.
func (hs *heads) decodeCall(id string, v []byte) (StoredCall, error) {
	p, short, err := callParts(v)
	if err == nil && len(p) < 3 {
		err = commit.ErrDamaged
	}
	if err != nil {
		return StoredCall{}, err
	}
	h, err := hs.decode(id, v)
	c := h.call // whose slices the cache keeps; openCall adds arguments to its decisions
	c.Hooks, c.Warnings, c.Decisions = slices.Clone(c.Hooks), slices.Clone(c.Warnings), slices.Clone(c.Decisions)
	return StoredCall{Head: c, Args: commit.CloneBytes(p[1]), Result: commit.CloneBytes(p[2]), Short: short}, err
}

// keep replaces the cache.
func (hs *heads) keep(byID map[string]head) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.byID = byID
}

// EncodeCall returns the stored form of a call, in the form that the database of t writes.
func EncodeCall(t *commit.Tx, s StoredCall) ([]byte, error) {
	if !t.DB.Compacts() {
		return encodeFirst(s)
	}
	head, err := json.Marshal(record.OfCall(s.Head))
	if err != nil {
		return nil, err
	}
	return append(append([]byte(commit.CompactForm), byte(s.Short)), commit.Pack(compact.Encode(head, s.Head.ID), s.Args, s.Result)...), nil
}

// Rewrite converts a stored call from the first form to the compact one, shortens its
// arguments and result, and deletes the index entries that the compact form doesn't have;
// freed is their size in bytes.
func Rewrite(t *commit.Tx, k, v []byte) (fresh []byte, freed int, err error) {
	s, err := DecodeCall(string(k), v)
	if err != nil {
		return nil, 0, err
	}
	again := func(place string, sealed []byte, part shortParts) ([]byte, error) {
		plain, err := t.DB.Unseal(place, s.Head.ID, sealed)
		return s.short(t, s.Head.ID, plain, part), err
	}
	plain, err := again("calls/args", s.Args, shortArgs)
	if err != nil {
		return nil, 0, err
	}
	s.Args = t.Seal("calls/args", s.Head.ID, plain)
	if len(s.Result) > 0 {
		if plain, err = again("calls/result", s.Result, shortResult); err != nil {
			return nil, 0, err
		}
		s.Result = t.Seal("calls/result", s.Head.ID, plain)
	}
	written := writtenKeys(t, s)
	for _, k := range CallKeys(s) {
		if containsKey(written, k) {
			continue
		}
		freed += len(k)
		if err := t.Delete("calls_by", k); err != nil {
			return nil, 0, err
		}
	}
	fresh, err = EncodeCall(t, s)
	return fresh, freed, err
}

// encodeFirst returns a call in the first form, which every version reads.
func encodeFirst(s StoredCall) ([]byte, error) {
	head, err := json.Marshal(record.OfCall(s.Head))
	if err != nil {
		return nil, err
	}
	return commit.Pack(head, s.Args, s.Result), nil
}

// LoadCall reads a call. It returns ErrNotFound if there is none.
func LoadCall(t *commit.Tx, id string) (StoredCall, error) {
	if s, ok := t.Began[id].(StoredCall); ok {
		return s, nil
	}
	s, err := DecodeCall(id, t.Get("calls", []byte(id)))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s, store.Errorf("call %q %w", id, store.ErrNotFound)
	case err != nil:
		return s, fmt.Errorf("call %q %w", id, err)
	}
	return s, nil
}

// SaveCall writes a call and updates its index entries and the feed; old is nil for a new
// call.
func SaveCall(t *commit.Tx, old *StoredCall, s StoredCall) error {
	v, err := EncodeCall(t, s)
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
	after := writtenKeys(t, s)
	for _, k := range before {
		if !containsKey(after, k) {
			if err := t.Delete("calls_by", k); err != nil {
				return err
			}
		}
	}
	for _, k := range after {
		// Always write the entry of a waiting call: ListWaiting reads the calls again only
		// after such a write.
		if k[0] == waitingKey || !containsKey(before, k) {
			if old == nil {
				t.Absent("calls_by", k) // it contains the id of a new call
			}
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
	if !c.Decides() && c.State.Final() && (old == nil || !old.Head.State.Final()) {
		return spending.CountCall(t, c)
	}
	return nil
}

// CallKeys returns the index entries that a call may have: each prefix that ListCalls uses,
// followed by the call's time and id.
func CallKeys(s StoredCall) [][]byte { return callKeys(s, false) }

// writtenKeys returns the entries that are written. In the compact form a call that is done
// has no entry by state and none by result; ListCalls and the retention of results read the
// calls instead.
func writtenKeys(t *commit.Tx, s StoredCall) [][]byte { return callKeys(s, t.DB.Compacts()) }

func callKeys(s StoredCall, few bool) [][]byte {
	c := s.Head
	tail := append(commit.TimeKey(c.Created), c.ID...)
	heads := []string{"a", "u" + c.By + "\x00"}
	if !few || c.State != unindexed {
		heads = append(heads, stateKey(c.State))
	}
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
	if len(s.Result) > 0 && !few {
		heads = append(heads, "r")
	}
	keys := make([][]byte, len(heads))
	for i, h := range heads {
		keys[i] = append([]byte(h), tail...)
	}
	return keys
}

// unindexed is the state without an index entry in the compact form.
const unindexed = store.Done

func stateKey(s store.State) string { return "s" + string(s) + "\x00" }

// waitingKey is the first byte of the index entries of all waiting calls.
const waitingKey byte = 'w'

// askedAs returns the prefix of a caller's asks with a key.
func askedAs(user, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "k" + user + "\x00" + string(sum[:])
}

// waitingOf returns the prefix of the waiting calls of a person or a project.
func waitingOf(user string) string { return "p" + user + "\x00" }

// IndexWaiting completes the index of waiting calls by requester. An earlier version wrote
// none of its entries and didn't delete those of calls that it decided, so IndexWaiting
// runs whenever a database is opened. It reads the waiting calls and writes only if
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
