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

// Channel is a channel, a thread, or somebody's conversation with nize.
type Channel struct {
	ID         string      `json:"id"`
	Guild      string      `json:"guild_id,omitempty"`
	Type       int         `json:"type"`
	Name       string      `json:"name,omitempty"`
	Parent     string      `json:"parent_id,omitempty"`
	Overwrites []Overwrite `json:"permission_overwrites,omitempty"`
	Recipients []User      `json:"recipients,omitempty"`
}

// Overwrite is what a channel allows and denies somebody besides.
type Overwrite struct {
	ID    string `json:"id"`
	Type  int    `json:"type"` // 0 a role, 1 a member
	Allow Bits   `json:"allow"`
	Deny  Bits   `json:"deny"`
}

// Bits are permissions, which Discord writes as a decimal text.
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

// Thread says whether the channel is a thread.
func (c Channel) Thread() bool {
	return c.Type == newsThread || c.Type == publicThread || c.Type == privateThread
}

// Direct says whether it is somebody's conversation with nize.
func (c Channel) Direct() bool { return c.Type == directChannel }

// Role is one of a guild.
type Role struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions Bits   `json:"permissions"`
}

// Guild is one as Discord tells of it.
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

// DecodeGuild reads a guild.
func DecodeGuild(raw []byte) (g Guild, err error) {
	if err := json.Unmarshal(raw, &g); err != nil || !IDForm.MatchString(g.ID) {
		return g, fmt.Errorf("%w guild", store.ErrInvalid)
	}
	return g, nil
}

// DecodeChannel reads a channel or a thread.
func DecodeChannel(raw []byte) (c Channel, err error) {
	if err := json.Unmarshal(raw, &c); err != nil || !IDForm.MatchString(c.ID) || c.Parent != "" && !IDForm.MatchString(c.Parent) {
		return c, fmt.Errorf("%w channel", store.ErrInvalid)
	}
	return c, nil
}

// DecodeLeaver reads whom an event says to have left a guild.
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
