package page

import (
	"fmt"
	"slices"
	"strings"

	"nize/bots/chattest/page"
	"nize/bots/slack/slacktest"
)

// ownCommands are the Slack commands that the page has.
var ownCommands = []page.Command{
	{Line: "/invite", About: "@somebody: let them into this channel"},
	{Line: "/remove", About: "@somebody: take them out of this channel"},
	{Line: "/join", About: "#channel: be in it"},
	{Line: "/leave", About: "be in this channel no more"},
}

// Subtypes of the messages about it.
const (
	joined = "channel_join"
	left   = "channel_leave"
)

func isOwn(line string) bool {
	name, _, _ := strings.Cut(line, " ")
	return slices.ContainsFunc(ownCommands, func(c page.Command) bool { return c.Line == name })
}

// runOwn runs one of Slack's own commands.
func (p Platform) runOwn(d page.Deed, line string) (page.Done, error) {
	words := strings.Fields(line)
	name, names := words[0], words[1:]
	here := slices.IndexFunc(p.Channels(d.User), func(c slacktest.Channel) bool { return c.ID == d.Channel && !c.IM && !c.MPIM })
	switch {
	case here < 0:
		return page.Done{}, fmt.Errorf("%s is for channels, and this is none of yours", name)
	case name == "/join":
		at, ok := p.channelNamed(names)
		if !ok {
			return page.Done{}, fmt.Errorf("name a public channel: /join #random")
		}
		return page.Done{Channel: at}, p.enter(d.User, at)
	case name == "/leave":
		return page.Done{Channel: p.DMChannel(d.User)}, p.exit(d.User, d.Channel)
	case len(names) == 0:
		return page.Done{}, fmt.Errorf("say who: %s @ben", name)
	}
	for _, who := range names {
		i := slices.IndexFunc(p.Users(), func(u slacktest.User) bool { return "@"+u.Name == who })
		if i < 0 {
			return page.Done{}, fmt.Errorf("nobody is called %s here", who)
		}
		change := p.enter
		if name == "/remove" {
			change = p.exit
		}
		if err := change(p.Users()[i].ID, d.Channel); err != nil {
			return page.Done{}, err
		}
	}
	return page.Done{}, nil
}

// channelNamed returns a channel that anyone may join.
func (p Platform) channelNamed(names []string) (id string, ok bool) {
	for _, u := range p.Users() {
		for _, c := range p.Channels(u.ID) {
			if len(names) == 1 && "#"+c.Name == names[0] && !c.Private && !c.IM && !c.External {
				return c.ID, true
			}
		}
	}
	return "", false
}

// enter and exit do what Slack does, including the message about it.
func (p Platform) enter(user, channel string) error {
	if p.isIn(user, channel) {
		return fmt.Errorf("%s is in this channel already", p.nameOf(user))
	}
	if err := p.Join(user, channel); err != nil {
		return err
	}
	_, err := p.Post(slacktest.Said{User: user, Channel: channel, Subtype: joined, Text: "<@" + user + "> has joined the channel"})
	return err
}

func (p Platform) exit(user, channel string) error {
	if !p.isIn(user, channel) {
		return fmt.Errorf("%s is not in this channel", p.nameOf(user))
	}
	if _, err := p.Post(slacktest.Said{User: user, Channel: channel, Subtype: left, Text: "<@" + user + "> has left the channel"}); err != nil {
		return err
	}
	return p.Leave(user, channel)
}

func (p Platform) isIn(user, channel string) bool {
	return slices.ContainsFunc(p.Channels(user), func(c slacktest.Channel) bool { return c.ID == channel })
}

func (p Platform) nameOf(user string) string {
	for _, u := range p.Users() {
		if u.ID == user {
			return u.Name
		}
	}
	return user
}
