package people

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

// rota is a platform's user groups.
type rota struct {
	bots.Bot
	asked atomic.Int64

	mu   sync.Mutex
	in   []string
	fail error
	hang bool
}

func (r *rota) Surface() store.Surface { return store.OnSlack }

func (r *rota) UserGroup(context.Context, string) (string, string, error) {
	return "slack:T:S1", "ops", nil
}

func (r *rota) InUserGroup(ctx context.Context, _ string) ([]string, error) {
	r.asked.Add(1)
	r.mu.Lock()
	in, err, hang := r.in, r.fail, r.hang
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return in, err
}

func (r *rota) set(in []string, fail error, hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in, r.fail, r.hang = in, fail, hang
}

// groupScene is a live group "ops" that is checked.
type groupScene struct {
	*LiveGroups
	t    *testing.T
	db   *database.DB
	rota *rota
	ann  store.User
	stop func()
}

func newGroupScene(t *testing.T) *groupScene {
	t.Helper()
	db := databasetest.OpenIn(t, t.TempDir())
	s := &groupScene{t: t, db: db, rota: &rota{in: []string{"slack:T:ANN"}}}
	var err error
	if s.ann, err = db.EnsureUser(t.Context(), "slack:T:ANN", "ann", store.Member); err != nil {
		t.Fatal(err)
	}
	if _, err := db.AddGroup(t.Context(), store.System, store.Group{Name: "ops", Source: "slack:T:S1"}); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

// start begins as a daemon does, on what the store holds.
func (s *groupScene) start() {
	var platforms bots.Registry
	platforms.Add(s.rota)
	s.LiveGroups = NewLiveGroups(s.db, &platforms, slog.New(slog.DiscardHandler), time.Now)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
	synctest.Wait()
}

func (s *groupScene) end() {
	s.stop()
	if err := s.db.Close(); err != nil {
		s.t.Error(err)
	}
}

// in says whether Ann is in the group for calls, and how long that took.
func (s *groupScene) in(want bool, most time.Duration) {
	s.t.Helper()
	began := time.Now()
	names, err := s.GroupsOf(s.t.Context(), s.ann.ID)
	if err != nil || (len(names) == 1) != want || time.Since(began) > most {
		s.t.Errorf("ann is in %v, %v after %v; want %v within %v", names, err, time.Since(began), want, most)
	}
}

// Who joins and leaves is seen within five minutes, and no call asks for it.
func TestLiveGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGroupScene(t)
		defer s.end()
		s.in(true, 0)
		asked := s.rota.asked.Load()
		for range 100 {
			s.in(true, 0)
		}
		if n := s.rota.asked.Load(); n != asked {
			t.Errorf("%d checks for a hundred calls", n-asked)
		}
		s.rota.set(nil, nil, false)
		time.Sleep(store.GroupAge)
		s.in(false, 0)
		if n := s.rota.asked.Load() - asked; n > 2 {
			t.Errorf("%d checks in five minutes", n)
		}

		// A press looks anew, a hundred of them once.
		s.rota.set([]string{"slack:T:ANN"}, nil, false)
		time.Sleep(pressAge)
		asked = s.rota.asked.Load()
		var presses sync.WaitGroup
		for range 100 {
			presses.Go(func() {
				if in, err := s.InGroup(t.Context(), "ops", s.ann.ID); !in || err != nil {
					t.Errorf("pressing: %v, %v", in, err)
				}
			})
		}
		presses.Wait()
		if n := s.rota.asked.Load() - asked; n != 1 {
			t.Errorf("%d checks for a hundred presses", n)
		}
		if in, err := s.InGroup(t.Context(), "none", s.ann.ID); in || err != nil {
			t.Errorf("in a group that is not there: %v, %v", in, err)
		}
	})
}

// A platform that fails or hangs is no reason to hang: what was seen counts for
// five minutes, then nobody is in the group, until it answers again.
func TestLiveGroupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGroupScene(t)
		defer s.end()
		s.rota.set(nil, errors.New("on fire"), false)
		time.Sleep(store.GroupAge - time.Second)
		s.in(true, 0)
		time.Sleep(time.Second)
		s.in(false, 0)
		all, err := s.db.ListGroups(t.Context())
		if err != nil || all[0].Error != "on fire" || len(all[0].Members) != 1 {
			t.Errorf("groups %+v, %v", all, err)
		}
		s.rota.set([]string{"slack:T:ANN"}, nil, false)
		time.Sleep(checkRetry + checkTick)
		s.in(true, 0)

		s.rota.set([]string{"slack:T:ANN"}, nil, true)
		time.Sleep(pressAge)
		began := time.Now()
		if in, err := s.InGroup(t.Context(), "ops", s.ann.ID); !in || err != nil || time.Since(began) > maxWait {
			t.Errorf("pressing while it hangs: %v, %v after %v", in, err, time.Since(began))
		}
		time.Sleep(store.GroupAge)
		s.in(false, maxWait)
		s.rota.set([]string{"slack:T:ANN"}, nil, false)
		time.Sleep(checkTimeout + checkRetry + checkTick)
		s.in(true, 0)
	})
}

// A start on what was seen long ago waits a short time for the first check; one
// on what was seen just now needs none.
func TestLiveGroupRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGroupScene(t)
		defer s.end()
		s.stop()
		s.rota.set(nil, nil, true)
		s.start()
		s.in(true, 0)
		s.stop()
		time.Sleep(store.GroupAge)
		s.start()
		s.in(false, maxWait)
		s.in(false, 0) // who waited once for what hangs is enough
		s.stop()
		s.rota.set([]string{"slack:T:ANN"}, nil, false)
		s.start()
		s.in(true, maxWait)

		// What was removed is not looked at any more.
		if err := s.db.DeleteGroup(t.Context(), store.System, "ops"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * store.GroupAge)
		asked := s.rota.asked.Load()
		time.Sleep(2 * store.GroupAge)
		if n := s.rota.asked.Load(); n != asked {
			t.Errorf("%d checks at a group that is gone", n-asked)
		}
	})
}
