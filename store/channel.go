package store

import "context"

// Modes of a channel: when a message in a thread is answered that does not
// address nize (SPEC 12).
const (
	ModeFollow  = "follow"  // if its author last addressed nize, and nobody else has written since
	ModeMention = "mention" // never
	ModeAll     = "all"     // always
)

// Modes lists them.
var Modes = []string{ModeFollow, ModeMention, ModeAll}

// Channel is how nize is set up in a channel of a chat, for conversations that
// begin there.
type Channel struct {
	Place string `json:"place"`           // [Address.Place]
	Agent string `json:"agent,omitempty"` // "" is the default one
	Model string `json:"model,omitempty"` // a logical name; "" is the agent's
	Mode  string `json:"mode,omitempty"`  // "" is ModeFollow
}

// Rooms keeps how nize is set up in channels.
type Rooms interface {
	// EditChannel changes the settings of a channel in one transaction; edit
	// must do nothing else, and it may be run again.
	EditChannel(ctx context.Context, by Caller, place string, edit func(*Channel)) (Channel, error)
	// GetChannel returns the settings of a channel; one without any has the
	// zero ones.
	GetChannel(ctx context.Context, place string) (Channel, error)
}
