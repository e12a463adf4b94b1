package commit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nize/store"
	"nize/store/commit"
	"nize/store/database"
)

// TestTamper: who has the file, but not the key, cannot change, remove or
// invent an event unseen.
func TestTamper(t *testing.T) {
	edit := func(part int, with []byte) func(b *commit.Tx) error {
		return func(b *commit.Tx) error {
			p, err := commit.EventParts(b, b.Get("events", commit.SeqKey(5)))
			if err != nil {
				return err
			}
			p[part] = with
			return b.Put("events", commit.SeqKey(5), commit.Pack(p...))
		}
	}
	for _, test := range []struct {
		name string
		do   func(b *commit.Tx) error
		want string // "" holds
	}{
		{"nothing", func(b *commit.Tx) error { return nil }, ""},
		{"time", edit(commit.EvTime, commit.SeqKey(1)), "event 5 was changed"},
		{"kind", edit(commit.EvKind, []byte("x")), "event 5 was changed"},
		{"subject", edit(commit.EvSubject, []byte("x")), "event 5 was changed"},
		{"outcome", edit(commit.EvOutcome, []byte("done")), "event 5 was changed"},
		{"surface", edit(commit.EvSurface, []byte("x")), "event 5 was changed"},
		{"tool", edit(commit.EvTool, []byte("x")), "event 5 was changed"},
		{"pseudonym", edit(commit.EvPseudonym, []byte("x")), "event 5 was changed"},
		{"payload", edit(commit.EvPayload, commit.Pack([]byte("eve"), nil, nil, nil, nil, nil)), "payload of event 5"},
		{"salt", edit(commit.EvSalt, []byte("x")), "payload of event 5"},
		{"a part flows into the next", func(b *commit.Tx) error {
			p, err := commit.EventParts(b, b.Get("events", commit.SeqKey(5)))
			if err != nil {
				return err
			}
			p[commit.EvSubject], p[commit.EvKind] = p[commit.EvSubject][1:], append(commit.CloneBytes(p[commit.EvKind]), p[commit.EvSubject][0])
			return b.Put("events", commit.SeqKey(5), commit.Pack(p...))
		}, "event 5 was changed"},
		{"removed in the middle", func(b *commit.Tx) error { return b.Delete("events", commit.SeqKey(4)) }, "event 4 is missing"},
		{"removed at the start", func(b *commit.Tx) error { return b.Delete("events", commit.SeqKey(1)) }, "event 1 is missing"},
		{"removed at the end", func(b *commit.Tx) error { return b.Delete("events", commit.SeqKey(8)) }, "newest event is 7"},
		{"all removed", func(b *commit.Tx) error {
			for i := range 8 {
				if err := b.Delete("events", commit.SeqKey(uint64(i+1))); err != nil {
					return err
				}
			}
			return nil
		}, "event 1 is missing"},
		{"two swapped", func(b *commit.Tx) error {
			v3, v4 := commit.CloneBytes(b.Get("events", commit.SeqKey(3))), commit.CloneBytes(b.Get("events", commit.SeqKey(4)))
			return errors.Join(b.Put("events", commit.SeqKey(3), v4), b.Put("events", commit.SeqKey(4), v3))
		}, "event 3 was changed"},
		{"one added", func(b *commit.Tx) error {
			return b.Put("events", commit.SeqKey(9), commit.CloneBytes(b.Get("events", commit.SeqKey(8))))
		}, "newest event is 9"},
		{"cut, with a head to match", func(b *commit.Tx) error {
			p, err := commit.EventParts(b, b.Get("events", commit.SeqKey(7)))
			if err != nil {
				return err
			}
			h := commit.EncodedHead([]byte("not the key"), 7, [32]byte(p[commit.EvChain]))
			return errors.Join(b.Delete("events", commit.SeqKey(8)), b.Put("meta", []byte("audit_head"), h))
		}, "head was changed"},
		{"cut at the start, with a checkpoint to match", func(b *commit.Tx) error {
			p, err := commit.EventParts(b, b.Get("events", commit.SeqKey(1)))
			if err != nil {
				return err
			}
			h := commit.EncodedHead([]byte("not the key"), 1, [32]byte(p[commit.EvChain]))
			return errors.Join(b.Delete("events", commit.SeqKey(1)), b.Put("meta", []byte("audit_base"), h))
		}, "head was changed"},
		{"no head", func(b *commit.Tx) error { return b.Delete("meta", []byte("audit_head")) }, "head was changed"},
		{"noise", func(b *commit.Tx) error { return b.Put("events", commit.SeqKey(5), []byte{200, 1, 2}) }, "event 5"},
		{"erased", func(b *commit.Tx) error { // by right: payload and salt go, the chain holds
			return errors.Join(edit(commit.EvPayload, nil)(b), edit(commit.EvSalt, nil)(b))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bad *store.TamperedError
			d := openTest(t, t.TempDir(), database.Options{})
			for i := range 8 {
				if err := d.PutSetting(t.Context(), tester, "", fmt.Sprint(i), "x"); err != nil {
					t.Fatal(err)
				}
			}
			behind(t, d, test.do)
			held, err := d.VerifyEvents(t.Context())
			switch {
			case test.want == "" && (err != nil || held != 8):
				t.Errorf("%d hold: %v", held, err)
			case test.want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestTamperCompact: a change of any byte of an event in the compact form is found, of one
// that was erased too.
func TestTamperCompact(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	for i := range 3 {
		by := store.Caller{User: fmt.Sprint("u", i), Name: "U", Surface: store.OnMCP, Token: store.NewID(d.Now()), Address: "127.0.0.1"}
		d.AddEvent(by, store.Event{Kind: "call.done", Subject: store.NewID(d.Now()), Tool: "box:x", Outcome: store.Done, Data: []byte(`{"args":{"a":1},"took_us":12}`)})
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, erased := range []bool{false, true} {
		if erased {
			if n, err := d.EraseEvents(t.Context(), tester, "u1"); err != nil || n != 1 {
				t.Fatalf("erasing: %d, %v", n, err)
			}
		}
		var v []byte
		put := func(v []byte) {
			behind(t, d, func(b *commit.Tx) error { return b.Put("events", commit.SeqKey(2), v) })
		}
		behind(t, d, func(b *commit.Tx) error {
			v = commit.CloneBytes(b.Get("events", commit.SeqKey(2)))
			return nil
		})
		if short, err := commit.IsCompact(v); !short || err != nil {
			t.Fatalf("erased: %v: it is not in the compact form, %v", erased, err)
		}
		for i := range v {
			with := commit.CloneBytes(v)
			with[i] ^= 1
			put(with)
			var bad *store.TamperedError
			if _, err := d.VerifyEvents(t.Context()); !errors.As(err, &bad) || bad.Seq != 2 {
				t.Errorf("erased: %v: byte %d of %d was changed: %v", erased, i, len(v), err)
			}
			put(with[:i])
			if _, err := d.VerifyEvents(t.Context()); err == nil {
				t.Errorf("erased: %v: cut off after %d of %d bytes: it holds", erased, i, len(v))
			}
		}
		put(v)
		if _, err := d.VerifyEvents(t.Context()); err != nil {
			t.Errorf("erased: %v: %v", erased, err)
		}
	}
}

// TestErasedIsFound: without its payload an event is still found by its user.
func TestErasedIsFound(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	if err := d.PutSetting(t.Context(), tester, "", "a", "x"); err != nil {
		t.Fatal(err)
	}
	behind(t, d, func(b *commit.Tx) error {
		p, err := commit.EventParts(b, b.Get("events", commit.SeqKey(1)))
		if err != nil {
			return err
		}
		p[commit.EvPayload], p[commit.EvSalt] = nil, nil
		return b.Put("events", commit.SeqKey(1), commit.Pack(p...))
	})
	got, err := d.Events(t.Context(), store.EventQuery{User: tester.User})
	if err != nil || len(got) != 1 || got[0].User != "" || got[0].Kind != "setting.put" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestPagedTrail: more events than one transaction looks at.
func TestPagedTrail(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	ctx := t.Context()
	const n = 2*commit.EventPage + 17
	for i := range n {
		d.AddEvent(tester, store.Event{Kind: "test.event", Subject: fmt.Sprint(i)})
	}
	if err := d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if held, err := d.VerifyEvents(ctx); held != n || err != nil {
		t.Errorf("%d hold: %v", held, err)
	}
	for _, q := range []store.EventQuery{{Limit: 2 * n}, {After: 1, Limit: 2 * n}} {
		got, err := d.Events(ctx, q)
		want := n
		if q.After > 0 {
			want--
		}
		if err != nil || len(got) != want {
			t.Fatalf("%d events: %v", len(got), err)
		}
		for i, e := range got {
			seq := uint64(n - i)
			if q.After > 0 {
				seq = uint64(i + 2)
			}
			if e.Seq != seq {
				t.Fatalf("place %d has %d, want %d", i, e.Seq, seq)
			}
		}
	}
	p, err := d.Prune(ctx, store.Retention{Audit: 1})
	if err != nil || p.Events < n {
		t.Fatalf("pruned %+v: %v", p, err)
	}
	if _, err := d.VerifyEvents(ctx); err != nil {
		t.Error(err)
	}
}
