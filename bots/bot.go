package bots

import (
	"context"
	"net/http"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/store"
)

// Bot is a [Platform] with an account that an operator can add or remove while the daemon
// runs. There is one Bot for each name in nizectl bots. Features of some platforms only
// (channels, groups, presence, dialogs) are separate interfaces that a Bot may implement.
// botstest.Bot is the fake.
type Bot interface {
	Platform
	// Title returns the platform's name in its usual spelling.
	Title() string
	// Check tries to connect and returns the account, enabled. Its errors say how to fix
	// the problem. They wrap ErrInvalid if the tokens are wrong, and no sentinel if the
	// platform could not be reached.
	Check(ctx context.Context, c Connection) (Checked, error)
	// Use switches the bot to an account; nil stops it.
	Use(account *store.Bot)
	Health() Health
}

// Connection is an operator's input for an account.
type Connection struct {
	Tokens []store.Secret // in any order
	// Team is the team to work in, for platforms whose tokens don't identify it.
	Team string
}

// Checked is an account that passed [Bot.Check].
type Checked struct {
	Account store.Bot
	Advice  []string // what to improve, and where to change it
}

// Health is the state of a [Bot].
type Health struct {
	State    string    `json:"state"`            // stopped, connecting, connected, refused
	Reason   string    `json:"reason,omitempty"` // one word for a failure, if the platform gives one
	Error    string    `json:"error,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Links    int       `json:"links,omitempty"` // connections of the app, as counted by the platform
	Events   int64     `json:"events"`          // accepted since the start
	LastSeen time.Time `json:"last_event,omitzero"`
}

// States of a [Health].
const (
	Stopped    = "stopped" // no account is used
	Connecting = "connecting"
	Connected  = "connected"
	Refused    = "refused" // until an operator intervenes
)

// ChannelDirectory is implemented by a [Bot] whose platform has channels. Channel settings,
// the approvers channel and channel-admins depend on it.
type ChannelDirectory interface {
	// CheckChannel returns an error that explains the form of a channel id if id doesn't
	// have it.
	CheckChannel(id string) error
	// ChannelName returns the channel's name on the platform, or ErrNotFound if nize can't
	// see a channel with that id.
	ChannelName(ctx context.Context, at store.Address) (string, error)
	// Member reports whether a user is in the channel.
	Member(ctx context.Context, at store.Address, user string) (bool, error)
	// Admins returns the users who administer a channel.
	Admins(ctx context.Context, at store.Address) ([]string, error)
}

// GroupDirectory is implemented by a [Bot] whose platform has user groups.
type GroupDirectory interface {
	// UserGroup finds a group by its id or handle. It returns the source under which the
	// group is stored, NAME:TEAM:ID, which begins with the name of the surface.
	UserGroup(ctx context.Context, name string) (source, handle string, err error)
	// InUserGroup lists the identities of the group's current members.
	InUserGroup(ctx context.Context, source string) ([]string, error)
}

// TeamDirectory is implemented by a [Bot] whose platform's teams have admins.
type TeamDirectory interface {
	// TeamAdmins returns the users who administer the whole team, such as a workspace's
	// owners and admins, or ErrNotFound if the bot is not in that team.
	TeamAdmins(ctx context.Context, team string) ([]string, error)
}

// Announcer is implemented by a [Bot] that can post outside conversations, for alerts.
type Announcer interface {
	outbox.Courier
	// Tell posts an announcement in a channel, or edits an earlier one, and returns the
	// message's id. If an earlier attempt may have succeeded, Tell first looks for its
	// message by the announcement's ID, so that nothing is posted twice.
	Tell(ctx context.Context, a Announcement) (message string, err error)
}

// Announcement is a message from nize outside any conversation.
type Announcement struct {
	Channel string
	Message string    // the message to edit, "" to post a new one
	ID      string    // of the announcement, the same in every attempt
	Since   time.Time // lower bound of the first attempt's time; zero if there was none
	Text    string
}

// Linker is implemented by a [Bot] whose conversations can be opened by a URL.
type Linker interface {
	// Link returns that URL, or "" if the platform doesn't provide it.
	Link(ctx context.Context, at store.Address) string
}

// Sweeper is implemented by a [Bot] that can look for people who left the platform.
type Sweeper interface {
	// Sweep starts a check of all users, unless one is in progress.
	Sweep() error
}

// Receiver is implemented by a [Bot] whose platform delivers events over HTTP.
type Receiver interface {
	// Handler serves the paths under /NAME/, where NAME is the surface.
	Handler() http.Handler
	// Endpoints returns the paths to which the platform delivers events for an account, or
	// nil if it doesn't use HTTP.
	Endpoints(account store.Bot) []string
}

// Registry holds all bots. The composition root fills it before anything runs.
type Registry struct{ list []Bot }

// Add appends bots in the order in which they are shown.
func (r *Registry) Add(list ...Bot) { r.list = append(r.list, list...) }

// All returns the bots.
func (r *Registry) All() []Bot { return r.list }

// Find returns the bot of a surface.
func (r *Registry) Find(name string) (Bot, error) {
	var names []string
	for _, b := range r.list {
		if string(b.Surface()) == name {
			return b, nil
		}
		names = append(names, string(b.Surface()))
	}
	return nil, store.Unknown("bot", name, names)
}

// On returns the bot of a surface if it implements T.
func On[T any](r *Registry, at store.Surface) (as T, ok bool) {
	if i := slices.IndexFunc(r.list, func(b Bot) bool { return b.Surface() == at }); i >= 0 {
		as, ok = r.list[i].(T)
	}
	return as, ok
}
