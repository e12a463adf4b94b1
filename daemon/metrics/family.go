package metrics

import (
	"strings"
	"sync"

	"nize/store"
)

// The labels of each family.
type (
	call struct {
		server, tool string
		outcome      store.State
		surface      store.Surface
	}
	callError struct {
		server string
		code   store.Code
	}
	rejection struct {
		code    store.Code
		surface store.Surface
	}
	model     struct{ provider, name string }
	modelCall struct {
		model
		outcome string
	}
	modelTokens struct {
		model
		kind string
	}
)

func otherModel(model) model { return model{Other, Other} }

// label returns a value in a form that Prometheus accepts.
func label(value string) string { return store.Clip(strings.ToValidUTF8(value, "\uFFFD"), 128) }

// family keeps the series of one metric. A lookup allocates nothing and takes no contended
// lock.
type family[K comparable, S any] struct {
	most   int
	open   func(K) S
	coarse []func(K) K // coarser keys for further ones, each with a limit of its own

	mu     sync.RWMutex
	series map[K]S
}

func newFamily[K comparable, S any](most int, open func(K) S, coarse ...func(K) K) *family[K, S] {
	return &family[K, S]{most: most, open: open, coarse: coarse, series: map[K]S{}}
}

func (f *family[K, S]) get(k K) S {
	f.mu.RLock()
	s, ok := f.series[k]
	f.mu.RUnlock()
	if ok {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 0; ; i++ {
		if s, ok := f.series[k]; ok {
			return s
		}
		if i == len(f.coarse) || len(f.series) < f.most*(i+1) {
			s := f.open(k)
			f.series[k] = s
			return s
		}
		k = f.coarse[i](k)
	}
}
