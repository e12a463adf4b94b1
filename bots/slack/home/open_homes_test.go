package home

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
	"nize/store/database/databasetest"
)

// scene is the Homes of a workspace with a Slack that shows them.
type scene struct {
	t     *testing.T
	fake  *slacktest.Server
	homes *Homes
	o     Options
}

func newScene(t *testing.T, keeper bots.Keeper, now func() time.Time) *scene {
	db := databasetest.Open(t)
	fake := slacktest.Running(t, slacktest.Options{Unlimited: true, Patience: time.Minute})
	w := wire.New(wire.Options{URL: fake.APIURL(), Wait: queue.Sleep}, store.NewSecret(fake.BotToken()), store.Secret{})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	all := people.New(people.Options{Wire: w, Store: db, Config: store.Defaults{}, Now: now, Log: log, Team: slacktest.Team})
	posts := posting.New(posting.Options{Wire: w, People: all, Store: db, Now: now, Log: log, Team: slacktest.Team, Self: slacktest.Bot})
	s := &scene{t: t, fake: fake, o: Options{Wire: w, People: all, Posts: posts, Store: db, Keeper: keeper, Commands: &bots.Commands{}, Feed: db, Now: now, Log: log, Team: slacktest.Team}}
	s.homes = New(s.o)
	return s
}

// run keeps the Homes of a start until the test or the next one ends it.
func (s *scene) run() (stop func()) {
	s.homes = New(s.o)
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	after := s.homes.Newest()
	wg.Go(func() { s.homes.Follow(ctx, after) })
	wg.Go(func() { s.homes.KeepRedrawing(ctx) })
	stop = func() { cancel(); wg.Wait() }
	s.t.Cleanup(stop)
	return stop
}

func (s *scene) open(user string, page int) {
	s.t.Helper()
	st := view.HomeState{}
	if page > 0 {
		st.Pages = map[string]int{"approvals": page}
	}
	if err := s.homes.Draw(s.t.Context(), people.Person{ID: user}, st, ""); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) shows(user, text string) bool {
	v, ok := s.fake.Home(user)
	return ok && strings.Contains(string(v.Blocks), text)
}

func (s *scene) until(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.fake.Wait(ctx, ok); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// A Home that is redrawn while somebody uses it says what its use did, not
// what it said before.
func TestRedrawWhileUsed(t *testing.T) {
	s := newScene(t, nothingKept{}, time.Now)
	s.open(slacktest.Ben, 0)
	due := func() bool { _, due := s.homes.open.redraws.Due(slacktest.Ben); return due }

	lock := s.homes.lock(slacktest.Ben)
	lock.Lock() // as a press that is being worked on
	s.homes.open.scheduleAll(time.Now().Add(-time.Minute))
	redrawn := make(chan error, 1)
	go func() { redrawn <- s.homes.redraw(t.Context(), slacktest.Ben) }()
	for range 10_000 { // a redraw that took what the Home said before did so by then
		if !due() {
			break
		}
		runtime.Gosched()
	}
	s.homes.open.setOpened(slacktest.Ben, view.HomeState{}, "It is done.", time.Now())
	lock.Unlock()
	if err := <-redrawn; err != nil {
		t.Fatal(err)
	}
	if !s.shows(slacktest.Ben, "It is done.") {
		v, _ := s.fake.Home(slacktest.Ben)
		t.Errorf("the Home says %s", v.Blocks)
	}
}

// listKept is a Keeper whose Homes list some calls.
type listKept struct {
	nothingKept
	waiting atomic.Pointer[[]bots.WaitingCall]
}

func (k *listKept) Home(context.Context, bots.Asked) (bots.Home, error) {
	h := bots.Home{}
	if w := k.waiting.Load(); w != nil {
		h.Waiting = *w
	}
	return h, nil
}

// A card may come to stand late, since Slack limits posts or the machine is busy: a
// Home that shows its call is looked at until it can lead there, and not for ever.
func TestHomeLooksForTheCard(t *testing.T) {
	const user = slacktest.Ben
	began := time.Now()
	now := began
	r := &openHomes{of: map[string]*openedHome{}, redraws: queue.New[string](func() time.Time { return now })}
	r.setOpened(user, view.HomeState{}, "", now)
	call := bots.WaitingCall{Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	look := func(at store.Address) (again bool) {
		call.At = at
		r.setCalls(user, []bots.WaitingCall{call}, now)
		due, ok := r.redraws.Due(user)
		if !ok {
			return false
		}
		if !due.After(now) {
			t.Fatalf("due at once, %v after the beginning", now.Sub(began))
		}
		now = due
		r.beginRedraw(user, now)
		return true
	}
	for n := 0; look(store.Address{}); n++ {
		if n > 20 {
			t.Fatal("it is looked at for ever")
		}
	}
	if took := now.Sub(began); took < 5*time.Minute {
		t.Errorf("given up after %v", took)
	}
	now = now.Add(time.Minute)
	r.scheduleFor(store.Change{Kind: "call", State: store.Pending, ID: call.Call}, now)
	due, ok := r.redraws.Due(user)
	if now = due; !ok {
		t.Fatal("a change is not due")
	}
	r.beginRedraw(user, now)
	if !look(store.Address{}) || look(store.Address{Message: "1.1"}) {
		t.Error("behind a change it is looked at once more, and no more once the card stands")
	}
}

// A Home that was open before a restart shows what changed while nobody was
// there, on the page where it was, and follows again, for an hour after its
// person used it.
func TestHomeFollowsAfterRestart(t *testing.T) {
	now := &atomic.Int64{}
	now.Store(time.Now().UnixNano())
	keeper := &listKept{}
	list := func(from, n int) {
		var calls []bots.WaitingCall
		for i := range n {
			calls = append(calls, bots.WaitingCall{Call: fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69G%04d", from+i), Tool: fmt.Sprintf("box:tool%d", from+i), By: fmt.Sprintf("Person%d", from+i)})
		}
		keeper.waiting.Store(&calls)
	}
	s := newScene(t, keeper, func() time.Time { return time.Unix(0, now.Load()) })
	stop := s.run()
	shows := func(user, text string) func() bool { return func() bool { return s.shows(user, text) } }
	list(100, 40)
	s.open(slacktest.Cho, 0)
	s.open(slacktest.Ben, 0)
	s.open(slacktest.Ben, 1)
	s.until("the first page", shows(slacktest.Cho, "Person100"))
	s.until("the second page", func() bool { return !s.shows(slacktest.Ben, "Person100") })

	stop()
	list(200, 40) // while nobody is there
	stop = s.run()
	s.until("the Home of a person after a restart", shows(slacktest.Cho, "Person200"))
	s.until("the second page after a restart", shows(slacktest.Ben, "Person2"))
	if s.shows(slacktest.Ben, "Person200") {
		t.Error("the Home begins anew")
	}
	list(300, 1)
	s.homes.open.scheduleFor(store.Change{Kind: "grant"}, time.Unix(0, now.Load()))
	s.until("a change after a restart", shows(slacktest.Cho, "Person300"))

	// An hour later nobody looks.
	stop()
	now.Add(int64(store.HomeOpen + time.Minute))
	s.run()
	s.open(slacktest.Ann, 0) // who comes in behind the others
	s.until("a Home", shows(slacktest.Ann, "Person300"))
	if kept, err := s.o.Store.ListHomes(t.Context(), "slack:", time.Time{}); err != nil || len(kept) != 1 {
		t.Errorf("kept are %+v, %v", kept, err)
	}
	for _, user := range []string{slacktest.Ben, slacktest.Cho} {
		if _, due := s.homes.open.redraws.Due(user); due {
			t.Errorf("the Home of %s counts as open", user)
		}
	}
}

// nothingKept is a [bots.Keeper] of people who have nothing.
type nothingKept struct{}

func (nothingKept) Home(context.Context, bots.Asked) (bots.Home, error) { return bots.Home{}, nil }

func (nothingKept) Bring(context.Context, store.Caller, string) error { return store.ErrNotFound }

func (nothingKept) PutSecret(context.Context, store.Caller, bots.Prompt, store.Secret) error {
	return store.ErrNotFound
}
