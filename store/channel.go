package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Modes of a channel: when nize answers a message in a thread that does not address it.
const (
	ModeFollow  = "follow"  // if its author last addressed nize, and no one else has written since
	ModeMention = "mention" // never
	ModeAll     = "all"     // always
)

// Modes lists the modes.
var Modes = []string{ModeFollow, ModeMention, ModeAll}

// Channel is the configuration of nize in a channel of a chat. Agent and Model apply to
// conversations that begin later; all else applies at once.
type Channel struct {
	Place string `json:"place"`           // [Address.Place]
	Agent string `json:"agent,omitempty"` // "" is the default one
	Model string `json:"model,omitempty"` // a logical name; "" is the agent's
	Mode  string `json:"mode,omitempty"`  // "" is ModeFollow
	// Servers are the servers whose tools may be used there, out of those shared with the
	// requester; nil is all of them, an empty list none.
	Servers []string `json:"servers,omitzero"`
	// Approvers is who may decide there, unless an admin of nize set a policy for the
	// server or for all calls; "" is the default.
	Approvers Policy `json:"approvers,omitempty"`
	// Language is the BCP 47 locale of nize's messages to the whole channel; "" is the
	// locale of the user who began the thread.
	Language string `json:"language,omitempty"`
	// Admins administer the channel in addition to the platform's admins: user:ID,
	// group:NAME.
	Admins []string `json:"admins,omitempty"`
}

// maxListed limits each list of a channel.
const maxListed = 200

// Unset reports whether the channel has no settings.
func (c Channel) Unset() bool {
	return c.Agent+c.Model+c.Mode+c.Language+string(c.Approvers) == "" && c.Servers == nil && len(c.Admins) == 0
}

// EffectiveMode returns the mode, or the default if none is set.
func (c Channel) EffectiveMode() string {
	if c.Mode == "" {
		return ModeFollow
	}
	return c.Mode
}

// AllowsServer reports whether the tools of a server may be used in the channel.
func (c Channel) AllowsServer(server string) bool {
	return c.Servers == nil || slices.Contains(c.Servers, server)
}

// LocaleFor returns the locale of nize's messages in a thread of the channel.
func (c Channel) LocaleFor(th Thread) string {
	if c.Language != "" {
		return c.Language
	}
	return th.Locale
}

// Check returns an error if a mode, policy or name is invalid.
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

// Channels stores the configuration of channels.
type Channels interface {
	// EditChannel changes the settings of a channel in one transaction. edit must have no
	// other effect, because it may run more than once. It returns ErrInvalid if the
	// settings are invalid ([Channel.Check]), and ErrNotFound if they name a user or group
	// that doesn't exist. A channel without settings is deleted.
	EditChannel(ctx context.Context, by Caller, place string, edit func(*Channel)) (Channel, error)
	// GetChannel returns the settings of a channel; without settings it returns the zero
	// values.
	GetChannel(ctx context.Context, place string) (Channel, error)
	// ListChannels returns the channels that have settings, by place.
	ListChannels(ctx context.Context) ([]Channel, error)
}

// ParsePlace parses the result of [Address.Place].
func ParsePlace(place string) (Address, error) {
	parts := strings.Split(place, ":")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Address{}, fmt.Errorf("%w place %q: write it as slack:TEAM:CHANNEL", ErrInvalid, Clip(place, 80))
	}
	return Address{Surface: Surface(parts[0]), Team: parts[1], Channel: parts[2]}, nil
}

// Shared reports whether several people may read messages at the address: it is a channel,
// not a user's direct conversation with nize.
func (a Address) Shared() bool {
	own := a.Direct || a.Surface == OnSlack && a.Channel != "" && a.Channel[0] == 'D' // stored without Direct
	return a.Channel != "" && !own
}
