package calls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/access"
)

// Calls implements [store.Calls].
type Calls struct {
	db      *commit.DB
	begun   *begun
	waiting *heads
	index   *waiting
	unmet   *unmetToday
}

// Over returns the calls of db, which must not run yet.
func Over(db *commit.DB) Calls {
	d := Calls{db, &begun{running: map[string]*store.Call{}}, &heads{}, &waiting{}, &unmetToday{}}
	db.OnCommit(d.index.note)
	return d
}

func checkCall(c store.Call) error {
	if err := commit.CheckIDs("call id", c.ID, "requester", c.By); err != nil {
		return err
	}
	return commit.CheckOptional("conversation", c.Thread, "server", c.Server, "tool", c.Tool)
}

// Begin implements [store.Calls].
func (d Calls) Begin(ctx context.Context, by store.Caller, c store.Call) error {
	by.User = cmp.Or(by.User, c.By)
	if ok, err := d.beginEarly(ctx, by, c); ok || err != nil {
		return err
	}
	return d.db.Write(ctx, "beginning call "+c.ID, func(t *commit.Tx) error {
		switch {
		case c.State == store.Pending, c.State == store.Refused, c.Decides() && c.State == store.Approved:
		case !c.Decides() && (c.State == store.Planned || c.State == store.Running):
		default:
			return fmt.Errorf("%w state %q for a new call", store.ErrInvalid, c.State)
		}
		if err := checkCall(c); err != nil {
			return err
		}
		if err := t.IsNew("calls", []byte(c.ID)); err != nil {
			return err
		}
		if c.Replaces != "" {
			if err := replaceCall(t, by, c); err != nil {
				return fmt.Errorf("replacing call %s: %w", c.Replaces, err)
			}
		}
		return addCall(t, by, c)
	})
}

// replaceCall sets c as the successor of the call that it replaces. A waiting call is
// cancelled by that; a failed or expired one is retried.
func replaceCall(t *commit.Tx, by store.Caller, c store.Call) error {
	old, err := LoadCall(t, c.Replaces)
	if err != nil {
		return err
	}
	s, kind := old, "call.retry"
	switch {
	case old.Head.Successor != "":
		return fmt.Errorf("call %s replaced it: %w", old.Head.Successor, store.ErrDecided)
	case old.Head.State == store.Failed || old.Head.State == store.Expired:
	case !old.Head.Waiting():
		return store.ErrDecided
	case overdue(t, old.Head):
		return store.ErrExpired
	default:
		kind = "call.edit"
		s.Head.State, s.Head.Reason, s.Head.Finished = store.Cancelled, store.Textf("edited"), t.Now
	}
	s.Head.Successor = c.ID
	if err := SaveCall(t, &old, s); err != nil {
		return err
	}
	return CallEvent(t, by, kind, s.Head, CallData{Reason: s.Head.Reason, ReplacedBy: c.ID})
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

// addCall stores a new call and sets its missing times.
func addCall(t *commit.Tx, by store.Caller, c store.Call) error {
	fillTimes(&c, t.Now)
	s, err := sealCall(t, c)
	if err != nil {
		return err
	}
	if err := SaveCall(t, nil, s); err != nil {
		return err
	}
	return CallEvent(t, by, "call."+string(c.State), c, CallData{
		Args: commit.Redact(c.Args, commit.MaxArgs), Output: output(c, c.Result), Digest: c.Digest, Reason: c.Reason, Replaces: c.Replaces, RunsAs: c.RunsAs,
	}.withTimes(c))
}

func overdue(t *commit.Tx, c store.Call) bool { return !c.Expires.IsZero() && !t.Now.Before(c.Expires) }

// Decide implements [store.Calls]. It returns ErrConflict if the decision has another
// digest than the call: the person saw something else.
func (d Calls) Decide(ctx context.Context, by store.Caller, id string, dec store.Decision) (store.Call, error) {
	var (
		old, after StoredCall
		late       error // returned after the commit, which is kept
	)
	do := d.db.Write
	if dec.Verb == store.Deny || dec.Verb == store.Cancel || dec.Verb == store.Expire {
		do = d.db.WriteUrgent // it prevents a call from running
	}
	err := do(ctx, "deciding call "+id, func(t *commit.Tx) (err error) {
		late = nil
		if old, err = LoadCall(t, id); err != nil {
			return err
		}
		after = old
		if !old.Head.Waiting() {
			return store.ErrDecided
		}
		verb := dec.Verb
		if overdue(t, old.Head) && verb != store.Expire {
			verb, late = store.Expire, fmt.Errorf("deciding call %s: %w", id, store.ErrExpired)
		} else if dec.Digest != "" && dec.Digest != old.Head.Digest {
			return fmt.Errorf("%w: its digest is %.12s, not %.12s", store.ErrConflict, old.Head.Digest, dec.Digest)
		}
		actor := by
		if late != nil {
			actor = store.System
		}
		signed := signed(t, actor, verb, dec, late != nil)
		if err := checkYes(old.Head, signed); err != nil {
			return err
		}
		after.Head.Decisions = append(slices.Clone(old.Head.Decisions), signed)
		if err := settleCall(t, &after.Head, verb); err != nil {
			return err
		}
		if verb == store.Approve && after.Head.Question != nil && dec.Args != nil {
			if err := after.setAnswer(t, dec.Args); err != nil {
				return err
			}
		}
		if err := SaveCall(t, &old, after); err != nil {
			return err
		}
		if dec.Standing != nil && late == nil {
			if err := access.PutGrant(t, by, *dec.Standing); err != nil {
				return fmt.Errorf("storing the standing answer: %w", err)
			}
		}
		kind := "call." + string(verb)
		if verb == store.Approve && after.Head.Waiting() {
			kind = "call.vote"
		}
		return CallEvent(t, actor, kind, after.Head, CallData{Digest: after.Head.Digest, Reason: after.Head.Reason, Decision: &signed})
	})
	return d.told(old, after, cmp.Or(err, late), err == nil)
}

// told returns the call for the caller: its new state, or the old one if nothing changed.
func (d Calls) told(old, after StoredCall, err error, changed bool) (store.Call, error) {
	if !changed {
		after = old
	}
	if after.Head.ID == "" { // it was not found or not read
		return store.Call{}, err
	}
	c, oerr := d.openCall(after)
	return c, cmp.Or(err, oerr)
}

// checkYes refuses an approval that doesn't count.
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

// signed sets the person and time of a decision. One that came too late is recorded as
// nize's.
func signed(t *commit.Tx, by store.Caller, verb store.Verb, dec store.Decision, late bool) store.Decision {
	if late {
		dec = store.Decision{}
	}
	dec.Verb, dec.Args, dec.Pattern, dec.Standing = verb, nil, nil, nil // the grant stores them
	dec.By = cmp.Or(dec.By, by.User)
	dec.Name = cmp.Or(dec.Name, by.Name)
	dec.Surface = cmp.Or(dec.Surface, by.Surface)
	if dec.At.IsZero() {
		dec.At = t.Now
	}
	return dec
}

// settleCall applies the newest decision to a waiting call.
func settleCall(t *commit.Tx, c *store.Call, verb store.Verb) error {
	dec := c.Decisions[len(c.Decisions)-1]
	who := cmp.Or(dec.Name, dec.By)
	switch verb {
	case store.Approve:
		if len(c.Yes()) < c.Policy.Approvers().Need {
			return nil
		}
		if c.Approved = t.Now; !c.Decides() {
			return nil
		}
		if c.State, c.Reason = store.Approved, store.Textf("approved by %s", who); c.Question != nil {
			c.Reason = store.Textf("answered by %s", who)
		}
	case store.Deny:
		c.State, c.Reason = store.Refused, cmp.Or(dec.Reason, store.Textf("denied by %s", who))
	case store.Cancel:
		c.State, c.Reason = store.Cancelled, cmp.Or(dec.Reason, store.Textf("cancelled by %s", who))
	case store.Expire:
		c.State, c.Reason = store.Expired, cmp.Or(dec.Reason, store.Textf("nobody answered in time"))
	default:
		return fmt.Errorf("%w verb %q", store.ErrInvalid, verb)
	}
	c.Finished = t.Now
	return nil
}

// Remind implements [store.Calls].
func (d Calls) Remind(ctx context.Context, id string) (store.Call, error) {
	var old, after StoredCall
	err := d.db.Write(ctx, "reminding of call "+id, func(t *commit.Tx) (err error) {
		if old, err = LoadCall(t, id); err != nil {
			return err
		}
		if !old.Head.Waiting() || !old.Head.Reminded.IsZero() || overdue(t, old.Head) {
			return store.ErrDecided
		}
		after = old
		after.Head.Reminded = t.Now
		if err := SaveCall(t, &old, after); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "reminder", ID: id, Thread: old.Head.Thread, State: store.Pending})
		return CallEvent(t, store.System, "call.reminded", after.Head, CallData{})
	})
	return d.told(old, after, err, err == nil)
}

// Start implements [store.Calls]. It returns ErrRefused for a call without approval.
func (d Calls) Start(ctx context.Context, id, owner string) (store.Call, error) {
	return d.transition(ctx, store.System, "starting call "+id, id, func(t *commit.Tx, s *StoredCall) (CallData, error) {
		c := &s.Head
		switch {
		case c.State != store.Pending && c.State != store.Planned:
			return CallData{}, store.ErrDecided
		case c.Decides():
			return CallData{}, store.Mark(fmt.Errorf("its asker runs it"), store.ErrRefused)
		case c.State == store.Planned || c.Approved.IsZero():
			return CallData{}, store.Mark(fmt.Errorf("nobody has approved it"), store.ErrRefused)
		}
		c.State, c.Started, c.Owner = store.Running, t.Now, owner
		return CallData{Owner: owner}, nil
	})
}

// NoteRemote implements [store.Calls].
func (d Calls) NoteRemote(ctx context.Context, id string, task store.RemoteTask) error {
	return d.db.Write(ctx, "noting the task of call "+id, func(t *commit.Tx) error {
		old, err := LoadCall(t, id)
		if err != nil {
			return err
		}
		if old.Head.State != store.Running {
			return store.ErrDecided
		}
		after := old
		after.Head.Remote = &task
		if err := SaveCall(t, &old, after); err != nil {
			return err
		}
		return CallEvent(t, store.System, "call.task", after.Head, CallData{})
	})
}

// Resume implements [store.Calls].
func (d Calls) Resume(ctx context.Context, id, owner string) (store.Call, error) {
	return d.transition(ctx, store.System, "resuming call "+id, id, func(_ *commit.Tx, s *StoredCall) (CallData, error) {
		if s.Head.State != store.Running || s.Head.Remote == nil || s.Head.Owner == owner {
			return CallData{}, store.ErrDecided
		}
		s.Head.Owner = owner
		return CallData{Owner: owner}, nil
	})
}

// Finish implements [store.Calls]. Only a running call can be done or lost.
func (d Calls) Finish(ctx context.Context, by store.Caller, id string, o store.Outcome) (store.Call, error) {
	what := "finishing call " + id
	if c, ok := d.finishEarly(by, id, o); ok {
		return c, nil
	}
	if kept, ok := d.uncommittedCall(id); ok && kept.State.Final() { // its end is known but not committed
		return kept, fmt.Errorf("%s: %w", what, store.ErrDecided)
	}
	var old, after StoredCall
	err := d.db.WriteOutcome(ctx, what, func(t *commit.Tx) (err error) { // it ran, so it can't be refused because the disk is full
		old, after, err = moveCall(t, by, id, finishing(o, time.Time{}, false))
		return err
	})
	c, err := d.told(old, after, err, err == nil)
	if !errors.Is(err, store.ErrDiskFull) || c.ID == "" {
		return c, err
	}
	at := d.db.Now()
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
	end := func(t *commit.Tx) error {
		_, _, err := moveCall(t, by, id, finishing(o, at, true))
		return err
	}
	if content, err := encodeBegun(by, ended); err == nil { // the journal has reserved its space
		if j := d.db.Journal(content, commit.Later{Key: shownAs(id), Shown: &ended, Size: size, Ran: true}, end); j.OK() {
			_ = j.Flush(context.WithoutCancel(ctx)) // if this fails, the record waits in memory
			return c, nil
		}
	}
	if !d.db.WriteLater(commit.Later{Key: shownAs(id), Shown: &ended, Size: size, Optional: true}, end) {
		return c, err
	}
	return c, nil
}

// finishing returns the transition that ends a call, at the given time or else at the
// transaction's; late is set if it was delayed by a full disk.
func finishing(o store.Outcome, at time.Time, late bool) func(*commit.Tx, *StoredCall) (CallData, error) {
	return func(t *commit.Tx, s *StoredCall) (CallData, error) {
		c, when := &s.Head, at
		if at.IsZero() {
			when = t.Now
		}
		if err := endCall(c, o, when); err != nil {
			return CallData{}, err
		}
		if o.Result != nil {
			if err := s.setResult(t, c.ID, o.Result); err != nil {
				return CallData{}, err
			}
		}
		return CallData{Digest: c.Digest, Reason: o.Reason, Output: output(*c, o.Result), Late: late}.withTimes(*c), nil
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

// transition loads a call, applies move, and stores it with an event. It returns the
// resulting call, also with ErrDecided.
func (d Calls) transition(ctx context.Context, by store.Caller, what, id string, move func(*commit.Tx, *StoredCall) (CallData, error)) (store.Call, error) {
	var old, after StoredCall
	err := d.db.Write(ctx, what, func(t *commit.Tx) (err error) {
		old, after, err = moveCall(t, by, id, move)
		return err
	})
	return d.told(old, after, err, err == nil)
}

func moveCall(t *commit.Tx, by store.Caller, id string, move func(*commit.Tx, *StoredCall) (CallData, error)) (old, after StoredCall, err error) {
	if old, err = LoadCall(t, id); err != nil {
		return old, old, err
	}
	after = old
	data, err := move(t, &after)
	if err != nil {
		return old, after, err
	}
	if err := SaveCall(t, &old, after); err != nil {
		return old, after, err
	}
	return old, after, CallEvent(t, by, "call."+string(after.Head.State), after.Head, data)
}
