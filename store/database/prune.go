package database

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// pruneChunk bounds the deletions of one transaction, so that nobody waits
// long behind it.
const pruneChunk = 500

// Prune implements [store.DB]. With a conversation go its turns and the calls
// that it made; a call outside any goes with the audit trail's time. Usage
// goes by whole days, rows and counters together.
func (d *DB) Prune(ctx context.Context, keep store.Retention) (store.Pruned, error) {
	var p store.Pruned
	now := d.clock.now()
	steps := []struct {
		keep  time.Duration
		count *int
		prune func(t *tx, before time.Time) (n int, more bool, err error)
	}{
		{keep.Conversations, &p.Threads, (*tx).pruneThread},
		{keep.Conversations, new(int), (*tx).pruneForgotten},
		{keep.Output, &p.Outputs, (*tx).pruneOutputs},
		{keep.Audit, new(int), (*tx).pruneCalls},
		{keep.Audit, &p.Events, func(t *tx, before time.Time) (int, bool, error) { return t.pruneTrail(before, p.Events) }},
		{keep.Audit, new(int), (*tx).pruneIncidents},
		{keep.Usage, &p.Spends, (*tx).pruneSpends},
		{keep.Usage, new(int), (*tx).pruneUsage},
		{store.KeepUnmetRequests, new(int), func(t *tx, before time.Time) (int, bool, error) {
			return 0, false, record.PruneUnmetRequests(kvTx{t}, before)
		}},
		{keepUploads, new(int), pruneUploads},
		{keepKeys, new(int), (*tx).pruneKeys},
		{longest(keep), new(int), (*tx).pruneRemoved},
		{store.LinkLife, new(int), (*tx).pruneLinks},
		{store.HomeOpen, new(int), func(t *tx, before time.Time) (n int, more bool, err error) {
			n, err = record.PruneHomes(kvTx{t}, before)
			return n, false, err
		}},
	}
	for _, s := range steps {
		for more := s.keep > 0; more; {
			var n int
			err := d.update(ctx, "pruning", func(t *tx) (err error) {
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
		d.noteBeside(ctx)
	}
	return p, nil
}

// older returns up to a chunk of index keys under prefix whose time is before.
func (t *tx) older(bucket, prefix string, before time.Time) [][]byte {
	end := append([]byte(prefix), timeKey(before)...)
	keys := t.keys(bucket, []byte(prefix), pruneChunk)
	for i, k := range keys {
		if bytes.Compare(k, end) >= 0 {
			return keys[:i]
		}
	}
	return keys
}

// pruneThread deletes the oldest conversation, or a chunk of its turns or calls.
func (t *tx) pruneThread(before time.Time) (int, bool, error) {
	old := t.older("threads_by", "a", before)
	if len(old) == 0 {
		return 0, false, nil
	}
	id := string(old[0][9:])
	th, err := getJSON[store.Thread](t, "threads", []byte(id))
	if err != nil {
		return 0, false, err
	}
	prefix := "t" + id + "\x00"
	deleted := 0
	for _, k := range t.keys("calls_by", []byte(prefix), pruneChunk) {
		n, err := t.deleteCall(string(k[len(prefix)+8:]))
		if err != nil {
			return 0, false, err
		}
		deleted += n
	}
	if deleted == pruneChunk {
		return 0, true, nil
	}
	whole, err := t.deleteThread(th)
	if err != nil || !whole {
		return 0, true, err
	}
	return 1, true, nil
}

// deleteCall deletes a call that ended and says how many that were.
func (t *tx) deleteCall(id string) (int, error) {
	s, err := t.loadCall(id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !s.head.State.Final() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := errors.Join(forgetView(t, s.head), t.delPrefix("places", key(id, ""))); err != nil {
		return 0, err
	}
	for _, k := range callKeys(s) {
		if err := t.del("calls_by", k); err != nil {
			return 0, err
		}
	}
	return 1, t.del("calls", []byte(id))
}

// forgetView deletes what the view of a call said and keeps.
func forgetView(t *tx, c store.Call) error {
	return errors.Join(t.del("view_contexts", key(c.Thread, c.ID)), t.delPrefix("view_states", key(c.ID, "")))
}

// pruneOutputs takes the results out of old calls.
func (t *tx) pruneOutputs(before time.Time) (int, bool, error) {
	keys := t.older("calls_by", "r", before)
	for _, k := range keys {
		s, err := t.loadCall(string(k[9:]))
		if err != nil {
			return 0, false, err
		}
		s.result = nil
		v, err := encodeCall(s)
		if err = errors.Join(err, forgetView(t, s.head)); err != nil {
			return 0, false, err
		}
		if err := t.put("calls", []byte(s.head.ID), v); err != nil {
			return 0, false, err
		}
		if err := t.del("calls_by", k); err != nil {
			return 0, false, err
		}
	}
	return len(keys), len(keys) == pruneChunk, nil
}

// pruneCalls deletes calls that ended. It ends at a chunk in which none did,
// since what is still open is younger than any retention that makes sense.
func (t *tx) pruneCalls(before time.Time) (int, bool, error) {
	keys, n := t.older("calls_by", "a", before), 0
	for _, k := range keys {
		m, err := t.deleteCall(string(k[9:]))
		if err != nil {
			return 0, false, err
		}
		n += m
	}
	return n, len(keys) == pruneChunk && n > 0, nil
}

// pruneTrail deletes a chunk of old events; deleted is how many went before, in
// this run. The first chunk and the last one leave a checkpoint: a run over a
// million events must not fill the trail with its own.
func (t *tx) pruneTrail(before time.Time, deleted int) (int, bool, error) {
	n, err := t.pruneEvents(before, pruneChunk)
	if err != nil || n+deleted == 0 {
		return n, false, err
	}
	more := n == pruneChunk
	if more && deleted > 0 {
		return n, true, nil
	}
	return n, more, t.checkpoint(auditNote{by: store.System, kind: "audit.prune", subject: "events", data: struct {
		Deleted int       `json:"deleted"`
		Before  time.Time `json:"before"`
		More    bool      `json:"more,omitempty"` // it was the first part only
	}{deleted + n, before, more}})
}

func (t *tx) pruneSpends(before time.Time) (int, bool, error) {
	keys := t.older("spends", "", before)
	for _, k := range keys {
		if err := t.del("spends", k); err != nil {
			return 0, false, err
		}
	}
	return len(keys), len(keys) == pruneChunk, nil
}

// pruneUsage deletes the counters of whole days.
func (t *tx) pruneUsage(before time.Time) (int, bool, error) {
	day := before.Truncate(secondsOfDay * time.Second)
	old, err := t.oldCounters(day)
	if err != nil {
		return 0, false, err
	}
	for _, dim := range dimensions {
		end := usageKey(dim, day, "")
		for _, k := range t.keys("usage", []byte{dim}, pruneChunk) {
			if bytes.Compare(k, end) >= 0 {
				break
			}
			if err := t.del("usage", k); err != nil {
				return 0, false, err
			}
			old++
		}
	}
	return old, old > 0, nil
}

// oldCounters deletes a chunk of what was counted for persons, whose keys stand
// before the time: it goes from one person's dimension to the next.
func (t *tx) oldCounters(before time.Time) (int, error) {
	var keys [][]byte
	for next := []byte{}; next != nil && len(keys) < pruneChunk; {
		from := next
		next = nil
		for k := range t.scan("usage_user", kv.Range{From: from, Limit: pruneChunk}) {
			head := bytes.IndexByte(k, 0) + 2 // user, 0, dimension
			if head < 2 || len(k) < head+4 {
				return 0, errRecord
			}
			if end := append(cloneBytes(k[:head-1]), usageKey(k[head-1], before, "")...); bytes.Compare(k, end) >= 0 {
				next = append(cloneBytes(k[:head-1]), k[head-1]+1)
				break
			}
			keys = append(keys, cloneBytes(k))
		}
	}
	for _, k := range keys {
		if err := t.del("usage_user", k); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// longest is how long anything about a person is kept, 0 for ever.
func longest(keep store.Retention) time.Duration {
	all := []time.Duration{keep.Conversations, keep.Audit, keep.Usage}
	if slices.Contains(all, 0) {
		return 0
	}
	return slices.Max(all)
}

// pruneRemoved forgets who was removed, once nothing of them is kept that an
// erasure could find.
func (t *tx) pruneRemoved(before time.Time) (int, bool, error) {
	for _, k := range t.keys("removed", nil, 0) {
		g, err := getJSON[gone](t, "removed", k)
		if err != nil {
			return 0, false, err
		}
		if !g.Removed.Before(before) {
			continue
		}
		if err := t.del("removed", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}

// pruneLinks forgets codes that expired, and wrong ones that count no more.
func (t *tx) pruneLinks(time.Time) (int, bool, error) {
	for _, k := range t.keys("link_tries", nil, 0) {
		had, err := getJSON[tries](t, "link_tries", k)
		if err != nil {
			return 0, false, err
		}
		if t.now.Before(had.Until) {
			continue
		}
		if err := t.del("link_tries", k); err != nil {
			return 0, false, err
		}
	}
	return 0, false, t.dropLinks()
}

func (t *tx) pruneKeys(time.Time) (int, bool, error) {
	before := t.writes
	err := t.forgetKeys(pruneChunk)
	return 0, t.writes >= before+2*pruneChunk, err
}
