package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/kv"
)

// Erasure takes payload and salt out of a person's events. What stays is what
// the chain holds: time, kind, subject, outcome, surface, tool, the pseudonym
// and a hash that without its salt tells nothing.
//
// It goes in small transactions. What is under way stands in the bucket
// erasures, and each transaction moves that on together with the events, so
// that after a kill it goes on from there: by [DB.ResumeErasures], or by asking
// again.

// eraseChunk bounds the events that one transaction rewrites: each may stand
// on a page of its own.
const eraseChunk = 250

// erasure is one that is under way.
type erasure struct {
	Identities []string `json:"identities,omitempty"`
	Open       []string `json:"open,omitempty"` // calls of theirs that had not ended before Next
	Next       uint64   `json:"next"`           // the first event not looked at yet
	Until      uint64   `json:"until"`
	Erased     int      `json:"erased"`
	// Of a conversation instead of a person, see privacy.go.
	Thread string   `json:"thread,omitempty"`
	Calls  []string `json:"calls,omitempty"` // sorted
}

// EraseEvents implements [store.Erasures].
func (d *DB) EraseEvents(ctx context.Context, by store.Caller, user string) (int, error) {
	if err := checkIDs("user", user); err != nil {
		return 0, fmt.Errorf("erasing events: %w", err)
	}
	if user == store.System.User {
		return 0, fmt.Errorf("erasing events: %w user %q: it is not a person", store.ErrInvalid, user)
	}
	if by.User == user { // or the event would bring back what it is about
		by = store.Caller{User: by.User, Surface: by.Surface}
	}
	if err := d.lockErasing(ctx); err != nil {
		return 0, err
	}
	defer d.unlockErasing()
	err := d.update(ctx, "beginning to erase events", func(t *tx) error {
		e, err := getJSON[erasure](t, "erasures", []byte(user))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if e.Next == 0 {
			base, err := loadBase(t, d.auditKey)
			if err != nil {
				return err
			}
			e.Next = base.seq + 1
		}
		e.Until = t.head.seq
		if e.Identities, err = t.identitiesOf(user, e.Identities); err != nil {
			return err
		}
		if err := t.putJSON("erasures", []byte(user), e); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "audit.erase", subject: user, data: struct {
			Until uint64 `json:"until"`
		}{e.Until}})
	})
	if err != nil {
		return 0, err
	}
	return d.erase(ctx, user)
}

// identitiesOf adds those that the user has now to the ones known: when an
// interrupted erasure goes on the record may be gone.
func (t *tx) identitiesOf(user string, known []string) ([]string, error) {
	u, err := getJSON[store.User](t, "users", []byte(user))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	all := slices.Concat(known, u.Identities)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// ResumeErasures implements [store.Erasures].
func (d *DB) ResumeErasures(ctx context.Context) (int, error) {
	if err := d.lockErasing(ctx); err != nil {
		return 0, err
	}
	defer d.unlockErasing()
	var users [][]byte
	err := d.view(ctx, "listing erasures", func(t *tx) error {
		users = t.keys("erasures", nil, 0)
		return nil
	})
	erased := 0
	for _, user := range users {
		n, eerr := d.resumeErasure(ctx, string(user))
		erased, err = erased+n, errors.Join(err, eerr)
	}
	return erased, err
}

func (d *DB) resumeErasure(ctx context.Context, key string) (int, error) {
	if thread, ok := strings.CutPrefix(key, forgetPrefix); ok {
		f, err := d.forgetThread(ctx, thread)
		return f.Events, err
	}
	return d.erase(ctx, key)
}

// lockErasing lets one erasure in at a time: two of the same person would
// count each other's.
func (d *DB) lockErasing(ctx context.Context) error {
	select {
	case d.erasing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another erasure: %w", ctx.Err())
	}
}

func (d *DB) unlockErasing() { <-d.erasing }

// erase does what the record of the user's erasure asks for and returns how
// many events it erased, those before an interruption included.
func (d *DB) erase(ctx context.Context, user string) (int, error) {
	for {
		var (
			e     erasure
			found []uint64
		)
		err := d.view(ctx, "looking for events to erase", func(t *tx) (err error) {
			if e, err = getJSON[erasure](t, "erasures", []byte(user)); err != nil {
				return err
			}
			found, err = t.eventsOf(user, &e)
			return err
		})
		if err != nil {
			return e.Erased, err
		}
		before, done := e.Erased, e.Next > e.Until
		err = d.update(ctx, "erasing events", func(t *tx) error {
			e.Erased = before
			for _, seq := range found {
				n, err := t.strip(seq)
				if err != nil {
					return err
				}
				e.Erased += n
			}
			if !done {
				return t.putJSON("erasures", []byte(user), e)
			}
			if err := t.del("erasures", []byte(user)); err != nil {
				return err
			}
			return t.checkpoint(auditNote{by: store.System, kind: "audit.erased", subject: user, data: struct {
				Events int    `json:"events"`
				Until  uint64 `json:"until"`
			}{e.Erased, e.Until}})
		})
		if err == nil && done {
			d.noteBeside(ctx)
		}
		if err != nil || done {
			return e.Erased, err
		}
	}
}

// eventsOf returns the next of a person's events that are not erased yet, and
// moves e past what it looked at.
func (t *tx) eventsOf(user string, e *erasure) ([]uint64, error) {
	var (
		found []uint64
		who   = t.db.pseudonym(user)
		names = [][]byte{[]byte(`"` + user + `"`)}
	)
	for _, id := range e.Identities {
		names = append(names, []byte(`"`+id+`"`))
	}
	looked := 0
	for k, v := range t.scan("events", kv.Range{From: seqKey(e.Next), Before: seqKey(e.Until + 1), Limit: eventPage}) {
		if len(found) == eraseChunk {
			return found, nil
		}
		looked++
		seq := decodeSeq(k)
		p, err := eventParts(v)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", seq, err)
		}
		theirs := e.Thread != "" && e.ofThread(p) || e.Thread == "" && e.theirs(user, who, names, p)
		if theirs && len(p[evSalt])+len(p[evPayload]) > 0 {
			found = append(found, seq)
		}
		e.Next = seq + 1
	}
	if looked < eventPage {
		e.Next = e.Until + 1
	}
	return found, nil
}

// theirs says whether an event tells something about the person: it is of
// theirs, or about them, or another's that names them, or about a call of
// theirs, which others decide on and nize ends.
func (e *erasure) theirs(user string, who []byte, names [][]byte, p [][]byte) bool {
	subject := string(p[evSubject])
	call := strings.HasPrefix(string(p[evKind]), "call.")
	if call && slices.Contains(e.Open, subject) {
		if store.State(p[evOutcome]).Final() {
			e.Open = slices.DeleteFunc(e.Open, func(id string) bool { return id == subject })
		}
		return true
	}
	cloneBytes := bytes.Equal(p[evPseudonym], who)
	if cloneBytes && call && !store.State(p[evOutcome]).Final() && string(p[evKind]) == "call."+string(p[evOutcome]) {
		e.Open = append(e.Open, subject) // the kind is the state: that is a call's beginning, not a decision on it
	}
	if !cloneBytes && strings.HasPrefix(string(p[evKind]), "audit.") {
		return false // it says who was forgotten, when and by whom
	}
	return cloneBytes || subject == user || slices.Contains(e.Identities, subject) ||
		slices.ContainsFunc(names, func(n []byte) bool { return bytes.Contains(p[evPayload], n) })
}

// strip takes payload and salt out of one event; it returns 0 if there are none.
func (t *tx) strip(seq uint64) (int, error) {
	v := t.get("events", seqKey(seq))
	if v == nil { // pruned meanwhile
		return 0, nil
	}
	p, err := eventParts(v)
	if err != nil {
		return 0, fmt.Errorf("event %d: %w", seq, err)
	}
	if len(p[evSalt])+len(p[evPayload]) == 0 {
		return 0, nil
	}
	p[evSalt], p[evPayload] = nil, nil
	return 1, t.put("events", seqKey(seq), pack(p...))
}

// names tells who is behind a pseudonym, for events whose payload was erased
// since it told of somebody else.
type names map[string]store.User

// fill names the user of an erased event, if there still is such a user.
func (n *names) fill(t *tx, e *store.Event, pseudonym []byte) error {
	if *n == nil {
		users, err := listJSON[store.User](t, "users", nil)
		if err != nil {
			return err
		}
		*n = names{string(t.db.pseudonym(store.System.User)): {ID: store.System.User, Name: store.System.Name}}
		for _, u := range users {
			(*n)[string(t.db.pseudonym(u.ID))] = u
		}
	}
	u := (*n)[string(pseudonym)]
	e.User, e.UserName = u.ID, u.Name
	return nil
}
