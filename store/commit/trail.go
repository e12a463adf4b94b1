package commit

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"nize/store"
	"nize/store/kv"
)

// eventPage limits how many events or blocks one transaction examines.
const eventPage = 5000

// Trail is the audit trail of a [DB]: reading, verifying, erasing.
type Trail struct {
	db      *DB
	erasing chan struct{} // holds one token: the running erasure
}

// TrailOf returns the trail of a database. Its erasures run one at a time, in the order of
// their requests.
func TrailOf(db *DB) *Trail { return &Trail{db: db, erasing: make(chan struct{}, 1)} }

// eventWalk executes a query, one page per transaction.
type eventWalk struct {
	match   eventMatch
	forward bool
	lo, hi  uint64 // the range yet to be examined, both ends included
	limit   int
	block   uint64 // the block that was read last
	out     []store.Event
	known   names
}

// Events implements [store.Ledger]. It reads blocks first (see block.go) and finds Since
// and Until by binary search, because times never decrease along the chain between repairs
// of the clock.
func (d *Trail) Events(ctx context.Context, q store.EventQuery) ([]store.Event, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if err := d.db.CatchUp(ctx); err != nil {
		return nil, err
	}
	w := eventWalk{
		match: d.eventMatch(q), forward: q.Forward || q.After > 0,
		lo: q.After + 1, hi: math.MaxUint64, limit: q.Limit, block: math.MaxUint64,
	}
	if q.Before > 0 {
		w.hi = q.Before - 1
	}
	bounded := false
	for done := false; !done; {
		err := d.db.Read(ctx, "reading the audit trail", func(t *Tx) (err error) {
			if !bounded {
				bounded = true
				if !q.Since.IsZero() || !q.Until.IsZero() {
					lo, hi := t.span(q.Since, q.Until)
					w.lo, w.hi = max(w.lo, lo), min(w.hi, hi)
				}
			}
			done, err = w.page(t)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return w.out, nil
}

// page examines as much as one transaction may and reports whether that was the rest.
func (w *eventWalk) page(t *Tx) (done bool, err error) {
	first, last := t.First("events", nil), t.Last("events", nil)
	if first == nil {
		return true, nil
	}
	w.lo, w.hi = max(w.lo, DecodeSeq(first)), min(w.hi, DecodeSeq(last))
	for looked := 0; looked < eventPage; {
		if w.lo > w.hi || len(w.out) == w.limit {
			return true, nil
		}
		at := w.lo
		if !w.forward {
			at = w.hi
		}
		if may, err := w.enter(t, at/blockSize); err != nil {
			return false, err
		} else if !may {
			looked++
			continue
		}
		r := kv.Range{From: SeqKey(w.lo), Before: SeqKey(w.hi + 1), Reverse: !w.forward, Limit: eventPage - looked}
		n, skipped, err := w.events(t, r)
		if err != nil {
			return false, err
		}
		looked += n
		if !skipped && n < r.Limit {
			return true, nil
		}
	}
	return false, nil
}

// events examines a range up to a block that contains no result, which it skips.
func (w *eventWalk) events(t *Tx, r kv.Range) (looked int, skipped bool, err error) {
	var p [][]byte
	for k, v := range t.Scan("events", r) {
		looked++
		seq := DecodeSeq(k)
		if may, err := w.enter(t, seq/blockSize); !may || err != nil {
			return looked, true, err
		}
		if p, err = t.eventPartsTo(p, v); err != nil {
			return looked, false, fmt.Errorf("event %d: %w", seq, err)
		}
		if w.match.event(p) && w.match.during(TimeOf(p[evTime])) {
			e, err := t.decodeEvent(k, v, &w.known)
			if err != nil {
				return looked, false, err
			}
			w.out = append(w.out, e)
		}
		w.lo, w.hi = w.rest(seq, seq)
		if len(w.out) == w.limit {
			break
		}
	}
	return looked, false, nil
}

// enter reads a block's columns, once, and skips the block if it contains no result.
func (w *eventWalk) enter(t *Tx, n uint64) (may bool, err error) {
	if n == w.block {
		return true, nil
	}
	if may, err = w.match.block(t, n); err != nil {
		return false, err
	}
	w.block = n
	if !may {
		w.lo, w.hi = w.rest(n*blockSize, (n+1)*blockSize-1)
	}
	return may, nil
}

// rest returns the remaining range after first to last were examined.
func (w *eventWalk) rest(first, last uint64) (lo, hi uint64) {
	if w.forward {
		return last + 1, w.hi
	}
	return w.lo, max(first, 1) - 1
}

// WaitEvents implements [store.Trail].
func (d *Trail) WaitEvents(ctx context.Context, after uint64) error {
	for {
		more := d.db.trail.more() // before the look, so that nothing falls between
		if d.db.trail.last.Load() > after {
			return nil
		}
		d.db.mu.Lock()
		closing := d.db.closing
		d.db.mu.Unlock()
		if closing {
			return fmt.Errorf("waiting for events: %w", store.ErrNotOpen)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("waiting for events: %w", ctx.Err())
		}
	}
}

// AddEvent implements [store.Ledger]. Data is redacted and cut as in any event; write
// errors are returned by the next Flush.
func (d *Trail) AddEvent(by store.Caller, e store.Event) {
	data, at := CloneBytes(e.Data), d.db.Now()
	ok := d.db.WriteLater(Later{Size: 512 + len(data)}, func(t *Tx) error {
		if e.Kind == "" {
			return fmt.Errorf("adding an event: %w: it has no kind", store.ErrInvalid)
		}
		return t.Event(Note{By: by, Kind: e.Kind, Subject: e.Subject, Tool: e.Tool, Outcome: e.Outcome, Data: Redact(data, MaxArgs), At: at})
	})
	if !ok {
		d.db.LogLost("adding event " + e.Kind)
	}
}

func (d *Trail) eventMatch(q store.EventQuery) eventMatch {
	m := eventMatch{EventQuery: q}
	if server, _, ok := strings.Cut(q.Tool, ":"); ok && q.Server == "" {
		m.Server = server // a column with fewer values
	}
	m.asked = [blockCols]bool{q.User != "", q.Tool != "", m.Server != "", q.Kind != "", q.Outcome != "", q.Surface != ""}
	if q.User != "" {
		for _, id := range d.db.AllIDs(q.User) {
			m.who = append(m.who, string(d.db.pseudonym(id)))
		}
	}
	return m
}

// decodeEvent decodes a stored event; its strings are copies.
func (t *Tx) decodeEvent(k, v []byte, known *names) (store.Event, error) {
	p, err := t.eventParts(v)
	if err != nil {
		return store.Event{}, fmt.Errorf("event %d: %w", DecodeSeq(k), err)
	}
	e := store.Event{
		Seq: DecodeSeq(k), At: TimeOf(p[evTime]), Kind: string(p[evKind]), Subject: string(p[evSubject]),
		Surface: store.Surface(p[evSurface]), Tool: string(p[evTool]), Outcome: store.State(p[evOutcome]),
		Chain: hex.EncodeToString(p[evChain]),
	}
	if strings.HasPrefix(e.Kind, "user.") || strings.HasPrefix(e.Kind, "member.") {
		e.SubjectName = t.userName(e.Subject)
	}
	if len(p[evPayload]) == 0 {
		e.Erased = true
		return e, known.fill(t, &e, p[evPseudonym])
	}
	who, err := UnpackN(p[evPayload], 6)
	if err != nil {
		return e, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	e.User, e.UserName, e.Identity, e.Token, e.Address = string(who[0]), string(who[1]), string(who[2]), string(who[3]), string(who[4])
	e.Data = CloneBytes(who[5])
	return e, nil
}
