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

// The reservation and cost of a model call are written to the journal, unless a budget is
// nearly used up.

// held holds those reservations.
type held struct {
	mu      sync.Mutex                   // guards the fields below; locked before the database's lock
	running map[string]store.Reservation // running model calls
	ever    [2]int64                     // total tokens and micro USD ever reserved
	counted [2]atomic.Int64              // the part of ever that budgets include by now
	exact   int                          // reservations in progress in the database, not included in ever
	exactly uint64                       // the number of those that ever began
}

// beginExact announces a reservation in the database. end is called when it is stored, or
// never will be.
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

// seen returns a mark of what a reader of the budgets sees from now on. ok is false if it
// may miss a reservation that ever does not include.
func (h *held) seen() (mark uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.exactly, h.exact == 0
}

// reserveEarly reserves capacity for a model call in the journal if no budget could reach
// its limit with it; ok reports whether it did. It knows the amounts that budgets include,
// and assumes that all other reservations here count for each of them.
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
	counted := [2]int64{h.counted[0].Load(), h.counted[1].Load()} // before the budgets are read: amounts that they include later are counted twice
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
		return false, nil // the budgets may have been read without it
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

// hold records a model call with a reservation in the database, if no budget is near its
// limit with it.
func (h *held) hold(r store.Reservation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[r.Spend.ID] = r
}

// settleEarly books a model call that was reserved in this way and cost no more; ok reports
// whether it did. No budget reaches its limit with it. Without a journal the booking joins
// the next write, such as the call's outcome. Until then the capacity stays reserved, and
// if this process is killed, [Spending.SettleAbandoned] books the reservation.
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
		Spend store.Spend  `json:"spend"` // its time is that of the settlement
	}
)

func (c reserving) apply(t *commit.Tx) error {
	return t.PutJSON("reserved", []byte(c.Spend.ID), store.Reservation(c))
}

func (c settling) apply(t *commit.Tx) error {
	_, err := settle(t, c.By, c.Spend, c.Spend.At)
	return err
}

// encodeHeld returns the journal form of a change.
func encodeHeld(kind string, v any) ([]byte, error) {
	head, err := json.Marshal(v)
	return commit.Pack([]byte(kind), head, nil), err
}

// DecodeHeld returns the function that commits such a record of the journal.
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
