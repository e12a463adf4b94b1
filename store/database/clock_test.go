package database

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// referenced is an engine whose server has a clock of its own.
type referenced struct {
	kv.Engine
	time func() (time.Time, bool)
}

func (r referenced) Time() (time.Time, bool) { return r.time() }

const year = 365 * 24 * time.Hour

var admin = store.Caller{User: "ada", Name: "Ada", Role: store.Admin, Surface: store.OnCLI}

// clockedDB opens a database whose machine's clock is off by what ahead says.
func clockedDB(t *testing.T, path string, ahead *atomic.Int64, server func() (time.Time, bool)) *DB {
	t.Helper()
	master, err := seal.Open(filepath.Join(filepath.Dir(path), "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Path: path, Master: master, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	if server != nil {
		file, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Path, o.Engine = "", referenced{file, server}
	}
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestClockBounded: on a server, the time of the records keeps within 30 s of the server's, however the
// machine's clock jumps, and never goes back.
func TestClockBounded(t *testing.T) {
	var ahead atomic.Int64
	d := clockedDB(t, filepath.Join(t.TempDir(), "x.db"), &ahead, func() (time.Time, bool) { return time.Now(), true })
	last := d.Now()
	for _, off := range []time.Duration{0, year, -year, 10 * time.Second, 0} {
		ahead.Store(int64(off))
		before := time.Now()
		now := d.Now()
		if now.Before(last) || now.After(time.Now().Add(30*time.Second)) || now.Before(before.Add(-30*time.Second)) {
			t.Errorf("a clock that is off by %v makes it %v after %v, at %v", off, now, last, before)
		}
		last = now
	}
	unknown := clockedDB(t, filepath.Join(t.TempDir(), "x.db"), &ahead, func() (time.Time, bool) { return time.Time{}, false })
	ahead.Store(int64(year))
	if now := unknown.Now(); now.Before(time.Now().Add(year / 2)) {
		t.Errorf("without the server's time it is %v", now)
	}
}

// TestRepairClock: a time that a machine left far ahead is set back, durably, and the trail is
// found by the times that its events have.
func TestRepairClock(t *testing.T) {
	var ahead atomic.Int64
	path := filepath.Join(t.TempDir(), "x.db")
	d := clockedDB(t, path, &ahead, nil)
	ctx := t.Context()
	put := func(name string) {
		t.Helper()
		if _, err := d.AddUser(ctx, admin, store.User{Name: name, Role: store.Member, Identities: []string{"slack:T:" + name}}); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	put("before")
	if _, err := d.RepairClock(ctx, admin); !errors.Is(err, store.ErrRefused) || d.Clocks().Ahead() != 0 {
		t.Errorf("a clock that is right: %v", err)
	}
	ahead.Store(int64(year))
	put("ahead")
	ahead.Store(0)
	put("behind")
	if by := d.Clocks().Ahead(); by < year/2 {
		t.Errorf("it is ahead by %v", by)
	}
	was, err := d.RepairClock(ctx, admin)
	if err != nil || was.Ahead() < year/2 {
		t.Fatalf("repairing: %+v, %v", was, err)
	}
	put("after")
	for again := range 2 {
		if by := time.Until(d.Now()); by > time.Minute {
			t.Errorf("%d: afterwards it is ahead by %v", again, by)
		}
		for _, q := range []struct {
			name string
			q    store.EventQuery
			want int
		}{
			{"all", store.EventQuery{}, 5},
			{"now", store.EventQuery{Since: begun, Until: time.Now().Add(time.Minute)}, 3},
			{"now, forward", store.EventQuery{Since: begun, Until: time.Now().Add(time.Minute), Forward: true}, 3},
			{"since now", store.EventQuery{Since: begun}, 5},
			{"then", store.EventQuery{Since: time.Now().Add(year / 2)}, 2},
			{"until now", store.EventQuery{Until: time.Now().Add(time.Minute)}, 3},
			{"never", store.EventQuery{Since: time.Now().Add(time.Hour), Until: time.Now().Add(2 * time.Hour)}, 0},
		} {
			if list, err := d.Events(ctx, q.q); err != nil || len(list) != q.want {
				t.Errorf("%d: events %s: %d, want %d, %v", again, q.name, len(list), q.want, err)
			}
		}
		if again == 0 {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = clockedDB(t, path, &ahead, nil)
		}
	}
}
