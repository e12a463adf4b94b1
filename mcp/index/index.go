// Package index finds the tools that can do what a sentence asks for.
//
// # How a request is answered
//
// A lexical ranking leads. [parse] cuts the request into words and sets values
// apart from what is asked for; the words, their synonyms and their corrected typos become
// concepts; BM25F over name, title, description, parameters and server ranks
// every tool that has one of them (rank.go). The best candidates are then
// looked at more closely by a few plain signals (signals.go), each a function
// of its own with its reason, all weights in one place.
//
// chromem-go holds the tools' vectors (vectors.go). With the embedded embedder
// (wordtable.go) they re-rank the candidates at a small weight and search alone
// only where no word of the request meets. With a configured [Embedder] its
// vectors lead, and that ranking is fused in.
//
// # Snapshots
//
// A search reads one immutable [snapshot] and never waits. [Index.Replace]
// builds the next one from the last: term lists are append-only, so a list of
// the next snapshot shares its memory with the same list of the last, and a
// search that holds a shorter slice never sees what was appended behind it. A
// removed tool is only marked; when the marked ones outweigh half of the rest,
// the next update writes everything again. Scores depend on what is indexed,
// never on the order in which it came.
//
// Lengths are normed by typical ones, not by this index's averages, so that a
// tool's share in the ranking is fixed when it is read and adding a server
// costs that server's tools only.
//
// # Learning
//
// Requests that led to a call are kept beside the index (learned.go) and vote
// in later searches; they never change what a tool's words are.
//
// # Score
//
// [store.Hit.Score] is how likely the tool does what is asked for, 0 to 1 (fit.go).
// It does not depend on how many tools there are, so a threshold on it means the
// same everywhere, and it falls with the rank. Where no tool reaches
// [Query.MinScore] the answer has no hits: the nearest are apart, in [Answer.Near].
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

// Embedder turns texts into vectors. It must be safe for concurrent use. The
// embedded one is in wordtable.go; a real one calls a provider (llm/openai).
type Embedder interface {
	// Model identifies the model and its dimensions. It is the key under which
	// vectors are cached: change it when either changes.
	Model() string
	// Embed returns one vector per text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options of New. The zero value works: no cache, embedded vectors, no log.
type Options struct {
	Log      *slog.Logger
	Vectors  store.Vectors  // cache of a configured embedder's vectors; nil caches in memory only
	Embedder Embedder       // nil is the embedded one
	Fusion   func() float64 // share of a configured embedder in the ranking, 0 to 1, read at every search; nil is DefaultFusion
	Learned  func() bool    // whether what was learned counts, read at every search; nil is yes
}

// DefaultFusion is the share of a configured embedder in the ranking, measured
// on the azure requests of the evaluation (see eval).
const DefaultFusion = 0.9

// Bounds of a query.
const (
	DefaultTopK = 5
	MaxTopK     = 50
)

// Query asks for tools.
type Query struct {
	Text   string
	Domain string // a domain's or a server's id; "" searches all
	TopK   int    // 0 is DefaultTopK; at most MaxTopK
	// MinScore leaves out hits with a lower score. At the default of
	// index.min_similarity, 0.4, a toolbox of three servers answers 95 of 100
	// requests for which it has a tool, and refuses 71 of 100 for which it has none
	// (eval prints the table).
	MinScore float64
	// Keep is the access filter; nil keeps all. It works inside the search, so
	// that a narrow view still gets TopK hits. It must not block.
	Keep func(store.Tool) bool
	// Servers that were used earlier in this conversation; their tools come a
	// little further in front.
	Servers []string
	// Weigh multiplies the weights of signals, to measure what they are worth; 0
	// leaves one out. nil is as they were tuned.
	Weigh map[Signal]float64
}

// Answer is what a search found, best first.
type Answer struct {
	Hits     []store.Hit // without schemas: those are in the store
	Degraded bool        // a configured embedder did not answer; words alone ranked
	Near     []store.Hit // the nearest, where none fits: they may do something else
	Note     string      // says in words when nothing fits, "" otherwise
}

// Domain is a field that tools belong to.
type Domain struct {
	ID          string
	Description string
	Tools       int
}

// Index is the tools of all servers, ready to be searched. Its methods are
// safe for concurrent use.
type Index struct {
	log     *slog.Logger
	fusion  func() float64
	learned func() bool
	weights weights
	now     atomic.Pointer[snapshot]
	scratch sync.Pool // of *scratch
	memory  memory
	vectors keeper

	mu    sync.Mutex           // guards what follows: one update at a time
	taken map[string]time.Time // by server, when its tools were taken in last
	vocab *vocabulary
	read  reader // remembers what words it has met
}

// New returns an empty index. Close ends what it started.
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
	x.now.Store(&snapshot{space: new(space)})
	x.vectors.start(x, o)
	return x
}

// Close ends the background work and waits for it. Searches still answer.
func (x *Index) Close() { x.vectors.close() }

// Replace makes tools the tools of the server. It costs the time to read those
// of them that changed; searches go on reading the old ones until it is done.
// Vectors of a configured embedder follow in the background.
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

// Remove takes the tools of the server out.
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
	x.vectors.wake() // who waits for all vectors asks about this snapshot now
}

// Domains lists the domains that hold a tool that keep lets through, by id;
// nil keeps all.
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
		// A domain of several servers is described by those that say something.
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

// names describes a domain of which no server says anything by its first tools.
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

// Domain lists up to n tools of a domain, by server and name, that come after the tool id
// after and that keep lets through. next is the value of after for the rest,
// "" at the end. Tools come without schemas.
func (x *Index) Domain(id, after string, n int, keep func(store.Tool) bool) (tools []store.Tool, next string) {
	if n <= 0 {
		return nil, ""
	}
	snap := x.now.Load()
	server, name, _ := store.SplitToolID(after)
	last := &doc{about: &about{name: server}, name: name}
	for _, s := range snap.servers { // by name, as their tools are
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
