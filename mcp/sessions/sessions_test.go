package sessions

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

// kept is a set, and which of its sessions were ended.
type kept struct {
	*Set
	t     *testing.T
	pass  func() // lets a second pass
	mu    sync.Mutex
	ended []string // guarded by mu: timers end sessions
}

func newKept(t *testing.T, l Limits) *kept {
	return &kept{Set: New(Options{Limits: func() Limits { return l }, Idle: time.Hour, Now: time.Now}), t: t}
}

// begin begins one a second later, in a bubble.
func (k *kept) begin(id, token, user string, wantErr bool) {
	k.t.Helper()
	k.pass()
	err := k.Begin(id, Owner{Token: token, User: user}, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.ended = append(k.ended, id)
	})
	if (err != nil) != wantErr || err != nil && !errors.Is(err, store.ErrRefused) {
		k.t.Errorf("%s: %v", id, err)
	}
	synctest.Wait()
}

func (k *kept) use(id, user string, use Use) (leave func()) {
	k.t.Helper()
	k.pass()
	leave, _, ok := k.Enter(id, user, use)
	if !ok {
		k.t.Errorf("%s is not known", id)
	}
	return leave
}

func (k *kept) want(ended ...string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.ended, ended) {
		k.t.Errorf("ended %v, want %v", k.ended, ended)
	}
}

// TestToken: a token has its share. The least recently used idle one goes, those that
// listen last, and none that is in use.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, Limits{All: 100, Token: 4})
		k.pass = func() { time.Sleep(time.Second) }
		k.begin("other", "t2", "ben", false)
		for _, id := range []string{"a", "b", "c", "d"} {
			k.begin(id, "t1", "ann", false)
		}
		k.begin("a", "t1", "ann", false) // once again is the same one
		k.want()
		k.use("a", "ann", Asks)()
		working := k.use("b", "ann", Asks)
		listening := k.use("c", "ann", Listens)
		k.begin("e", "t1", "ann", false)
		k.want("d")
		k.begin("f", "t1", "ann", false)
		k.want("d", "a")
		inE, inF := k.use("e", "ann", Asks), k.use("f", "ann", Asks)
		k.begin("g", "t1", "ann", false)
		k.want("d", "a", "c")
		listening() // it is gone
		inG := k.use("g", "ann", Asks)
		k.begin("h", "t1", "ann", true)
		k.want("d", "a", "c")
		for _, leave := range []func(){working, inE, inF, inG} {
			leave()
			time.Sleep(time.Second)
		}
		k.begin("h", "t1", "ann", false)
		k.want("d", "a", "c", "b")
		if open, ended := k.Counts(); open != 5 || ended != 4 {
			t.Errorf("%d open, %d ended", open, ended)
		}
		if _, known, ok := k.Enter("other", "ann", Asks); !known || ok {
			t.Error("a session of another user's")
		}
		if _, known, _ := k.Enter("b", "ann", Asks); known {
			t.Error("one that was ended is known")
		}
		time.Sleep(2 * time.Hour) // and nothing is left
	})
}

// TestAll: where all places are taken, the person with most of them makes room,
// however many tokens they use.
func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, Limits{All: 10, Token: 4})
		k.pass = func() { time.Sleep(time.Second) }
		k.begin("ann", "t", "ann", false)
		for n := range 9 {
			k.begin(fmt.Sprint("m", n), fmt.Sprint("t", n/2), "mallory", false)
		}
		k.want()
		k.begin("ben", "b", "ben", false)
		k.want("m0")
		k.begin("m9", "t9", "mallory", false)
		k.want("m0", "m1")
		busy := k.use("m2", "mallory", Asks)
		k.begin("cat", "c", "cat", false)
		k.want("m0", "m1", "m3")
		busy()
		if _, _, ok := k.Enter("ann", "ann", Asks); !ok {
			t.Error("ann's was ended")
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestIdle: a session ends by itself when nothing was asked of it for its time. A call
// keeps it, and a stream does not.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, Limits{All: 10, Token: 10})
		k.pass = func() { time.Sleep(time.Second) }
		for _, id := range []string{"idle", "used", "busy", "listens", "dropped"} {
			k.begin(id, "t", "ann", false)
		}
		k.Drop("dropped")
		leave, unlisten := k.use("busy", "ann", Asks), k.use("listens", "ann", Listens)
		time.Sleep(30 * time.Minute)
		k.use("used", "ann", Asks)()
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		k.want("idle", "listens")
		unlisten()
		leave()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		k.want("idle", "listens", "used")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		k.want("idle", "listens", "used", "busy")
		if open, ended := k.Counts(); open != 0 || ended != 0 {
			t.Errorf("%d open, %d ended for others", open, ended)
		}
	})
}
