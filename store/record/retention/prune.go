package retention

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/record"
	"nize/store/record/calls"
	"nize/store/record/incidents"
	"nize/store/record/people"
	"nize/store/record/spending"
	"nize/store/record/threads"
)

// Retention prunes old records and erases conversations and people.
type Retention struct {
	db    *commit.DB
	trail *commit.Trail
}

// Over returns the Retention of db and its trail.
func Over(db *commit.DB, trail *commit.Trail) Retention { return Retention{db, trail} }

// Prune implements [store.DB]. A conversation is deleted with its turns and the calls that
// it made; a call outside a conversation is deleted with the audit trail of its time. Usage
// is deleted by whole days, rows and counters together.
func (d Retention) Prune(ctx context.Context, keep store.Retention) (store.Pruned, error) {
	var p store.Pruned
	now := d.db.Now()
	steps := []struct {
		keep  time.Duration
		count *int
		prune func(t *commit.Tx, before time.Time) (n int, more bool, err error)
	}{
		{keep.Conversations, &p.Threads, pruneThread},
		{keep.Conversations, new(int), threads.PruneForgotten},
		{keep.Output, &p.Outputs, pruneOutputs},
		{keep.Audit, new(int), pruneCalls},
		{keep.Audit, &p.Events, func(t *commit.Tx, before time.Time) (int, bool, error) { return pruneTrail(t, before, p.Events) }},
		{keep.Audit, new(int), incidents.PruneIncidents},
		{keep.Usage, &p.Spends, pruneSpends},
		{keep.Usage, new(int), pruneUsage},
		{store.KeepUnmetRequests, new(int), func(t *commit.Tx, before time.Time) (int, bool, error) {
			return 0, false, record.PruneUnmetRequests(t.KV(), before)
		}},
		{threads.KeepUploads, new(int), threads.PruneUploads},
		{threads.KeepKeys, new(int), pruneKeys},
		{longest(keep), new(int), pruneRemoved},
		{store.LinkLife, new(int), pruneLinks},
		{time.Hour, new(int), func(t *commit.Tx, _ time.Time) (n int, more bool, err error) {
			n, err = record.PruneHomes(t.KV())
			return n, false, err
		}},
	}
	for _, s := range steps {
		for more := s.keep > 0; more; {
			var n int
			err := d.db.Write(ctx, "pruning", func(t *commit.Tx) (err error) {
				n, more, err = s.prune(t, now.Add(-s.keep))
				return err
			})
			if err != nil {
				return p, err
			}
			*s.count += n
		}
	}
	if p.Events > 0 {
		d.db.NoteBeside(ctx)
	}
	return p, nil
}

// older returns up to a chunk of index keys under prefix with a time before the given one.
func older(t *commit.Tx, bucket, prefix string, before time.Time) [][]byte {
	end := append([]byte(prefix), commit.TimeKey(before)...)
	keys := t.Keys(bucket, []byte(prefix), commit.Chunk)
	for i, k := range keys {
		if bytes.Compare(k, end) >= 0 {
			return keys[:i]
		}
	}
	return keys
}

// pruneThread deletes the oldest conversation, or a chunk of its turns or calls.
func pruneThread(t *commit.Tx, before time.Time) (int, bool, error) {
	old := older(t, "threads_by", "a", before)
	if len(old) == 0 {
		return 0, false, nil
	}
	id := string(old[0][9:])
	th, err := commit.GetJSON[store.Thread](t, "threads", []byte(id))
	if err != nil {
		return 0, false, err
	}
	prefix := "t" + id + "\x00"
	deleted := 0
	for _, k := range t.Keys("calls_by", []byte(prefix), commit.Chunk) {
		n, err := deleteCall(t, string(k[len(prefix)+8:]))
		if err != nil {
			return 0, false, err
		}
		deleted += n
	}
	if deleted == commit.Chunk {
		return 0, true, nil
	}
	whole, err := threads.DeleteThread(t, th)
	if err != nil || !whole {
		return 0, true, err
	}
	return 1, true, nil
}

// deleteCall deletes a call that has ended and returns the number of deleted calls.
func deleteCall(t *commit.Tx, id string) (int, error) {
	s, err := calls.LoadCall(t, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !s.Head.State.Final() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := errors.Join(forgetView(t, s.Head), t.DeletePrefix("places", commit.Key(id, ""))); err != nil {
		return 0, err
	}
	for _, k := range calls.CallKeys(s) {
		if err := t.Delete("calls_by", k); err != nil {
			return 0, err
		}
	}
	return 1, t.Delete("calls", []byte(id))
}

// forgetView deletes the context and the state of a call's view.
func forgetView(t *commit.Tx, c store.Call) error {
	return errors.Join(t.Delete("view_contexts", commit.Key(c.Thread, c.ID)), t.DeletePrefix("view_states", commit.Key(c.ID, "")))
}

// pruneOutputs deletes the results of old calls: first of calls with an index entry for
// their result, then of the others, which it reads in the order of their times from where
// the last run ended.
func pruneOutputs(t *commit.Tx, before time.Time) (n int, more bool, err error) {
	keys := older(t, "calls_by", "r", before)
	for _, k := range keys {
		stripped, open, err := pruneOutput(t, string(k[9:]))
		if err != nil {
			return 0, false, err
		}
		if open {
			continue
		}
		n += stripped
		if err := t.Delete("calls_by", k); err != nil {
			return 0, false, err
		}
	}
	if len(keys) == commit.Chunk && n > 0 || !t.DB.Compacts() {
		return n, len(keys) == commit.Chunk && n > 0, nil
	}
	from := []byte("a")
	if last := t.Get("meta", outputsPruned); last != nil {
		from = append(append(from, last...), 0)
	}
	keys = nil
	for k := range t.Scan("calls_by", kv.Range{Prefix: []byte("a"), From: from, Before: append([]byte("a"), commit.TimeKey(before)...), Limit: commit.Chunk}) {
		keys = append(keys, commit.CloneBytes(k))
	}
	if len(keys) == 0 {
		return n, false, nil
	}
	for _, k := range keys {
		stripped, open, err := pruneOutput(t, string(k[9:]))
		if err != nil {
			return 0, false, err
		}
		n += stripped
		if open { // a later run looks at it again
			if err := t.Put("calls_by", append([]byte("r"), k[1:]...), nil); err != nil {
				return 0, false, err
			}
		}
	}
	return n, len(keys) == commit.Chunk, t.Put("meta", outputsPruned, keys[len(keys)-1][1:])
}

// outputsPruned is the key of the time and id of the last call of which pruneOutputs took
// the result, or that had none.
var outputsPruned = []byte("outputs_pruned")

// pruneOutput takes the result out of a call. open reports that the call has not ended.
func pruneOutput(t *commit.Tx, id string) (stripped int, open bool, err error) {
	s, err := calls.LoadCall(t, id)
	if errors.Is(err, store.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil || !s.Head.State.Final() || len(s.Result) == 0 {
		return 0, err == nil && !s.Head.State.Final(), err
	}
	s.Result = nil
	v, err := calls.EncodeCall(t, s)
	if err = errors.Join(err, forgetView(t, s.Head)); err != nil {
		return 0, false, err
	}
	return 1, false, t.Put("calls", []byte(id), v)
}

// pruneCalls deletes calls that have ended. It stops at a chunk without such a call, since
// open calls are younger than any sensible retention.
func pruneCalls(t *commit.Tx, before time.Time) (int, bool, error) {
	keys, n := older(t, "calls_by", "a", before), 0
	for _, k := range keys {
		m, err := deleteCall(t, string(k[9:]))
		if err != nil {
			return 0, false, err
		}
		n += m
	}
	return n, len(keys) == commit.Chunk && n > 0, nil
}

// pruneTrail deletes a chunk of old events; deleted is the number deleted earlier in this
// run. Only the first and the last chunk append a checkpoint: a run over a million events
// must not fill the trail with its own.
func pruneTrail(t *commit.Tx, before time.Time, deleted int) (int, bool, error) {
	n, err := t.PruneEvents(before, commit.Chunk)
	if err != nil || n+deleted == 0 {
		return n, false, err
	}
	more := n == commit.Chunk
	if more && deleted > 0 {
		return n, true, nil
	}
	return n, more, t.Checkpoint(commit.Note{By: store.System, Kind: "audit.prune", Subject: "events", Data: struct {
		Deleted int       `json:"deleted"`
		Before  time.Time `json:"before"`
		More    bool      `json:"more,omitempty"` // more follow
	}{deleted + n, before, more}})
}

func pruneSpends(t *commit.Tx, before time.Time) (int, bool, error) {
	keys := older(t, "spends", "", before)
	for _, k := range keys {
		if err := t.Delete("spends", k); err != nil {
			return 0, false, err
		}
	}
	return len(keys), len(keys) == commit.Chunk, nil
}

// pruneUsage deletes the counters of whole days.
func pruneUsage(t *commit.Tx, before time.Time) (int, bool, error) {
	day := before.Truncate(spending.SecondsOfDay * time.Second)
	old, err := oldCounters(t, day)
	if err != nil {
		return 0, false, err
	}
	for _, dim := range spending.Dimensions {
		end := spending.UsageKey(dim, day, "")
		for _, k := range t.Keys("usage", []byte{dim}, commit.Chunk) {
			if bytes.Compare(k, end) >= 0 {
				break
			}
			if err := t.Delete("usage", k); err != nil {
				return 0, false, err
			}
			old++
		}
	}
	return old, old > 0, nil
}

// oldCounters deletes a chunk of the counters of persons from before the time. It seeks
// from one person's dimension to the next.
func oldCounters(t *commit.Tx, before time.Time) (int, error) {
	var keys [][]byte
	for next := []byte{}; next != nil && len(keys) < commit.Chunk; {
		from := next
		next = nil
		for k := range t.Scan("usage_user", kv.Range{From: from, Limit: commit.Chunk}) {
			head := bytes.IndexByte(k, 0) + 2 // user, 0, dimension
			if head < 2 || len(k) < head+4 {
				return 0, commit.ErrDamaged
			}
			if end := append(commit.CloneBytes(k[:head-1]), spending.UsageKey(k[head-1], before, "")...); bytes.Compare(k, end) >= 0 {
				next = append(commit.CloneBytes(k[:head-1]), k[head-1]+1)
				break
			}
			keys = append(keys, commit.CloneBytes(k))
		}
	}
	for _, k := range keys {
		if err := t.Delete("usage_user", k); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// longest returns how long any data about a person is kept, 0 for ever.
func longest(keep store.Retention) time.Duration {
	all := []time.Duration{keep.Conversations, keep.Audit, keep.Usage}
	if slices.Contains(all, 0) {
		return 0
	}
	return slices.Max(all)
}

// pruneRemoved deletes the records of removed users once no other data of theirs is left
// that an erasure could find.
func pruneRemoved(t *commit.Tx, before time.Time) (int, bool, error) {
	for _, k := range t.Keys("removed", nil, 0) {
		g, err := commit.GetJSON[people.Gone](t, "removed", k)
		if err != nil {
			return 0, false, err
		}
		if !g.Removed.Before(before) {
			continue
		}
		if err := t.Delete("removed", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}

// pruneLinks deletes expired codes, and wrong attempts that no longer count.
func pruneLinks(t *commit.Tx, _ time.Time) (int, bool, error) {
	for _, k := range t.Keys("link_tries", nil, 0) {
		had, err := commit.GetJSON[people.Tries](t, "link_tries", k)
		if err != nil {
			return 0, false, err
		}
		if t.Now.Before(had.Until) {
			continue
		}
		if err := t.Delete("link_tries", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, people.DropLinks(t)
}

func pruneKeys(t *commit.Tx, _ time.Time) (int, bool, error) {
	before := t.Writes
	err := threads.ForgetKeys(t, commit.Chunk)
	return 0, t.Writes >= before+2*commit.Chunk, err
}
