package index

import (
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// noise is an embedder that is of no use: each text has a direction of its
// own, or all texts the same one.
type noise struct{ constant bool }

func (noise) Model() string { return "noise" }

func (n noise) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		h := fnv.New64a()
		if !n.constant {
			io.WriteString(h, t)
		}
		rnd := rand.New(rand.NewPCG(h.Sum64(), 0))
		for range 24 {
			out[i] = append(out[i], float32(rnd.NormFloat64()))
		}
	}
	return out, nil
}

// A useless model loses nothing against the words alone (eval measures it on
// all requests; here on the names of the tools).
func TestUselessModelLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		servers, tools := corpus()
		servers = servers[:120]
		words := fill(t, Options{}, servers, tools)
		for _, e := range []Embedder{noise{}, noise{constant: true}} {
			x := fill(t, Options{Embedder: e}, servers, tools)
			synctest.Wait()
			if _, have, all := x.Vectors(); have != all {
				t.Fatalf("%d of %d vectors", have, all)
			}
			asked, lost, won := 0, 0, 0
			for _, s := range servers {
				tl := tools[s.Name][0]
				first := func(x *Index, weigh map[Signal]float64) bool {
					got := ids(t, x, Query{Text: firstSentence(tl.Description), Weigh: weigh})
					return len(got) > 0 && got[0] == tl.ID()
				}
				asked++
				switch a, b := first(words, map[Signal]float64{Vector: 0}), first(x, nil); {
				case a && !b:
					lost++
				case b && !a:
					won++
				}
			}
			if net := lost - won; 100*net > 2*asked {
				t.Errorf("%+v loses %d of %d requests", e, net, asked)
			}
		}
	})
}
