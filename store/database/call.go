package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
)

func checkCall(c store.Call) error {
	if err := checkIDs("call id", c.ID, "requester", c.By); err != nil {
		return err
	}
	return checkOptional("conversation", c.Thread, "server", c.Server, "tool", c.Tool)
}

// Begin implements [store.Calls].
func (d *DB) Begin(ctx context.Context, by store.Caller, c store.Call) error {
	by.User = cmp.Or(by.User, c.By)
	if ok, err := d.early.begin(ctx, by, c); ok || err != nil {
		return err
	}
	return d.update(ctx, "beginning call "+c.ID, func(t *tx) error {
		switch c.State {
		case store.Planned, store.Pending, store.Running, store.Refused:
		default:
			return fmt.Errorf("%w state %q for a new call", store.ErrInvalid, c.State)
		}
		if err := checkCall(c); err != nil {
			return err
		}
		if err := isNew(t, "calls", []byte(c.ID)); err != nil {
			return err
		}
		if c.Replaces != "" {
			if err := t.replaceCall(by, c); err != nil {
				return fmt.Errorf("replacing call %s: %w", c.Replaces, err)
			}
		}
		return t.addCall(by, c)
	})
}

// replaceCall names c as the successor of the call that it replaces: one that
// waits is cancelled by that, one that failed or expired is made again.
func (t *tx) replaceCall(by store.Caller, c store.Call) error {
	old, err := t.loadCall(c.Replaces)
	if err != nil {
		return err
	}
	s, kind := old, "call.retry"
	switch {
	case old.head.Successor != "":
		return fmt.Errorf("call %s replaced it: %w", old.head.Successor, store.ErrDecided)
	case old.head.State == store.Failed || old.head.State == store.Expired:
	case !old.head.Waiting():
		return store.ErrDecided
	case t.overdue(old.head):
		return store.ErrExpired
	default:
		kind = "call.edit"
		s.head.State, s.head.Reason, s.head.Finished = store.Cancelled, store.Textf("edited"), t.now
	}
	s.head.Successor = c.ID
	if err := t.saveCall(&old, s); err != nil {
		return err
	}
	return t.callEvent(by, kind, s.head, callData{Reason: s.head.Reason, ReplacedBy: c.ID})
}

func fillTimes(c *store.Call, now time.Time) {
	if c.Created.IsZero() {
		c.Created = now
	}
	if c.State == store.Running && c.Started.IsZero() {
		c.Started = now
	}
	if c.State.Final() && c.Finished.IsZero() {
		c.Finished = now
	}
}

// addCall stores a new call with the times that it lacks.
func (t *tx) addCall(by store.Caller, c store.Call) error {
	fillTimes(&c, t.now)
	s, err := t.sealCall(c)
	if err != nil {
		return err
	}
	if err := t.saveCall(nil, s); err != nil {
		return err
	}
	return t.callEvent(by, "call."+string(c.State), c, callData{
		Args: cut(c.Args, maxArgs), Output: output(c, c.Result), Digest: c.Digest, Reason: c.Reason, Replaces: c.Replaces, RunsAs: c.RunsAs,
	})
}

func (t *tx) overdue(c store.Call) bool { return !c.Expires.IsZero() && !t.now.Before(c.Expires) }

// Decide implements [store.Calls]. A decision that names another digest than
// the call's is ErrConflict: the person saw something else.
func (d *DB) Decide(ctx context.Context, by store.Caller, id string, dec store.Decision) (store.Call, error) {
	var (
		old, after storedCall
		late       error // told after the commit, which keeps what it says
	)
	do := d.update
	if dec.Verb == store.Deny || dec.Verb == store.Cancel || dec.Verb == store.Expire {
		do = d.doUrgent // it keeps something from running
	}
	err := do(ctx, "deciding call "+id, func(t *tx) (err error) {
		late = nil
		if old, err = t.loadCall(id); err != nil {
			return err
		}
		after = old
		if !old.head.Waiting() {
			return store.ErrDecided
		}
		verb := dec.Verb
		if t.overdue(old.head) && verb != store.Expire {
			verb, late = store.Expire, fmt.Errorf("deciding call %s: %w", id, store.ErrExpired)
		} else if dec.Digest != "" && dec.Digest != old.head.Digest {
			return fmt.Errorf("%w: its digest is %.12s, not %.12s", store.ErrConflict, old.head.Digest, dec.Digest)
		}
		actor := by
		if late != nil {
			actor = store.System
		}
		signed := t.signed(actor, verb, dec, late != nil)
		if err := checkYes(old.head, signed); err != nil {
			return err
		}
		after.head.Decisions = append(slices.Clone(old.head.Decisions), signed)
		if err := t.settleCall(&after.head, verb); err != nil {
			return err
		}
		if err := t.saveCall(&old, after); err != nil {
			return err
		}
		if dec.Standing != nil && late == nil {
			if err := t.putGrant(by, *dec.Standing); err != nil {
				return fmt.Errorf("storing the standing answer: %w", err)
			}
		}
		kind := "call." + string(verb)
		if verb == store.Approve && after.head.Waiting() {
			kind = "call.vote"
		}
		return t.callEvent(actor, kind, after.head, callData{Digest: after.head.Digest, Reason: after.head.Reason, Decision: &signed})
	})
	return d.told(old, after, cmp.Or(err, late), err == nil)
}

// told is what a caller gets to see: the call as it became, or as it was if
// nothing became of it.
func (d *DB) told(old, after storedCall, err error, changed bool) (store.Call, error) {
	if !changed {
		after = old
	}
	if after.head.ID == "" { // it was not found, or nobody looked
		return store.Call{}, err
	}
	c, oerr := d.openCall(after)
	return c, cmp.Or(err, oerr)
}

// checkYes refuses a yes that could not count.
func checkYes(c store.Call, d store.Decision) error {
	switch {
	case d.Verb != store.Approve:
		return nil
	case c.Policy.Approvers().NotRequester && d.By == c.By:
		return store.Mark(store.Errorf("this call needs the yes of somebody other than who asked"), store.ErrRefused)
	case slices.Contains(c.Yes(), d.By) && !slices.Contains(d.Voids, d.By):
		return store.Errorf("the same person said yes before: %w", store.ErrDecided)
	}
	return nil
}

// signed fills in who decided and when. One that came too late is nize's.
func (t *tx) signed(by store.Caller, verb store.Verb, dec store.Decision, late bool) store.Decision {
	if late {
		dec = store.Decision{}
	}
	dec.Verb, dec.Args, dec.Pattern, dec.Standing = verb, nil, nil, nil // the grant has its own
	dec.By = cmp.Or(dec.By, by.User)
	dec.Name = cmp.Or(dec.Name, by.Name)
	dec.Surface = cmp.Or(dec.Surface, by.Surface)
	if dec.At.IsZero() {
		dec.At = t.now
	}
	return dec
}

// settleCall moves a waiting call as its newest decision says.
func (t *tx) settleCall(c *store.Call, verb store.Verb) error {
	dec := c.Decisions[len(c.Decisions)-1]
	who := cmp.Or(dec.Name, dec.By)
	switch verb {
	case store.Approve:
		if len(c.Yes()) >= c.Policy.Approvers().Need {
			c.Approved = t.now
		}
		return nil
	case store.Deny:
		c.State, c.Reason = store.Refused, cmp.Or(dec.Reason, store.Textf("denied by %s", who))
	case store.Cancel:
		c.State, c.Reason = store.Cancelled, cmp.Or(dec.Reason, store.Textf("cancelled by %s", who))
	case store.Expire:
		c.State, c.Reason = store.Expired, cmp.Or(dec.Reason, store.Textf("nobody answered in time"))
	default:
		return fmt.Errorf("%w verb %q", store.ErrInvalid, verb)
	}
	c.Finished = t.now
	return nil
}

// Remind implements [store.Calls].
func (d *DB) Remind(ctx context.Context, id string) (store.Call, error) {
	var old, after storedCall
	err := d.update(ctx, "reminding of call "+id, func(t *tx) (err error) {
		if old, err = t.loadCall(id); err != nil {
			return err
		}
		if !old.head.Waiting() || !old.head.Reminded.IsZero() || t.overdue(old.head) {
			return store.ErrDecided
		}
		after = old
		after.head.Reminded = t.now
		if err := t.saveCall(&old, after); err != nil {
			return err
		}
		t.change(store.Change{Kind: "reminder", ID: id, Thread: old.head.Thread, State: store.Pending})
		return t.callEvent(store.System, "call.reminded", after.head, callData{})
	})
	return d.told(old, after, err, err == nil)
}

// Start implements [store.Calls]. A call that nobody approved is ErrRefused.
func (d *DB) Start(ctx context.Context, id, owner string) (store.Call, error) {
	return d.transition(ctx, store.System, "starting call "+id, id, func(t *tx, s *storedCall) (callData, error) {
		c := &s.head
		switch {
		case c.State != store.Pending && c.State != store.Planned:
			return callData{}, store.ErrDecided
		case c.State == store.Planned || c.Approved.IsZero():
			return callData{}, store.Mark(fmt.Errorf("nobody has approved it"), store.ErrRefused)
		}
		c.State, c.Started, c.Owner = store.Running, t.now, owner
		return callData{Owner: owner}, nil
	})
}

// Finish implements [store.Calls]. Only a running call can be done or lost.
func (d *DB) Finish(ctx context.Context, by store.Caller, id string, o store.Outcome) (store.Call, error) {
	what := "finishing call " + id
	if c, ok := d.early.finish(by, id, o); ok {
		return c, nil
	}
	if kept, ok := d.unwrittenCall(id); ok && kept.Result != nil && kept.Result.Late { // its end is known and not on disk yet
		return kept, fmt.Errorf("%s: %w", what, store.ErrDecided)
	}
	c, err := d.transition(ctx, by, what, id, finishing(o, time.Time{}, false))
	if !errors.Is(err, store.ErrDiskFull) || c.ID == "" {
		return c, err
	}
	at := d.clock.now()
	if invalid := endCall(&c, o, at); invalid != nil {
		return c, fmt.Errorf("%s: %w", what, invalid)
	}
	result := store.Result{Late: true}
	if o.Result != nil {
		result = *o.Result
		result.Late = true
	}
	c.Result = &result
	ended := copyCall(c)
	size := 1024 + len(c.Args) + len(result.Raw) + len(result.Shown)
	if !d.writeLater(lazyOp{call: &ended, size: size, optional: true}, func(t *tx) error {
		_, _, err := moveCall(t, by, id, finishing(o, at, true))
		return err
	}) {
		return c, err
	}
	return c, nil
}

// finishing ends a call, at that time where it is not the transaction's; late
// says that a full disk is why.
func finishing(o store.Outcome, at time.Time, late bool) func(*tx, *storedCall) (callData, error) {
	return func(t *tx, s *storedCall) (callData, error) {
		c, when := &s.head, at
		if at.IsZero() {
			when = t.now
		}
		if err := endCall(c, o, when); err != nil {
			return callData{}, err
		}
		if o.Result != nil {
			var err error
			if s.result, err = t.sealResult(c.ID, o.Result); err != nil {
				return callData{}, err
			}
		}
		return callData{Digest: c.Digest, Reason: o.Reason, Output: output(*c, o.Result), Took: took(*c).Milliseconds(), Late: late}, nil
	}
}

func endCall(c *store.Call, o store.Outcome, at time.Time) error {
	switch {
	case !o.State.Final():
		return fmt.Errorf("%w state %q: it is not final", store.ErrInvalid, o.State)
	case c.State.Final():
		return store.ErrDecided
	case c.State != store.Running && (o.State == store.Done || o.State == store.Lost):
		return fmt.Errorf("%w state %q for a call that never ran", store.ErrInvalid, o.State)
	}
	c.State, c.Finished = o.State, at
	c.Reason = cmp.Or(o.Reason, c.Reason)
	c.Private = c.Private || o.Private
	if o.Hooks != nil {
		c.Hooks = o.Hooks
	}
	return nil
}

// transition loads a call, lets move change it, and stores it with an event.
// The call is returned as it is then, also with ErrDecided.
func (d *DB) transition(ctx context.Context, by store.Caller, what, id string, move func(*tx, *storedCall) (callData, error)) (store.Call, error) {
	var old, after storedCall
	err := d.update(ctx, what, func(t *tx) (err error) {
		old, after, err = moveCall(t, by, id, move)
		return err
	})
	return d.told(old, after, err, err == nil)
}

func moveCall(t *tx, by store.Caller, id string, move func(*tx, *storedCall) (callData, error)) (old, after storedCall, err error) {
	if old, err = t.loadCall(id); err != nil {
		return old, old, err
	}
	after = old
	data, err := move(t, &after)
	if err != nil {
		return old, after, err
	}
	if err := t.saveCall(&old, after); err != nil {
		return old, after, err
	}
	return old, after, t.callEvent(by, "call."+string(after.head.State), after.head, data)
}
