package store

import (
	"context"
	"time"
)

// Example is a set of example requests for one tool that a model wrote (index.examples).
// The text is untrusted: only the index reads it.
type Example struct {
	Tool     string    `json:"tool"`
	Model    string    `json:"model"`    // provider/model that wrote it
	Requests []string  `json:"requests"` // empty if the model wrote nothing useful
	At       time.Time `json:"at"`
}

// MaxExamples is the number of requests kept per tool, and MaxExampleBytes the maximum
// length of each.
const (
	MaxExamples     = 5
	MaxExampleBytes = 160
)

// Examples caches example requests by a hash of the tool's definition. As a cache, it
// appends no events.
type Examples interface {
	// GetExamples returns the cached examples, by key. Missing keys are omitted.
	GetExamples(ctx context.Context, keys []string) (map[string]Example, error)
	// PutExample stores an example, cut to the limits above.
	PutExample(ctx context.Context, key string, e Example) error
	// TrimExamples deletes all examples except those of the given keys.
	TrimExamples(ctx context.Context, keep []string) error
}
