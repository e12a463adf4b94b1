package store

import (
	"context"
	"encoding/json"
	"time"
)

// OpenHome is a place of one person's own (Slack's App Home) that they looked at
// lately, so that it follows what changes also after a restart. Platforms don't
// tell whether it is still open.
type OpenHome struct {
	Identity string          `json:"-"`               // whose it is: surface:team:id, as [User.Identities] has it
	Team     string          `json:"team"`            // the workspace whose bot drew it
	Seen     time.Time       `json:"seen"`            // when they opened or used it last
	State    json.RawMessage `json:"state,omitempty"` // how it was drawn, as the platform reads it: at most MaxHomeState bytes
}

const (
	// HomeOpen is how long a Home counts as open without being used.
	HomeOpen = time.Hour
	// MaxHomes is how many open Homes are kept in all, MaxHomeState how many
	// bytes of state each.
	MaxHomes     = 1000
	MaxHomeState = 4 << 10
)

// Homes keeps which are open. It is a convenience: what is lost of it is there
// again when somebody opens their Home.
type Homes interface {
	// PutHome keeps one instead of what was known of it. Those that count as
	// open no longer when it was seen go, and with more than MaxHomes the one that
	// was seen longest ago.
	PutHome(ctx context.Context, h OpenHome) error
	// ListHomes returns those whose identity begins with prefix and that were seen
	// since, in no order.
	ListHomes(ctx context.Context, prefix string, since time.Time) ([]OpenHome, error)
}
