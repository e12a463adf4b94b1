package slacktest

import (
	"slices"
	"strings"
)

type wireChannel struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Normalized string `json:"name_normalized,omitempty"`
	User       string `json:"user,omitempty"` // for a direct conversation
	Creator    string `json:"creator,omitempty"`
	Created    int64  `json:"created"`
	IsChannel  bool   `json:"is_channel"`
	IsGroup    bool   `json:"is_group"`
	IsIM       bool   `json:"is_im"`
	IsMPIM     bool   `json:"is_mpim"`
	IsPrivate  bool   `json:"is_private"`
	IsArchived bool   `json:"is_archived"`
	IsMember   bool   `json:"is_member"`
	IsGeneral  bool   `json:"is_general"`
	IsShared   bool   `json:"is_shared"`
	IsExternal bool   `json:"is_ext_shared"`
	NumMembers int    `json:"num_members,omitempty"`
}

func (w *world) wireChannel(c *Channel) wireChannel {
	out := wireChannel{ID: c.ID, Name: c.Name, Normalized: c.Name, Created: 1700000000, IsChannel: c.kind() == "channel", IsGroup: c.kind() == "group",
		IsIM: c.IM, IsMPIM: c.MPIM, IsPrivate: c.Private || c.IM, IsArchived: c.Archived, IsMember: c.has(Bot), IsGeneral: c.ID == General,
		IsShared: c.External, IsExternal: c.External, NumMembers: len(c.Members)}
	if c.IM {
		out.User = w.other(c.Members)
	}
	return out
}

type oneChannel struct {
	Channel     wireChannel `json:"channel"`
	NoOp        bool        `json:"no_op,omitempty"`
	AlreadyOpen bool        `json:"already_open,omitempty"`
}

func (s *Server) openDirect(a args) (any, error) {
	if id := a["channel"]; id != "" {
		c := s.world.channel(id)
		if c == nil || !c.has(Bot) {
			return nil, fail("channel_not_found")
		}
		return oneChannel{Channel: s.world.wireChannel(c), NoOp: true, AlreadyOpen: true}, nil
	}
	ids := slices.DeleteFunc(strings.Split(a["users"], ","), func(id string) bool { return id == "" })
	switch {
	case len(ids) == 0:
		return nil, fail("users_list_not_supplied")
	case len(ids) > 8:
		return nil, fail("too_many_users")
	}
	for _, id := range ids {
		u := s.world.user(id)
		switch {
		case u == nil:
			return nil, fail("user_not_found")
		case u.Deleted:
			return nil, fail("user_disabled")
		case u.Bot:
			return nil, fail("cannot_dm_bot")
		}
	}
	scope := "im:write"
	if len(ids) > 1 {
		scope = "mpim:write"
	}
	if err := s.needLocked(scope); err != nil {
		return nil, err
	}
	before := len(s.world.channels)
	c := s.world.direct(append(ids, Bot)...)
	old := len(s.world.channels) == before
	return oneChannel{Channel: s.world.wireChannel(c), NoOp: old, AlreadyOpen: old}, nil
}

// visibleLocked returns a channel that the bot may read; s.Mu must be held.
func (s *Server) visibleLocked(id, family string) (*Channel, error) {
	c := s.world.channel(id)
	if c == nil || (c.Private || c.IM) && !c.has(Bot) {
		return nil, fail("channel_not_found")
	}
	return c, s.needLocked(scopeOf(c, family))
}

func (s *Server) channelInfo(a args) (any, error) {
	c, err := s.visibleLocked(a["channel"], "read")
	if err != nil {
		return nil, err
	}
	return oneChannel{Channel: s.world.wireChannel(c)}, nil
}

type memberList struct {
	Members []string `json:"members"`
	Meta    metadata `json:"response_metadata"`
}

func (s *Server) channelMembers(a args) (any, error) {
	c, err := s.visibleLocked(a["channel"], "read")
	if err != nil {
		return nil, err
	}
	var out memberList
	out.Members, out.Meta = page(a, c.Members, 1000)
	return out, nil
}

type channelPage struct {
	Channels []wireChannel `json:"channels"`
	Meta     metadata      `json:"response_metadata"`
}

func (s *Server) channelList(a args) (any, error) {
	return s.channelsWhere(a, func(c *Channel) bool { return c.has(Bot) || c.kind() == "channel" })
}

// userChannels lists the channels of a user, or of the bot.
func (s *Server) userChannels(a args) (any, error) {
	user := a["user"]
	if user == "" {
		user = Bot
	}
	if s.world.user(user) == nil {
		return nil, fail("user_not_found")
	}
	return s.channelsWhere(a, func(c *Channel) bool { return c.has(user) && (c.has(Bot) || c.kind() == "channel") })
}

func (s *Server) channelsWhere(a args, want func(*Channel) bool) (any, error) {
	kinds := a["types"]
	if kinds == "" {
		kinds = "public_channel"
	}
	names := map[string]string{"channel": "public_channel", "group": "private_channel", "im": "im", "mpim": "mpim"}
	list := []wireChannel{}
	for _, c := range s.world.channels {
		asked := slices.Contains(strings.Split(kinds, ","), names[c.kind()])
		if !asked || !want(c) || c.Archived && a.flag("exclude_archived", false) {
			continue
		}
		if err := s.needLocked(scopeOf(c, "read")); err != nil {
			return nil, err
		}
		list = append(list, s.world.wireChannel(c))
	}
	var out channelPage
	out.Channels, out.Meta = page(a, list, 1000)
	return out, nil
}

type messagePage struct {
	Messages []wireMessage `json:"messages"`
	HasMore  bool          `json:"has_more"`
	Meta     metadata      `json:"response_metadata"`
}

func (s *Server) repliesOf(a args) (any, error) {
	c, err := s.readableLocked(a)
	if err != nil {
		return nil, err
	}
	root := s.world.message(c.ID, a["ts"])
	if root == nil || root.For != "" {
		return nil, fail("thread_not_found")
	}
	list := s.wiresLocked(c, a, func(m *Message) bool { return m.Root() == root.Root() })
	// Every first page includes the root, however old it is.
	if first := s.world.message(c.ID, root.Root()); first != nil && (len(list) == 0 || list[0].TS != first.TS) {
		list = slices.Insert(list, 0, s.wireLocked(first))
	}
	var out messagePage
	out.Messages, out.Meta = page(a, list, 1000)
	out.HasMore = out.Meta.NextCursor != ""
	return out, nil
}

// history returns a channel's messages outside threads, newest first.
func (s *Server) history(a args) (any, error) {
	c, err := s.readableLocked(a)
	if err != nil {
		return nil, err
	}
	list := s.wiresLocked(c, a, func(m *Message) bool { return m.Root() == m.TS || m.Subtype == "thread_broadcast" })
	slices.Reverse(list)
	var out messagePage
	out.Messages, out.Meta = page(a, list, 1000)
	out.HasMore = out.Meta.NextCursor != ""
	return out, nil
}

func (s *Server) readableLocked(a args) (*Channel, error) {
	c, err := s.visibleLocked(a["channel"], "history")
	if err != nil {
		return nil, err
	}
	if !c.has(Bot) {
		return nil, fail("not_in_channel")
	}
	return c, nil
}

// wiresLocked returns the messages between oldest and latest; s.Mu must be held.
func (s *Server) wiresLocked(c *Channel, a args, want func(*Message) bool) []wireMessage {
	list := []wireMessage{}
	same := a.flag("inclusive", false)
	for _, m := range s.world.messages[c.ID] {
		old := a["oldest"] != "" && (m.TS < a["oldest"] || m.TS == a["oldest"] && !same)
		late := a["latest"] != "" && (m.TS > a["latest"] || m.TS == a["latest"] && !same)
		if m.Deleted || m.For != "" || old || late || !want(m) {
			continue
		}
		list = append(list, s.wireLocked(m))
	}
	return list
}
