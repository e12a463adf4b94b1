package discordtest

import (
	"slices"
)

func (s *Server) leaveGuild(c *call) (any, error) {
	g, err := s.myGuild(c)
	if err != nil {
		return nil, err
	}
	s.leaveLocked(g, Bot)
	return nil, nil
}

// leaveLocked takes somebody out of a guild; s.Mu must be held.
func (s *Server) leaveLocked(g *guild, user string) {
	if user != Bot {
		g.members = slices.DeleteFunc(g.members, func(m *Member) bool { return m.User == user })
		s.guildEventLocked(g, GuildMembers, "GUILD_MEMBER_REMOVE", memberGone{GuildID: g.id, User: s.world.user(user).wire()})
		return
	}
	s.guildEventLocked(g, Guilds, "GUILD_DELETE", away{ID: g.id})
	g.members = slices.DeleteFunc(g.members, func(m *Member) bool { return m.User == user })
}

type memberGone struct {
	GuildID string   `json:"guild_id"`
	User    wireUser `json:"user"`
}

// guildEventLocked is for what happens in a guild that the bot is in.
func (s *Server) guildEventLocked(g *guild, intent int, name string, payload any) {
	if g.member(Bot) != nil {
		s.eventLocked(intent, name, same(payload))
	}
}

type dmRequest struct {
	Recipient string `json:"recipient_id"`
}

func (s *Server) openDM(c *call) (any, error) {
	var in dmRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	u := s.world.user(in.Recipient)
	if u == nil || u.ID == Bot || u.Bot {
		return nil, refuse(400, 50033, "Invalid Recipient(s)")
	}
	return s.wireChannelLocked(s.directLocked(Bot, u.ID)), nil
}

// myGuild is the guild of the path, which the bot must be in.
func (s *Server) myGuild(c *call) (*guild, error) {
	g := s.world.guild(c.PathValue("guild"))
	if g == nil {
		return nil, errUnknownGuild
	}
	if g.member(Bot) == nil {
		return nil, errAccess
	}
	return g, nil
}

func (s *Server) getGuild(c *call) (any, error) {
	g, err := s.myGuild(c)
	if err != nil {
		return nil, err
	}
	return g.wire(), nil
}

func (s *Server) getMember(c *call) (any, error) {
	g, err := s.myGuild(c)
	if err != nil {
		return nil, err
	}
	m := g.member(c.PathValue("user"))
	switch {
	case m != nil:
		return s.world.wireMember(m, true), nil
	case s.world.user(c.PathValue("user")) == nil:
		return nil, errUnknownUser
	}
	return nil, errUnknownMember
}

// myChannel is the channel of the path, which the bot must see, and what it may
// do there.
func (s *Server) myChannel(c *call, need int64) (*Channel, error) {
	ch := s.world.channel(c.PathValue("channel"))
	if ch == nil {
		return nil, errUnknownChannel
	}
	p := s.world.permissions(ch, Bot)
	switch {
	case p&ViewChannel == 0:
		return nil, errAccess
	case p&need != need:
		return nil, errPermissions
	}
	return ch, nil
}

func (s *Server) getChannel(c *call) (any, error) {
	ch, err := s.myChannel(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	return s.wireChannelLocked(ch), nil
}

type channelEdit struct {
	Name     *string `json:"name"`
	Archived *bool   `json:"archived"`
	Locked   *bool   `json:"locked"`
	Auto     *int    `json:"auto_archive_duration"`
}

// editChannel changes a thread: other channels need a permission that the bot
// has not.
func (s *Server) editChannel(c *call) (any, error) {
	ch, err := s.myChannel(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	if !ch.thread() || ch.Owner != Bot && s.world.permissions(ch, Bot)&ManageThreads == 0 {
		return nil, errPermissions
	}
	var in channelEdit
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	ck := &checker{}
	if in.Name != nil {
		ck.length("name", *in.Name, 1, 100)
	}
	if in.Auto != nil {
		ck.archive("auto_archive_duration", *in.Auto)
	}
	if err := ck.err(); err != nil {
		return nil, err
	}
	if in.Name != nil {
		ch.Name = *in.Name
	}
	if in.Auto != nil {
		ch.AutoArchive = *in.Auto
	}
	if in.Archived != nil {
		ch.Archived = *in.Archived
	}
	if in.Locked != nil {
		ch.Locked = *in.Locked
	}
	s.threadEventLocked(ch, "THREAD_UPDATE")
	return s.wireChannelLocked(ch), nil
}

func (s *Server) typing(c *call) (any, error) {
	_, err := s.myChannel(c, SendMessages)
	return nil, err
}
