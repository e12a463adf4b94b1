package spending

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"nize/store"
	"nize/store/commit"
)

// What a model call holds and costs goes through the journal, as long as no budget
// is near its end.

// held is what was reserved so.
type held struct {
	mu      sync.Mutex                   // guards what follows, and comes before that of the database
	running map[string]store.Reservation // of model calls that run
	ever    [2]int64                     // tokens and micro USD that ever were
	counted [2]atomic.Int64              // of them those that budgets count by now
	exact   int                          // reservations under way that are not made so, and that ever does not know
	exactly uint64                       // how many of those ever began
}

// beginExact notes a reservation that is made in the database at once. end is called when
// it is there, or never will be.
func (h *held) beginExact() (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.exact++
	h.exactly++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.exact--
	}
}

// seen returns a mark of what a reader of the budgets sees from now on. It is no mark if
// it may miss a reservation that ever does not know.
func (h *held) seen() (mark uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.exactly, h.exact == 0
}

// reserveEarly reserves room for a model call by the journal, where no budget could
// run short with it; ok says whether it did. It knows what budgets count by now, and
// that what else was reserved here is on whichever of them.
func (d Spending) reserveEarly(ctx context.Context, r store.Reservation) (ok bool, err error) {
	if !d.db.Journals() || r.Tool != "" || commit.CheckIDs("spend id", r.Spend.ID) != nil || commit.CheckOptional("user", r.Spend.User) != nil {
		return false, nil
	}
	content, err := encodeHeld("reserve", reserving(r))
	if err != nil {
		return false, err
	}
	h := d.held
	mark, ok := h.seen()
	if !ok {
		return false, nil
	}
	counted := [2]int64{h.counted[0].Load(), h.counted[1].Load()} // before the budgets are read: what they count later is taken twice
	var states []store.BudgetState
	known, now := false, d.db.Now()
	err = d.db.Read(ctx, "reserving room for a model call", func(t *commit.Tx) (err error) {
		t.Now = now
		known = t.Get("reserved", []byte(r.Spend.ID)) != nil
		states, err = budgetsFor(t, r)
		return err
	})
	if err != nil || known {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.exactly != mark {
		return false, nil // what was read may be without it
	}
	ever := [2]int64{h.ever[0] + r.Tokens, h.ever[1] + r.MicroUSD}
	for _, s := range states {
		s.Used += s.Reserved + of(s.Unit, ever[0]-counted[0], ever[1]-counted[1])
		if s.Nearly() || s.Limit > 0 && s.Unit == store.InUSD && !r.Spend.Priced {
			return false, nil
		}
	}
	count := func() {
		h.counted[0].Add(r.Tokens)
		h.counted[1].Add(r.MicroUSD)
	}
	if _, known := h.running[r.Spend.ID]; known || !d.db.Journal(content, commit.Later{Committed: count}, reserving(r).apply).OK() {
		return false, nil
	}
	h.running[r.Spend.ID], h.ever = r, ever
	return true, nil
}

// hold notes a model call whose room is reserved in the database, where no budget comes
// near its end with it.
func (h *held) hold(r store.Reservation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[r.Spend.ID] = r
}

// settleEarly books a model call that was reserved so, and came to no more; ok says
// whether it did. No budget is short with it. Without a journal it is booked with what is
// stored next, such as what the call came to: until then the room is reserved, and if this
// process is killed, [Spending.SettleAbandoned] books that.
func (d Spending) settleEarly(by store.Caller, s store.Spend) (ok bool) {
	h := d.held
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.running[s.ID]
	delete(h.running, s.ID)
	if !ok || s.Prompt+s.Completion > r.Tokens || s.MicroUSD > r.MicroUSD {
		return false
	}
	s.At = d.db.Now()
	if !d.db.Journals() {
		return d.db.WriteLater(commit.Later{Size: 512, Awaited: true, Optional: true}, settling{by, s}.apply)
	}
	content, err := encodeHeld("settle", settling{by, s})
	return err == nil && d.db.Journal(content, commit.Later{}, settling{by, s}.apply).OK()
}

type (
	reserving store.Reservation
	settling  struct {
		By    store.Caller `json:"by"`
		Spend store.Spend  `json:"spend"` // its time is when it was settled
	}
)

func (c reserving) apply(t *commit.Tx) error {
	return t.PutJSON("reserved", []byte(c.Spend.ID), store.Reservation(c))
}

func (c settling) apply(t *commit.Tx) error {
	_, err := settle(t, c.By, c.Spend, c.Spend.At)
	return err
}

// encodeHeld is a change as the journal has it.
func encodeHeld(kind string, v any) ([]byte, error) {
	head, err := json.Marshal(v)
	return commit.Pack([]byte(kind), head, nil), err
}

// DecodeHeld is what commits a record of one.
func DecodeHeld(p [][]byte) (func(*commit.Tx) error, error) {
	switch string(p[0]) {
	case "reserve":
		c, err := commit.DecodeJSON[reserving](p[1])
		return c.apply, err
	case "settle":
		c, err := commit.DecodeJSON[settling](p[1])
		return c.apply, err
	}
	return nil, fmt.Errorf("%w kind %q of a record: it is of a later version", store.ErrInvalid, p[0])
}
