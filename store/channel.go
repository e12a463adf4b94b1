package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Modes of a channel: when a message in a thread is answered that does not
// address nize.
const (
	ModeFollow  = "follow"  // if its author last addressed nize, and nobody else has written since
	ModeMention = "mention" // never
	ModeAll     = "all"     // always
)

// Modes lists them.
var Modes = []string{ModeFollow, ModeMention, ModeAll}

// Channel is how nize is set up in a channel of a chat. Agent and model are for
// conversations that begin there afterwards; all else counts at once.
type Channel struct {
	Place string `json:"place"`           // [Address.Place]
	Agent string `json:"agent,omitempty"` // "" is the default one
	Model string `json:"model,omitempty"` // a logical name; "" is the agent's
	Mode  string `json:"mode,omitempty"`  // "" is ModeFollow
	// Servers are those whose tools may be used there, of what is shared with
	// who asks; nil is all of that, an empty list none of it.
	Servers []string `json:"servers,omitzero"`
	// Approvers says who may press there, where no admin of nize's said it for
	// the server or for all; "" is the default.
	Approvers Policy `json:"approvers,omitempty"`
	// Language is the BCP 47 locale in which nize speaks to the whole channel;
	// "" is that of who began the thread.
	Language string `json:"language,omitempty"`
	// Admins administer the channel besides the platform's: user:ID, group:NAME.
	Admins []string `json:"admins,omitempty"`
}

// maxListed bounds each list of a channel.
const maxListed = 200

// Unset says whether nothing is set.
func (c Channel) Unset() bool {
	return c.Agent+c.Model+c.Mode+c.Language+string(c.Approvers) == "" && c.Servers == nil && len(c.Admins) == 0
}

// EffectiveMode is the mode that counts.
func (c Channel) EffectiveMode() string {
	if c.Mode == "" {
		return ModeFollow
	}
	return c.Mode
}

// AllowsServer says whether the tools of a server may be used in the channel.
func (c Channel) AllowsServer(server string) bool {
	return c.Servers == nil || slices.Contains(c.Servers, server)
}

// LocaleFor is the locale in which nize speaks in a thread of the channel.
func (c Channel) LocaleFor(th Thread) string {
	if c.Language != "" {
		return c.Language
	}
	return th.Locale
}

// Check refuses what can't be: an unknown mode, a policy that can't be read, a
// name that is none.
func (c Channel) Check() error {
	if c.Mode != "" && !slices.Contains(Modes, c.Mode) {
		return Errorf("%w mode %q: use %s", ErrInvalid, Clip(c.Mode, 40), strings.Join(Modes, ", "))
	}
	if len(c.Servers) > maxListed || len(c.Admins) > maxListed {
		return Errorf("%w channel: more than %d names", ErrInvalid, maxListed)
	}
	if c.Approvers != "" {
		if _, err := ParsePolicy(string(c.Approvers)); err != nil {
			return err
		}
	}
	for _, who := range c.Admins {
		if kind, _, _ := strings.Cut(who, ":"); kind != "user" && kind != "group" || !isApprover(who) {
			return Errorf("%w admin %q: write user:U or group:G", ErrInvalid, Clip(who, 80))
		}
	}
	return nil
}

// Channels keeps how nize is set up in channels.
type Channels interface {
	// EditChannel changes the settings of a channel in one transaction; edit
	// must do nothing else, and it may be run again. ErrInvalid if they can't
	// be ([Channel.Check]), ErrNotFound if they name a user or a group that is
	// not there. A channel that is left without settings is forgotten.
	EditChannel(ctx context.Context, by Caller, place string, edit func(*Channel)) (Channel, error)
	// GetChannel returns the settings of a channel; one without any has the
	// zero ones.
	GetChannel(ctx context.Context, place string) (Channel, error)
	// ListChannels returns the channels that have settings, by place.
	ListChannels(ctx context.Context) ([]Channel, error)
}

// ParsePlace reads what [Address.Place] wrote.
func ParsePlace(place string) (Address, error) {
	parts := strings.Split(place, ":")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Address{}, fmt.Errorf("%w place %q: write it as slack:TEAM:CHANNEL", ErrInvalid, Clip(place, 80))
	}
	return Address{Surface: Surface(parts[0]), Team: parts[1], Channel: parts[2]}, nil
}

// Shared says whether several people may read what stands at the address: a
// channel, not somebody's own conversation with nize.
func (a Address) Shared() bool {
	own := a.Direct || a.Surface == OnSlack && a.Channel != "" && a.Channel[0] == 'D' // written without Direct
	return a.Channel != "" && !own
}
