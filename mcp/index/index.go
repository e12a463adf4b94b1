// Package index finds the tools that can do what a sentence asks for.
//
// # How a request is answered
//
// The ranking is primarily lexical. [parse] splits the request into words and separates
// values from the rest. It adds the words that calculators and converters use for
// themselves if the request contains a sum or a measurement (quantity.go). The words, their
// synonyms and their corrected typos become concepts; BM25F over name, title, description,
// parameters and server ranks every tool that contains one of them (rank.go). The best
// candidates are then re-ranked by a few simple signals (signals.go). Each is a separate
// function with its rationale, and all weights are in one place.
//
// chromem-go owns the tools' vectors, and every search asks it for the nearest ones
// (vectors.go). With the embedded embedder (wordtable.go) they join the candidates, and the
// cosine is one of the signals. With a configured [Embedder] its vectors dominate, and that
// ranking is fused with the lexical one (fusion.go).
//
// chromem-go compares a request with every vector of a collection, in 0.15 µs each: at 12,000
// tools 1.8 ms, where the rest of a search takes 0.2 (BenchmarkCollections). So above
// [undivided] tools the embedded vectors are divided into collections by subject, and a
// search asks the nearest ones, 0.15 ms. A configured embedder takes far longer to embed the
// request, so that its vectors are in one collection.
//
// # Snapshots
//
// A search reads one immutable [snapshot] and doesn't wait for updates, apart from the
// moment in which a vector is added to a collection. [Index.Replace] builds the next
// one from the last: term lists are append-only, so a list of the next snapshot shares its
// memory with the same list of the last, and a search that holds a shorter slice never sees
// entries appended behind it. A removed tool is only marked; when the marked ones outnumber
// half of the rest, the next update compacts the index. Scores depend on the indexed tools,
// never on the order in which they were added.
//
// Lengths are normalized by typical ones, not by this index's averages, so that a tool's
// weights are fixed when it is read, and adding a server costs only the work for that
// server's tools.
//
// # Learning
//
// Requests that led to a call are stored beside the index (learned.go) and vote in later
// searches; they never change a tool's words.
//
// # Score
//
// [store.Hit.Score] is the probability that the tool does what the request asks for, 0 to 1
// (fit.go). It does not depend on the number of tools, so a threshold on it means the same
// everywhere, and it decreases with the rank. If no tool reaches [Query.MinScore], the
// answer has no hits, and the nearest tools are in [Answer.Near].
package index

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

// Embedder converts texts to vectors. It must be safe for concurrent use. The embedded one
// is in wordtable.go; a real one calls a provider (llm/openai).
type Embedder interface {
	// Model identifies the model and its dimensions. It is the key under which vectors are
	// cached, so it must change if either changes.
	Model() string
	// Embed returns one vector per text, all of the same length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options configures New. The zero value works: no cache, embedded vectors, no log.
type Options struct {
	Log      *slog.Logger
	Vectors  store.Vectors  // cache of a configured embedder's vectors; nil caches in memory only
	Embedder Embedder       // nil means the embedded one
	Fusion   func() float64 // share of a configured embedder in the ranking, 0 to 1, read at every search; nil means DefaultFusion
	Learned  func() bool    // whether learned requests count, read at every search; nil means yes
}

// DefaultFusion is the share of a configured embedder in the ranking, measured
// on the azure requests of the evaluation (see eval).
const DefaultFusion = 0.9

// Limits of a query.
const (
	DefaultTopK = 5
	MaxTopK     = 50
)

// Query is a search for tools.
type Query struct {
	Text   string
	Domain string // id of a domain or a server; "" searches all
	TopK   int    // 0 means DefaultTopK; at most MaxTopK
	// MinScore drops hits with a lower score. At the default of index.min_similarity, 0.4,
	// a toolbox of three servers answers 95 of 100 requests for which it has a tool, and
	// refuses 71 of 100 for which it has none (eval prints the table).
	MinScore float64
	// Keep is the access filter; nil keeps all. It is applied inside the search, so that a
	// narrow view still gets TopK hits. It must not block.
	Keep func(store.Tool) bool
	// Servers that were used earlier in this conversation; their tools rank slightly
	// higher.
	Servers []string
	// Weigh multiplies the weights of signals, to measure their value; 0 disables one. nil
	// means the tuned weights.
	Weigh map[Signal]float64
}

// Answer is the result of a search, best first.
type Answer struct {
	Hits     []store.Hit // without schemas, which are in the store
	Degraded bool        // a configured embedder did not respond; ranked by words alone
	Near     []store.Hit // if no tool fits, the nearest ones; they may do something else
	Note     string      // message if no tool fits, otherwise ""
}

// Domain is a subject area that tools belong to.
type Domain struct {
	ID          string
	Description string
	Tools       int
}

// Index holds the tools of all servers for searching. Its methods are safe for concurrent
// use.
type Index struct {
	log     *slog.Logger
	fusion  func() float64
	learned func() bool
	weights weights
	now     atomic.Pointer[snapshot]
	scratch sync.Pool // of *scratch
	memory  memory
	vectors keeper

	mu    sync.Mutex           // guards the fields below: one update at a time
	taken map[string]time.Time // by server: time of the last Replace
	vocab *vocabulary
	read  reader // caches the words that it has seen
}

// New returns an empty index. Close ends its background work.
func New(o Options) *Index {
	x := &Index{log: o.Log, fusion: o.Fusion, learned: o.Learned, weights: tuned, taken: map[string]time.Time{}, vocab: new(vocabulary)}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	if x.fusion == nil {
		x.fusion = func() float64 { return DefaultFusion }
	}
	if x.learned == nil {
		x.learned = func() bool { return true }
	}
	x.scratch.New = func() any { return new(scratch) }
	x.now.Store(&snapshot{space: new(space), embedded: newEmbedded(false)})
	x.vectors.start(x, o)
	return x
}

// Close ends the background work and waits for it. Searches still work.
func (x *Index) Close() { x.vectors.close() }

// Replace replaces the tools of a server. It takes the time to read the changed tools;
// searches use the old ones until it is done. Vectors of a configured embedder follow in
// the background.
func (x *Index) Replace(ctx context.Context, server store.Server, tools []store.Tool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("indexing %s: %w", server.Name, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	u := x.beginLocked()
	u.replace(server.Normal(), tools)
	x.publishLocked(u)
	x.taken[server.Name] = time.Now()
	x.vectors.wake()
	return nil
}

// Remove removes the tools of a server.
func (x *Index) Remove(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now.Load().server(server) == nil {
		return
	}
	u := x.beginLocked()
	u.remove(server)
	x.publishLocked(u)
	delete(x.taken, server)
	x.vectors.wake() // callers of WaitForVectors now wait for this snapshot
}

// Domains returns the domains that contain a tool which keep accepts, sorted by id; nil
// accepts all.
func (x *Index) Domains(keep func(store.Tool) bool) []Domain {
	snap := x.now.Load()
	var out []Domain
	for _, s := range snap.servers {
		n := 0
		for _, d := range s.docs {
			if keep == nil || keep(snap.docs[d].tool()) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		i, found := slices.BinarySearchFunc(out, s.about.domain, func(d Domain, id string) int { return strings.Compare(d.ID, id) })
		if !found {
			out = slices.Insert(out, i, Domain{ID: s.about.domain})
		}
		out[i].Tools += n
		// A domain of several servers is described by those that have a description.
		if t := s.about.description; t != "" && len(out[i].Description)+len(t) < 300 {
			if out[i].Description != "" {
				out[i].Description += " · "
			}
			out[i].Description += t
		} else if t != "" && out[i].Description == "" {
			out[i].Description = t
		}
	}
	for i := range out {
		if out[i].Description == "" {
			out[i].Description = snap.names(out[i], keep)
		}
	}
	return out
}

// names describes a domain whose servers have no description by its first tools.
func (s *snapshot) names(d Domain, keep func(store.Tool) bool) string {
	var some []string
	for _, sv := range s.servers {
		if sv.about.domain != d.ID {
			continue
		}
		for _, n := range sv.docs {
			if t := s.docs[n].tool(); len(some) < 3 && (keep == nil || keep(t)) {
				some = append(some, t.Name)
			}
		}
	}
	text := strings.Join(some, ", ")
	if d.Tools > len(some) {
		text += fmt.Sprintf(" and %d more", d.Tools-len(some))
	}
	return text
}

// Domain returns up to n tools of a domain that keep accepts, sorted by server and name,
// starting after the tool id after. next is the value of after for the next page, or "" at
// the end. The tools have no schemas.
func (x *Index) Domain(id, after string, n int, keep func(store.Tool) bool) (tools []store.Tool, next string) {
	if n <= 0 {
		return nil, ""
	}
	snap := x.now.Load()
	server, name, _ := store.SplitToolID(after)
	last := &doc{about: &about{name: server}, name: name}
	for _, s := range snap.servers { // servers and their tools are sorted by name
		if s.about.domain != id && s.about.name != id {
			continue
		}
		for _, d := range s.docs {
			t := snap.docs[d].tool()
			if compareDocs(snap.docs[d], last) <= 0 || keep != nil && !keep(t) {
				continue
			}
			if len(tools) == n {
				return tools, tools[n-1].ID()
			}
			tools = append(tools, t)
		}
	}
	return tools, ""
}
