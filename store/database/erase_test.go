package database

import (
	"bufio"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv/bolt"
)

// TestKillErase: an erasure that was killed goes on where it was, whoever asks
// first, and the chain holds at any moment.
func TestKillErase(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	d := openTest(t, dir, Options{})
	other := store.Caller{User: "other", Name: "Other", Surface: store.OnCLI}
	for range 3000 {
		d.AddEvent(tester, store.Event{Kind: "test.event", Data: []byte(`{"text":"of theirs"}`)})
		d.AddEvent(other, store.Event{Kind: "test.event"})
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	interrupted := 0
	// Four rounds, and more until a kill met an erasure: one in five does not.
	for round := 0; round < 4 || interrupted == 0; round++ {
		cmd, out := startChild(t, "erase", dir)
		scan := bufio.NewScanner(out)
		for n := 1 + rand.IntN(40); n > 0 && scan.Scan(); n-- {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // it was killed: that is no news
		if err := bolt.Check(filepath.Join(dir, "nize.db")); err != nil {
			t.Fatal(err)
		}
		d, err := openAt(ctx, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.VerifyEvents(ctx); err != nil {
			t.Fatal(err)
		}
		until := underWay(t, d)
		if until > 0 {
			interrupted++
		}
		if round%2 == 0 {
			_, err = d.ResumeErasures(ctx)
		} else {
			until = newest(t, d)
			_, err = d.EraseEvents(ctx, store.System, tester.User)
		}
		if err != nil {
			t.Fatal(err)
		}
		events, err := d.Events(ctx, store.EventQuery{Limit: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Seq <= until && e.User == tester.User {
				t.Fatalf("round %d: event %d is not erased", round, e.Seq)
			}
			if e.Erased && e.Kind == "test.event" && e.User == other.User {
				t.Fatalf("event %d was another's", e.Seq)
			}
		}
		if held, err := d.VerifyEvents(ctx); err != nil || held != len(events) || underWay(t, d) != 0 {
			t.Fatalf("round %d: %d of %d hold: %v", round, held, len(events), err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// underWay returns up to which event an unfinished erasure goes, or 0.
func underWay(t *testing.T, d *DB) uint64 {
	t.Helper()
	until := uint64(0)
	err := d.Read(t.Context(), "", func(b *commit.Tx) error {
		return b.Each("erasures", nil, func(_, v []byte) error {
			e, err := commit.DecodeJSON[commit.Erasure](v)
			until = max(until, e.Until)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return until
}

// TestErasedForms: what a payload says of a person is found whatever else it
// says.
func TestErasedForms(t *testing.T) {
	for _, test := range []struct {
		name string
		e    store.Event
		by   string
		want int
	}{
		{"their own", store.Event{Kind: "x"}, "mia", 1},
		{"another's", store.Event{Kind: "x"}, "bo", 0},
		{"about them", store.Event{Kind: "user.put", Subject: "mia"}, "bo", 1},
		{"their identity as subject", store.Event{Kind: "identity.link", Subject: "slack:T:M"}, "bo", 1},
		{"named", store.Event{Kind: "group.put", Data: []byte(`{"members":["bo","mia"]}`)}, "bo", 1},
		{"a word like it", store.Event{Kind: "group.put", Data: []byte(`{"members":["miami"]}`)}, "bo", 0},
		{"another's press on another's call", store.Event{Kind: "call.press_refused", Subject: "c1", Outcome: store.Pending}, "bo", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := openTest(t, t.TempDir(), Options{})
			err := d.Write(t.Context(), "linking", func(tx *commit.Tx) error {
				return tx.PutJSON("users", []byte("mia"), store.User{ID: "mia", Identities: []string{"slack:T:M"}})
			})
			if err != nil {
				t.Fatal(err)
			}
			d.AddEvent(store.Caller{User: test.by, Name: test.by}, test.e)
			got, err := d.EraseEvents(t.Context(), tester, "mia")
			if err != nil || got != test.want {
				t.Errorf("erased %d, %v, want %d", got, err, test.want)
			}
			if _, err := d.VerifyEvents(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// newest is the number of the newest event.
func newest(t *testing.T, d *DB) uint64 {
	t.Helper()
	events, err := d.Events(t.Context(), store.EventQuery{Limit: 1})
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	return events[0].Seq
}
