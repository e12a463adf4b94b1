package discordtest

import "slices"

// The bot's requests about guilds, channels and threads.

// myGuild returns the guild in the path, which the bot must be in.
func (s *Server) myGuild(c *call) (*guild, error) {
	g := s.world.guild(c.PathValue("guild"))
	switch {
	case g == nil:
		return nil, errUnknownGuild
	case g.member(Bot) == nil:
		return nil, errAccess
	}
	return g, nil
}

func (s *Server) getGuild(c *call) (any, error) { return s.myGuild(c) }

func (s *Server) leaveGuild(c *call) (any, error) {
	g, err := s.myGuild(c)
	if err == nil {
		s.leaveLocked(g, Bot)
	}
	return nil, err
}

// leaveLocked removes a user from a guild; s.Mu must be held.
func (s *Server) leaveLocked(g *guild, user string) {
	switch {
	case user == Bot:
		s.eventLocked(Guilds, "GUILD_DELETE", same(away{ID: g.ID}))
	case g.member(Bot) != nil:
		s.eventLocked(GuildMembers, "GUILD_MEMBER_REMOVE", same(wireMember{GuildID: g.ID, User: s.world.user(user)}))
	}
	g.members = slices.DeleteFunc(g.members, func(m *member) bool { return m.id == user })
}

func (s *Server) getMember(c *call) (any, error) {
	g, err := s.myGuild(c)
	if err != nil {
		return nil, err
	}
	user := c.PathValue("user")
	switch m := g.member(user); {
	case m != nil:
		return s.world.wireMember(m), nil
	case s.world.user(user) == nil:
		return nil, errUnknownUser
	}
	return nil, errUnknownMember
}

func (s *Server) openDM(c *call) (any, error) {
	var in struct {
		To string `json:"recipient_id"`
	}
	if err := c.decode(object(fields{"recipient_id!": length(1, 20)}), &in); err != nil {
		return nil, err
	}
	u := s.world.user(in.To)
	if u == nil || u.Bot {
		return nil, errRecipient
	}
	return s.wireChannelLocked(s.directLocked(Bot, u.ID)), nil
}

// myChannel returns the channel in the path, which the bot must see, and checks its
// permissions there.
func (s *Server) myChannel(c *call, need int64) (*Channel, error) {
	ch := s.world.channel(c.PathValue("channel"))
	if ch == nil {
		return nil, errUnknownChannel
	}
	switch p := s.world.permissions(ch, Bot); {
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

func (s *Server) typing(c *call) (any, error) {
	_, err := s.myChannel(c, SendMessages)
	return nil, err
}

// threadEdit is a request that begins or changes a thread; nil fields are not changed.
type threadEdit struct {
	Name     *string `json:"name"`
	Type     *int    `json:"type"`
	Auto     *int    `json:"auto_archive_duration"`
	Archived *bool   `json:"archived"`
	Locked   *bool   `json:"locked"`
}

var (
	threadFields = fields{"name": length(1, 100), "auto_archive_duration": number(60, 1440, 4320, 10080), "archived": boolean, "locked": boolean}
	newThread    = object(join(threadFields, fields{"name!": length(1, 100), "type": number(PublicThread, PrivateThread)}))
)

func (e threadEdit) apply(t *Channel) {
	set(&t.Name, e.Name)
	set(&t.AutoArchive, e.Auto)
	set(&t.Archived, e.Archived)
	set(&t.Locked, e.Locked)
}

func set[T any](to, v *T) {
	if v != nil {
		*to = *v
	}
}

// editChannel changes a thread: other channels require a permission that the bot doesn't
// have.
func (s *Server) editChannel(c *call) (any, error) {
	ch, err := s.myChannel(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	if !ch.thread() || ch.Owner != Bot && s.world.permissions(ch, Bot)&ManageThreads == 0 {
		return nil, errPermissions
	}
	var in threadEdit
	if err := c.decode(object(threadFields), &in); err != nil {
		return nil, err
	}
	in.apply(ch)
	s.threadEventLocked(ch, "THREAD_UPDATE")
	return s.wireChannelLocked(ch), nil
}

func (s *Server) threadFrom(c *call) (any, error) {
	ch, m, err := s.myMessage(c, PublicThreads)
	if err != nil {
		return nil, err
	}
	var in threadEdit
	if err := c.decode(newThread, &in); err != nil {
		return nil, err
	}
	switch {
	case ch.Type != TextChannel:
		return nil, errChannelType
	case m.Thread != "":
		return nil, errHasThread
	}
	t := s.threadLocked(m, in, Bot)
	s.world.messages[t.ID] = append(s.world.messages[t.ID], &Message{ID: s.idLocked(), Channel: t.ID, Author: m.Author, Type: starterType, Created: s.opt.Now()})
	return s.wireChannelLocked(t), nil
}

// threadLocked begins a thread below a message; s.Mu must be held.
func (s *Server) threadLocked(m *Message, in threadEdit, owner string) *Channel {
	parent := s.world.channel(m.Channel)
	t := &Channel{ID: m.ID, Guild: parent.Guild, Type: PublicThread, Parent: parent.ID, Owner: owner, Members: []string{owner}, AutoArchive: 4320}
	in.apply(t)
	set(&t.Type, in.Type)
	s.world.channels = append(s.world.channels, t)
	m.Thread, m.Flags = t.ID, m.Flags|HasThread
	s.threadEventLocked(t, "THREAD_CREATE")
	s.updatedLocked(m)
	return t
}

func (s *Server) threadEventLocked(t *Channel, name string) {
	if t.thread() && s.world.sees(t, Bot) {
		s.eventLocked(Guilds, name, same(s.wireChannelLocked(t)))
	}
}
