package database

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nize/store"
	"nize/store/kv"
	"nize/store/record"
)

// behind changes what is stored behind the store's back.
func behind(t *testing.T, d *DB, change func(b *tx) error) {
	t.Helper()
	if err := d.begin(true, func(b kv.Transaction) error { return change(&tx{db: d, b: b}) }); err != nil {
		t.Fatal(err)
	}
}

// TestTamper: who has the file, but not the key, cannot change, remove or
// invent an event unseen.
func TestTamper(t *testing.T) {
	edit := func(part int, with []byte) func(b *tx) error {
		return func(b *tx) error {
			p, err := eventParts(b.get("events", seqKey(5)))
			if err != nil {
				return err
			}
			p[part] = with
			return b.put("events", seqKey(5), pack(p...))
		}
	}
	for _, test := range []struct {
		name string
		do   func(b *tx) error
		want string // "" holds
	}{
		{"nothing", func(b *tx) error { return nil }, ""},
		{"time", edit(evTime, seqKey(1)), "event 5 was changed"},
		{"kind", edit(evKind, []byte("x")), "event 5 was changed"},
		{"subject", edit(evSubject, []byte("x")), "event 5 was changed"},
		{"outcome", edit(evOutcome, []byte("done")), "event 5 was changed"},
		{"surface", edit(evSurface, []byte("x")), "event 5 was changed"},
		{"tool", edit(evTool, []byte("x")), "event 5 was changed"},
		{"pseudonym", edit(evPseudonym, []byte("x")), "event 5 was changed"},
		{"payload", edit(evPayload, pack([]byte("eve"), nil, nil, nil, nil, nil)), "payload of event 5"},
		{"salt", edit(evSalt, []byte("x")), "payload of event 5"},
		{"a part flows into the next", func(b *tx) error {
			p, err := eventParts(b.get("events", seqKey(5)))
			if err != nil {
				return err
			}
			p[evSubject], p[evKind] = p[evSubject][1:], append(cloneBytes(p[evKind]), p[evSubject][0])
			return b.put("events", seqKey(5), pack(p...))
		}, "event 5 was changed"},
		{"removed in the middle", func(b *tx) error { return b.del("events", seqKey(4)) }, "event 4 is missing"},
		{"removed at the start", func(b *tx) error { return b.del("events", seqKey(1)) }, "event 1 is missing"},
		{"removed at the end", func(b *tx) error { return b.del("events", seqKey(8)) }, "newest event is 7"},
		{"all removed", func(b *tx) error {
			for i := range 8 {
				if err := b.del("events", seqKey(uint64(i+1))); err != nil {
					return err
				}
			}
			return nil
		}, "event 1 is missing"},
		{"two swapped", func(b *tx) error {
			v3, v4 := cloneBytes(b.get("events", seqKey(3))), cloneBytes(b.get("events", seqKey(4)))
			return errors.Join(b.put("events", seqKey(3), v4), b.put("events", seqKey(4), v3))
		}, "event 3 was changed"},
		{"one added", func(b *tx) error { return b.put("events", seqKey(9), cloneBytes(b.get("events", seqKey(8)))) }, "newest event is 9"},
		{"cut, with a head to match", func(b *tx) error {
			p, err := eventParts(b.get("events", seqKey(7)))
			if err != nil {
				return err
			}
			h := auditHead{seq: 7, chain: [32]byte(p[evChain])}
			return errors.Join(b.del("events", seqKey(8)), b.put("meta", []byte("audit_head"), h.encode([]byte("not the key"))))
		}, "head was changed"},
		{"cut at the start, with a checkpoint to match", func(b *tx) error {
			p, err := eventParts(b.get("events", seqKey(1)))
			if err != nil {
				return err
			}
			h := auditHead{seq: 1, chain: [32]byte(p[evChain])}
			return errors.Join(b.del("events", seqKey(1)), b.put("meta", []byte("audit_base"), h.encode([]byte("not the key"))))
		}, "head was changed"},
		{"no head", func(b *tx) error { return b.del("meta", []byte("audit_head")) }, "head was changed"},
		{"noise", func(b *tx) error { return b.put("events", seqKey(5), []byte{200, 1, 2}) }, "event 5"},
		{"erased", func(b *tx) error { // by right: payload and salt go, the chain holds
			return errors.Join(edit(evPayload, nil)(b), edit(evSalt, nil)(b))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bad *store.TamperedError
			d := openTest(t, t.TempDir(), Options{})
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

// TestErasedIsFound: without its payload an event is still found by its user.
func TestErasedIsFound(t *testing.T) {
	d := openTest(t, t.TempDir(), Options{})
	if err := d.PutSetting(t.Context(), tester, "", "a", "x"); err != nil {
		t.Fatal(err)
	}
	behind(t, d, func(b *tx) error {
		p, err := eventParts(b.get("events", seqKey(1)))
		if err != nil {
			return err
		}
		p[evPayload], p[evSalt] = nil, nil
		return b.put("events", seqKey(1), pack(p...))
	})
	got, err := d.Events(t.Context(), store.EventQuery{User: tester.User})
	if err != nil || len(got) != 1 || got[0].User != "" || got[0].Kind != "setting.put" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestPagedTrail: more events than one transaction looks at.
func TestPagedTrail(t *testing.T) {
	d := openTest(t, t.TempDir(), Options{})
	ctx := t.Context()
	const n = 2*eventPage + 17
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

func FuzzUnpack(f *testing.F) {
	f.Add(pack([]byte("a"), nil, []byte("bc")))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := unpack(b)
		if err != nil {
			return
		}
		again, err := unpack(pack(parts...))
		if err != nil || len(again) != len(parts) {
			t.Fatalf("%v, %d parts became %d", err, len(parts), len(again))
		}
		for i := range parts {
			if string(again[i]) != string(parts[i]) {
				t.Fatalf("part %d: %q became %q", i, parts[i], again[i])
			}
		}
		decodeCall(b)
		decodeTool(b)
		decodeProvider(b)
		record.DecodeCounters(b)
		(&tx{db: &DB{}}).decodeEvent(seqKey(1), b, &names{})
	})
}
