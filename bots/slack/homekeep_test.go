package slack

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
	"nize/store"
)

// A Home that is drawn anew while somebody uses it says what its use did, not
// what it said before.
func TestRedrawWhileUsed(t *testing.T) {
	s := newGateScene(t)
	s.fake.OpenHome(slacktest.Ben)
	says := func(text string) func() bool {
		return func() bool {
			v, ok := s.fake.Home(slacktest.Ben)
			return ok && strings.Contains(string(v.Blocks), text)
		}
	}
	s.until("Ben's Home", says(""))
	l := s.current()
	due := func() bool { user, _ := l.homes.lately.next(); return user == slacktest.Ben }

	lock := l.homes.lock(slacktest.Ben)
	lock.Lock() // as a press that is being worked on
	l.homes.lately.all(time.Now().Add(-time.Minute))
	redrawn := make(chan error, 1)
	go func() { redrawn <- l.redraw(t.Context(), slacktest.Ben) }()
	for range 10_000 { // a redraw that took what the Home said before did so by then
		if !due() {
			break
		}
		runtime.Gosched()
	}
	l.homes.lately.opened(slacktest.Ben, view.HomeState{}, "It is done.", time.Now())
	lock.Unlock()
	if err := <-redrawn; err != nil {
		t.Fatal(err)
	}
	if !says("It is done.")() {
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
	r := &lately{of: map[string]*openedHome{}, poke: make(chan struct{}, 1)}
	r.opened(user, view.HomeState{}, "", now)
	call := bots.WaitingCall{Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	look := func(at store.Address) (again bool) {
		call.At = at
		r.waits(user, []bots.WaitingCall{call}, now)
		next, due := r.next()
		if next == "" {
			return false
		}
		if !due.After(now) {
			t.Fatalf("due at once, %v after the beginning", now.Sub(began))
		}
		now = due
		r.take(user, now)
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
	r.changed(store.Change{Kind: "call", State: store.Pending, ID: call.Call}, now)
	if _, now = r.next(); !r.of[user].due.Equal(now) || now.IsZero() {
		t.Fatal("a change is not due")
	}
	r.take(user, now)
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
	db := openBolt(t)
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{Store: db, Keeper: keeper, Feed: db, Now: func() time.Time { return time.Unix(0, now.Load()) }}, newHeard())
	until := func(what string, ok func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := fake.Wait(ctx, ok); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	shows := func(user, text string) func() bool {
		return func() bool {
			v, ok := fake.Home(user)
			return ok && strings.Contains(string(v.Blocks), text)
		}
	}
	until("a link", linked(fake))
	list(100, 40)
	for _, user := range []string{slacktest.Ben, slacktest.Cho} {
		fake.OpenHome(user)
		until("a Home", shows(user, "Person100"))
	}
	l := b.current()
	if err := l.drawHome(t.Context(), person{id: slacktest.Ben}, view.HomeState{Pages: map[string]int{"approvals": 1}}, ""); err != nil {
		t.Fatal(err)
	}
	until("the second page", func() bool { return !shows(slacktest.Ben, "Person100")() })

	list(200, 40) // while nobody is there
	restart(t, b)
	until("the Home of a person after a restart", shows(slacktest.Cho, "Person200"))
	until("the second page after a restart", shows(slacktest.Ben, "Person2"))
	if shows(slacktest.Ben, "Person200")() {
		t.Error("the Home begins anew")
	}
	list(300, 1)
	b.current().homes.lately.changed(store.Change{Kind: "grant"}, time.Unix(0, now.Load()))
	until("a change after a restart", shows(slacktest.Cho, "Person300"))

	// An hour later nobody looks.
	now.Add(int64(store.HomeOpen + time.Minute))
	restart(t, b)
	fake.OpenHome(slacktest.Ann) // who comes in behind the others
	until("a Home", shows(slacktest.Ann, "Person300"))
	lock := b.current().homes.lock(slacktest.Ann) // whoever draws it keeps it open first
	lock.Lock()
	defer lock.Unlock()
	if homes, err := db.ListHomes(t.Context(), "slack:", time.Time{}); err != nil || len(homes) != 1 {
		t.Errorf("kept are %+v, %v", homes, err)
	}
	if user, _ := b.current().homes.lately.next(); user == slacktest.Ben || user == slacktest.Cho {
		t.Errorf("the Home of %s counts as open", user)
	}
}

// nothingKept is a [bots.Keeper] of people who have nothing.
type nothingKept struct{}

func (nothingKept) Home(context.Context, bots.Asked) (bots.Home, error) { return bots.Home{}, nil }

func (nothingKept) Bring(context.Context, store.Caller, string) error { return store.ErrNotFound }

func (nothingKept) PutSecret(context.Context, store.Caller, bots.Prompt, store.Secret) error {
	return store.ErrNotFound
}
