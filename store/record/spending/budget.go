package spending

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/project"
	"nize/store/record"
	"nize/store/record/access"
)

// Spending stores usage and budgets: rows, counters, limits.
type Spending struct {
	db   *commit.DB
	held *held
}

// Over returns the spending and budgets stored in db.
func Over(db *commit.DB) Spending {
	return Spending{db, &held{running: map[string]store.Reservation{}}}
}

// The use of a budget is not counted separately: it is the sum of the usage counters of the
// days of its period, so it can't differ from the report. The reservations of running calls
// are in a bucket of their own, which startup empties. Calls of tools count when they
// begin: there is a counter of runs for each person, tool and day, for the tools that have
// a budget.

func budgetKey(b store.Budget) []byte {
	k := commit.Key(b.Subject, string(b.Period), string(b.Unit))
	if b.Tool != "" {
		k = append(append(k, 0), b.Tool...)
	}
	return k
}

// dimRuns is the dimension of usage_user that counts calls of tools when they begin.
const dimRuns byte = 'r'

// PutBudget implements [store.Budgets].
func (d Spending) PutBudget(ctx context.Context, by store.Caller, b store.Budget) error {
	return d.db.Write(ctx, "storing a budget of "+b.Subject, func(t *commit.Tx) error {
		b := b
		if err := b.Check(); err != nil {
			return err
		}
		if err := cmp.Or(commit.CheckIDs("subject", b.Subject), commit.CheckOptional("tool", b.Tool)); err != nil {
			return err
		}
		kind, name, _ := strings.Cut(b.Subject, ":")
		of, isProject := project.IDOf(name) // a project takes the place of a user
		if kind == "user" && isProject && t.Get("projects", []byte(of)) == nil ||
			kind == "user" && !isProject && b.Subject != store.Everybody && name != store.System.User && t.Get("users", []byte(name)) == nil ||
			kind == "group" && t.Get("groups", []byte(name)) == nil {
			return store.ErrNotFound
		}
		b.Set = t.Now
		if err := t.PutJSON("budgets", budgetKey(b), b); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "budget", ID: b.Subject})
		return t.Event(commit.Note{By: by, Kind: "budget.put", Subject: b.Subject, Data: b})
	})
}

// DeleteBudget implements [store.Budgets].
func (d Spending) DeleteBudget(ctx context.Context, by store.Caller, b store.Budget) error {
	return d.db.Write(ctx, "removing a budget of "+b.Subject, func(t *commit.Tx) error {
		if t.Get("budgets", budgetKey(b)) == nil {
			return store.ErrNotFound
		}
		if err := t.Delete("budgets", budgetKey(b)); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "budget", ID: b.Subject})
		return t.Event(commit.Note{By: by, Kind: "budget.delete", Subject: b.Subject, Data: b})
	})
}

// MoveBudgets gives a person's own budgets to another, which may lower but never raise the
// other's limits; if into is "", it deletes them.
func MoveBudgets(t *commit.Tx, by store.Caller, from, into string) error {
	list, err := commit.ListJSON[store.Budget](t, "budgets", commit.Key("user:"+from, ""))
	if err != nil {
		return err
	}
	for _, b := range list {
		if err := t.Delete("budgets", budgetKey(b)); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "budget", ID: b.Subject})
		if err := t.Event(commit.Note{By: by, Kind: "budget.delete", Subject: b.Subject, Data: b}); err != nil {
			return err
		}
		if into == "" {
			continue
		}
		b.Subject = "user:" + into
		if old, err := commit.GetJSON[store.Budget](t, "budgets", budgetKey(b)); err == nil && (b.Limit == 0 || old.Limit > 0 && old.Limit <= b.Limit) {
			continue
		}
		if err := t.PutJSON("budgets", budgetKey(b), b); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "budget", ID: b.Subject})
		if err := t.Event(commit.Note{By: by, Kind: "budget.put", Subject: b.Subject, Data: b}); err != nil {
			return err
		}
	}
	return nil
}

// ListBudgets implements [store.Budgets].
func (d Spending) ListBudgets(ctx context.Context) (list []store.BudgetState, err error) {
	if err := d.db.CatchUp(ctx); err != nil {
		return nil, err
	}
	now := d.db.Now()
	err = d.db.Read(ctx, "listing budgets", func(t *commit.Tx) error {
		t.Now = now
		all, err := commit.ListJSON[store.Budget](t, "budgets", nil)
		for _, b := range all {
			s := store.BudgetState{Budget: b}
			_, s.Resets = b.Period.Bounds(t.Now)
			if b.Subject != store.Everybody {
				if s, err = budgetState(t, b, "", ""); err != nil {
					return err
				}
			}
			list = append(list, s)
		}
		return err
	})
	return list, err
}

// BudgetsFor implements [store.Budgets].
func (d Spending) BudgetsFor(ctx context.Context, r store.Reservation) (list []store.BudgetState, err error) {
	if r.Tool == "" || r.Tool == store.OfAnything { // the journal doesn't contain counts of calls of tools
		if err := d.db.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	if r.Tool != "" && r.Tool != store.OfAnything { // every call reads them: return at once if no tool has a budget
		some, err := commit.Recall(ctx, d.db, "reading budgets", anyOfTools{}, budgetsOfTools, "budgets")
		if !some || err != nil {
			return nil, err
		}
	}
	now := d.db.Now()
	err = d.db.Read(ctx, "reading budgets", func(t *commit.Tx) (err error) {
		t.Now = now
		list, err = budgetsFor(t, r)
		return err
	})
	return list, err
}

type anyOfTools struct{}

// budgetsOfTools reports whether any tool has a budget.
func budgetsOfTools(t *commit.Tx) (bool, error) {
	for k := range t.Scan("budgets", kv.Range{}) {
		if bytes.Count(k, []byte{0}) >= 3 {
			return true, nil
		}
	}
	return false, nil
}

// Reserve implements [store.Meter].
func (d Spending) Reserve(ctx context.Context, by store.Caller, r store.Reservation) error {
	if ok, err := d.reserveEarly(ctx, r); ok || err != nil {
		return err
	}
	if r.Tool == "" {
		defer d.held.beginExact()()
	}
	var refused *store.BudgetError
	calm := false
	err := d.db.Write(ctx, "reserving room for a model call", func(t *commit.Tx) error {
		refused, calm = nil, r.Tool == ""
		if err := commit.CheckIDs("spend id", r.Spend.ID); err != nil {
			return err
		}
		if err := commit.CheckOptional("user", r.Spend.User); err != nil {
			return err
		}
		states, err := budgetsFor(t, r)
		if err != nil {
			return err
		}
		for _, s := range states {
			switch {
			case s.Limit == 0:
			case s.Unit == store.InUSD && !r.Spend.Priced:
				refused = &store.BudgetError{BudgetState: s, Unpriced: r.Spend.ModelName()}
				return nil
			case s.Used+s.Reserved >= s.Limit:
				refused = &store.BudgetError{BudgetState: s}
				return markBudget(t, by, s) // its limit may have been lowered to the used amount
			}
		}
		if r.Tool != "" {
			return countRun(t, by, r, states)
		}
		for _, s := range states {
			s.Used += s.Reserved + of(s.Unit, r.Tokens, r.MicroUSD)
			calm = calm && !s.Nearly() && !(s.Limit > 0 && s.Unit == store.InUSD && !r.Spend.Priced)
		}
		if err := t.IsNew("reserved", []byte(r.Spend.ID)); err != nil {
			return err
		}
		return t.PutJSON("reserved", []byte(r.Spend.ID), r)
	})
	if err == nil && refused != nil {
		return refused
	}
	if err == nil && calm && !d.db.Journals() {
		d.held.hold(r)
	}
	return err
}

// countRun counts a call of a tool that begins, and appends events for the budgets that it
// brings near or to their limit. If no budget applies to that tool, nothing is counted.
func countRun(t *commit.Tx, by store.Caller, r store.Reservation, states []store.BudgetState) error {
	if len(states) == 0 {
		return nil
	}
	y := tally{}
	y.add("usage_user", append(commit.Key(r.Spend.User, ""), UsageKey(dimRuns, t.Now, r.Tool)...), record.Counters{Calls: 1})
	if err := y.store(t); err != nil {
		return err
	}
	for _, s := range states {
		s.Used++
		if err := markBudget(t, by, s); err != nil {
			return err
		}
	}
	return nil
}

// runsOf returns how many calls of the tools that a pattern matches a user began.
func runsOf(t *commit.Tx, user, pattern string, from, to time.Time) (n int64, err error) {
	prefix := append(commit.Key(user, ""), dimRuns)
	end := UsageKey(dimRuns, to, "")[1:]
	for k, v := range t.Scan("usage_user", kv.Range{Prefix: prefix, From: append(commit.Key(user, ""), UsageKey(dimRuns, from, "")...)}) {
		if k = k[len(prefix):]; len(k) < 4 {
			return 0, commit.ErrDamaged
		}
		if bytes.Compare(k[:4], end) >= 0 {
			break
		}
		if store.MatchTool(pattern, string(k[4:])) {
			sum, err := record.DecodeCounters(v)
			if err != nil {
				return 0, err
			}
			n += sum.Calls
		}
	}
	return n, nil
}

// SettleSpend implements [store.Meter].
func (d Spending) SettleSpend(ctx context.Context, by store.Caller, s store.Spend) ([]store.BudgetState, error) {
	if d.settleEarly(by, s) {
		return nil, nil
	}
	var crossed []store.BudgetState
	err := d.db.Write(ctx, "booking a model call", func(t *commit.Tx) (err error) {
		// Use the store's time, which never goes back: after a clock was set back, the call
		// must not be booked on a day whose budget has ended.
		crossed, err = settle(t, by, s, t.Now)
		return err
	})
	return crossed, err
}

// settle books a model call at that time and removes its reservation.
func settle(t *commit.Tx, by store.Caller, s store.Spend, at time.Time) (crossed []store.BudgetState, err error) {
	r := store.Reservation{Spend: s}
	if v := t.Get("reserved", []byte(s.ID)); v != nil {
		if r, err = commit.DecodeJSON[store.Reservation](v); err != nil {
			return nil, err
		}
		if err := t.Delete("reserved", []byte(s.ID)); err != nil {
			return nil, err
		}
	}
	s.At = at
	r.Spend = s
	if err := addSpends(t, []store.Spend{s}); err != nil {
		return nil, err
	}
	states, err := budgetsFor(t, r)
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		was := budgetMark(t, state)
		if err := markBudget(t, by, state); err != nil {
			return nil, err
		}
		if budgetMark(t, state) != was {
			crossed = append(crossed, state)
		}
	}
	return crossed, nil
}

// Release implements [store.Meter].
func (d Spending) Release(ctx context.Context, id string) error {
	d.held.mu.Lock()
	delete(d.held.running, id)
	d.held.mu.Unlock()
	return d.db.Write(ctx, "giving back what a model call reserved", func(t *commit.Tx) error {
		if t.Get("reserved", []byte(id)) == nil {
			return nil
		}
		return t.Delete("reserved", []byte(id))
	})
}

// SettleAbandoned implements [store.Meter].
func (d Spending) SettleAbandoned(ctx context.Context) (n int, err error) {
	err = d.db.Write(ctx, "booking model calls that were cut off", func(t *commit.Tx) error {
		list, err := commit.ListJSON[store.Reservation](t, "reserved", nil)
		if err != nil {
			return err
		}
		for _, r := range list {
			r.Spend.Estimated = true
			if _, err := settle(t, store.System, r.Spend, t.Now); err != nil {
				return err
			}
		}
		n = len(list)
		return nil
	})
	return n, err
}

// budgetsFor returns the budgets that a call counts for, with their use. For each period,
// unit and pattern of tools, a person has their own budget, or else that of everyone, or
// else the default.
func budgetsFor(t *commit.Tx, r store.Reservation) ([]store.BudgetState, error) {
	s := r.Spend
	if r.Tool != "" && r.Tool != store.OfAnything {
		if some, err := budgetsOfTools(t); !some || err != nil {
			return nil, err
		}
	}
	of := []string{"model:" + s.ModelName()}
	person := "user:" + s.User
	var groups []string
	if !r.Exempt {
		var err error
		if groups, err = access.GroupsOf(t, s.User, true); err != nil {
			return nil, err
		}
		for _, g := range groups {
			of = append(of, "group:"+g)
		}
		if s.Team != "" {
			of = append(of, "team:"+s.Team)
		}
	}
	var budgets []store.Budget
	for _, subject := range of {
		list, err := commit.ListJSON[store.Budget](t, "budgets", commit.Key(subject, ""))
		if err != nil {
			return nil, err
		}
		budgets = append(budgets, list...)
	}
	if !r.Exempt && s.User != "" {
		personal, err := personalBudgets(t, s.User, r.UserDaily)
		if err != nil {
			return nil, err
		}
		budgets = append(personal, budgets...) // the person's own come first, because refusals name them
	}
	states := make([]store.BudgetState, 0, len(budgets))
	for _, b := range budgets {
		if r.Tool != store.OfAnything && (r.Tool == "") != (b.Tool == "") || b.Tool != "" && r.Tool != store.OfAnything && !store.MatchTool(b.Tool, r.Tool) {
			continue
		}
		user := ""
		if b.Subject == store.Everybody || b.Subject == person {
			user = s.User
		}
		state, err := budgetState(t, b, user, s.User)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// personalBudgets returns the budgets of one person. Calls by nize itself have only those
// that are set for it.
func personalBudgets(t *commit.Tx, user string, daily int64) ([]store.Budget, error) {
	budgets, err := commit.ListJSON[store.Budget](t, "budgets", commit.Key("user:"+user, ""))
	if err != nil || user == store.System.User {
		return budgets, err
	}
	everybody, err := defaultBudgets(t, daily)
	if err != nil {
		return nil, err
	}
	for _, b := range everybody {
		same := func(o store.Budget) bool { return o.Period == b.Period && o.Unit == b.Unit && o.Tool == b.Tool }
		if !slices.ContainsFunc(budgets, same) {
			budgets = append(budgets, b)
		}
	}
	return budgets, nil
}

// defaultBudgets returns the budgets of each person who has no such budget of their own.
func defaultBudgets(t *commit.Tx, daily int64) ([]store.Budget, error) {
	list, err := commit.ListJSON[store.Budget](t, "budgets", commit.Key(store.Everybody, ""))
	if err != nil {
		return nil, err
	}
	same := func(o store.Budget) bool { return o.Period == store.Daily && o.Unit == store.InTokens && o.Tool == "" }
	if daily > 0 && !slices.ContainsFunc(list, same) {
		list = append(list, store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: daily})
	}
	return list, nil
}

// budgetState returns a budget and its use. user is the person if each person has one; asks
// is the user who wants to spend, "" for none.
func budgetState(t *commit.Tx, b store.Budget, user, asks string) (store.BudgetState, error) {
	s := store.BudgetState{Budget: b, User: user}
	var from time.Time
	from, s.Resets = b.Period.Bounds(t.Now)
	kind, name, _ := strings.Cut(b.Subject, ":")
	dim, names := Dimensions["user"], []string{name}
	switch kind {
	case "user":
		if user != "" {
			names = []string{user}
		}
	case "team", "model":
		dim = Dimensions[kind]
	case "group":
		var err error
		if names, err = access.GroupMembers(t, name, asks); err != nil {
			return s, err
		}
	}
	if dim == Dimensions["user"] { // includes users who were joined with them
		all := []string(nil)
		for _, name := range names {
			all = append(all, t.DB.AllIDs(name)...)
		}
		names = all
	}
	if b.Unit == store.InCalls {
		for _, name := range names {
			n, err := runsOf(t, name, b.Tool, from, s.Resets)
			if err != nil {
				return s, err
			}
			s.Used += n
		}
		return s, nil
	}
	for _, name := range names {
		for day := from; day.Before(s.Resets) && !day.After(t.Now); day = day.AddDate(0, 0, 1) {
			v := t.Get("usage", UsageKey(dim, day, name))
			if v == nil {
				continue
			}
			c, err := record.DecodeCounters(v)
			if err != nil {
				return s, err
			}
			s.Used += of(b.Unit, c.Prompt+c.Completion, c.MicroUSD)
		}
	}
	return s, t.Each("reserved", nil, func(_, v []byte) error {
		r, err := commit.DecodeJSON[store.Reservation](v)
		if err != nil {
			return err
		}
		is := map[string]string{"user": r.Spend.User, "group": r.Spend.User, "team": r.Spend.Team, "model": r.Spend.ModelName()}[kind]
		if slices.Contains(names, is) {
			s.Reserved += of(b.Unit, r.Tokens, r.MicroUSD)
		}
		return nil
	})
}

func of(u store.Unit, tokens, microUSD int64) int64 {
	if u == store.InUSD {
		return microUSD
	}
	return tokens
}

// The marks of a budget: what was reported in which period.
const (
	markWarned = 1 << iota
	markExceeded
)

// budgetMark returns what was reported in the state's period.
func budgetMark(t *commit.Tx, s store.BudgetState) byte {
	v := t.Get("budget_marks", append(append(budgetKey(s.Budget), 0), s.User...))
	if len(v) != 9 || !bytes.Equal(v[:8], commit.TimeKey(s.Resets)) {
		return 0
	}
	return v[8]
}

// markBudget appends an event, once per period, when 80 % or all of a budget is used.
func markBudget(t *commit.Tx, by store.Caller, s store.BudgetState) error {
	mark := budgetMark(t, s)
	now := mark
	if s.Nearly() {
		now |= markWarned
	}
	if s.Spent() {
		now |= markExceeded
	}
	if now == mark {
		return nil
	}
	if err := t.Put("budget_marks", append(append(budgetKey(s.Budget), 0), s.User...), append(commit.TimeKey(s.Resets), now)); err != nil {
		return err
	}
	what := store.State("warned")
	if now&markExceeded != 0 {
		what = "exceeded"
	}
	subject := s.Subject
	if s.User != "" {
		subject = "user:" + s.User
	}
	t.Change(store.Change{Kind: "budget", ID: subject, State: what})
	return t.Event(commit.Note{By: by, Kind: "budget." + string(what), Subject: subject, Data: s})
}
