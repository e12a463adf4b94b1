package postgres

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

// TestApart: an engine whose machine's clock is far from the database's doesn't take the
// database over, and says so, until the clock is right.
func TestApart(t *testing.T) {
	url := postgrestest.New(t)
	var off atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
	for _, d := range []time.Duration{365 * 24 * time.Hour, -time.Minute} {
		off.Store(int64(d))
		how := map[bool]string{true: "ahead of", false: "behind"}[d > 0]
		e, err := Open(t.Context(), Options{URL: url, Log: slog.New(slog.DiscardHandler), Now: now})
		if !errors.Is(err, errApart) || !strings.Contains(err.Error(), how+" the database's") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("a clock that is off by %v: %v, %v", d, e, err)
		}
	}
	first := openWith(t, Options{URL: url, Now: time.Now})
	standing, opened := make(chan struct{}), make(chan *Engine, 1)
	go func() {
		e, err := Open(t.Context(), Options{URL: url, Log: slog.New(slog.DiscardHandler), Now: now, Says: func() string { return "1.0 b" }, Standby: func(e *Engine) error {
			close(standing)
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
		opened <- e
	}()
	<-standing
	apart := func(e *Engine) (apart, known bool) {
		list, err := e.Replicas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Says == "1.0 b" {
				return r.Apart, true
			}
		}
		return false, false
	}
	until := func(e *Engine, want bool) {
		for {
			if is, known := apart(e); known && is == want {
				return
			}
			<-time.After(beat / 10)
		}
	}
	until(first, true)
	if err := first.Close(true); err != nil {
		t.Error(err)
	}
	third := openWith(t, Options{URL: url, Now: time.Now}) // although another one asks
	until(third, true)
	off.Store(0)
	until(third, false)
	select {
	case <-opened:
		t.Error("two have it")
	default:
	}
	if err := third.Close(true); err != nil {
		t.Error(err)
	}
	if next := <-opened; next == nil || next.Close(true) != nil {
		t.Error("it did not take over with the right clock")
	}
}

// TestServerTime: the time that is reckoned goes on with the monotonic time, whatever the
// server's clock does.
func TestServerTime(t *testing.T) {
	e := &Engine{clock: clock{now: time.Now}}
	if _, ok := e.Time(); ok {
		t.Error("it knows a time")
	}
	at := func(off time.Duration) {
		now := time.Now()
		e.clock.read(now, float64(now.Add(off).UnixMicro())/1e6)
	}
	at(0)
	for _, off := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		at(off)
		if got, ok := e.Time(); !ok || time.Since(got).Abs() > 5*time.Second {
			t.Errorf("a server that is off by %v makes it %v", off, got)
		}
		if _, err := e.Apart(); !errors.Is(err, errApart) {
			t.Errorf("a server that is off by %v: %v", off, err)
		}
	}
	at(0)
	if _, err := e.Apart(); err != nil {
		t.Error(err)
	}
	if !errors.Is(named(store.Mark(errors.New("x"), errApart)), errApart) || errors.Is(named(store.Mark(errors.New("x"), errApart)), store.ErrNoDatabase) {
		t.Error("it counts as an outage")
	}
}
