package index

import "context"

type shelf struct{}
type space struct{}

type keeper struct{}

func (k *keeper) start(x *Index, o Options) {}
func (k *keeper) close()                    {}
func (k *keeper) wake()                     {}
func (k *keeper) finish(ctx context.Context, s *search) (Answer, error) {
	return Answer{Hits: s.hits()}, nil
}

// SetEmbedder makes e the embedder, nil the embedded one. It returns at once:
// the tools are embedded anew in the background while the old vectors serve.
func (x *Index) SetEmbedder(ctx context.Context, e Embedder) error { return nil }

// Share is what one signal adds to a tool's place in the ranking.
type Share struct {
	Signal Signal
	Value  float64 // in units of the words' best, which is 1
}

// Explain says what each signal adds for one tool.
func (x *Index) Explain(q Query, toolID string) []Share { return nil }
