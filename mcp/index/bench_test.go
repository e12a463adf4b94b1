package index

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"nize/store"
)

// corpus is the servers of the evaluation's mcp corpus, for tests and
// benchmarks that want real tools.
var corpus = sync.OnceValues(func() ([]store.Server, map[string][]store.Tool) {
	f, err := os.Open("eval/testdata/mcp/tools.jsonl.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	var servers []store.Server
	tools := make(map[string][]store.Tool)
	for dec := json.NewDecoder(z); dec.More(); {
		var t struct {
			Server, Name, Description string
			ServerDescription         string          `json:"server_description"`
			InputSchema               json.RawMessage `json:"input_schema"`
		}
		if err := dec.Decode(&t); err != nil {
			panic(err)
		}
		if tools[t.Server] == nil {
			servers = append(servers, store.Server{Name: t.Server, About: store.About{Description: t.ServerDescription}})
		}
		tools[t.Server] = append(tools[t.Server], store.Tool{Server: t.Server, Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return servers, tools
})

// large returns n tools: the corpus, again and again under other server names.
func large(n int) ([]store.Server, map[string][]store.Tool) {
	base, tools := corpus()
	var servers []store.Server
	out := make(map[string][]store.Tool)
	for round := 0; n > 0; round++ {
		for _, s := range base {
			ts := tools[s.Name]
			ts = ts[:min(len(ts), n)]
			s.Name = fmt.Sprintf("%s-%d", s.Name, round)
			servers = append(servers, s)
			out[s.Name] = ts
			if n -= len(ts); n == 0 {
				break
			}
		}
	}
	return servers, out
}

// fill puts the servers into a new index that ends with the test.
func fill(tb testing.TB, o Options, servers []store.Server, tools map[string][]store.Tool) *Index {
	tb.Helper()
	x := New(o)
	tb.Cleanup(x.Close)
	for _, s := range servers {
		if err := x.Replace(context.Background(), s, tools[s.Name]); err != nil {
			tb.Fatal(err)
		}
	}
	return x
}

// requests of the kinds that people write.
var requests = []string{
	"create a pull request in the repository",
	"Show me my PostgreSQL servers",
	"Send a message to the #general channel on Slack saying \"hello\"",
	"what's the weather like in Paris tomorrow",
	"Read the sales data under /data/excel/sales.xlsx, plot it as a bar chart by month and save it",
	"list all storage accounts in my subscription",
	"find customers in the database who ordered more than 5 items",
	"translate this document. Then email it to my manager.",
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			servers, tools := large(n)
			x := fill(b, Options{}, servers, tools)
			i := 0
			for b.Loop() {
				if _, err := x.Search(context.Background(), Query{Text: requests[i%len(requests)]}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkCollections is the reason why the embedded vectors are divided: it compares a
// query of one collection of all tools with one of the nearest subjects.
func BenchmarkCollections(b *testing.B) {
	for _, n := range []int{undivided, 2_000, 12_000} {
		servers, tools := large(n)
		x := fill(b, Options{}, servers, tools)
		snap := x.now.Load()
		s := search{snap: snap, q: &Query{}}
		var all *collection
		for n, d := range snap.docs {
			if v := snap.embedded.vector(d, uint32(n)); v != nil {
				all, _ = all.with(uint32(n), v)
			}
		}
		ask := func(b *testing.B, nearest func(v []float32) error) {
			for i := 0; b.Loop(); i++ {
				at := i * 7919 % len(snap.docs)
				v := snap.embedded.vector(snap.docs[at], uint32(at))
				if v == nil {
					continue
				}
				if err := nearest(v); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprintf("one/%d", n), func(b *testing.B) {
			ask(b, func(v []float32) error {
				_, _, err := all.nearest(context.Background(), v, 4*DefaultTopK)
				return err
			})
		})
		b.Run(fmt.Sprintf("subjects/%d", n), func(b *testing.B) {
			ask(b, func(v []float32) error {
				_, err := s.nearest(context.Background(), v, DefaultTopK)
				return err
			})
		})
	}
}

func BenchmarkReplace(b *testing.B) {
	servers, tools := large(10_000)
	x := fill(b, Options{}, servers, tools)
	s := servers[3]
	other := append([]store.Tool(nil), tools[s.Name]...)
	for i := range other {
		other[i].Description += " Changed."
	}
	b.ReportMetric(float64(len(other)), "tools")
	for i := 0; b.Loop(); i++ {
		ts := tools[s.Name]
		if i%2 == 1 {
			ts = other
		}
		if err := x.Replace(context.Background(), s, ts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild5k(b *testing.B) {
	servers, tools := large(5_000)
	for b.Loop() {
		x := New(Options{})
		for _, s := range servers {
			if err := x.Replace(context.Background(), s, tools[s.Name]); err != nil {
				b.Fatal(err)
			}
		}
		x.Close()
	}
}
