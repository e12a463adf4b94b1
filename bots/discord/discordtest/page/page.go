// Package page shows a fake Discord on the page of `nizectl dev discord`.
package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/bots/chattest/page"
	"nize/bots/discord/discordtest"
)

// Platform shows the guilds on the page.
type Platform struct{ *discordtest.Server }

var _ page.Platform = Platform{}

// Content implements page.Platform.
func (p Platform) Content(id string) ([]byte, bool) {
	f, ok := p.File(id)
	return f.Content, ok
}

// Picture implements page.Platform.
func (p Platform) Picture(user, where, thread string) page.Picture {
	stats := p.Stats()
	out := page.Picture{Platform: "Discord", Linked: p.Connected(), Bot: discordtest.Bot, You: discordtest.Ann, Where: discordtest.General,
		Counts: fmt.Sprintf("%d events sent", stats.Sent)}
	if stats.Missed > 0 {
		out.Counts += fmt.Sprintf(", %d interactions not answered in time", stats.Missed)
	}
	for _, r := range stats.Refused[max(0, len(stats.Refused)-5):] {
		out.Refused = append(out.Refused, page.Refusal{Method: r.Method, Error: r.Error})
	}
	for _, u := range p.Users() {
		out.Users = append(out.Users, page.Person{ID: u.ID, Name: u.Name, Note: p.note(u), Bot: u.Bot})
	}
	for _, guild := range []string{"", discordtest.Guild} {
		for _, c := range p.Commands(guild) {
			switch c.Type {
			case 1:
				out.Commands = append(out.Commands, commandsOf(c)...)
			case 3:
				out.Menus = append(out.Menus, page.Menu{Action: c.Name, Title: c.Name})
			}
		}
	}
	for _, c := range p.Channels(user) {
		if c.Parent != "" {
			continue
		}
		last := ""
		all := p.Visible(c.ID, user)
		if len(all) > 0 {
			last = all[len(all)-1].ID
		}
		out.Channels = append(out.Channels, page.Channel{ID: c.ID, Name: c.Name, DM: c.Type == discordtest.DirectChannel, Last: last})
		if c.ID == where {
			out.Messages = p.messages(all)
		}
	}
	if t, ok := p.Channel(thread); ok && t.Parent == where && out.Messages != nil {
		list := p.Visible(thread, user)
		if root, ok := p.Message(where, thread); ok {
			list = slices.Insert(list, 0, root)
		}
		out.Thread, out.Session.Title = p.messages(list), t.Name
	}
	if d, ok := p.Dialog(user); ok {
		out.Dialog = &page.Dialog{ID: d.ID, Title: d.Title, Submit: "Submit", Blocks: fields(d.Fields)}
	}
	return out
}

// commandsOf returns the lines of a command: itself, or its subcommands.
func commandsOf(c discordtest.Command) (list []page.Command) {
	for _, o := range c.Options {
		if o.Type == 1 { // a subcommand
			list = append(list, page.Command{Line: "/" + c.Name + " " + o.Name, About: o.Description})
		}
	}
	if list == nil {
		list = []page.Command{{Line: "/" + c.Name, About: c.Description}}
	}
	return list
}

func (p Platform) note(u discordtest.User) string {
	switch {
	case u.Bot:
		return "bot"
	case u.ID == discordtest.Ann:
		return "owns the server"
	case !p.InGuild(discordtest.Guild, u.ID):
		return "not in the server"
	}
	return u.Locale
}

func (p Platform) messages(list []discordtest.Message) []page.Message {
	out := []page.Message{}
	for _, m := range list {
		w := page.Message{TS: m.ID, At: m.Created, User: m.Author, Text: m.Content, Blocks: Blocks(m), Ephemeral: m.For != "",
			Edits: len(m.Versions) - 1, Streaming: m.Loading, Thread: m.Thread, Pings: m.Pinged}
		if m.Thread != "" {
			w.Replies = len(p.Messages(m.Thread))
		}
		for _, f := range m.Files {
			w.Files = append(w.Files, page.NewFile(f.ID, f.Name, f.Content))
		}
		out = append(out, w)
	}
	return out
}

// Do implements page.Platform.
func (p Platform) Do(ctx context.Context, d page.Deed) (page.Done, error) {
	at := discordtest.Message{Channel: cmp.Or(d.Thread, d.Channel), ID: d.TS}
	_, part, _ := strings.Cut(d.Action, "/")
	switch d.Do {
	case "say":
		return page.Done{}, p.say(ctx, d, at.Channel)
	case "press":
		return page.Done{}, p.Choose(ctx, d.User, at, part, d.Values...)
	case "submit":
		values := map[string][]string{}
		for name, v := range d.Inputs {
			_, id, _ := strings.Cut(name, "/")
			values[id] = v
		}
		return page.Done{}, p.Submit(ctx, d.User, values)
	case "close":
		p.CloseDialog(d.User)
		return page.Done{}, nil
	case "view": // the values typed in a dialog are part of it
		return page.Done{}, nil
	case "dm":
		return page.Done{Channel: p.DMChannel(d.User)}, nil
	case "shortcut":
		return page.Done{}, p.Menu(ctx, d.User, at, d.Action)
	}
	return page.Done{}, page.ErrDeed(d.Do)
}

// say sends a message or a slash command.
func (p Platform) say(ctx context.Context, d page.Deed, channel string) error {
	text := strings.TrimSpace(d.Text)
	switch {
	case text == "" && len(d.Files) == 0:
		return page.ErrNothing
	case strings.HasPrefix(text, "/"):
		return p.Slash(ctx, d.User, channel, text)
	}
	said := discordtest.Said{User: d.User, Channel: channel, Text: p.Typed(text)}
	for _, f := range d.Files {
		said.Files = append(said.Files, discordtest.File{Name: f.Name, Content: f.Content})
	}
	_, err := p.Post(said)
	return err
}
