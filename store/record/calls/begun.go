package calls

import (
	"context"
	"sync"

	"nize/store"
	"nize/store/commit"
	"nize/store/project"
)

// Calls whose beginning and end are written to the journal first.

// begun are the running calls whose beginning is in the journal.
type begun struct {
	mu      sync.Mutex // locked before the database's mutex
	running map[string]*store.Call
}

// shownAs returns the key of a call that is not committed yet.
func shownAs(id string) string { return "call " + id }

// beginEarly begins a call in the journal and reports whether it did. Calls of chat
// conversations are committed at once, since followers read them while they run; so are
// calls that taint a conversation.
func (d Calls) beginEarly(ctx context.Context, by store.Caller, c store.Call) (ok bool, err error) {
	if !d.db.Journals() || c.State != store.Running || c.Thread != "" && (c.Taints || !isProject(c.By)) || c.Replaces != "" || !c.Expires.IsZero() || len(c.Decisions) > 0 || c.Result != nil || by.User == "" || checkCall(c) != nil {
		return false, nil
	}
	known := false
	err = d.db.Read(ctx, "beginning call "+c.ID, func(t *commit.Tx) error {
		known = t.Get("calls", []byte(c.ID)) != nil
		return nil
	})
	if err != nil || known {
		return false, err
	}
	c = copyCall(c)
	fillTimes(&c, d.db.Now())
	content, err := encodeBegun(by, c)
	if err != nil {
		return false, err
	}
	var j commit.Journaled
	d.begun.mu.Lock()
	if d.begun.running[c.ID] == nil {
		if j = d.db.Journal(content, commit.Later{Key: shownAs(c.ID), Shown: &c, Fresh: true, Size: len(c.Args)}, func(t *commit.Tx) error { return addCall(t, by, c) }); j.OK() {
			d.begun.running[c.ID] = &c
		}
	}
	d.begun.mu.Unlock()
	return j.OK(), j.Flush(ctx)
}

func isProject(user string) bool {
	_, ok := project.IDOf(user)
	return ok
}

// finishEarly ends a call that beginEarly began and reports whether it did. Of several
// callers only one ends it.
func (d Calls) finishEarly(by store.Caller, id string, o store.Outcome) (c store.Call, ok bool) {
	d.begun.mu.Lock()
	defer d.begun.mu.Unlock()
	was := d.begun.running[id]
	delete(d.begun.running, id)
	if was == nil || by.User == "" {
		return c, false
	}
	ended, at := copyCall(*was), d.db.Now()
	if endCall(&ended, o, at) != nil {
		return c, false
	}
	if o.Result != nil {
		r := *o.Result
		ended.Result = &r
		ended = copyCall(ended)
	}
	content, err := encodeBegun(by, ended)
	if err != nil {
		return c, false
	}
	j := d.db.Journal(content, commit.Later{Key: shownAs(id), Shown: &ended, Size: len(ended.Args), Ran: true}, func(t *commit.Tx) error {
		_, _, err := moveCall(t, by, id, finishing(o, at, false))
		return err
	})
	if !j.OK() {
		return c, false
	}
	late := d.db.Tight() && j.Flush(context.Background()) != nil // if so, it waits in memory
	c = copyCall(ended)
	if c.Result != nil {
		c.Result.Late = late
	}
	c.By = d.db.Alias(c.By)
	return c, true
}

// encodeBegun returns a call and its caller as a record of the journal, which is sealed as
// a whole.
func encodeBegun(by store.Caller, c store.Call) ([]byte, error) {
	s := StoredCall{Args: c.Args}
	if c.State != store.Running { // the record of its beginning has the rest
		s.Args, c = nil, store.Call{ID: c.ID, State: c.State, Reason: c.Reason, Private: c.Private, Finished: c.Finished, Hooks: c.Hooks, Result: c.Result}
	}
	if c.Result != nil {
		var err error
		if s.Result, err = packResult(c.Result); err != nil {
			return nil, err
		}
	}
	c.Args, c.Result = nil, nil
	s.Head = c
	call, err := encodeFirst(s) // the version before may have to read the journal
	return commit.Pack([]byte(by.User), []byte(by.Name), []byte(by.Surface), []byte(by.Identity), []byte(by.Token), []byte(by.Address), call), err
}

// CallParts is the number of parts of a call's journal record.
const CallParts = 7

// DecodeBegun returns the function that commits a call's journal record.
func DecodeBegun(content []byte) (func(*commit.Tx) error, error) {
	p, err := commit.UnpackN(content, CallParts)
	if err != nil {
		return nil, err
	}
	by := store.Caller{User: string(p[0]), Name: string(p[1]), Surface: store.Surface(p[2]), Identity: string(p[3]), Token: string(p[4]), Address: string(p[5])}
	s, err := DecodeCall("", p[6])
	if err != nil {
		return nil, err
	}
	c := s.Head
	if c.State == store.Running {
		c.Args = s.Args
		return func(t *commit.Tx) error { return addCall(t, by, c) }, nil
	}
	o := store.Outcome{State: c.State, Reason: c.Reason, Private: c.Private, Hooks: c.Hooks}
	if len(s.Result) > 0 {
		if o.Result, err = unpackResult(s.Result); err != nil {
			return nil, err
		}
	}
	return func(t *commit.Tx) error {
		_, _, err := moveCall(t, by, c.ID, finishing(o, c.Finished, false))
		return err
	}, nil
}
