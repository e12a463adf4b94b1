package incoming

import (
	"encoding/json"
	"fmt"
	"strconv"

	"nize/store"
)

// Types of channels.
const (
	directChannel = 1
	newsThread    = 10
	publicThread  = 11
	privateThread = 12
)

// Channel is a channel, a thread, or a direct channel.
type Channel struct {
	ID         string      `json:"id"`
	Guild      string      `json:"guild_id,omitempty"`
	Type       int         `json:"type"`
	Name       string      `json:"name,omitempty"`
	Parent     string      `json:"parent_id,omitempty"`
	Overwrites []Overwrite `json:"permission_overwrites,omitempty"`
	Recipients []User      `json:"recipients,omitempty"`
}

// Overwrite has the permissions that a channel additionally allows and denies.
type Overwrite struct {
	ID    string `json:"id"`
	Type  int    `json:"type"` // 0 for a role, 1 for a member
	Allow Bits   `json:"allow"`
	Deny  Bits   `json:"deny"`
}

// Bits are permissions, which Discord encodes as a decimal string.
type Bits uint64

func (b *Bits) UnmarshalJSON(raw []byte) error {
	var text Text
	if err := text.UnmarshalJSON(raw); err != nil {
		return err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil && text != "" {
		return fmt.Errorf("%w permissions", store.ErrInvalid)
	}
	*b = Bits(n)
	return nil
}

// Thread reports whether the channel is a thread.
func (c Channel) Thread() bool {
	return c.Type == newsThread || c.Type == publicThread || c.Type == privateThread
}

// Direct reports whether it is a person's direct channel with nize.
func (c Channel) Direct() bool { return c.Type == directChannel }

// Role is a role of a guild.
type Role struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions Bits   `json:"permissions"`
}

// Guild is a guild as described by Discord.
type Guild struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Owner       string    `json:"owner_id"`
	Locale      string    `json:"preferred_locale"`
	Roles       []Role    `json:"roles"`
	Channels    []Channel `json:"channels"`
	Threads     []Channel `json:"threads"`
	Unavailable bool      `json:"unavailable"`
}

// DecodeGuild decodes a guild.
func DecodeGuild(raw []byte) (g Guild, err error) {
	if err := json.Unmarshal(raw, &g); err != nil || !IDForm.MatchString(g.ID) {
		return g, fmt.Errorf("%w guild", store.ErrInvalid)
	}
	return g, nil
}

// DecodeChannel decodes a channel or a thread.
func DecodeChannel(raw []byte) (c Channel, err error) {
	if err := json.Unmarshal(raw, &c); err != nil || !IDForm.MatchString(c.ID) || c.Parent != "" && !IDForm.MatchString(c.Parent) {
		return c, fmt.Errorf("%w channel", store.ErrInvalid)
	}
	return c, nil
}

// DecodeLeaver returns the user who left a guild according to an event.
func DecodeLeaver(raw []byte) (guild, user string, err error) {
	var e struct {
		Guild string `json:"guild_id"`
		User  User   `json:"user"`
	}
	if err := json.Unmarshal(raw, &e); err != nil || !IDForm.MatchString(e.Guild) || !IDForm.MatchString(e.User.ID) {
		return "", "", fmt.Errorf("%w event", store.ErrInvalid)
	}
	return e.Guild, e.User.ID, nil
}
