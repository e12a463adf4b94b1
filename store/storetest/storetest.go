// Package storetest is the contract that every backend of package store
// passes. A backend's test is one call of [Run] and what is its own.
//
// The tests use no clock of their own: what must have expired gets a time in
// the past. They start no goroutine that they do not wait for.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

// OpenFunc opens an empty database for one test and closes it at its end.
// reopen closes it, opens it again as a restart of the daemon would, and
// returns the new one; the old one must not be used after that.
type OpenFunc func(t *testing.T) (db store.DB, reopen func() store.DB)

// Run runs the whole contract.
func Run(t *testing.T, open OpenFunc) {
	for _, test := range []struct {
		name string
		run  func(*env)
	}{
		{"Servers", servers}, {"ServersRace", serversRace}, {"Tools", tools}, {"ToolsBytes", toolsBytes},
		{"Users", users}, {"AddUser", addUser}, {"Groups", groups}, {"LiveGroups", liveGroups}, {"Sweeps", sweeps}, {"Members", members}, {"Links", links}, {"LinkRaces", linkRaces}, {"Reassigned", reassigned}, {"LinkTries", linkTries}, {"Unlink", unlink}, {"Leavers", leavers}, {"Forget", forget},
		{"LastAdmin", lastAdmin}, {"Offboarding", offboarding},
		{"Tokens", tokens}, {"TokenOverwriteRace", tokenOverwriteRace}, {"TokenRotate", tokenRotate}, {"TokenMakes", tokenMakes},
		{"Credentials", credentials}, {"Providers", providers}, {"Models", models}, {"Agents", agents},
		{"Settings", settings}, {"Grants", grants}, {"Vectors", vectors}, {"UnmetRequests", unmetRequests}, {"RelevanceFeedback", feedback}, {"Examples", examples},
		{"CallLife", callLife}, {"CallBytes", callBytes}, {"BeginTwice", beginTwice}, {"Replaces", replaces}, {"Votes", votes}, {"Redo", redo}, {"Remind", remind},
		{"DecideRace", decideRace}, {"StartRace", startRace}, {"FinishRace", finishRace}, {"DecideExpired", decideExpired},
		{"DecideWrong", decideWrong}, {"CallList", callList}, {"Waiting", waiting}, {"Record", record}, {"RecordTwice", recordTwice},
		{"Threads", threads}, {"TokenQuotas", tokenQuotas}, {"CountQuotas", countQuotas}, {"ThreadQuotas", threadQuotas}, {"Files", files}, {"FileQuotas", fileQuotas}, {"AppendRace", appendRace}, {"Share", share}, {"ForgetThread", forgetThread}, {"Places", places}, {"Backlog", backlog}, {"Bots", botAccounts}, {"Rooms", channels}, {"ChannelLists", channelLists}, {"Claims", claims}, {"Inbox", inbox}, {"InboxRace", inboxRace},
		{"Feed", feed}, {"FeedOrder", feedOrder}, {"Usage", usage}, {"UsageTools", usageTools},
		{"Prices", prices}, {"Budgets", budgets}, {"BudgetMarks", budgetMarks}, {"BudgetRace", budgetRace}, {"BudgetAbandoned", budgetAbandoned}, {"ToolBudgets", toolBudgets}, {"ToolBudgetRace", toolBudgetRace}, {"NearlyUsedDefaults", nearlyUsedDefaults},
		{"Events", events}, {"AddEvent", addEvent}, {"EventTimes", eventTimes}, {"ChangesLeaveEvents", changesLeaveEvents}, {"Erase", erase}, {"EraseOwn", eraseOwn},
		{"NoName", noName}, {"Incidents", incidents}, {"IncidentRace", incidentRace}, {"Prune", prune}, {"Copies", copies}, {"Context", contexts}, {"Closed", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, reopen := open(t)
			e := &env{T: t, DB: db}
			e.reopen = func() { e.DB = reopen() }
			test.run(e)
			if t.Failed() || test.name == "Closed" {
				return
			}
			if _, err := e.VerifyEvents(t.Context()); err != nil {
				t.Errorf("the audit trail afterwards: %v", err)
			}
		})
	}
}

// env is one test with its database.
type env struct {
	*testing.T
	store.DB
	reopen func()
}

// The people of the tests.
var (
	ada  = store.Caller{User: "ada", Name: "Ada", Role: store.Admin, Surface: store.OnTerminal, Identity: "local:1", Address: "203.0.113.9"}
	bert = store.Caller{User: "bert", Name: "Bert", Role: store.Member, Surface: store.OnSlack}
)

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) is(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("got error %v, want %v", err, want)
	}
}

func (e *env) same(got, want any) {
	e.Helper()
	if diff := cmp.Diff(want, got, secrets); diff != "" {
		e.Fatalf("-want +got:\n%s", diff)
	}
}

var secrets = cmp.Comparer(func(a, b store.Secret) bool { return a.Reveal() == b.Reveal() })

// must takes the value of a call that may not fail.
func must[T any](v T, err error) func(*env) T {
	return func(e *env) T {
		e.Helper()
		e.ok(err)
		return v
	}
}

// race runs do n times at once and returns how often each outcome came: "ok"
// or the sentinel.
func (e *env) race(n int, do func(i int) error) map[string]int {
	e.Helper()
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		count = map[string]int{}
		start = make(chan struct{})
	)
	for i := range n {
		wg.Go(func() {
			<-start
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			count[outcome(err)]++
		})
	}
	close(start)
	wg.Wait()
	return count
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, s := range []error{store.ErrExists, store.ErrDecided, store.ErrConflict, store.ErrExpired, store.ErrRefused, store.ErrNotFound, store.ErrInvalid} {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return err.Error()
}

// newCall is a call with everything a person has to decide on.
func newCall(state store.State) store.Call {
	now := time.Now().UTC()
	c := store.Call{
		ID: store.NewID(now), Server: "box", Tool: "convert", Args: json.RawMessage(`{"a":1}`), Pin: "p1",
		Thread: "t1", By: ada.User, ByName: ada.Name, Surface: ada.Surface, RunsAs: store.Plain("nobody"), Policy: store.ByRequester,
		State: state, Created: now,
	}
	if state == store.Pending {
		c.Expires = now.Add(time.Hour)
	}
	c.Digest = c.ComputeDigest()
	return c
}

// kinds lists the kinds of events from the oldest on.
func (e *env) kinds() string {
	e.Helper()
	list := must(e.Events(e.Context(), store.EventQuery{Limit: 1000}))(e)
	slices.Reverse(list)
	var out []string
	for _, ev := range list {
		out = append(out, ev.Kind)
	}
	return strings.Join(out, " ")
}

// changes reads what the feed has after a number, up to its present end.
func (e *env) changes(after store.Seq) []store.Change {
	e.Helper()
	end := e.Last()
	var out []store.Change
	if after == end {
		return nil
	}
	for c, err := range e.Watch(e.Context(), after) {
		e.ok(err)
		out = append(out, c)
		if c.Seq == end {
			break
		}
	}
	return out
}

func noName(e *env) {
	ctx := e.Context()
	_, err := e.PutServer(ctx, store.Caller{}, store.Server{Name: "a"}, 0)
	e.is(err, store.ErrInvalid)
	_, err = e.GetServer(ctx, "a")
	e.is(err, store.ErrNotFound) // what erred left no trace
	e.same(e.kinds(), "")
}

func copies(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	got := must(e.GetCall(ctx, c.ID))(e)
	for i := range got.Args {
		got.Args[i] = 'x'
	}
	e.same(string(must(e.GetCall(ctx, c.ID))(e).Args), `{"a":1}`)

	c = newCall(store.Done)
	e.Record(ada, c)
	got = must(e.GetCall(ctx, c.ID))(e) // perhaps not written yet
	clear(got.Args)
	e.same(string(must(e.GetCall(ctx, c.ID))(e).Args), `{"a":1}`)
}

func contexts(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	c := newCall(store.Pending)
	e.is(e.Begin(ctx, ada, c), context.Canceled)
	_, err := e.GetCall(e.Context(), c.ID)
	e.is(err, store.ErrNotFound)
	_, err = e.ListServers(ctx)
	e.is(err, context.Canceled)
}

func closed(e *env) {
	ctx := e.Context()
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	e.ok(e.Close())
	e.is(e.Begin(ctx, ada, newCall(store.Pending)), store.ErrNotOpen)
	_, err := e.GetCall(ctx, c.ID)
	e.is(err, store.ErrNotOpen)
	e.Record(ada, newCall(store.Done)) // tells nobody, but harms nobody
	if err := e.Close(); err != nil {
		e.Errorf("second Close: %v", err)
	}
}

func id(prefix string, i int) string { return fmt.Sprintf("%s%04d", prefix, i) }
