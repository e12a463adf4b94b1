package incoming

import (
	"fmt"
	"slices"

	"github.com/bwmarrin/discordgo"

	"nize/store"
)

// present removes null entries, which are nil pointers in discordgo's lists.
func present[T any](list []*T) []*T {
	return slices.DeleteFunc(list, func(v *T) bool { return v == nil })
}

// Direct reports whether a channel is a person's direct channel with nize.
func Direct(c discordgo.Channel) bool { return c.Type == discordgo.ChannelTypeDM }

// DecodeGuild decodes a guild.
func DecodeGuild(raw []byte) (g discordgo.Guild, err error) {
	if err := decode(raw, guildFields, &g); err != nil || !IDForm.MatchString(g.ID) {
		return g, fmt.Errorf("%w guild", store.ErrInvalid)
	}
	g.Roles, g.Channels, g.Threads = present(g.Roles), present(g.Channels), present(g.Threads)
	for _, c := range slices.Concat(g.Channels, g.Threads) {
		presentIn(c)
	}
	return g, nil
}

// DecodeChannel decodes a channel or a thread.
func DecodeChannel(raw []byte) (c discordgo.Channel, err error) {
	if err := decode(raw, channelFields, &c); err != nil || !IDForm.MatchString(c.ID) || c.ParentID != "" && !IDForm.MatchString(c.ParentID) {
		return c, fmt.Errorf("%w channel", store.ErrInvalid)
	}
	presentIn(&c)
	return c, nil
}

func presentIn(c *discordgo.Channel) {
	c.PermissionOverwrites, c.Recipients = present(c.PermissionOverwrites), present(c.Recipients)
}

// DecodeLeaver returns the user who left a guild according to an event.
func DecodeLeaver(raw []byte) (guild, user string, err error) {
	var m discordgo.Member
	if err := decode(raw, fields{"guild_id": nil, "user": userFields}, &m); err != nil || m.User == nil || !IDForm.MatchString(m.GuildID) || !IDForm.MatchString(m.User.ID) {
		return "", "", fmt.Errorf("%w event", store.ErrInvalid)
	}
	return m.GuildID, m.User.ID, nil
}
