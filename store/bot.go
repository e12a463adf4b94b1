package store

import (
	"context"
	"time"
)

// Bot is nize's own account on a chat platform; a surface has at
// most one.
type Bot struct {
	Surface   Surface   `json:"surface"`
	Enabled   bool      `json:"enabled"` // started with the daemon
	Mode      string    `json:"mode"`    // how events come in: socket or http
	Team      string    `json:"team"`    // the workspace's or guild's id
	TeamName  string    `json:"team_name"`
	User      string    `json:"user"` // the bot's own id there
	App       string    `json:"app,omitempty"`
	Connected time.Time `json:"connected"`
	// Tokens are the secrets of the account by name; they are sealed and never
	// listed.
	Tokens map[string]Secret `json:"-"`
}

// Bots keeps the accounts on chat platforms and the codes that make somebody
// there an admin.
type Bots interface {
	// PutBot stores b. Without Tokens, those that are kept stay.
	PutBot(ctx context.Context, by Caller, b Bot) error
	// GetBot opens the tokens.
	GetBot(ctx context.Context, at Surface) (Bot, error)
	// DeleteBot removes the account, its tokens and its codes.
	DeleteBot(ctx context.Context, by Caller, at Surface) error
	// PutClaim stores the hash of a code that makes the person who sends it on that
	// surface an admin, once, until it expires. An older one of the surface
	// stops working.
	PutClaim(ctx context.Context, by Caller, at Surface, hash [32]byte, expires time.Time) error
	// Claim uses a code up and makes the user with that identity an admin, in
	// one transaction. ErrNotFound for a code that is unknown or used,
	// ErrExpired, and ErrRefused for somebody disabled; these leave the code.
	Claim(ctx context.Context, at Surface, hash [32]byte, who Claimer) (User, error)
}

// Claimer is who sends a code.
type Claimer struct {
	Identity, Name string
}

// Places remembers where on a platform stands what nize showed there, so that
// it is found again after a restart, and which thread of a platform
// is which conversation.
type Places interface {
	// ThreadAt returns the conversation at th.Address, its Message aside, and
	// stores th there if there is none, which made tells.
	ThreadAt(ctx context.Context, by Caller, th Thread) (got Thread, made bool, err error)
	// FindThread returns the conversation at an address, its Message aside.
	FindThread(ctx context.Context, at Address) (Thread, error)
	// PutPlace notes that the message of that id stands at at. It is kept with
	// its owner, a conversation or a call, or is one of DoubtfulPlaces.
	PutPlace(ctx context.Context, owner, message string, at Address) error
	// MovePlace is PutPlace of to, and forgets from, in one transaction; to may
	// be "".
	MovePlace(ctx context.Context, owner, from, to string, at Address) error
	// GetPlace returns what PutPlace noted, or ErrNotFound.
	GetPlace(ctx context.Context, owner, message string) (Address, error)
	// ListPlaces returns all that PutPlace noted of an owner, by message.
	ListPlaces(ctx context.Context, owner string) (map[string]Address, error)
}

// DoubtfulPlaces owns the notes of what may come to stand somewhere twice.
const DoubtfulPlaces = "doubtful"

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
