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
	batchSize    = 64  // texts of one call of an embedder
	cacheBatch   = 512 // keys of one look into the cache
	queryTimeout = 3 * time.Second
	batchTimeout = 60 * time.Second
	restAfter    = 5 * time.Second // a query's embedding failed: no query asks again for so long
	firstRetry   = 2 * time.Second
	lastRetry    = 5 * time.Minute
)

// keeper brings the vectors of a configured embedder into the index, in the
// background, and asks it about queries.
type keeper struct {
	index  *Index
	log    *slog.Logger
	cache  store.Vectors
	failed atomic.Bool  // the embedder that is wanted did not answer when it was last asked
	rest   atomic.Int64 // unix nanoseconds until which queries do not ask it

	computed atomic.Int64             // vectors, since the start
	full     atomic.Pointer[snapshot] // the last one whose vectors are all there

	// The worker's own: texts without a usable vector, which are not tried again.
	bad   []string
	badOf *space

	cancel context.CancelFunc
	done   chan struct{}
	wakeup chan struct{} // of one: a second signal before the first is taken says the same

	mu     sync.Mutex // guards what follows
	fails  failures
	filled map[string]time.Time // by server, when the space that serves got the last vector of one of its tools
	beat   chan struct{}        // closed and made again when something was done or failed
	want   *space               // compared as a pointer: an Embedder need not be comparable
	closed bool
}

// failures are those of the wanted embedder since it answered last.
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

// wake has the worker look whether a vector is missing.
func (k *keeper) wake() {
	select {
	case k.wakeup <- struct{}{}:
	default:
	}
}

// tell lets those know who wait for the worker.
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

// SetEmbedder makes e the embedder; nil is the embedded one. It returns at
// once: the tools are embedded again in the background while the old vectors
// serve. It fails only on a closed index and a cancelled context.
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

// RecomputeVectors has a configured embedder compute every vector again, in the background
// while the old ones serve. Embedded vectors follow from the text alone and
// cannot get old.
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

// Computed is how many vectors were computed since the start.
func (x *Index) Computed() int { return int(x.vectors.computed.Load()) }

// WaitForVectors waits until every tool has its vector, and calls tell as they come. It
// fails when the embedder does not answer.
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

// run is the worker: it ends with ctx.
func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	wait := firstRetry
	var down *space // failed last; it is asked again when the timer says so
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
			continue // a new tool does not make it answer
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

// note keeps whether the wanted embedder answered; down says that it is e, and
// did not. What came of one that is not wanted any more says nothing of the
// next, which may not have been asked yet.
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

// fill gives every tool its vector by e and then makes e the space of the index.
func (k *keeper) fill(ctx context.Context, e *space) error {
	have := make(map[string][]float32) // by key; nil for a text that has no usable vector
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
			return nil // Replace does it
		}
		var missing []*doc
		for _, sv := range snap.servers {
			for _, n := range sv.docs {
				d := snap.docs[n]
				if same && snap.vecs[n] != nil {
					continue
				}
				if _, ok := have[keyOf(d)]; !ok && e.embedder != nil {
					missing = append(missing, d)
				}
			}
		}
		if snap.live == 0 && e.embedder != nil {
			return nil // it was not asked once: the old vectors serve until it answers
		}
		if len(missing) == 0 {
			if k.publish(snap, e, have) {
				return nil
			}
			continue // tools came meanwhile
		}
		if err := k.embed(ctx, e, missing, have); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// keyOf is the content hash under which a tool's vector is cached.
func keyOf(d *doc) string {
	sum := sha256.Sum256([]byte(textOf(d)))
	return hex.EncodeToString(sum[:16])
}

// embed fills have with the vectors of docs, from the cache or from e.
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
			if !good(vecs[i]) {
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
				k.log.Warn("caching vectors failed", "model", e.embedder.Model(), "err", err) // they serve all the same
			}
		}
		keys = keys[n:]
	}
	return nil
}

// cached moves what the cache has into have and returns the keys that it has not.
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
			if v := got[key]; good(v) && (e.fresh == nil || e.fresh[key]) {
				have[key] = v
			} else {
				rest = append(rest, key)
			}
		}
		keys = keys[n:]
	}
	return rest
}

// publish makes e's vectors those of the index; false if tools came since snap.
func (k *keeper) publish(snap *snapshot, e *space, have map[string][]float32) bool {
	x := k.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now.Load() != snap {
		return false
	}
	if k.wanted() != e {
		return true // the next one was signalled
	}
	next := *snap
	same := snap.space == e
	next.space = e
	next.vecs = nil
	if e.embedder != nil {
		next.vecs = make([][]float32, len(snap.docs), cap(snap.docs))
	}
	if same {
		copy(next.vecs, snap.vecs)
	}
	filled := map[string]time.Time{}
	next.shelves = slices.Clone(snap.shelves)
	for i := range next.shelves {
		changed, first := !same, i*shelfSize
		for n := first; n < min(first+shelfSize, len(next.vecs)); n++ {
			if next.vecs[n] == nil && snap.alive(uint32(n)) {
				if next.vecs[n] = have[keyOf(snap.docs[n])]; next.vecs[n] != nil {
					changed, filled[snap.docs[n].about.name] = true, time.Now()
				}
			}
		}
		if changed {
			next.shelves[i] = newShelf(&next, first)
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

// query returns the vector of a request. It fails fast while the embedder rests.
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

// Vectors says whose vectors serve now, and how many of the tools have one.
// While a new embedder's are being made the old one's serve; a text without a
// usable vector never gets one.
func (x *Index) Vectors() (model string, have, tools int) {
	snap := x.now.Load()
	for n := range snap.docs {
		if snap.alive(uint32(n)) && snap.vector(uint32(n)) != nil {
			have++
		}
	}
	return snap.space.model(), have, snap.live
}
