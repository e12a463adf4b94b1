package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"nize/store"
	"nize/store/journal"
	"nize/store/project"
	"nize/store/record"
)

// Most calls that may change something belong to no conversation of a chat and
// wait for nobody. A commit for the beginning of one and one for its end would cost
// more than all else about it. So both go into a journal beside the database, the
// first flushed before it is sent anywhere, and into the queue of records that the
// next commit takes. What a program's round came to goes the same way, and so does
// what a model call holds and costs, as long as no budget is near its end. A start
// commits what a killed process left.

// early is that journal and what is in it.
type early struct {
	db       *DB
	file     *journal.File                // nil: everything is committed at once
	running  map[string]*store.Call       // calls whose beginning went through it
	reserved map[string]store.Reservation // model calls that run whose reservation did
	threads  map[string]*store.Thread     // conversations that are not committed
	waits    int                          // records that are not committed
	steps    int                          // of them those of rounds
	held     [2]int64                     // tokens and micro USD that ever were reserved in it
	counted  [2]int64                     // of them those that budgets count by now
	last     uint64                       // the newest record that was committed when the database was opened
}

func journalPath(path string) string { return path + ".journal" }

// begin begins a call by the journal; ok says whether it did. Conversations of
// chats are followed as they go, so their calls are committed at once; and what
// taints one is.
func (e *early) begin(ctx context.Context, by store.Caller, c store.Call) (ok bool, err error) {
	d := e.db
	if !e.on() || c.State != store.Running || c.Thread != "" && (c.Taints || !isProject(c.By)) || c.Replaces != "" || !c.Expires.IsZero() || len(c.Decisions) > 0 || c.Result != nil || by.User == "" || checkCall(c) != nil {
		return false, nil
	}
	known := false
	err = d.view(ctx, "beginning call "+c.ID, func(t *tx) error {
		known = t.get("calls", []byte(c.ID)) != nil
		return nil
	})
	if err != nil || known {
		return false, err
	}
	c = copyCall(c)
	fillTimes(&c, d.clock.now())
	content, err := encodeEarly(by, c)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	file, seq := e.file, uint64(0)
	if d.unwritten[c.ID] == nil && e.running[c.ID] == nil {
		if seq = e.appendLocked(content, lazyOp{call: &c}, func(t *tx) error { return t.addCall(by, c) }); seq > 0 {
			e.running[c.ID] = &c
		}
	}
	d.mu.Unlock()
	return seq > 0, e.flush(ctx, file, seq)
}

func (e *early) on() bool {
	e.db.mu.Lock()
	defer e.db.mu.Unlock()
	return e.file != nil
}

func isProject(user string) bool {
	_, ok := project.IDOf(user)
	return ok
}

// flush returns when the record of that number is durable, one way or the other.
// There is none with the number 0.
func (e *early) flush(ctx context.Context, file *journal.File, seq uint64) error {
	if seq == 0 {
		return nil
	}
	err := file.Flush(seq)
	if err == nil {
		return nil
	}
	e.db.mu.Lock()
	e.endLocked(err)
	e.db.mu.Unlock()
	return e.db.update(ctx, "writing records", func(*tx) error { return nil }) // with which it is committed
}

// finish ends a call that began so; ok says whether it did. Only one caller
// ends it.
func (e *early) finish(by store.Caller, id string, o store.Outcome) (c store.Call, ok bool) {
	d := e.db
	d.mu.Lock()
	defer d.mu.Unlock()
	began := e.running[id]
	delete(e.running, id)
	if began == nil || by.User == "" {
		return c, false
	}
	ended, at := copyCall(*began), d.clock.now()
	if endCall(&ended, o, at) != nil {
		return c, false
	}
	if o.Result != nil {
		r := *o.Result
		ended.Result = &r
		ended = copyCall(ended)
	}
	content, err := encodeEarly(by, ended)
	if err != nil || e.appendLocked(content, lazyOp{call: &ended}, func(t *tx) error {
		_, _, err := moveCall(t, by, id, finishing(o, at, false))
		return err
	}) == 0 {
		return c, false
	}
	c = copyCall(ended)
	c.By = d.alias(c.By)
	return c, true
}

// appendLocked writes a record and queues fn, which commits it. It needs db.mu,
// and returns the record's number, or 0 where it has to be committed at once.
func (e *early) appendLocked(content []byte, l lazyOp, fn func(*tx) error) uint64 {
	d := e.db
	if e.file == nil || d.closing || d.broken != nil || d.full != nil || len(d.lazy) >= lazyCount || d.lazySize >= lazyBytes {
		return 0
	}
	seq, err := e.file.Append(content)
	if err != nil {
		if !errors.Is(err, journal.ErrFull) {
			e.endLocked(err)
		}
		return 0
	}
	e.waits++
	if l.step {
		e.steps++
	}
	if l.thread != nil {
		e.threads[l.thread.ID] = l.thread
	}
	l.seq, l.size = seq, 1024+len(content)
	if l.call != nil {
		l.size += len(l.call.Args) // of an end the content lacks them
	}
	d.queueLocked(&op{fn: fn, lazy: &l})
	return seq
}

// committedLocked notes that a record is committed, or never will be. It needs
// db.mu.
func (e *early) committedLocked(l *lazyOp) {
	if l.seq == 0 {
		return
	}
	e.waits--
	if l.step {
		e.steps--
	}
	if l.thread != nil && e.threads[l.thread.ID] == l.thread {
		delete(e.threads, l.thread.ID)
	}
	for i, n := range l.held {
		e.counted[i] += n
	}
}

// endLocked has everything committed at once from now on. It needs db.mu.
func (e *early) endLocked(err error) {
	if e.file != nil {
		e.db.log.Error("the journal can't be written; everything is committed at once", "err", err)
		e.file = nil // what waits is committed from memory
	}
}

// commitEarly returns when what went through the journal is committed.
func (d *DB) commitEarly(ctx context.Context) error {
	d.mu.Lock()
	waits := d.early.waits
	d.mu.Unlock()
	if waits == 0 {
		return nil
	}
	return d.update(ctx, "writing records", func(*tx) error { return nil })
}

// Sync implements [kv.DB]: of what records are kept there, rounds alone go through
// the journal.
func (d *DB) Sync(ctx context.Context) error {
	d.mu.Lock()
	steps := d.early.steps
	d.mu.Unlock()
	if steps == 0 {
		return nil
	}
	return d.commitEarly(ctx)
}

// A change is what the journal has beside calls: a kind, and what is changed.
type change interface {
	apply(t *tx) error
}

type (
	reserving store.Reservation
	settling  struct {
		By    store.Caller `json:"by"`
		Spend store.Spend  `json:"spend"` // its time is when it was settled
	}
	stepping struct {
		Thread *store.Thread   `json:"thread,omitempty"`
		Turns  []record.Turn   `json:"turns,omitempty"`
		Round  project.Round   `json:"round"`
		state  json.RawMessage // of the round: a part of its own
	}
)

func (c reserving) apply(t *tx) error {
	return t.putJSON("reserved", []byte(c.Spend.ID), store.Reservation(c))
}

func (c settling) apply(t *tx) error {
	_, err := t.settle(c.By, c.Spend, c.Spend.At)
	return err
}

func (c stepping) apply(t *tx) error {
	if c.Thread != nil {
		if _, err := t.putThread(*c.Thread); err != nil {
			return err
		}
	}
	turns := make([]store.Turn, len(c.Turns))
	for i, r := range c.Turns {
		turns[i] = r.Value()
	}
	if err := t.appendTurns(turns, false); err != nil {
		return err
	}
	c.Round.State = c.state
	return record.PutRound(kvTx{t}, c.Round)
}

// encodeChange is a change as the journal has it. It has fewer parts than a call.
func encodeChange(c change) (content []byte, err error) {
	kind, state := "reserve", json.RawMessage(nil)
	switch c := c.(type) {
	case settling:
		kind = "settle"
	case stepping:
		kind, state = "step", c.state
	}
	head, err := json.Marshal(c)
	return pack([]byte(kind), head, state), err
}

func decodeChange(p [][]byte) (func(*tx) error, error) {
	switch string(p[0]) {
	case "reserve":
		c, err := decodeJSON[reserving](p[1])
		return c.apply, err
	case "settle":
		c, err := decodeJSON[settling](p[1])
		return c.apply, err
	case "step":
		c, err := decodeJSON[stepping](p[1])
		c.state = p[2]
		return c.apply, err
	}
	return nil, fmt.Errorf("%w kind %q of a record: it is of a later version", store.ErrInvalid, p[0])
}

// PutRound implements [project.Rounds].
func (d *DB) PutRound(ctx context.Context, step project.Step, durable bool) error {
	c := stepping{Thread: step.Thread, Round: step.Round, state: step.Round.State}
	c.Round.State = nil
	for _, turn := range step.Turns {
		c.Turns = append(c.Turns, record.OfTurn(turn))
	}
	content, err := encodeChange(c)
	if err != nil {
		return err
	}
	d.mu.Lock()
	file, seq := d.early.file, d.early.appendLocked(content, lazyOp{step: true, thread: step.Thread}, c.apply)
	d.mu.Unlock()
	switch {
	case seq == 0:
		return d.update(ctx, "storing a round", c.apply)
	case durable:
		return d.early.flush(ctx, file, seq)
	}
	return nil
}

// reserve reserves room for a model call by the journal, where no budget could run
// short with it; ok says whether it did. It knows what budgets count by now, and
// that what else was reserved here is on whichever of them.
func (e *early) reserve(ctx context.Context, r store.Reservation) (ok bool, err error) {
	d := e.db
	if !e.on() || r.Tool != "" || checkIDs("spend id", r.Spend.ID) != nil || checkOptional("user", r.Spend.User) != nil {
		return false, nil
	}
	content, err := encodeChange(reserving(r))
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	counted := e.counted // before the budgets are read: what they count later is taken twice
	d.mu.Unlock()
	var states []store.BudgetState
	known, now := false, d.clock.now()
	err = d.view(ctx, "reserving room for a model call", func(t *tx) (err error) {
		t.now = now
		known = t.get("reserved", []byte(r.Spend.ID)) != nil
		states, err = t.budgetsFor(r)
		return err
	})
	if err != nil || known {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := [2]int64{e.held[0] + r.Tokens, e.held[1] + r.MicroUSD}
	for _, s := range states {
		s.Used += s.Reserved + of(s.Unit, held[0]-counted[0], held[1]-counted[1])
		if s.Nearly() || s.Limit > 0 && s.Unit == store.InUSD && !r.Spend.Priced {
			return false, nil
		}
	}
	if _, known := e.reserved[r.Spend.ID]; known || e.appendLocked(content, lazyOp{held: [2]int64{r.Tokens, r.MicroUSD}}, reserving(r).apply) == 0 {
		return false, nil
	}
	e.reserved[r.Spend.ID], e.held = r, held
	return true, nil
}

// settle books a model call that was reserved so, and came to no more; ok says
// whether it did. No budget is short with it.
func (e *early) settle(by store.Caller, s store.Spend) (ok bool) {
	d := e.db
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := e.reserved[s.ID]
	delete(e.reserved, s.ID)
	if !ok || s.Prompt+s.Completion > r.Tokens || s.MicroUSD > r.MicroUSD {
		return false
	}
	s.At = d.clock.now()
	content, err := encodeChange(settling{by, s})
	return err == nil && e.appendLocked(content, lazyOp{}, settling{by, s}.apply) > 0
}

// encodeEarly is a call as the journal has it, and who acts. The journal is
// sealed as a whole.
func encodeEarly(by store.Caller, c store.Call) ([]byte, error) {
	s := storedCall{args: c.Args}
	if c.State != store.Running { // the rest of it was in the record of its beginning
		s.args, c = nil, store.Call{ID: c.ID, State: c.State, Reason: c.Reason, Private: c.Private, Finished: c.Finished, Hooks: c.Hooks, Result: c.Result}
	}
	if c.Result != nil {
		var err error
		if s.result, err = packResult(c.Result); err != nil {
			return nil, err
		}
	}
	c.Args, c.Result = nil, nil
	s.head = c
	call, err := encodeCall(s)
	return pack([]byte(by.User), []byte(by.Name), []byte(by.Surface), []byte(by.Identity), []byte(by.Token), []byte(by.Address), call), err
}

// callParts is how many parts the record of a call has.
const callParts = 7

// decodeEarly is what commits a record.
func decodeEarly(content []byte) (func(*tx) error, error) {
	p, err := unpackN(content, 3)
	if err != nil {
		return nil, err
	}
	if len(p) < callParts {
		return decodeChange(p)
	}
	by := store.Caller{User: string(p[0]), Name: string(p[1]), Surface: store.Surface(p[2]), Identity: string(p[3]), Token: string(p[4]), Address: string(p[5])}
	s, err := decodeCall(p[6])
	if err != nil {
		return nil, err
	}
	c := s.head
	if c.State == store.Running {
		c.Args = s.args
		return func(t *tx) error { return t.addCall(by, c) }, nil
	}
	o := store.Outcome{State: c.State, Reason: c.Reason, Private: c.Private, Hooks: c.Hooks}
	if len(s.result) > 0 {
		if o.Result, err = unpackResult(s.result); err != nil {
			return nil, err
		}
	}
	return func(t *tx) error {
		_, _, err := moveCall(t, by, c.ID, finishing(o, c.Finished, false))
		return err
	}, nil
}

// open commits what the last run left in the journal, and opens it. The
// writer does not run yet.
func (e *early) open() error {
	d := e.db
	last, path := e.last, journalPath(d.path)
	records, err := journal.Read(path, d.auditKey, last)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var left []*op
	for _, content := range records {
		last++
		fn, err := decodeEarly(content)
		if err != nil {
			return fmt.Errorf("reading record %d of %s: %w", last, path, err)
		}
		left = append(left, &op{fn: fn, lazy: &lazyOp{seq: last}})
	}
	if len(left) > 0 {
		err := d.run(left)
		for _, o := range left {
			if o.err != nil {
				d.log.Error("a record of the journal could not be committed", "err", o.err)
			}
		}
		d.log.Info("what was begun or ended before the last run was killed is committed", "records", len(left))
		if errors.Is(err, store.ErrDiskFull) {
			d.lazy, e.waits, e.steps = left, len(left), 1 // as long as it takes, and the file keeps them
			return nil
		}
		if err != nil {
			return err
		}
	}
	if e.file, err = journal.Open(path, d.auditKey, last); err != nil {
		d.log.Warn("there is no room for the journal; everything is committed at once", "err", err)
		e.file = nil
	}
	return nil
}

// close ends it when all is committed.
func (e *early) close() error {
	if e.file == nil {
		return nil
	}
	return errors.Join(e.file.Close(), os.Remove(journalPath(e.db.path)))
}
