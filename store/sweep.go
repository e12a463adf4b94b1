package store

import (
	"context"
	"time"
)

// Sweep is how far nize is with looking up everybody who has an identity on a
// platform, to find those who left it unnoticed. It is done once a day
// and goes on after a restart where it was.
type Sweep struct {
	Surface  Surface   `json:"surface"`
	Team     string    `json:"team"`            // the workspace that was asked
	Began    time.Time `json:"began,omitzero"`  // the last one, or the one under way
	Ended    time.Time `json:"ended,omitzero"`  // the last whole one
	After    string    `json:"after,omitempty"` // the user looked up last, while one is under way
	Checked  int       `json:"looked"`          // users, in the one that began last
	Failed   int       `json:"failed"`          // those of them who could not be looked up, and stay
	Disabled []string  `json:"disabled,omitempty"`
}

// UnderWay says whether the sweep that began last has not ended.
func (s Sweep) UnderWay() bool { return s.Began.After(s.Ended) }

// Sweeps keeps how far they are.
type Sweeps interface {
	// GetSweep returns the one of a surface; ErrNotFound before the first.
	GetSweep(ctx context.Context, at Surface) (Sweep, error)
	// PutSweep keeps it. One that ended leaves an event, one under way none.
	PutSweep(ctx context.Context, by Caller, s Sweep) error
}
