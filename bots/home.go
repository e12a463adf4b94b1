package bots

import (
	"context"
	"time"

	"nize/store"
)

// Home is one person's overview: what they have and chose, for their eyes only. Changes
// there are executed as commands of that person, as if typed, so they pass the same checks.
type Home struct {
	Settings       []Field  // their own
	Agents, Models []Choice // available to them
	Servers        []HomeServer
	Waiting        []WaitingCall
	Grants         []store.Grant
	Tokens         []store.Token // the valid ones
	Recent         []HomeChat    // their conversations, newest first
	Credentials    []HomeCredential
	Days           int    // covered by Usage
	Usage          string // in words
	Picture        *Picture
}

// Choice is a named option with a description.
type Choice struct{ Name, About string }

// HomeChat is a conversation that the person began.
type HomeChat struct {
	Title string
	Where string // the platform's name in its usual spelling
	At    time.Time
}

// HomeServer is a server that the person may use.
type HomeServer struct {
	Name string
	Off  bool // the person turned it off
	Down bool // not available now
}

// WaitingCall is a call that waits for the person's approval.
type WaitingCall struct {
	Call, Tool string
	By         string        // the requester's name
	Until      time.Time     // zero means no expiry
	At         store.Address // place of its card; without a message if it has none yet
}

// HomeCredential is a credential of the person that a server needs or that they already
// entered.
type HomeCredential struct {
	Server, Name string
	Connected    bool
}

// Picture accompanies a text with the same content.
type Picture struct {
	Name string // file name
	Alt  string // complete text alternative
	Key  string // the same for equal pictures
	Draw func() ([]byte, error)
}

// Prompt asks one person for a credential. Platforms ask in a dialog and pass the input to
// [Keeper.PutSecret] and nowhere else: it is never stored on the way, not even until it is
// acknowledged, and never logged.
type Prompt struct {
	Service, Name string
	Team          string // the team that it is for, NAME:TEAM; "" for the person alone
	About         string // help text beside the field; not written by nize
}

// Keeper manages a person's own things. The composition root has the only implementation.
type Keeper interface {
	// Home collects a person's overview; it ignores a.Words.
	Home(ctx context.Context, a Asked) (Home, error)
	// Bring makes sure that the caller gets the card of a call that waits for them.
	// ErrNotFound for any other call.
	Bring(ctx context.Context, by store.Caller, call string) error
	// PutSecret seals the input of a Prompt as the person's own credential. It returns
	// within a second, because the person is waiting.
	PutSecret(ctx context.Context, by store.Caller, p Prompt, secret store.Secret) error
}
