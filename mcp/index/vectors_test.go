package index

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	chromem "github.com/philippgille/chromem-go"

	"nize/store"
)

func TestEmbedderLeads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		x := officeIndex(t, Options{Embedder: m})
		synctest.Wait()
		if model, have, tools := x.Vectors(); model != "m" || have != tools {
			t.Fatalf("Vectors() = %s, %d of %d", model, have, tools)
		}
		for in, want := range map[string]string{
			"do I need an umbrella":       "weather:get_forecast",
			"gather some colleagues":      "mail:create_event",
			"I feel like I should gamble": "misc:roll_dice",
		} {
			a := must(x.Search(context.Background(), Query{Text: in, MinScore: 0.15}))
			if len(a.Hits) == 0 || a.Hits[0].Tool.ID() != want || a.Degraded {
				t.Errorf("Search(%q) = %+v, want %s first", in, a, want)
			}
			narrow := func(t store.Tool) bool { return t.ID() == want }
			if got := ids(t, x, Query{Text: in, Keep: narrow}); !slices.Equal(got, []string{want}) {
				t.Errorf("Search(%q) in a narrow view = %v", in, got)
			}
			if got := ids(t, x, Query{Text: in, Domain: "db"}); slices.Contains(got, want) {
				t.Errorf("Search(%q) in another domain = %v", in, got)
			}
		}
		if got := ids(t, x, Query{Text: "delete a branch"}); got[0] != "github:delete_branch" {
			t.Errorf("words under an embedder: %v", got)
		}
	})
}

func TestNothingIsEmbeddedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cache := new(vectorCache)
		m := newMeaning("m", 8)
		m.bad = "Roll dice"
		x := officeIndex(t, Options{Embedder: m, Vectors: cache})
		synctest.Wait()
		calls, most := m.count()
		if calls == 0 || most != 1 {
			t.Errorf("%d calls, a text %d times", calls, most)
		}
		changed := slices.Clone(office["github"])
		changed[0].Description = "Quite another description"
		changed[1].Annotations.Title = "" // no change
		replace(t, x, "github", changed)
		synctest.Wait()
		if again, most := m.count(); again != calls+1 || most != 1 {
			t.Errorf("one changed tool: %d more calls, a text %d times", again-calls, most)
		}
		replace(t, x, "github", office["github"]) // back to a text that the cache has
		synctest.Wait()
		if again, most := m.count(); again != calls+1 || most != 1 {
			t.Errorf("a known text: %d more calls, a text %d times", again-calls-1, most)
		}
		if _, have, tools := x.Vectors(); have != tools-1 {
			t.Errorf("%d of %d vectors, want all but the zero one", have, tools)
		}
		if got := ids(t, x, Query{Text: "roll dice"}); got[0] != "misc:roll_dice" {
			t.Errorf("a tool without a vector: %v", got)
		}

		next := newMeaning("m", 8) // a restart: same model, same cache
		next.bad = m.bad
		y := officeIndex(t, Options{Embedder: next, Vectors: cache})
		synctest.Wait()
		if _, have, tools := y.Vectors(); have != tools-1 {
			t.Errorf("after a restart %d of %d vectors", have, tools)
		}
		if calls, _ := next.count(); calls > 1 { // the text whose vector was not usable
			t.Errorf("%d calls after a restart", calls)
		}
	})
}

func TestModelChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old, next := newMeaning("old", 8), newMeaning("next", 16)
		next.gate = make(chan struct{})
		x := officeIndex(t, Options{Embedder: old})
		synctest.Wait()
		if err := x.SetEmbedder(context.Background(), next); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if model, _, _ := x.Vectors(); model != "old" {
			t.Fatalf("the new vectors serve before they are made: %s", model)
		}
		if got := ids(t, x, Query{Text: "do I need an umbrella"}); got[0] != "weather:get_forecast" {
			t.Errorf("while the model changes: %v", got)
		}
		replace(t, x, "late", []store.Tool{tool("late", "sunglasses", "Sell sunglasses")})
		close(next.gate)
		synctest.Wait()
		if model, have, tools := x.Vectors(); model != "next" || have != tools {
			t.Errorf("Vectors() = %s, %d of %d", model, have, tools)
		}
		if got := ids(t, x, Query{Text: "do I need an umbrella"}); !slices.Contains(got[:2], "weather:get_forecast") {
			t.Errorf("after the model changed: %v", got)
		}
		if err := x.SetEmbedder(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if model, have, tools := x.Vectors(); model != tableModel || have != tools {
			t.Errorf("back to the embedded one: %s, %d of %d", model, have, tools)
		}
	})
}

func TestEmbedderDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		x := officeIndex(t, Options{Embedder: m})
		synctest.Wait()
		m.fail(errors.New("service down"))
		before, _ := m.count()
		for range 3 {
			a := must(x.Search(context.Background(), Query{Text: "delete a branch"}))
			if !a.Degraded || len(a.Hits) == 0 || a.Hits[0].Tool.ID() != "github:delete_branch" {
				t.Errorf("embedder down: %+v", a)
			}
		}
		if calls, _ := m.count(); calls != before+1 {
			t.Errorf("a dead embedder was asked %d times by three searches", calls-before)
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := x.Search(cancelled, Query{Text: "branch"}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		replace(t, x, "late", []store.Tool{tool("late", "sunglasses", "Sell sunglasses")})
		synctest.Wait()
		if _, have, tools := x.Vectors(); have != tools-1 {
			t.Errorf("%d of %d vectors", have, tools)
		}
		m.fail(nil)
		for range 2 {
			waitFor(firstRetry + restAfter)
			synctest.Wait()
		}
		if _, have, tools := x.Vectors(); have != tools {
			t.Errorf("after it came back %d of %d vectors", have, tools)
		}
		if a := must(x.Search(context.Background(), Query{Text: "umbrella"})); a.Degraded || len(a.Hits) == 0 {
			t.Errorf("after it came back: %+v", a)
		}
	})
}

// A model that was down from the start: the embedded vectors serve, and say so.
func TestEmbedderNeverUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		m.fail(errors.New("no such host"))
		x := New(Options{Embedder: m})
		defer x.Close()
		synctest.Wait() // the worker looks before there is a tool
		for _, name := range []string{"github", "files", "misc"} {
			replace(t, x, name, office[name])
			synctest.Wait()
		}
		a := must(x.Search(context.Background(), Query{Text: "delete a branch"}))
		if model, _, _ := x.Vectors(); model != tableModel || !a.Degraded || a.Hits[0].Tool.ID() != "github:delete_branch" {
			t.Errorf("%s: %+v", model, a)
		}
	})
}

// TestState: it says what is embedded by which model, how old that is, and what failed.
func TestState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x := officeIndex(t, Options{})
		synctest.Wait()
		of := func(st State, name string) ServerState {
			for _, s := range st.Servers {
				if s.Name == name {
					return s
				}
			}
			return ServerState{}
		}
		st := x.State()
		if g := of(st, "github"); st.Model != tableModel || st.Wanted != tableModel || st.Phase != Complete || st.Failures != 0 || g.Tools != len(office["github"]) || g.Embedded != g.Tools || g.Pending != 0 || g.Taken.IsZero() || g.Filled != g.Taken {
			t.Fatalf("by the embedded model: %+v", st)
		}
		began := time.Now()
		waitFor(time.Hour) // the bubble's
		m := newMeaning("m", 8)
		m.fail(errors.New("service down"))
		if err := x.SetEmbedder(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		st = x.State()
		if g := of(st, "github"); st.Model != tableModel || st.Wanted != "m" || st.Phase != Failing || st.Failures != 1 || !strings.Contains(st.LastErr, "service down") || st.FailedAt.Sub(began) != time.Hour || g.Pending != g.Tools || g.Embedded != g.Tools {
			t.Errorf("while it is down: %+v", st)
		}
		waitFor(firstRetry)
		synctest.Wait()
		if st = x.State(); st.Failures != 2 {
			t.Errorf("it failed %d times", st.Failures)
		}
		m.fail(nil)
		waitFor(2 * firstRetry)
		synctest.Wait()
		st = x.State()
		if g := of(st, "github"); st.Model != "m" || st.Phase != Complete || st.Failures != 0 || st.LastErr != "" || g.Embedded+g.Without != g.Tools || g.Pending != 0 || g.Filled.Sub(g.Taken) < time.Hour {
			t.Errorf("after it came back: %+v", st)
		}
		filled := of(st, "github").Filled
		waitFor(time.Hour)
		replace(t, x, "late", []store.Tool{tool("late", "sunglasses", "Sell sunglasses")})
		synctest.Wait()
		st = x.State()
		if l := of(st, "late"); l.Embedded != 1 || time.Since(l.Filled) != 0 || of(st, "github").Filled != filled {
			t.Errorf("one came: %+v", st)
		}
		x.Remove("late")
		if st = x.State(); of(st, "late").Tools != 0 {
			t.Errorf("one went: %+v", st)
		}
	})
}

// Who waits for all vectors is told, whatever happened to the tools before.
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		x := officeIndex(t, Options{Embedder: m})
		settle := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the bubble's
			defer cancel()
			return x.WaitForVectors(ctx, func() error { return nil })
		}
		if err := settle(); err != nil {
			t.Fatalf("at the start: %v", err)
		}
		synctest.Wait()
		x.Remove("misc") // a server that goes leaves nothing to embed
		if err := settle(); err != nil {
			t.Errorf("after a server went: %v", err)
		}
		m.fail(errors.New("service down"))
		replace(t, x, "late", []store.Tool{tool("late", "sunglasses", "Sell sunglasses")})
		synctest.Wait()
		if err := settle(); err == nil || !strings.Contains(err.Error(), "m does not answer") {
			t.Errorf("while it is down: %v", err)
		}
		if err := x.SetEmbedder(t.Context(), newMeaning("next", 16)); err != nil {
			t.Fatal(err)
		}
		if err := settle(); err != nil {
			t.Errorf("another embedder: %v", err)
		}
		if model, have, tools := x.Vectors(); model != "next" || have != tools {
			t.Errorf("Vectors() = %s, %d of %d", model, have, tools)
		}
	})
}

func TestSlowEmbedderDoesNotHoldASearch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		x := officeIndex(t, Options{Embedder: m})
		synctest.Wait()
		m.gate = make(chan struct{}) // from here on it never answers
		a := must(x.Search(context.Background(), Query{Text: "delete a branch"}))
		if !a.Degraded || a.Hits[0].Tool.ID() != "github:delete_branch" {
			t.Errorf("slow embedder: %+v", a)
		}
		ctx, cancel := context.WithTimeout(context.Background(), queryTimeout/2)
		defer cancel()
		waitFor(restAfter)
		if _, err := x.Search(ctx, Query{Text: "branch"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a search that ends before the embedder: %v", err)
		}
	})
}

// uncomparable is an embedder that cannot be compared with ==.
type uncomparable struct{ names []string }

func (uncomparable) Model() string { return "list" }

func (uncomparable) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, float32(i)}
	}
	return out, nil
}

func TestAnyEmbedder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x := officeIndex(t, Options{Embedder: uncomparable{[]string{"a"}}})
		synctest.Wait()
		if err := x.SetEmbedder(context.Background(), uncomparable{nil}); err != nil {
			t.Fatal(err)
		}
		replace(t, x, "late", []store.Tool{tool("late", "sunglasses", "Sell sunglasses")})
		synctest.Wait()
		if model, have, tools := x.Vectors(); model != "list" || have != tools {
			t.Errorf("Vectors() = %s, %d of %d", model, have, tools)
		}
	})
}

// New tools do not make a dead embedder answer: only time does.
func TestDeadEmbedderIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeaning("m", 8)
		m.fail(errors.New("no such host"))
		x := officeIndex(t, Options{Embedder: m})
		synctest.Wait()
		before, _ := m.count()
		for i := range 20 {
			replace(t, x, "late", []store.Tool{tool("late", fmt.Sprint("n", i), "Sell sunglasses")})
			synctest.Wait()
		}
		if calls, _ := m.count(); calls != before {
			t.Errorf("asked %d times more", calls-before)
		}
		m.fail(nil)
		waitFor(lastRetry)
		synctest.Wait()
		if model, have, tools := x.Vectors(); model != "m" || have != tools {
			t.Errorf("after it came back: %s, %d of %d", model, have, tools)
		}
	})
}

func TestClosed(t *testing.T) {
	x := New(Options{})
	replace(t, x, "files", office["files"])
	x.Close()
	if got := ids(t, x, Query{Text: "read a file"}); got[0] != "files:read_file" {
		t.Errorf("a closed index: %v", got)
	}
	if err := x.SetEmbedder(context.Background(), nil); !errors.Is(err, store.ErrNotOpen) {
		t.Errorf("SetEmbedder on a closed index: %v", err)
	}
}

// Bad vectors of every kind are dropped one by one.
func TestBadVectors(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range [][]float32{nil, {}, {0, 0}, {nan, 1}, {inf, 1}, {-inf, inf}} {
		if good(v) {
			t.Errorf("good(%v)", v)
		}
	}
	v := []float32{3, 4}
	if !good(v) || math.Abs(float64(v[0])-0.6) > 1e-6 {
		t.Errorf("good scaled to %v", v)
	}
	if !good([]float32{1e-30, 1e-30}) || !good([]float32{1e30, 1e30}) {
		t.Error("tiny and huge vectors are good")
	}
	var c *collection
	for n, v := range [][]float32{{1, 0}, {1, 0, 0}, {0, 1}} {
		var ok bool
		if c, ok = c.with(uint32(n), v); ok != (n != 1) {
			t.Errorf("vector %d of the collection: %v", n, ok)
		}
	}
	if list, all, err := c.nearest(t.Context(), []float32{0.8, 0.6}, 9); err != nil || !all || len(list) != 2 || list[0].num != 0 || list[1].num != 2 || c.vector(1) != nil || !slices.Equal(c.vector(2), []float32{0, 1}) {
		t.Errorf("the collection returns %v, %v, %v", list, all, err)
	}
}

// What chromem-go does and we keep away from; should one of these change, the
// rule on top of vectors.go can be loosened.
func TestChromemTraps(t *testing.T) {
	ctx := context.Background()
	c := must(chromem.NewDB().CreateCollection("c", nil, notEmbedding))
	add := func(id string, v ...float32) {
		if err := c.AddDocument(ctx, chromem.Document{ID: id, Embedding: v}); err != nil {
			t.Fatal(err)
		}
	}
	add("a", 1, 0)
	add("b", 0, 1)
	if _, err := c.QueryEmbedding(ctx, []float32{1, 0}, 3, nil, nil); err == nil {
		t.Error("n above the count is no longer an error")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if got, err := c.QueryEmbedding(cancelled, []float32{1, 0}, 2, nil, nil); err != nil || len(got) == 2 {
		t.Errorf("a cancelled query now gives %d and %v", len(got), err)
	}
	add("short", 1)
	if _, err := c.QueryEmbedding(ctx, []float32{1, 0}, 1, nil, nil); err == nil {
		t.Error("vectors of two lengths are no longer an error")
	}
	if _, err := notEmbedding(ctx, "text"); err == nil {
		t.Error("chromem must never embed by itself")
	}
}

// The table is the one that scripts/wordtable makes.
func TestWordTable(t *testing.T) {
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(tableFile))); sum != "e0857467507ef7f646edae4c4fddb807dda331a53b23685eb9e7a4d66dc91cb0" {
		t.Errorf("words.table has the sha256 %s", sum)
	}
	words := commonWords()
	if n := len(words.ends); n != 30000 || len(words.rows) != n*tableDims {
		t.Fatalf("%d words, %d bytes of rows", n, len(words.rows))
	}
	for w, want := range map[string]string{"the": "the", "of": "of", "gets": "gets", "firewalls": "firewall"} {
		if r, ok := words.rank(w); !ok || words.word(r) != want {
			t.Errorf("%q is at %d (%v), %q", w, r, ok, words.word(r))
		}
	}
	if r, ok := words.rank("xyzzyq"); ok {
		t.Errorf("a word that is not there is at %d", r)
	}
	var e averager
	vector := func(text string) []float32 {
		e.begin()
		sp := splitter{word: e.add}
		sp.split(text)
		return e.vector()
	}
	one := vector("archive the project")
	texts := []string{"store the projects", "bake bread with yeast"}
	alike, unlike := dot(one, vector(texts[0])), dot(one, vector(texts[1]))
	if alike < 0.35 || unlike > 0.1 {
		t.Errorf("alike %.2f, unlike %.2f", alike, unlike)
	}
	if again := vector("archive the project"); !slices.Equal(again, one) {
		t.Error("a vector depends on what was read before")
	}
	for _, text := range []string{"", "北京天气预报", "xyzzyq"} {
		if v := vector(text); v != nil {
			t.Errorf("%q has the vector %v", text, v)
		}
	}
}

// Where no word of the request meets, vectors find what means much the same; it
// is no answer, only near.
func TestNoWordMeets(t *testing.T) {
	x := New(Options{})
	t.Cleanup(x.Close)
	replace(t, x, "garage", []store.Tool{tool("garage", "find_car", "Finds a vehicle on a road"), tool("garage", "bake_bread", "Bakes bread with yeast")})
	a := must(x.Search(context.Background(), Query{Text: "automobiles", MinScore: 0.2}))
	if len(a.Hits) > 0 || len(a.Near) == 0 || a.Near[0].Tool.Name != "find_car" || a.Note == "" {
		t.Errorf("by vectors alone: %+v", a)
	}
	if a := must(x.Search(context.Background(), Query{Text: "zzzz qqqq"})); len(a.Hits)+len(a.Near) > 0 || a.Note == "" {
		t.Errorf("nothing alike: %+v", a)
	}
}

// TestEverySearchAsksVectors: a tool that shares no word with the request is found by its
// vector beside one that does.
func TestEverySearchAsksVectors(t *testing.T) {
	x := New(Options{})
	t.Cleanup(x.Close)
	replace(t, x, "kitchen", []store.Tool{tool("kitchen", "catch_fish", "Catches fish in the river"), tool("kitchen", "bake_bread", "Bakes bread with yeast")})
	for _, e := range []Embedder{nil, &meaning{name: "m", dims: 8, err: errors.New("service down")}} {
		if err := x.SetEmbedder(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		a := must(x.Search(t.Context(), Query{Text: "trout and salmon with yeast"}))
		if len(a.Hits) != 2 || a.Hits[0].Tool.Name != "bake_bread" && a.Hits[1].Tool.Name != "bake_bread" {
			t.Errorf("with the embedder %v: %+v", e, a)
		}
	}
}

// TestCollections: after any update, every tool is found once by its own vector, and no
// removed one, however the vectors are divided.
func TestCollections(t *testing.T) {
	servers, tools := large(2 * undivided)
	x := New(Options{})
	t.Cleanup(x.Close)
	check := func(when string, divided bool) {
		t.Helper()
		snap := x.now.Load()
		s := search{snap: snap, q: &Query{}}
		asked := 0
		for _, sv := range snap.servers {
			for _, n := range sv.docs {
				d := snap.docs[n]
				if num, ok := snap.find(d.tool().ID()); !ok || num != n {
					t.Errorf("%s, find(%s) = %d, %v, want %d", when, d.name, num, ok, n)
				}
				v := snap.embedded.vector(d, n)
				if (v != nil) != snap.hasVector(n) {
					t.Errorf("%s, %s has the vector %v", when, d.name, v)
				}
				if v == nil {
					continue
				}
				asked++
				itself := 0
				for _, f := range must(s.nearest(t.Context(), v, MaxTopK)) {
					if f.num == n && f.cos > 0.999 {
						itself++
					}
					if !snap.alive(f.num) {
						t.Errorf("%s, the removed tool %d is found", when, f.num)
					}
				}
				if itself != 1 {
					t.Errorf("%s, %s %s is found %d times", when, sv.about.name, d.name, itself)
				}
			}
		}
		if asked < 100 || snap.embedded.divided != divided {
			t.Errorf("%s, %d tools have a vector, divided is %v", when, asked, snap.embedded.divided)
		}
	}
	for i, s := range servers {
		replace(t, x, s.Name, tools[s.Name])
		if i == 30 {
			check("with a few servers", false)
		}
	}
	check("with all servers", true)
	x.Remove(servers[1].Name)
	check("after a removed server", true)
	replace(t, x, servers[0].Name, append(slices.Clone(tools[servers[0].Name][1:]), tool("", "open_door", "Opens the door of a garage")))
	check("after a changed server", true)
	for _, s := range servers[:len(servers)*2/3] {
		x.Remove(s.Name)
	}
	check("after most were removed", false)
}

// TestNarrowAccess: a caller who sees only the tools that are far from the request gets the
// nearest of those.
func TestNarrowAccess(t *testing.T) {
	servers, tools := large(undivided)
	x := fill(t, Options{}, servers, tools)
	snap := x.now.Load()
	s := search{snap: snap, q: &Query{}}
	v := snap.embedded.vector(snap.docs[0], 0)
	all := must(s.nearest(t.Context(), v, maxDocs))
	if len(all) < 30 {
		t.Fatalf("only %d tools are near", len(all))
	}
	far := all[len(all)-DefaultTopK-2:]
	s.q.Keep = func(t store.Tool) bool {
		return slices.ContainsFunc(far, func(f near) bool { return snap.docs[f.num].tool().ID() == t.ID() })
	}
	if got := must(s.nearest(t.Context(), v, DefaultTopK)); !slices.Equal(got, far[:DefaultTopK]) {
		t.Errorf("nearest returns %v, want %v", got, far[:DefaultTopK])
	}
}
