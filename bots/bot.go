package bots

import (
	"context"
	"net/http"
	"slices"
	"time"

	"nize/bots/outbox"
	"nize/store"
)

// Bot is a [Platform] on which nize has an account that comes and goes while
// the daemon runs: there is one for each name of nizectl bots. What only some
// platforms have (channels, groups, presence, dialogs) are interfaces that a Bot
// implements too. botstest.Bot is the fake.
type Bot interface {
	Platform
	// Title is the platform as people write it.
	Title() string
	// Check tries a connection out and returns its account, enabled. Errors say
	// what to do; they wrap ErrInvalid where the tokens are wrong, and nothing
	// where the platform could not be asked.
	Check(ctx context.Context, c Connection) (Checked, error)
	// Use works with an account from now on; nil stops.
	Use(account *store.Bot)
	Health() Health
}

// Connection is what an operator gives for an account.
type Connection struct {
	Tokens []store.Secret // in any order
	// Team is where nize is to work, on a platform where a token does not say so.
	Team string
}

// Checked is an account that works.
type Checked struct {
	Account store.Bot
	Advice  []string // what would work better otherwise, and where to change it
}

// Health is how a [Bot] fares.
type Health struct {
	State    string    `json:"state"`            // stopped, connecting, connected, refused
	Reason   string    `json:"reason,omitempty"` // of a failure, in one word, where the platform has some
	Error    string    `json:"error,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Links    int       `json:"links,omitempty"` // connections of the app, as the platform counts them
	Events   int64     `json:"events"`          // accepted since the start
	LastSeen time.Time `json:"last_event,omitzero"`
}

// States of a [Health].
const (
	Stopped    = "stopped" // no account is used
	Connecting = "connecting"
	Connected  = "connected"
	Refused    = "refused" // until somebody does something about it
)

// ChannelDirectory is what a [Bot] implements too where people talk in channels.
// Channel settings and the approvers channel and channel-admins rest on it.
type ChannelDirectory interface {
	// CheckChannel says how the id of a channel is written, where id is none.
	CheckChannel(id string) error
	// ChannelName is how people there call a channel. ErrNotFound where nize sees
	// no channel of that id.
	ChannelName(ctx context.Context, at store.Address) (string, error)
	// Member says whether a user is in the channel.
	Member(ctx context.Context, at store.Address, user string) (bool, error)
	// Admins returns the users who administer a channel.
	Admins(ctx context.Context, at store.Address) ([]string, error)
}

// GroupDirectory is what a [Bot] implements too where there are groups of people.
type GroupDirectory interface {
	// UserGroup finds a group there by its id or handle and returns by what it
	// is known from then on: NAME:TEAM:ID, with the name of the surface.
	UserGroup(ctx context.Context, name string) (source, handle string, err error)
	// InUserGroup lists the identities of those in it now.
	InUserGroup(ctx context.Context, source string) ([]string, error)
}

// TeamDirectory is what a [Bot] implements too where a team has admins of its own.
type TeamDirectory interface {
	// TeamAdmins returns the users who administer the whole team, such as a
	// workspace's owners and admins. ErrNotFound for a team that it is not in.
	TeamAdmins(ctx context.Context, team string) ([]string, error)
}

// Announcer is what a [Bot] implements too where nize can speak outside any
// conversation: alerts.
type Announcer interface {
	outbox.Courier
	// Tell says something of nize's own in a channel, or edits what it said
	// there, and returns which message that is. What may have been said before
	// by a try of which nobody knows the end is looked for first, by its id.
	Tell(ctx context.Context, a Announcement) (message string, err error)
}

// Announcement is something of nize's own outside any conversation.
type Announcement struct {
	Channel string
	Message string    // the one to edit, "" for a new one
	ID      string    // of what is told, the same in every try
	Since   time.Time // a try was made then at the earliest; zero: none was
	Text    string
}

// Linker is what a [Bot] implements too where people can open a conversation by an
// address.
type Linker interface {
	// Link is that address; "" where the platform does not say.
	Link(ctx context.Context, at store.Address) string
}

// Sweeper is what a [Bot] implements too that can look for people who left the
// platform.
type Sweeper interface {
	// Sweep begins to look everybody up now, or leaves one that is under way.
	Sweep() error
}

// Receiver is what a [Bot] implements too where the platform sends over HTTP.
type Receiver interface {
	// Handler serves what lies under /NAME/, with the name of the surface.
	Handler() http.Handler
	// Endpoints are the paths to which the platform sends for an account; nil
	// where it does not send over HTTP.
	Endpoints(account store.Bot) []string
}

// Registry holds the bots of the house. The roof fills it before anything runs.
type Registry struct{ list []Bot }

// Add puts bots into the list, in the order in which they are shown.
func (r *Registry) Add(list ...Bot) { r.list = append(r.list, list...) }

// All are the bots.
func (r *Registry) All() []Bot { return r.list }

// Find finds a bot by the name of its surface.
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

// On is the bot on a surface as something that it may implement too.
func On[T any](r *Registry, at store.Surface) (as T, ok bool) {
	if i := slices.IndexFunc(r.list, func(b Bot) bool { return b.Surface() == at }); i >= 0 {
		as, ok = r.list[i].(T)
	}
	return as, ok
}
