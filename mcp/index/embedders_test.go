package index

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

// meaning is an embedder that knows what a few words have to do with each
// other, which no list of words tells.
type meaning struct {
	name  string
	about map[string]int // word → direction
	dims  int
	bad   string // a text that holds this gets a zero vector
	gate  chan struct{}

	mu    sync.Mutex
	err   error
	texts map[string]int // how often each was embedded
	calls int
}

func (m *meaning) Model() string { return m.name }

func (m *meaning) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.err != nil {
		return nil, m.err
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if m.texts == nil {
			m.texts = make(map[string]int)
		}
		m.texts[t]++
		v := make([]float32, m.dims)
		if m.bad == "" || !strings.Contains(t, m.bad) {
			v[0] = 0.1 // no text is quite without meaning
			for w, d := range m.about {
				if strings.Contains(strings.ToLower(t), w) {
					v[d]++
				}
			}
		}
		out[i] = v
	}
	return out, nil
}

func (m *meaning) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *meaning) count() (calls, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.texts {
		most = max(most, n)
	}
	return m.calls, most
}

func newMeaning(name string, dims int) *meaning {
	return &meaning{name: name, dims: dims, about: map[string]int{
		"umbrella": 1, "forecast": 1, "sunglasses": 1,
		"colleague": 2, "invite": 2, "gather": 2,
		"gamble": 3, "dice": 3,
		"issue": 4, "repository": 5, "file": 6, "database": 7,
	}}
}

// vectorCache is a store.Vectors in memory.
type vectorCache struct {
	mu   sync.Mutex
	vecs map[string][]float32
}

func (c *vectorCache) GetVectors(_ context.Context, model string, keys []string) (map[string][]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string][]float32)
	for _, k := range keys {
		if v, ok := c.vecs[model+"/"+k]; ok {
			out[k] = slices.Clone(v)
		}
	}
	return out, nil
}

func (c *vectorCache) PutVectors(_ context.Context, model string, vecs map[string][]float32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vecs == nil {
		c.vecs = make(map[string][]float32)
	}
	for k, v := range vecs {
		c.vecs[model+"/"+k] = slices.Clone(v)
	}
	return nil
}

var _ store.Vectors = (*vectorCache)(nil)

// waitFor lets d pass on the bubble's clock.
func waitFor(d time.Duration) { <-time.After(d) }

// bubble runs f under synctest: synctest.Wait then waits for the worker.
func bubble(t *testing.T, f func(t *testing.T)) {
	loadLexicon() // a sync.Once must not be entered inside
	synctest.Test(t, f)
}
