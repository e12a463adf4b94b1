package commit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/database"
)

// fillTrail appends n events of which every thousandth or so has something that
// few others have.
func fillTrail(t *testing.T, d *database.DB, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(common, rare string) string {
		if r.IntN(1500) == 0 {
			return rare
		}
		return common
	}
	for i := range n {
		by := store.Caller{User: pick("ada", "rare"), Name: "N", Surface: store.Surface(pick("mcp", "slack"))}
		e := store.Event{
			Kind: pick("call.done", "call.failed"), Subject: fmt.Sprint(i), Tool: fmt.Sprintf("%s:tool%d", pick("box", "far"), r.IntN(5)),
			Outcome: store.State(pick("done", "lost")),
		}
		if r.IntN(900) == 0 {
			e = store.Event{Kind: "server.put", Subject: "far"}
		}
		d.AddEvent(by, e)
		if i%1500 == 0 { // in many transactions, so that times differ
			if err := d.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBlocksHideNothing: a filter finds exactly what reading every event would
// find, from both ends and in pages, whether blocks are noted or not.
func TestBlocksHideNothing(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	const n = 6*commit.BlockSize + 100
	fillTrail(t, d, n)
	ctx := t.Context()
	all, err := d.Events(ctx, store.EventQuery{Limit: n, Forward: true})
	if err != nil || len(all) != n {
		t.Fatalf("%d events: %v", len(all), err)
	}
	check := func(t *testing.T, q store.EventQuery) int {
		t.Helper()
		want := []uint64{}
		for _, e := range all {
			server, _, _ := strings.Cut(e.Tool, ":")
			if e.Kind == "server.put" {
				server = e.Subject
			}
			if (q.User == "" || e.User == q.User) && (q.Tool == "" || e.Tool != "" && store.MatchTool(q.Tool, e.Tool)) && (q.Server == "" || server == q.Server) &&
				(q.Kind == "" || e.Kind == q.Kind || strings.HasPrefix(e.Kind, q.Kind+".")) && (q.Outcome == "" || e.Outcome == q.Outcome) &&
				(q.Surface == "" || e.Surface == q.Surface) && (q.Since.IsZero() || !e.At.Before(q.Since)) && (q.Until.IsZero() || e.At.Before(q.Until)) &&
				e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) {
				want = append(want, e.Seq)
			}
		}
		q.Limit = 7
		for _, forward := range []bool{true, false} {
			got := []uint64{}
			for p := q; ; {
				p.Forward = forward
				page, err := d.Events(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page {
					got = append(got, e.Seq)
				}
				if len(page) < p.Limit {
					break
				}
				if last := page[len(page)-1].Seq; forward {
					p.After = last
				} else {
					p.Before = last
				}
			}
			if !forward {
				if q.After > 0 { // that always goes forward
					continue
				}
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v forward %v: got %d, want %d", q, forward, len(got), len(want))
			}
		}
		return len(want)
	}
	queries := []store.EventQuery{
		{User: "rare"}, {User: "nobody"}, {Tool: "far:*"}, {Tool: "far:tool3"}, {Server: "far"}, {Server: "bo"}, {Kind: "server"}, {Kind: "call.failed"}, {Kind: "cal"},
		{Outcome: "lost"}, {Surface: store.OnSlack}, {User: "rare", Server: "box"}, {User: "rare", Outcome: "lost"},
		{User: "rare", Since: all[n/3].At}, {User: "rare", Until: all[n/2].At}, {Server: "far", Since: all[n/3].At, Until: all[n/2].At},
		{Outcome: "lost", After: n / 2}, {Outcome: "lost", Before: n / 2}, {Server: "far", After: 1, Before: 3}, {Kind: "server", Since: all[n-1].At.Add(time.Hour)}, {Kind: "server", Until: all[0].At},
	}
	found := 0
	for _, q := range queries {
		found += check(t, q)
	}
	if found < 30 {
		t.Fatalf("only %d answers: the test proves little", found)
	}
	remove := func(keep int) {
		behind(t, d, func(b *commit.Tx) (err error) {
			for i := range uint64(n / commit.BlockSize) {
				if int(i)%2 >= keep {
					err = errors.Join(err, b.Delete("event_blocks", commit.SeqKey(i)))
				}
			}
			return err
		})
	}
	for keep := range 2 { // half of them, then none: of an older nized
		remove(1 - keep)
		for _, q := range queries {
			check(t, q)
		}
	}
}

// TestBlockTamper: a block that hides events is found, and pruned ones go.
func TestBlockTamper(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	fillTrail(t, d, 3*commit.BlockSize)
	ctx := t.Context()
	blocks := func() (n int) {
		if err := d.Read(ctx, "", func(b *commit.Tx) error { n = len(b.Keys("event_blocks", nil, 0)); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := blocks(); got != 3 {
		t.Fatalf("%d blocks are noted", got)
	}
	for _, with := range [][]byte{commit.Pack(nil, nil, nil, nil, nil, nil), {200, 1, 2}} {
		behind(t, d, func(b *commit.Tx) error { return b.Put("event_blocks", commit.SeqKey(1), with) })
		held, err := d.VerifyEvents(ctx)
		var bad *store.TamperedError
		if !errors.As(err, &bad) || bad.Seq != commit.BlockSize || held != commit.BlockSize-1 {
			t.Errorf("%d hold: %v", held, err)
		}
	}
	if _, err := d.Prune(ctx, store.Retention{Audit: 1}); err != nil {
		t.Fatal(err)
	}
	if got := blocks(); got != 0 {
		t.Errorf("%d blocks are left", got)
	}
	if _, err := d.VerifyEvents(ctx); err != nil {
		t.Error(err)
	}
}

// TestCheckpoints: verifying from one reads no event before it, and an altered
// one is found.
func TestCheckpoints(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	ctx := t.Context()
	fillTrail(t, d, 300)
	if err := d.AddCheckpoint(ctx, store.System, 300); err != nil {
		t.Fatal(err)
	}
	fillTrail(t, d, 20)
	list, err := d.Checkpoints(ctx, 10)
	if err != nil || len(list) != 1 || list[0].Seq != 301 || list[0].Kind != "audit.verify" {
		t.Fatalf("%+v, %v", list, err)
	}
	calls := 0
	if held, err := d.VerifyFrom(ctx, 301, func(_, all int) { calls += all }); held != 20 || err != nil || calls != 20 {
		t.Errorf("%d hold, %d told: %v", held, calls, err)
	}
	if _, err := d.VerifyFrom(ctx, 300, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("from where no checkpoint is: %v", err)
	}
	put := func(bucket string, k, v []byte) {
		t.Helper()
		behind(t, d, func(b *commit.Tx) error { return b.Put(bucket, k, v) })
	}
	var bad *store.TamperedError
	put("checkpoints", commit.SeqKey(301), commit.EncodedHead([]byte("not the key"), 301, [32]byte{}))
	if _, err := d.VerifyFrom(ctx, 301, nil); !errors.As(err, &bad) || bad.Seq != 301 {
		t.Errorf("an altered checkpoint: %v", err)
	}
	put("checkpoints", commit.SeqKey(301), commit.EncodedHead(d.AuditKey(), 300, [32]byte{})) // true, but of another event
	if _, err := d.VerifyFrom(ctx, 301, nil); !errors.As(err, &bad) {
		t.Errorf("another's checkpoint: %v", err)
	}
}

// TestWaitEvents: what is waited for comes, also when nothing but an event is
// committed, and a closed store says so.
func TestWaitEvents(t *testing.T) {
	d := openTest(t, t.TempDir(), database.Options{})
	ctx := t.Context()
	done := make(chan error, 1)
	go func() { done <- d.WaitEvents(ctx, 0) }()
	d.AddEvent(tester, store.Event{Kind: "test.event"})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go func() { done <- d.WaitEvents(ctx, 1) }()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, store.ErrNotOpen) {
		t.Errorf("got %v", err)
	}
}
