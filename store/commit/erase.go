package commit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/kv"
)

// Erasure removes payload and salt from a person's events. Only the content of the chain
// remains: time, kind, subject, outcome, surface, tool, the pseudonym and a hash that
// reveals nothing without its salt.
//
// It works in small transactions. The bucket erasures contains the progress, which each
// transaction advances together with the events, so that after a crash ResumeErasures of
// package retention, or another request, continues from there.

// eraseChunk limits the events that one transaction rewrites, because each may be on a page
// of its own.
const eraseChunk = 250

// Erasure is an unfinished erasure.
type Erasure struct {
	Identities []string `json:"identities,omitempty"`
	Open       []string `json:"open,omitempty"` // the person's calls that had not ended before Next
	Next       uint64   `json:"next"`           // the first event not examined yet
	Until      uint64   `json:"until"`
	Erased     int      `json:"erased"`
	// Set for a conversation instead of a person, see package retention.
	Thread string   `json:"thread,omitempty"`
	Calls  []string `json:"calls,omitempty"` // sorted
}

// EraseEvents implements [store.Erasures].
func (d *Trail) EraseEvents(ctx context.Context, by store.Caller, user string) (int, error) {
	if err := CheckIDs("user", user); err != nil {
		return 0, fmt.Errorf("erasing events: %w", err)
	}
	if user == store.System.User {
		return 0, fmt.Errorf("erasing events: %w user %q: it is not a person", store.ErrInvalid, user)
	}
	if by.User == user { // otherwise the event would store the person's id again
		by = store.Caller{User: by.User, Surface: by.Surface}
	}
	if err := d.LockErasing(ctx); err != nil {
		return 0, err
	}
	defer d.UnlockErasing()
	err := d.db.Write(ctx, "beginning to erase events", func(t *Tx) error {
		e, err := GetJSON[Erasure](t, "erasures", []byte(user))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		all, err := t.Erasure()
		if err != nil {
			return err
		}
		e.Next, e.Until = cmp.Or(e.Next, all.Next), all.Until
		if e.Identities, err = t.identitiesOf(user, e.Identities); err != nil {
			return err
		}
		if err := t.PutJSON("erasures", []byte(user), e); err != nil {
			return err
		}
		return t.Event(Note{By: by, Kind: "audit.erase", Subject: user, Data: struct {
			Until uint64 `json:"until"`
		}{e.Until}})
	})
	if err != nil {
		return 0, err
	}
	return d.ResumeErasure(ctx, user)
}

// Erasure returns an erasure of all existing events.
func (t *Tx) Erasure() (Erasure, error) {
	base, err := loadBase(t, t.DB.auditKey)
	return Erasure{Next: base.seq + 1, Until: t.head.seq}, err
}

// identitiesOf adds the user's current identities to the known ones: when an interrupted
// erasure continues, the user record may be deleted.
func (t *Tx) identitiesOf(user string, known []string) ([]string, error) {
	u, err := GetJSON[store.User](t, "users", []byte(user))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	all := slices.Concat(known, u.Identities)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// LockErasing admits one erasure at a time, because two of the same person would count each
// other's events.
func (d *Trail) LockErasing(ctx context.Context) error {
	select {
	case d.erasing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another erasure: %w", ctx.Err())
	}
}

// UnlockErasing admits the next erasure.
func (d *Trail) UnlockErasing() { <-d.erasing }

// ResumeErasure completes the user's stored erasure and returns the number of erased
// events, including those before an interruption.
func (d *Trail) ResumeErasure(ctx context.Context, user string) (int, error) {
	for {
		var (
			e     Erasure
			found []uint64
		)
		err := d.db.Read(ctx, "looking for events to erase", func(t *Tx) (err error) {
			if e, err = GetJSON[Erasure](t, "erasures", []byte(user)); err != nil {
				return err
			}
			found, err = t.eventsOf(user, &e)
			return err
		})
		if err != nil {
			return e.Erased, err
		}
		before, done := e.Erased, e.Next > e.Until
		err = d.db.Write(ctx, "erasing events", func(t *Tx) error {
			e.Erased = before
			for _, seq := range found {
				n, err := t.strip(seq)
				if err != nil {
					return err
				}
				e.Erased += n
			}
			if !done {
				return t.PutJSON("erasures", []byte(user), e)
			}
			if err := t.Delete("erasures", []byte(user)); err != nil {
				return err
			}
			return t.Checkpoint(Note{By: store.System, Kind: "audit.erased", Subject: user, Data: struct {
				Events int    `json:"events"`
				Until  uint64 `json:"until"`
			}{e.Erased, e.Until}})
		})
		if err == nil && done {
			d.db.NoteBeside(ctx)
		}
		if err != nil || done {
			return e.Erased, err
		}
	}
}

// eventsOf returns the next of a person's events that are not erased yet, and moves e past
// the events it examined.
func (t *Tx) eventsOf(user string, e *Erasure) ([]uint64, error) {
	var (
		found []uint64
		who   = t.DB.pseudonym(user)
		names = [][]byte{[]byte(`"` + user + `"`)}
	)
	for _, id := range e.Identities {
		names = append(names, []byte(`"`+id+`"`))
	}
	looked := 0
	for k, v := range t.Scan("events", kv.Range{From: SeqKey(e.Next), Before: SeqKey(e.Until + 1), Limit: eventPage}) {
		if len(found) == eraseChunk {
			return found, nil
		}
		looked++
		seq := DecodeSeq(k)
		p, err := t.eventParts(v)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", seq, err)
		}
		theirs := e.Thread != "" && e.ofThread(p) || e.Thread == "" && e.concerns(user, who, names, p)
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

// concerns reports whether an event contains data of the person: it is one of concerns, or
// about them, or another user's that names them, or about a call of concerns, which others
// decide on and nize ends.
func (e *Erasure) concerns(user string, who []byte, names [][]byte, p [][]byte) bool {
	subject := string(p[evSubject])
	call := strings.HasPrefix(string(p[evKind]), "call.")
	if call && slices.Contains(e.Open, subject) {
		if store.State(p[evOutcome]).Final() {
			e.Open = slices.DeleteFunc(e.Open, func(id string) bool { return id == subject })
		}
		return true
	}
	own := bytes.Equal(p[evPseudonym], who)
	if own && call && !store.State(p[evOutcome]).Final() && string(p[evKind]) == "call."+string(p[evOutcome]) {
		e.Open = append(e.Open, subject) // the kind is the state: the event is a call's beginning, not a decision on it
	}
	if !own && strings.HasPrefix(string(p[evKind]), "audit.") {
		return false // it records who was forgotten, when and by whom
	}
	return own || subject == user || slices.Contains(e.Identities, subject) ||
		slices.ContainsFunc(names, func(n []byte) bool { return bytes.Contains(p[evPayload], n) })
}

// strip removes payload and salt from one event; it returns 0 if there are none.
func (t *Tx) strip(seq uint64) (int, error) {
	v := t.Get("events", SeqKey(seq))
	if v == nil { // pruned meanwhile
		return 0, nil
	}
	p, err := t.eventParts(v)
	if err != nil {
		return 0, fmt.Errorf("event %d: %w", seq, err)
	}
	if len(p[evSalt])+len(p[evPayload]) == 0 {
		return 0, nil
	}
	p[evSalt], p[evPayload] = nil, nil
	return 1, t.Put("events", SeqKey(seq), t.DB.encodeEvent(p))
}

// names maps pseudonyms to users, for events whose payload was erased because it contained
// data of another person.
type names map[string]store.User

// fill sets the user of an erased event, if that user still exists.
func (n *names) fill(t *Tx, e *store.Event, pseudonym []byte) error {
	if *n == nil {
		users, err := ListJSON[store.User](t, "users", nil)
		if err != nil {
			return err
		}
		*n = names{string(t.DB.pseudonym(store.System.User)): {ID: store.System.User, Name: store.System.Name}}
		for _, u := range users {
			(*n)[string(t.DB.pseudonym(u.ID))] = u
		}
	}
	u := (*n)[string(pseudonym)]
	e.User, e.UserName = u.ID, u.Name
	return nil
}

// ofThread reports whether an event contains data of the conversation that is being erased:
// it is about one of its calls, or names it. The event that records that it was forgotten,
// by whom and when, stays.
func (e *Erasure) ofThread(p [][]byte) bool {
	kind, subject := string(p[evKind]), string(p[evSubject])
	if kind == "thread.forget" || strings.HasPrefix(kind, "audit.") {
		return false
	}
	_, call := slices.BinarySearch(e.Calls, subject)
	return call || subject == e.Thread || strings.Contains(string(p[evPayload]), `"`+e.Thread+`"`)
}
