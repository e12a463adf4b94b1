package storetest

import (
	"errors"
	"fmt"
	"time"

	"nize/store"
)

func prices(e *env) {
	ctx := e.Context()
	_, err := e.GetPrice(ctx, "p/m")
	e.is(err, store.ErrNotFound)
	e.ok(e.PutPrice(ctx, ada, store.Price{Model: "p/m", In: 1.25, Cached: 0.125, Out: 10}))
	e.ok(e.PutPrice(ctx, ada, store.Price{Model: "p/m", In: 2, Out: 3}))
	e.is(e.PutPrice(ctx, ada, store.Price{}), store.ErrInvalid)
	e.reopen()
	got := must(e.GetPrice(ctx, "p/m"))(e)
	if got.In != 2 || got.Out != 3 || got.Cached != 0 || got.Updated.IsZero() {
		e.Fatalf("got %+v", got)
	}
	e.same(len(must(e.ListPrices(ctx))(e)), 1)
	e.ok(e.DeletePrice(ctx, ada, "p/m"))
	e.is(e.DeletePrice(ctx, ada, "p/m"), store.ErrNotFound)
	e.same(e.kinds(), "price.put price.put price.delete")
}

// claim is a reservation of 10 tokens of a prompt and 90 of an answer.
func claim(n int, user string) store.Reservation {
	return store.Reservation{
		Spend:  store.Spend{ID: id("r", n), User: user, Team: "local", Provider: "p", Model: "m", Prompt: 10, Priced: true, MicroUSD: 10},
		Tokens: 100, MicroUSD: 100,
	}
}

// settled is the call of a claim, which came to so many tokens and as many
// millionths of a dollar.
func settled(r store.Reservation, tokens int64) store.Spend {
	s := r.Spend
	s.Prompt, s.Completion, s.MicroUSD = 10, tokens-10, tokens
	return s
}

// person makes a user and returns the id.
func (e *env) person(name string) string {
	return must(e.AddUser(e.Context(), ada, store.User{Name: name, Role: store.Member, Identities: []string{store.NamedIdentity + name}}))(e).ID
}

func budgets(e *env) {
	ctx := e.Context()
	mia, bob := e.person("mia"), e.person("bob")
	for _, b := range []store.Budget{
		{Subject: "user:", Period: store.Daily, Unit: store.InTokens}, {Subject: "moon:x", Period: store.Daily, Unit: store.InTokens},
		{Subject: store.Everybody, Period: "hourly", Unit: store.InTokens}, {Subject: store.Everybody, Period: store.Daily, Unit: "eur"},
		{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: -1},
	} {
		e.is(e.PutBudget(ctx, ada, b), store.ErrInvalid)
	}
	e.is(e.PutBudget(ctx, ada, store.Budget{Subject: "user:nobody", Period: store.Daily, Unit: store.InTokens, Limit: 1}), store.ErrNotFound)
	e.is(e.PutBudget(ctx, ada, store.Budget{Subject: "group:none", Period: store.Daily, Unit: store.InTokens, Limit: 1}), store.ErrNotFound)

	refused := func(r store.Reservation, subject string) {
		e.Helper()
		var b *store.BudgetError
		if err := e.Reserve(ctx, ada, r); !errors.As(err, &b) || !errors.Is(err, store.ErrRefused) || b.Subject != subject || b.Resets.IsZero() {
			e.Fatalf("got %v, want a refusal by %s", err, subject)
		}
	}
	spend := func(n int, user string, tokens int64) {
		e.Helper()
		r := claim(n, user)
		e.ok(e.Reserve(ctx, ada, r))
		must(e.SettleSpend(ctx, ada, settled(r, tokens)))(e)
	}
	// The default holds for each person, and not for nize itself.
	spend(1, mia, 60)
	r := claim(2, mia)
	r.UserDaily = 60
	refused(r, store.Everybody)
	for _, free := range []string{bob, store.System.User} {
		r.Spend.User = free
		e.ok(e.Reserve(ctx, ada, r))
		e.ok(e.Release(ctx, r.Spend.ID))
	}
	e.ok(e.Release(ctx, "r-unknown"))
	// Everybody's goes before the default, one's own before that; 0 is no limit.
	r = claim(3, mia)
	r.UserDaily = 60
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: 61}))
	e.ok(e.Reserve(ctx, ada, r))
	e.ok(e.Release(ctx, r.Spend.ID))
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: "user:" + mia, Period: store.Daily, Unit: store.InTokens, Limit: 20}))
	refused(r, "user:"+mia)
	exempt := r
	exempt.Exempt = true
	e.ok(e.Reserve(ctx, ada, exempt))
	e.ok(e.Release(ctx, r.Spend.ID))
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: "user:" + mia, Period: store.Daily, Unit: store.InTokens}))
	e.ok(e.Reserve(ctx, ada, r))
	e.ok(e.Release(ctx, r.Spend.ID))
	// In money: a call of unknown price has no place in it.
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: "user:" + mia, Period: store.Monthly, Unit: store.InUSD, Limit: 1000}))
	e.ok(e.Reserve(ctx, ada, r))
	e.ok(e.Release(ctx, r.Spend.ID))
	unpriced := r
	unpriced.Spend.Priced = false
	refused(unpriced, "user:"+mia)
	e.ok(e.DeleteBudget(ctx, ada, store.Budget{Subject: "user:" + mia, Period: store.Monthly, Unit: store.InUSD}))
	e.is(e.DeleteBudget(ctx, ada, store.Budget{Subject: "user:" + mia, Period: store.Monthly, Unit: store.InUSD}), store.ErrNotFound)
	e.ok(e.DeleteBudget(ctx, ada, store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens}))
	// Of a group, a team, a model: all who are in it together.
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{mia, bob}}))(e)
	for i, subject := range []string{"group:ops", "team:local", "model:p/m"} {
		b := store.Budget{Subject: subject, Period: store.Monthly, Unit: store.InTokens, Limit: 61}
		e.ok(e.PutBudget(ctx, ada, b))
		r := claim(10+i, bob)
		e.ok(e.Reserve(ctx, ada, r)) // 60 of 61 are used, and what is reserved now is over that
		refused(claim(20+i, bob), subject)
		other := claim(30+i, "else")
		other.Spend.Team, other.Spend.Model = "slack:T", "n"
		e.ok(e.Reserve(ctx, ada, other)) // not in it
		e.ok(e.Release(ctx, other.Spend.ID))
		e.ok(e.Release(ctx, r.Spend.ID))
		e.reopen()
		for _, s := range must(e.ListBudgets(ctx))(e) {
			if s.Subject == subject && (s.Used != 60 || s.Reserved != 0 || s.Limit != 61) {
				e.Fatalf("%s: %+v", subject, s)
			}
		}
		e.ok(e.DeleteBudget(ctx, ada, b))
	}
	states := must(e.BudgetsFor(ctx, claim(0, mia)))(e)
	if len(states) != 1 || states[0].User != mia || states[0].Used != 60 {
		e.Fatalf("mia's: %+v", states)
	}
}

func budgetMarks(e *env) {
	ctx := e.Context()
	mia := e.person("mia")
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: 100}))
	after := e.Last()
	for i, step := range []struct {
		tokens  int64
		crossed int64 // what is used when it is told; 0 for nothing
	}{{79, 0}, {1, 80}, {10, 0}, {15, 105}} {
		r := claim(i, mia)
		r.Tokens = step.tokens
		e.ok(e.Reserve(ctx, ada, r))
		s := r.Spend
		s.Prompt = step.tokens
		s.At = time.Now().AddDate(0, 0, -3) // a clock that was set back refills nothing
		got := must(e.SettleSpend(ctx, ada, s))(e)
		if step.crossed == 0 != (len(got) == 0) || len(got) == 1 && (got[0].Used != step.crossed || got[0].User != mia) {
			e.Fatalf("after %d: %+v", step.tokens, got)
		}
		e.reopen()
	}
	for i := range 3 { // a refusal tells nothing new
		e.is(e.Reserve(ctx, ada, claim(10+i, mia)), store.ErrRefused)
	}
	var told []string
	for _, ev := range must(e.Events(ctx, store.EventQuery{Kind: "budget"}))(e) {
		told = append(told, ev.Kind+" "+ev.Subject)
	}
	e.same(told, []string{"budget.exceeded user:" + mia, "budget.warned user:" + mia, "budget.put user:*"})
	var fed []string
	for c, err := range e.Watch(ctx, after) {
		e.ok(err)
		if c.Kind == "budget" {
			fed = append(fed, string(c.State)+" "+c.ID)
		}
		if c.Seq == e.Last() {
			break
		}
	}
	e.same(fed, []string{"warned user:" + mia, "exceeded user:" + mia})
}

// budgetRace lets 50 turns begin at once that each come to what they reserve:
// a budget that is nearly spent is exceeded by one of them at most.
func budgetRace(e *env) {
	ctx := e.Context()
	mia := e.person("mia")
	for _, b := range []store.Budget{
		{Subject: "user:" + mia, Period: store.Daily, Unit: store.InTokens, Limit: 950},
		{Subject: "team:local", Period: store.Monthly, Unit: store.InUSD, Limit: 1150},
	} {
		e.ok(e.PutBudget(ctx, ada, b))
	}
	first := claim(0, mia)
	first.Tokens, first.MicroUSD = 700, 700
	e.ok(e.Reserve(ctx, ada, first))
	must(e.SettleSpend(ctx, ada, settled(first, 700)))(e)
	got := e.race(50, func(i int) error {
		r := claim(1+i, mia)
		if err := e.Reserve(ctx, ada, r); err != nil {
			return err
		}
		_, err := e.SettleSpend(ctx, ada, settled(r, 100))
		return err
	})
	if got["ok"] != 3 || got["refused"] != 47 { // 700, 800, 900, 1000 and no more
		e.Fatalf("outcomes %v", got)
	}
	// Those that hold room all at once exceed it by no more.
	held := e.race(50, func(i int) error { return e.Reserve(ctx, ada, claim(100+i, "")) })
	if held["ok"] != 2 || held["refused"] != 48 { // of the team: 1000, 1100, 1200
		e.Fatalf("held %v", held)
	}
	for _, s := range must(e.ListBudgets(ctx))(e) {
		if over := s.Used + s.Reserved - s.Limit; over > 100 {
			e.Errorf("%s is exceeded by %d", s.Subject, over)
		}
	}
}

// budgetAbandoned: what ran when nized was killed is booked as an estimate, and
// holds nothing.
func budgetAbandoned(e *env) {
	ctx := e.Context()
	for i := range 3 {
		e.ok(e.Reserve(ctx, ada, claim(i, "ada")))
	}
	e.is(e.Reserve(ctx, ada, claim(0, "ada")), store.ErrExists)
	e.reopen()
	e.same(must(e.SettleAbandoned(ctx))(e), 3)
	e.same(must(e.SettleAbandoned(ctx))(e), 0)
	got := must(e.Usage(ctx, store.UsageQuery{By: "user"}))(e).Rows
	if len(got) != 1 || got[0].Calls != 3 || got[0].Prompt != 30 || got[0].Completion != 0 || got[0].Estimated != 3 || got[0].MicroUSD != 30 {
		e.Fatalf("booked %+v", got)
	}
	r := claim(9, "ada")
	r.UserDaily = 31
	e.ok(e.Reserve(ctx, ada, r))
	states := must(e.BudgetsFor(ctx, r))(e)
	e.same(fmt.Sprint(states[0].Used, states[0].Reserved), "30 100")
}

// run is a call of a tool that is about to begin.
func run(n int, user, tool string) store.Reservation {
	return store.Reservation{Tool: tool, Spend: store.Spend{ID: id("run", n), User: user}}
}

// toolBudgets: calls of tools count when they begin, for the person, for each group
// and for everybody, by pattern, and are not those of models.
func toolBudgets(e *env) {
	ctx := e.Context()
	mia, bob := e.person("mia"), e.person("bob")
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{mia, bob}}))(e)
	calls := func(subject, tool string, period store.Period, limit int64) store.Budget {
		return store.Budget{Subject: subject, Tool: tool, Period: period, Unit: store.InCalls, Limit: limit}
	}
	for _, bad := range []store.Budget{
		calls(store.Everybody, "", store.Daily, 1), calls(store.Everybody, "tracker", store.Daily, 1), calls(store.Everybody, "a*b:*", store.Daily, 1),
		calls("team:local", "*", store.Daily, 1), calls("model:p/m", "*", store.Daily, 1),
		{Subject: store.Everybody, Tool: "*", Period: store.Daily, Unit: store.InTokens, Limit: 1},
	} {
		e.is(e.PutBudget(ctx, ada, bad), store.ErrInvalid)
	}
	for _, b := range []store.Budget{
		calls(store.Everybody, "tracker:*", store.Daily, 3), calls("user:"+bob, "tracker:*", store.Daily, 4), // bob's own goes before
		calls("user:"+mia, "tracker:delete", store.Monthly, 1), calls("group:ops", "tracker:*", store.Monthly, 6),
		{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: 1},
	} {
		e.ok(e.PutBudget(ctx, ada, b))
	}
	n := 0
	try := func(user, tool, refusedBy string) {
		e.Helper()
		n++
		var full *store.BudgetError
		switch err := e.Reserve(ctx, ada, run(n, user, tool)); {
		case refusedBy == "":
			e.ok(err)
		case !errors.As(err, &full) || full.Subject != refusedBy || full.Resets.IsZero() || full.Unit != store.InCalls:
			e.Fatalf("call %d: %v, want a refusal by %s", n, err, refusedBy)
		}
	}
	try(mia, "other:x", "") // nothing of it is limited
	try(mia, "tracker:delete", "")
	try(mia, "tracker:delete", "user:"+mia)
	try(mia, "tracker:list", "")
	e.reopen()
	try(mia, "tracker:list", "")
	try(mia, "tracker:list", store.Everybody) // the third was the last of hers
	try("else", "tracker:list", "")           // each person has their own
	try(store.System.User, "tracker:list", "")
	try(bob, "tracker:list", "")
	try(bob, "tracker:list", "")
	try(bob, "tracker:list", "")
	try(bob, "tracker:list", "group:ops") // six of six, with mia's
	exempt := run(99, bob, "tracker:list")
	exempt.Exempt = true
	e.ok(e.Reserve(ctx, ada, exempt)) // no budget is asked, and none counts it
	for _, s := range must(e.ListBudgets(ctx))(e) {
		want := map[string]int64{"user:" + bob: 3, "user:" + mia: 1, "group:ops": 6}[s.Subject]
		if s.Used != want || s.Reserved != 0 {
			e.Fatalf("%s %s: %d used, want %d", s.Subject, s.Tool, s.Used, want)
		}
	}
	names := func(r store.Reservation) (list []string) {
		for _, s := range must(e.BudgetsFor(ctx, r))(e) {
			list = append(list, fmt.Sprint(s.Subject, " ", s.Tool, " ", s.Used))
		}
		return list
	}
	e.same(names(run(0, mia, "tracker:list")), []string{"user:* tracker:* 3", "group:ops tracker:* 6"})
	e.same(names(store.Reservation{Spend: store.Spend{User: mia}}), []string{"user:*  0"})
	e.same(len(names(run(0, mia, store.OfAnything))), 4)
	// A limit that came up lets more through, and one that was removed all.
	e.ok(e.PutBudget(ctx, ada, calls("group:ops", "tracker:*", store.Monthly, 7)))
	try(bob, "tracker:list", "")
	e.ok(e.DeleteBudget(ctx, ada, calls("group:ops", "tracker:*", store.Monthly, 0)))
	try(bob, "tracker:list", "user:"+bob)
	e.ok(e.PutBudget(ctx, ada, calls("user:"+bob, "tracker:*", store.Daily, 0)))
	try(bob, "tracker:list", "")
	e.is(e.DeleteBudget(ctx, ada, store.Budget{Subject: "user:" + bob, Period: store.Daily, Unit: store.InCalls}), store.ErrNotFound)
	var told []string
	for _, ev := range must(e.Events(ctx, store.EventQuery{Kind: "budget"}))(e) {
		if ev.Kind != "budget.put" && ev.Kind != "budget.delete" {
			told = append(told, ev.Kind+" "+ev.Subject)
		}
	}
	e.same(told, []string{
		"budget.exceeded user:" + bob, "budget.exceeded group:ops", "budget.warned group:ops",
		"budget.exceeded user:" + mia, "budget.exceeded user:" + mia,
	})
}

// nearlyUsedDefaults: those of all people are the ones that each person's own list has.
func nearlyUsedDefaults(e *env) {
	ctx := e.Context()
	people := []string{e.person("mia"), e.person("bob"), e.person("eve"), e.person("kim"), e.person("old")}
	everybody := func(period store.Period, unit store.Unit, tool string, limit int64) {
		e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: store.Everybody, Period: period, Unit: unit, Tool: tool, Limit: limit}))
	}
	check := func(daily int64, want int) {
		e.Helper()
		lists := map[string]int{}
		for _, id := range people {
			for _, s := range must(e.BudgetsFor(ctx, store.Reservation{Spend: store.Spend{User: id}, UserDaily: daily, Tool: store.OfAnything}))(e) {
				if s.Subject == store.Everybody && s.Nearly() {
					lists[fmt.Sprintf("%+v", s)]++
				}
			}
		}
		all := map[string]int{}
		for _, s := range must(e.NearlyUsedDefaults(ctx, daily))(e) {
			all[fmt.Sprintf("%+v", s)]++
		}
		e.same(all, lists)
		e.same(len(all), want)
	}
	spend := func(n int, user string, tokens int64) {
		_, err := e.SettleSpend(ctx, store.System, store.Spend{ID: id("spend", n), User: user, Provider: "p", Model: "m", Prompt: tokens, MicroUSD: tokens, Priced: true})
		e.ok(err)
	}
	check(100, 0)
	for n, tokens := range []int64{100, 80, 79, 40, 60} {
		spend(n, people[n], tokens)
	}
	spend(9, store.System.User, 1000)
	check(0, 0)
	check(100, 2)
	r := claim(1, people[0])
	e.ok(e.Reserve(ctx, ada, r))
	check(1000, 0)
	check(120, 1)
	// What old spent counts for kim, with whom they were joined.
	kim, old := must(e.GetUser(ctx, people[3]))(e), must(e.GetUser(ctx, people[4]))(e)
	_, hash := store.NewCode()
	must(e.PutLink(ctx, callerOf(old), old.ID, hash))(e)
	must(e.Join(ctx, callerOf(kim), hash, ""))(e)
	people = people[:4]
	check(100, 3)
	// One's own goes before, also if it is unlimited; a limit of everybody's before the default.
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: "user:" + people[1], Period: store.Daily, Unit: store.InTokens}))
	check(100, 2)
	everybody(store.Daily, store.InTokens, "", 50)
	check(10_000, 3)
	everybody(store.Monthly, store.InUSD, "", 90)
	check(10_000, 7)
	everybody(store.Daily, store.InTokens, "", 0)
	check(100, 4)
	everybody(store.Monthly, store.InCalls, "tracker:*", 2)
	for n := range 2 {
		e.ok(e.Reserve(ctx, ada, run(n, people[2], "tracker:list")))
	}
	e.ok(e.Reserve(ctx, ada, run(2, people[1], "tracker:list")))
	check(100, 5)
	e.reopen()
	check(100, 5)
}

// toolBudgetRace lets 50 calls begin at once against a budget of ten.
func toolBudgetRace(e *env) {
	ctx := e.Context()
	mia := e.person("mia")
	e.ok(e.PutBudget(ctx, ada, store.Budget{Subject: store.Everybody, Tool: "*", Period: store.Daily, Unit: store.InCalls, Limit: 10}))
	got := e.race(50, func(i int) error { return e.Reserve(ctx, ada, run(i, mia, "tracker:list")) })
	if got["ok"] != 10 || got["refused"] != 40 {
		e.Fatalf("outcomes %v", got)
	}
}
