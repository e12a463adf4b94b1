package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

const (
	batchSize    = 64  // texts per call of an embedder
	cacheBatch   = 512 // keys per lookup in the cache
	queryTimeout = 3 * time.Second
	batchTimeout = 60 * time.Second
	restAfter    = 5 * time.Second // after a query's embedding failed, queries don't call the embedder for this long
	firstRetry   = 2 * time.Second
	lastRetry    = 5 * time.Minute
)

// keeper computes the vectors of a configured embedder in the background, and embeds
// queries.
type keeper struct {
	index  *Index
	log    *slog.Logger
	cache  store.Vectors
	failed atomic.Bool  // the last call of the wanted embedder failed
	rest   atomic.Int64 // unix nanoseconds until which queries don't call the embedder

	computed atomic.Int64             // vectors computed since the start
	full     atomic.Pointer[snapshot] // the last snapshot with all vectors

	// Used by the worker only: texts without a usable vector, which are not retried.
	bad   []string
	badOf *space

	cancel context.CancelFunc
	done   chan struct{}
	wakeup chan struct{} // capacity 1: further signals before the first is received are redundant

	mu     sync.Mutex // guards the fields below
	fails  failures
	filled map[string]time.Time // by server: when the active space got the last vector of one of its tools
	beat   chan struct{}        // closed and replaced after each progress or failure
	want   *space               // compared as a pointer, because an Embedder need not be comparable
	closed bool
}

// failures counts the wanted embedder's failures since its last success.
type failures struct {
	n    int
	last string
	at   time.Time
}

func (k *keeper) start(x *Index, o Options) {
	k.index, k.log, k.cache = x, x.log, o.Vectors
	k.want = x.now.Load().space
	if o.Embedder != nil {
		k.want = &space{embedder: o.Embedder}
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel, k.done, k.wakeup = cancel, make(chan struct{}), make(chan struct{}, 1)
	k.beat = make(chan struct{})
	go k.run(ctx)
	k.wake()
}

func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	<-k.done
}

// wake makes the worker check for missing vectors.
func (k *keeper) wake() {
	select {
	case k.wakeup <- struct{}{}:
	default:
	}
}

// tell notifies the goroutines that wait for the worker.
func (k *keeper) tell() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.beat)
	k.beat = make(chan struct{})
}

func (k *keeper) wanted() *space {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.want
}

// SetEmbedder sets the embedder; nil means the embedded one. It returns immediately: the
// tools are embedded again in the background while the old vectors are used. It returns an
// error only if the index is closed or ctx is cancelled.
func (x *Index) SetEmbedder(ctx context.Context, e Embedder) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("changing the embedder: %w", err)
	}
	next := &space{embedder: e}
	k := &x.vectors
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return fmt.Errorf("changing the embedder: %w", store.ErrNotOpen)
	}
	k.want = next
	k.fails = failures{}
	k.failed.Store(false)
	k.rest.Store(0)
	k.wake()
	return nil
}

// RecomputeVectors makes a configured embedder compute every vector again, in the
// background, while the old ones are used. Embedded vectors depend only on the text and
// can't become outdated.
func (x *Index) RecomputeVectors() {
	k := &x.vectors
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.want.embedder == nil || k.closed {
		return
	}
	k.want = &space{embedder: k.want.embedder, fresh: make(map[string]bool)}
	k.fails = failures{}
	k.failed.Store(false)
	k.rest.Store(0)
	k.wake()
}

// Computed returns how many vectors were computed since the start.
func (x *Index) Computed() int { return int(x.vectors.computed.Load()) }

// WaitForVectors waits until every tool has its vector, and calls tell after each progress.
// It returns an error if the embedder does not respond.
func (x *Index) WaitForVectors(ctx context.Context, tell func() error) error {
	k := &x.vectors
	for {
		k.mu.Lock()
		beat, want := k.beat, k.want
		k.mu.Unlock()
		snap := x.now.Load()
		switch {
		case snap.live == 0, snap.space == want && (want.embedder == nil || k.full.Load() == snap):
			return nil
		case k.failed.Load():
			return fmt.Errorf("the embedding model %s does not answer: words rank alone until it does", want.model())
		}
		select {
		case <-beat:
		case <-k.done:
			return store.ErrNotOpen
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := tell(); err != nil {
			return err
		}
	}
}

// run is the worker; it returns when ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	wait := firstRetry
	var down *space // the space whose embedder failed last; retried when the timer fires
	for {
		rung := false
		select {
		case <-ctx.Done():
			return
		case <-k.wakeup:
			rung = true
		case <-retry.C:
		}
		e := k.wanted()
		if rung && e == down {
			continue // a new tool is no reason to retry
		}
		err := k.fill(ctx, e)
		if ctx.Err() != nil {
			return
		}
		if k.note(e, err) {
			down = e
			retry.Reset(wait)
			wait = min(2*wait, lastRetry)
		} else {
			down, wait = nil, firstRetry
		}
		k.tell()
	}
}

// note records whether the wanted embedder responded. It returns down true if e is the
// wanted one and failed. The result of an embedder that is no longer wanted is ignored,
// because it says nothing about the next one.
func (k *keeper) note(e *space, err error) (down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.want != e {
		return false
	}
	if err == nil {
		k.fails = failures{}
	} else {
		k.fails = failures{k.fails.n + 1, err.Error(), time.Now()}
	}
	if was := k.failed.Swap(err != nil); err != nil && !was {
		k.log.Warn("embedding tools failed, words rank alone", "model", e.model(), "err", err)
	}
	return err != nil
}

// fill computes every tool's vector with e and then makes e the active space of the index.
func (k *keeper) fill(ctx context.Context, e *space) error {
	have := make(map[string][]float32) // by key; nil for a text without a usable vector
	if k.badOf != e {
		k.badOf, k.bad = e, nil
	}
	for _, key := range k.bad {
		have[key] = nil
	}
	for ctx.Err() == nil {
		snap := k.index.now.Load()
		same := snap.space == e
		if same && e.embedder == nil {
			return nil // Replace computes them
		}
		var missing []*doc
		for _, sv := range snap.servers {
			for _, n := range sv.docs {
				d := snap.docs[n]
				if same && snap.hasVector(n) {
					continue
				}
				if _, ok := have[keyOf(d)]; !ok && e.embedder != nil {
					missing = append(missing, d)
				}
			}
		}
		if snap.live == 0 && e.embedder != nil {
			return nil // no text was embeddable: use the old vectors until it works
		}
		if len(missing) == 0 {
			if k.publish(snap, e, have) {
				return nil
			}
			continue // tools were added in the meantime
		}
		if err := k.embed(ctx, e, missing, have); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// keyOf returns the content hash under which a tool's vector is cached.
func keyOf(d *doc) string {
	sum := sha256.Sum256([]byte(textOf(d)))
	return hex.EncodeToString(sum[:16])
}

// embed adds the vectors of docs to have, from the cache or computed by e.
func (k *keeper) embed(ctx context.Context, e *space, docs []*doc, have map[string][]float32) error {
	texts := make(map[string]string, len(docs))
	var keys []string
	for _, d := range docs {
		key := keyOf(d)
		if _, ok := texts[key]; !ok {
			texts[key] = textOf(d)
			keys = append(keys, key)
		}
	}
	if k.cache != nil {
		keys = k.cached(ctx, e, keys, have)
	}
	for len(keys) > 0 {
		n := min(batchSize, len(keys))
		batch := make([]string, n)
		for i, key := range keys[:n] {
			batch[i] = texts[key]
		}
		bctx, cancel := context.WithTimeout(ctx, batchTimeout)
		vecs, err := e.embedder.Embed(bctx, batch)
		cancel()
		if err != nil {
			return fmt.Errorf("embedding %d tools: %w", n, err)
		}
		if len(vecs) != n {
			return fmt.Errorf("embedding %d tools: got %d vectors", n, len(vecs))
		}
		fresh := make(map[string][]float32, n)
		for i, key := range keys[:n] {
			if !e.fits(vecs[i]) {
				have[key] = nil
				k.bad = append(k.bad, key)
				k.log.Warn("dropped an unusable vector", "model", e.embedder.Model(), "dims", len(vecs[i]))
				continue
			}
			have[key], fresh[key] = vecs[i], vecs[i]
			if e.fresh != nil {
				e.fresh[key] = true
			}
		}
		k.computed.Add(int64(n))
		k.tell()
		if k.cache != nil && len(fresh) > 0 {
			if err := k.cache.PutVectors(ctx, e.embedder.Model(), fresh); err != nil {
				k.log.Warn("caching vectors failed", "model", e.embedder.Model(), "err", err) // the vectors are used all the same
			}
		}
		keys = keys[n:]
	}
	return nil
}

// cached adds the vectors in the cache to have and returns the keys that it lacks.
func (k *keeper) cached(ctx context.Context, e *space, keys []string, have map[string][]float32) []string {
	var rest []string
	model := e.embedder.Model()
	for len(keys) > 0 {
		n := min(cacheBatch, len(keys))
		got, err := k.cache.GetVectors(ctx, model, keys[:n])
		if err != nil {
			k.log.Warn("reading cached vectors failed", "model", model, "err", err)
		}
		for _, key := range keys[:n] {
			if v := got[key]; e.fits(v) && (e.fresh == nil || e.fresh[key]) {
				have[key] = v
			} else {
				rest = append(rest, key)
			}
		}
		keys = keys[n:]
	}
	return rest
}

// publish makes e's vectors the active ones. It returns false if tools were added since
// snap.
func (k *keeper) publish(snap *snapshot, e *space, have map[string][]float32) bool {
	x := k.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now.Load() != snap {
		return false
	}
	if k.wanted() != e {
		return true // the next embedder was already signalled
	}
	next := *snap
	same := snap.space == e
	next.space = e
	if !same {
		next.model, next.has = nil, make([]uint64, len(snap.gone))
	}
	next.has = slices.Clone(next.has)
	filled := map[string]time.Time{}
	for _, sv := range snap.servers {
		for _, n := range sv.docs {
			if d := snap.docs[n]; e.embedder != nil && !next.hasVector(n) {
				if v := have[keyOf(d)]; v != nil {
					next.setVector(n, v)
					filled[sv.about.name] = time.Now()
				}
			}
		}
	}
	x.now.Store(&next)
	k.full.Store(&next)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !same || k.filled == nil {
		k.filled = filled
	}
	maps.Copy(k.filled, filled)
	return true
}

var errResting = errors.New("the embedder did not answer a moment ago")

// query returns the vector of a request. It fails immediately for a while after a failure.
func (k *keeper) query(ctx context.Context, e Embedder, text string) ([]float32, error) {
	if time.Now().UnixNano() < k.rest.Load() {
		return nil, errResting
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	vecs, err := e.Embed(ctx, []string{text[:min(len(text), maxRequest)]})
	switch {
	case err != nil:
	case len(vecs) != 1 || !good(vecs[0]):
		err = errors.New("no usable vector came back")
	default:
		return vecs[0], nil
	}
	k.rest.Store(time.Now().Add(restAfter).UnixNano())
	return nil, fmt.Errorf("embedding the request: %w", err)
}

// Vectors returns the model of the active vectors, the number of tools that have one, and
// the number of tools. While the vectors of a new embedder are computed, the old ones stay
// active; a text without a usable vector never gets one.
func (x *Index) Vectors() (model string, have, tools int) {
	snap := x.now.Load()
	for _, sv := range snap.servers {
		for _, n := range sv.docs {
			if snap.hasVector(n) {
				have++
			}
		}
	}
	return snap.space.model(), have, snap.live
}
