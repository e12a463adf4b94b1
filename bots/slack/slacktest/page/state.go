package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/chattest/page"
	"nize/bots/slack/slacktest"
)

// Picture implements page.Platform.
func (p Platform) Picture(user, where, thread string) page.Picture {
	stats := p.Stats()
	out := page.Picture{Platform: "Slack", Linked: p.Connected(), Bot: slacktest.Bot, You: slacktest.Ann, Where: slacktest.General, Homes: true,
		Menus:    []page.Menu{{Action: "ask_about_message", Title: "Ask nize about this"}},
		Commands: slices.Concat(p.Commands, ownCommands),
		Counts:   fmt.Sprintf("%d of %d acknowledged", stats.Acked, stats.Sent)}
	if stats.Missed > 0 {
		out.Counts += fmt.Sprintf(", %d missed", stats.Missed)
	}
	for _, f := range stats.Refused[max(0, len(stats.Refused)-5):] {
		out.Refused = append(out.Refused, page.Refusal{Method: f.Method, Error: f.Error})
	}
	for _, u := range p.Users() {
		out.Users = append(out.Users, page.Person{ID: u.ID, Name: u.Name, Note: note(u), Bot: u.Bot})
	}
	for _, g := range p.Groups() {
		out.Groups = append(out.Groups, g.Handle)
	}
	member := false
	for _, c := range p.Channels(user) {
		last := ""
		if all := p.Messages(c.ID); len(all) > 0 {
			last = all[len(all)-1].TS
		}
		out.Channels = append(out.Channels, page.Channel{ID: c.ID, Name: c.Name, DM: c.IM, Last: last})
		if c.ID == where {
			member = true
			out.Prompts = promptsOf(c.PinnedPrompts)
		}
	}
	if member {
		p.messages(&out, user, where, thread)
	}
	if views := p.Views(user); len(views) > 0 {
		out.Dialog = dialogOf(views[len(views)-1])
	}
	if v, ok := p.Home(user); ok {
		out.Home = dialogOf(v)
	}
	return out
}

// messages fills in the messages of the channel and of the open thread.
func (p Platform) messages(out *page.Picture, user, where, thread string) {
	replies := map[string]int{}
	all := p.Messages(where)
	for _, m := range all {
		if m.Root() != m.TS {
			replies[m.Root()]++
		}
	}
	for _, m := range all {
		if m.Root() == m.TS {
			out.Messages = append(out.Messages, messageOf(m, replies[m.TS]))
		}
		if thread != "" && m.Root() == thread {
			out.Thread = append(out.Thread, messageOf(m, 0))
		}
	}
	for _, m := range p.Ephemerals(where, user) {
		switch m.Root() {
		case m.TS:
			out.Messages = append(out.Messages, messageOf(m, 0))
		case thread:
			out.Thread = append(out.Thread, messageOf(m, 0))
		}
	}
	byTime := func(a, b page.Message) int { return strings.Compare(a.TS, b.TS) }
	slices.SortStableFunc(out.Messages, byTime)
	slices.SortStableFunc(out.Thread, byTime)
	if thread != "" {
		s := p.Session(where, thread)
		out.Session = page.Session{Status: s.Status, Title: s.Title, Loading: s.Loading, Prompts: promptsOf(s.Prompts)}
	}
}

func note(u slacktest.User) string {
	switch {
	case u.Bot:
		return "bot"
	case u.Stranger:
		return "of another workspace"
	case u.Guest:
		return "guest"
	case u.Admin:
		return "workspace admin"
	}
	return u.Locale
}

func dialogOf(v slacktest.View) *page.Dialog {
	return &page.Dialog{ID: v.ID, Looks: v.Looks, Title: v.Title, Submit: v.Submit, Blocks: v.Blocks, Errors: v.Errors}
}

func messageOf(m slacktest.Message, replies int) page.Message {
	out := page.Message{TS: m.TS, Thread: m.TS, At: at(m.TS), User: m.User, Text: m.Text, Blocks: m.Blocks, Attachments: m.Attachments, Ephemeral: m.For != "", Quiet: m.Subtype == joined || m.Subtype == left, Edits: len(m.Versions) - 1,
		Streaming: m.Stream != nil && m.Stream.Open, Replies: replies}
	if m.Stream != nil {
		out.Edits = max(0, out.Edits-m.Stream.Appends-1) // appended pieces and the stop don't count as edits
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, page.NewFile(f.ID, f.Name, f.Content))
	}
	for _, r := range m.Reactions {
		out.Reactions = append(out.Reactions, r.Name)
	}
	e := m.Effects()
	for _, list := range [][]string{e.Broadcast, e.Groups, e.Users} {
		out.Pings = append(out.Pings, list...)
	}
	return out
}

// at returns when a message was posted, from its ts.
func at(ts string) time.Time {
	seconds, err := strconv.ParseFloat(ts, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * 1000))
}

func promptsOf(list []slacktest.Prompt) (out []page.Prompt) {
	for _, p := range list {
		out = append(out, page.Prompt(p))
	}
	return out
}
