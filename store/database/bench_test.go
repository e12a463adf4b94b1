package database

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/kv/bolt"
)

// benchCall is a call of a few hundred bytes.
func benchCall(i int64, state store.State) store.Call {
	now := time.Now().UTC()
	return store.Call{
		ID: fmt.Sprintf("01ARYZ6S41%016d", i), Server: "box", Tool: "x", Args: []byte(`{"text":"` + strings.Repeat("x", 80) + `"}`),
		By: "u", Thread: fmt.Sprint("t", i%100), State: state, Created: now, Started: now, Finished: now,
		Result: &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("y", 80) + `"}]}`)},
	}
}

// BenchmarkRecord is the cost for the caller, the waiting for a full queue
// included; with Flush it is that of the whole record.
func BenchmarkRecord(b *testing.B) {
	b.Run("caller", func(b *testing.B) {
		d := openTest(b, b.TempDir(), Options{})
		var n int64
		for b.Loop() {
			n++
			d.Record(tester, benchCall(n, store.Done))
			if n%1000 == 0 { // the writer's part is not the caller's
				b.StopTimer()
				if err := d.Flush(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		d := openTest(b, b.TempDir(), Options{})
		var n int64
		for b.Loop() {
			n++
			d.Record(tester, benchCall(n, store.Done))
		}
		if err := d.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkBeginFinish is a call that may change something: two durable writes,
// by the journal where it belongs to no conversation.
func BenchmarkBeginFinish(b *testing.B) {
	for _, callers := range []int{1, 16, -1, -16} {
		name, early := fmt.Sprint("callers=", callers), callers < 0
		if early {
			callers = -callers
			name = fmt.Sprint("journal/callers=", callers)
		}
		b.Run(name, func(b *testing.B) {
			d := openTest(b, b.TempDir(), Options{})
			var n atomic.Int64
			b.SetParallelism((callers + 1) / 2) // times GOMAXPROCS, which is 2 here
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c := benchCall(n.Add(1), store.Running)
					r := c.Result
					c.Result = nil
					if early {
						c.Thread = ""
					}
					if err := d.Begin(b.Context(), tester, c); err != nil {
						b.Error(err)
					}
					if _, err := d.Finish(b.Context(), tester, c.ID, store.Outcome{State: store.Done, Result: r}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(2*d.engine.(*bolt.File).Stats().Commits)/float64(b.N), "fsyncs/op") // two for each commit
		})
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	d := openTest(b, b.TempDir(), Options{})
	u, err := d.EnsureUser(b.Context(), "local:1", "U", store.Admin)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		tok := store.Token{Name: fmt.Sprint(i), User: u.ID, Hash: [32]byte{1, byte(i)}, Audience: "mcp", Expires: time.Now().Add(time.Hour)}
		if _, err := d.CreateToken(b.Context(), tester, tok, false); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, _, err := d.Authenticate(b.Context(), [32]byte{1, 50}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUsage asks for the usage of 1,000,000 model calls of 400 days: 50
// people, 20 models, 100,000 conversations of ten calls each.
func BenchmarkUsage(b *testing.B) {
	const calls, days, batch = 1_000_000, 400, 20_000
	d := openTest(b, b.TempDir(), Options{})
	end := time.Date(2026, 6, 30, 23, 0, 0, 0, time.UTC)
	start := end.AddDate(0, 0, -days)
	for i := 0; i < calls; i += batch {
		rows := make([]store.Spend, batch)
		for j := range rows {
			n := i + j
			rows[j] = store.Spend{
				ID: fmt.Sprintf("01S%023d", n), At: start.Add(time.Duration(n) * (days * 24 * time.Hour / calls)), User: fmt.Sprintf("01U%023d", n/10%50), Team: "local",
				Thread: fmt.Sprintf("01T%023d", n/10), Agent: "main", Provider: "main", Model: fmt.Sprint("model-", n%20), Prompt: int64(1000 + n%100), Completion: 10, Took: time.Second,
			}
		}
		if err := d.AddSpends(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
	}
	for _, span := range []int{30, days} {
		for _, by := range store.UsageGroupings {
			b.Run(fmt.Sprint(span, " days by ", by), func(b *testing.B) {
				for b.Loop() {
					if _, err := d.Usage(b.Context(), store.UsageQuery{By: by, Since: end.AddDate(0, 0, -span), Top: 40}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGetCall(b *testing.B) {
	d := openTest(b, b.TempDir(), Options{})
	if err := d.Begin(b.Context(), tester, benchCall(1, store.Running)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := d.GetCall(b.Context(), benchCall(1, store.Running).ID); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRareEvents reads the events of somebody of whom there is one in
// 100,000.
func BenchmarkRareEvents(b *testing.B) {
	const events, rare = 1_000_000, 100_000
	d := openTest(b, b.TempDir(), Options{})
	for i := range events {
		by := store.Caller{User: fmt.Sprint("u", i%50), Surface: store.OnMCP}
		if i%rare == rare/2 {
			by.User = "rare"
		}
		d.AddEvent(by, store.Event{Kind: "call.done", Subject: "s", Tool: fmt.Sprintf("system-%d:tool-%d", i%20, i%200), Outcome: store.Done})
	}
	if err := d.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, q := range []store.EventQuery{{User: "rare"}, {Tool: "rare:*"}, {Surface: store.OnSlack}, {}} {
		b.Run(q.User+q.Tool+string(q.Surface), func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Events(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
