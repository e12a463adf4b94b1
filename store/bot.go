package store

import (
	"context"
	"time"
)

// Bot is nize's own account on a chat platform. Each surface has at most one.
type Bot struct {
	Surface   Surface   `json:"surface"`
	Enabled   bool      `json:"enabled"` // started with the daemon
	Mode      string    `json:"mode"`    // how events are received: socket or http
	Team      string    `json:"team"`    // the workspace's or guild's id
	TeamName  string    `json:"team_name"`
	User      string    `json:"user"` // the bot's own id there
	App       string    `json:"app,omitempty"`
	Connected time.Time `json:"connected"`
	// Tokens are the secrets of the account by name; they are sealed and never
	// listed.
	Tokens map[string]Secret `json:"-"`
}

// Bots stores the accounts on chat platforms and the codes that make a person there an
// admin.
type Bots interface {
	// PutBot stores b. If Tokens is empty, the stored tokens are kept.
	PutBot(ctx context.Context, by Caller, b Bot) error
	// GetBot returns the account with its tokens unsealed.
	GetBot(ctx context.Context, at Surface) (Bot, error)
	// DeleteBot removes the account, its tokens and its codes.
	DeleteBot(ctx context.Context, by Caller, at Surface) error
	// PutClaim stores the hash of a code that makes the person who sends it on that surface
	// an admin, once, until it expires. An earlier code of the surface becomes invalid.
	PutClaim(ctx context.Context, by Caller, at Surface, hash [32]byte, expires time.Time) error
	// Claim redeems a code and makes the user with that identity an admin, in one
	// transaction. It returns ErrNotFound if the code is unknown or used, ErrExpired if it
	// is expired, and ErrRefused if the user is disabled. The code stays valid after an
	// error.
	Claim(ctx context.Context, at Surface, hash [32]byte, who Claimer) (User, error)
}

// Claimer is the person who sends a code.
type Claimer struct {
	Identity, Name string
}

// Places records where nize posted each message on a platform, so that it finds the message
// again after a restart, and which platform thread belongs to which conversation.
type Places interface {
	// ThreadAt returns the conversation at th.Address, ignoring its Message. If there is
	// none, it stores th and made is true.
	ThreadAt(ctx context.Context, by Caller, th Thread) (got Thread, made bool, err error)
	// FindThread returns the conversation at an address, ignoring its Message.
	FindThread(ctx context.Context, at Address) (Thread, error)
	// PutPlace records that the message with that id was posted at at. owner is a
	// conversation or a call, with which the place is deleted, or DoubtfulPlaces.
	PutPlace(ctx context.Context, owner, message string, at Address) error
	// MovePlace is PutPlace of to and deletes from, in one transaction; to may be "".
	MovePlace(ctx context.Context, owner, from, to string, at Address) error
	// GetPlace returns the recorded place, or ErrNotFound.
	GetPlace(ctx context.Context, owner, message string) (Address, error)
	// ListPlaces returns all recorded places of an owner, by message.
	ListPlaces(ctx context.Context, owner string) (map[string]Address, error)
}

// DoubtfulPlaces is the owner of the places of posts that may be repeated: nize doesn't
// know whether the platform accepted them.
const DoubtfulPlaces = "doubtful"

// Sweep is the progress of looking up everyone who has an identity on a platform, to find
// people who left it without an event. A sweep runs once a day and resumes after a restart.
type Sweep struct {
	Surface  Surface   `json:"surface"`
	Team     string    `json:"team"`            // the workspace
	Began    time.Time `json:"began,omitzero"`  // start of the latest sweep
	Ended    time.Time `json:"ended,omitzero"`  // end of the last complete sweep
	After    string    `json:"after,omitempty"` // the user looked up last, while a sweep is running
	Checked  int       `json:"looked"`          // users looked up in the latest sweep
	Failed   int       `json:"failed"`          // users whose lookup failed; they are kept
	Disabled []string  `json:"disabled,omitempty"`
}

// UnderWay reports whether the latest sweep is still running.
func (s Sweep) UnderWay() bool { return s.Began.After(s.Ended) }

// Sweeps stores the progress of sweeps.
type Sweeps interface {
	// GetSweep returns the sweep of a surface; ErrNotFound before the first.
	GetSweep(ctx context.Context, at Surface) (Sweep, error)
	// PutSweep stores a sweep. It appends an event only when the sweep has ended.
	PutSweep(ctx context.Context, by Caller, s Sweep) error
}
