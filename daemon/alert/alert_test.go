package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a manager over a real store, with a clock and a destination that the
// test moves.
type bench struct {
	t       *testing.T
	path    string
	key     *seal.Master
	db      *database.DB
	manager *Manager
	now     time.Time
	to      Notifier
	sent    []string // state, title of each that the destination took
	fail    error    // what it answers instead
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	key, err := seal.Open(filepath.Join(dir, "key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, path: filepath.Join(dir, "db"), key: key, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b.to = b
	b.open()
	t.Cleanup(func() { b.close() })
	return b
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.db, err = database.Open(context.Background(), database.Options{Path: b.path, Master: b.key, Now: func() time.Time { return b.now }}); err != nil {
		b.t.Fatal(err)
	}
	b.manager = New(Options{Incidents: b.db, To: func(context.Context) (Notifier, error) { return b.to, nil }, Now: func() time.Time { return b.now }, Log: slog.New(slog.DiscardHandler)})
}

func (b *bench) close() {
	if err := b.db.Close(); err != nil {
		b.t.Error(err)
	}
}

// restart is what a kill or a stop does to the manager.
func (b *bench) restart() { b.close(); b.open() }

func (b *bench) Notify(_ context.Context, i store.Incident) (string, error) {
	if b.fail != nil {
		return "", b.fail
	}
	b.sent = append(b.sent, string(i.State)+" "+i.Title.String())
	return "m-" + i.ID, nil
}

// see checks once, after a while.
func (b *bench) see(after time.Duration, wrong ...Symptom) {
	b.t.Helper()
	b.check(after, Result{Wrong: wrong})
}

func (b *bench) check(after time.Duration, s Result) {
	b.t.Helper()
	b.now = b.now.Add(after)
	if err := b.manager.Update(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) deliver() time.Duration {
	b.t.Helper()
	wait, err := b.manager.Deliver(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return wait
}

func (b *bench) states() (out []string) {
	b.t.Helper()
	list, err := b.db.ListIncidents(b.t.Context(), store.IncidentQuery{All: true})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, i := range list {
		out = append(out, i.Subject+" "+string(i.State))
	}
	slices.Sort(out) // those of one check have no order
	return out
}

func (b *bench) same(got, want any) {
	b.t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		b.t.Fatalf("-got +want:\n%s", diff)
	}
}

func down(name string) Symptom {
	return Symptom{Key: Key{ServerDown, name}, Title: store.Plain(name + " is down"), Cure: "nizectl servers test " + name}
}

func full() Symptom { return Symptom{Key: Key{Backup, "scheduled"}, Title: store.Plain("no backup")} }

func TestOneMessageWhenItBeginsAndOneWhenItIsOver(t *testing.T) {
	b := newBench(t)
	b.see(0, down("box"))
	b.see(5*time.Minute-time.Second, down("box"))
	b.same(b.states(), []string(nil))
	b.see(time.Second, down("box"))
	b.same(b.states(), []string{"box open"})
	for range 10 {
		b.see(time.Hour, down("box"))
		b.deliver()
	}
	b.same(b.sent, []string{"open box is down"})
	b.see(0)
	b.see(time.Minute - time.Second)
	b.same(b.states(), []string{"box open"})
	b.see(time.Second)
	b.deliver()
	b.deliver()
	b.same(b.sent, []string{"open box is down", "recovered box is down"})
	list, err := b.db.ListIncidents(t.Context(), store.IncidentQuery{All: true})
	if err != nil || len(list) != 1 || list[0].Delivery.Handle != "m-"+list[0].ID {
		t.Fatalf("%+v, %v", list, err)
	}
}

// What needs one check is told at once.
func TestAtOnce(t *testing.T) {
	b := newBench(t)
	b.see(0, full())
	b.see(time.Second)
	b.deliver()
	b.same(b.sent, []string{"recovered no backup"}) // the beginning is old news
}

func TestRestartRepeatsNothing(t *testing.T) {
	b := newBench(t)
	b.see(0, down("box"), full())
	b.see(5*time.Minute, down("box"), full())
	b.deliver()
	b.same(len(b.sent), 2)
	for range 3 {
		b.restart()
		b.check(time.Second, Result{Unknown: []Key{{ServerDown, "box"}, {Kind: Backup}}}) // it connects; no backup ran yet
		b.see(10*time.Minute, down("box"), full())
		b.deliver()
	}
	b.same(len(b.sent), 2)
	b.restart()
	b.check(0, Result{Unknown: []Key{{Kind: Backup}}})
	b.check(time.Hour, Result{Unknown: []Key{{Kind: Backup}}}) // the server is well
	b.deliver()
	b.same(b.sent[2:], []string{"recovered box is down"})
	b.same(b.states(), []string{"box recovered", "scheduled open"})
}

// A server that comes and goes is down as long as it was never well for a
// minute; and one that keeps coming back has to be well for longer each time.
func TestFlappingDoesNotFlood(t *testing.T) {
	b := newBench(t)
	for range 10 * 60 / 30 { // ten minutes
		b.see(15*time.Second, down("box"))
		b.see(15 * time.Second)
	}
	b.deliver()
	b.same(b.sent, []string{"open box is down"})

	for range 24 * 60 / 8 { // a day: six minutes down, two minutes well
		for range 6 * 4 {
			b.see(15*time.Second, down("box"))
		}
		for range 2 * 4 {
			b.see(15 * time.Second)
		}
		b.deliver()
	}
	if n := len(b.sent); n > 16 {
		t.Errorf("%d messages about a server that flaps all day", n)
	}
	b.see(0)
	b.see(time.Hour)
	b.deliver()
	b.same(b.sent[len(b.sent)-1], "recovered box is down") // it is over in the end
}

func TestAckedIsNotSent(t *testing.T) {
	b := newBench(t)
	b.see(0, full())
	list, err := b.db.ListIncidents(t.Context(), store.IncidentQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.AckIncident(t.Context(), store.System, list[0].ID); err != nil {
		t.Fatal(err)
	}
	b.deliver()
	b.same(b.sent, []string(nil))
	b.see(time.Second, full())
	b.same(b.states(), []string{"scheduled acked"})
	b.see(time.Second)
	b.deliver()
	b.same(b.sent, []string{"recovered no backup"})
}

// Without a destination incidents are kept. One that is there later is told
// what still is, and not what is over.
func TestNobodyToTell(t *testing.T) {
	b := newBench(t)
	b.to = nil
	b.see(0, full(), down("box"))
	b.see(5*time.Minute, full(), down("box"))
	b.deliver()
	b.see(0, down("box"))
	b.deliver()
	b.to = b
	b.manager.Again()
	b.deliver()
	b.same(b.sent, []string{"open box is down"})
}

func TestTriesAreBoundedAndSurviveARestart(t *testing.T) {
	b := newBench(t)
	b.fail = errors.New("the webhook answered 500, token=nize_abcdefghijklmnop")
	b.see(0, full())
	tries := 0
	for {
		wait := b.deliver()
		due, err := b.db.ListIncidents(t.Context(), store.IncidentQuery{All: true})
		if err != nil {
			t.Fatal(err)
		}
		tries = due[0].Delivery.Tries
		if due[0].Delivery.GaveUp {
			break
		}
		if wait < 10*time.Second || wait > time.Hour || tries > maxTries {
			t.Fatalf("after %d tries: wait %v", tries, wait)
		}
		if b.deliver(); tries == 5 {
			b.restart()
		}
		b.now = b.now.Add(wait)
	}
	b.same(tries, maxTries)
	b.same(b.deliver(), forever)
	b.fail = nil
	b.restart()
	b.deliver()
	b.same(b.sent, []string(nil)) // a restart is no reason
	b.manager.Again()
	b.deliver()
	b.same(b.sent, []string{"open no backup"})
}

func TestPermanentFailureIsNotTriedAgain(t *testing.T) {
	b := newBench(t)
	b.fail = fmt.Errorf("gone: %w", ErrPermanent)
	b.see(0, full())
	b.same(b.deliver(), forever)
	b.fail = nil
	b.same(b.deliver(), forever)
	b.same(b.sent, []string(nil))
	b.see(time.Second) // but its end is news
	b.deliver()
	b.same(b.sent, []string{"recovered no backup"})
}

// A message that is never taken holds up no other.
func TestOneBadMessage(t *testing.T) {
	b := newBench(t)
	b.to = picky{b}
	b.see(0, Symptom{Key: Key{Disk, "a"}, Title: store.Plain("bad")}, Symptom{Key: Key{Disk, "b"}, Title: store.Plain("good")})
	b.deliver()
	b.now = b.now.Add(firstWait)
	b.deliver()
	b.same(b.sent, []string{"open good"})
}

type picky struct{ *bench }

func (p picky) Notify(ctx context.Context, i store.Incident) (string, error) {
	if i.Title.String() == "bad" {
		return "", errors.New("no")
	}
	return p.bench.Notify(ctx, i)
}

// What strangers wrote is cut, and whole runes stay.
func TestTextsAreCut(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("世", 5000)
	b.see(0, Symptom{Key: Key{Backup, "x"}, Title: store.Plain(long), Text: store.Plain(long), Cure: long})
	list, err := b.db.ListIncidents(t.Context(), store.IncidentQuery{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d, %v", len(list), err)
	}
	for text, most := range map[string]int{list[0].Title.String(): maxTitle, list[0].Text.String(): maxText, list[0].Cure: maxCure} {
		if len(text) > most || strings.Trim(text, "世") != "" {
			t.Errorf("%d bytes, at most %d: %q", len(text), most, text[len(text)-4:])
		}
	}
}

// hanging is a destination that answers nothing until it is given up.
type hanging struct {
	mu    sync.Mutex
	asked int
}

func (h *hanging) Notify(ctx context.Context, _ store.Incident) (string, error) {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	<-ctx.Done()
	return "", ctx.Err()
}

// A destination that hangs is given ten seconds, again and again at growing
// pauses, and the manager goes on checking meanwhile.
func TestHangingDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.close()
		db, err := database.Open(t.Context(), database.Options{Path: b.path, Master: b.key})
		if err != nil {
			t.Fatal(err)
		}
		h, checks := &hanging{}, 0
		manager := New(Options{
			Incidents: db, To: func(context.Context) (Notifier, error) { return h, nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Check: func(context.Context) Result { checks++; return Result{Wrong: []Symptom{full()}} },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- manager.Run(ctx) }()
		time.Sleep(10 * time.Minute) // of the bubble
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if checks < 40 || h.asked < 4 || h.asked > 8 {
			t.Errorf("%d checks, asked %d times", checks, h.asked)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		b.open()
	})
}

// A stop in the middle of a try is no failed try, and the next daemon tries
// again.
func TestStopInTheMiddle(t *testing.T) {
	b := newBench(t)
	b.see(0, full())
	ctx, cancel := context.WithCancel(t.Context())
	b.to = stopping{cancel: cancel}
	if _, err := b.manager.Deliver(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	b.restart()
	b.to = b
	b.deliver()
	b.same(b.sent, []string{"open no backup"})
}

// What was taken when the stop came is not sent again.
func TestStopBehindAMessage(t *testing.T) {
	b := newBench(t)
	b.see(0, full())
	ctx, cancel := context.WithCancel(t.Context())
	b.to = stopping{cancel: cancel, takes: b}
	_, _ = b.manager.Deliver(ctx) // it may say that it was stopped
	b.restart()
	b.to = b
	b.deliver()
	b.same(b.sent, []string{"open no backup"})
}

// stopping is a destination that the daemon is stopped beside; it takes nothing
// where takes is nil.
type stopping struct {
	cancel func()
	takes  Notifier
}

func (s stopping) Notify(ctx context.Context, i store.Incident) (string, error) {
	s.cancel()
	if s.takes != nil {
		return s.takes.Notify(ctx, i)
	}
	return "", ctx.Err()
}
