package bots

import (
	"context"

	"nize/store"
)

// State is what a thread does, as its people should see it.
type State string

const (
	Working State = "working" // the model or a tool is at it
	Waiting State = "waiting" // a call waits for a person
	Idle    State = "idle"    // the turn has ended
)

// Presence is what a [Platform] implements too where it can show a thread's
// state (a spinner, Slack's session status). Present is called after every
// message that belongs before the change was sent, and never at the same time
// as Post or Update of that thread.
type Presence interface {
	Present(ctx context.Context, to store.Address, s State) error
}

// Finder is what a [Platform] implements too where a message of nize's own can
// be found again by what it says, although nobody learned where it was posted.
type Finder interface {
	// Find returns where a card stands in a thread. ErrNotFound if it doesn't.
	Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error)
}
