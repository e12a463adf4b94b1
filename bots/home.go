package bots

import (
	"context"
	"time"

	"nize/store"
)

// Home is what one person has and chose, for a place that shows it at once.
// All of it is theirs alone. What they change there are commands,
// given for them as if they had typed them, so nothing is checked twice or less.
type Home struct {
	Settings       []Field  // of their own
	Agents, Models []Choice // that they may use
	Servers        []HomeServer
	Waiting        []WaitingCall
	Grants         []store.Grant
	Tokens         []store.Token // that work
	Recent         []HomeChat    // their conversations, newest first
	Credentials    []HomeCredential
	Days           int    // that Usage is about
	Usage          string // in words
	Picture        *Picture
}

// Choice is one of several things by name.
type Choice struct{ Name, About string }

// HomeChat is a conversation that somebody began.
type HomeChat struct {
	Title string
	Where string // the platform as people write it
	At    time.Time
}

// HomeServer is a server that somebody may use.
type HomeServer struct {
	Name string
	Off  bool // they switched it off
	Down bool // it does not work now
}

// WaitingCall is a call that waits for somebody's yes.
type WaitingCall struct {
	Call, Tool string
	By         string        // the name of who asked
	Until      time.Time     // zero is without end
	At         store.Address // where they read its card; without a message where they don't yet
}

// HomeCredential is a credential of their own that a server wants, or that they
// gave to it.
type HomeCredential struct {
	Server, Name string
	Connected    bool
}

// Picture goes with a text that says the same.
type Picture struct {
	Name string // of the file
	Alt  string // the whole of it in words
	Key  string // is the same for the same picture
	Draw func() ([]byte, error)
}

// Prompt asks one person for a credential of theirs. Platforms ask in a dialog,
// give what was typed to [Keeper.PutSecret] and to nothing else: it is not
// stored on the way, not even until it is acknowledged, and not logged.
type Prompt struct {
	Service, Name string
	Team          string // for all of it, NAME:TEAM; "" is for the person
	About         string // what they read beside the field; others wrote it
}

// Keeper knows what is somebody's. The roof is the one implementation.
type Keeper interface {
	// Home gathers what a person has; a.Words are not read.
	Home(ctx context.Context, a Asked) (Home, error)
	// Bring sees to it that the caller has the card of a call that waits for
	// them. ErrNotFound for any other call.
	Bring(ctx context.Context, by store.Caller, call string) error
	// PutSecret seals what a person typed at a Prompt, as their own credential.
	// It answers within a second: the person waits.
	PutSecret(ctx context.Context, by store.Caller, p Prompt, secret store.Secret) error
}
