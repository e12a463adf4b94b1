package store

import (
	"context"
	"time"
)

// Example is the requests for one tool that a model wrote
// (index.examples). What it wrote is untrusted: only the index reads it.
type Example struct {
	Tool     string    `json:"tool"`
	Model    string    `json:"model"`    // provider/model that wrote them
	Requests []string  `json:"requests"` // none where it wrote nothing of use
	At       time.Time `json:"at"`
}

// MaxExamples is how many requests are kept of one tool, MaxExampleBytes how
// long each may be.
const (
	MaxExamples     = 5
	MaxExampleBytes = 160
)

// Examples caches example requests by a hash of the tool's definition. Like
// every cache it leaves no events.
type Examples interface {
	// GetExamples returns those of the keys that are kept.
	GetExamples(ctx context.Context, keys []string) (map[string]Example, error)
	// PutExample keeps one, cut to the bounds above.
	PutExample(ctx context.Context, key string, e Example) error
	// TrimExamples deletes all but those of the keys.
	TrimExamples(ctx context.Context, keep []string) error
}
