package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/slack/slacktest"
)

// hold is how long a question for the next change waits.
const hold = 20 * time.Second

// picture is the workspace as one user sees it.
type picture struct {
	Revision int        `json:"revision"`
	Linked   bool       `json:"linked"` // an app is connected
	Bot      string     `json:"bot"`
	Users    []person   `json:"users"`
	Channels []channel  `json:"channels"`
	Messages []message  `json:"messages"`
	Thread   []message  `json:"thread"`
	Session  session    `json:"session"`
	Prompts  []prompt   `json:"prompts"`
	Dialog   *dialog    `json:"dialog"`
	Home     *dialog    `json:"home"`
	Refused  []refusal  `json:"refused"` // the app's last mistakes
	Counts   deliveries `json:"counts"`
}

type person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Note string `json:"note"`
	Bot  bool   `json:"bot"`
}

type channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	DM   bool   `json:"dm"`
}

type message struct {
	TS          string          `json:"ts"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments json.RawMessage `json:"attachments"`
	Ephemeral   bool            `json:"ephemeral"`
	Edits       int             `json:"edits"`
	Streaming   bool            `json:"streaming"`
	Files       []file          `json:"files"`
	Replies     int             `json:"replies"`
	Reactions   []string        `json:"reactions"`
	Pings       []string        `json:"pings"`
}

type file struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Text string `json:"text"` // the beginning, of a text
}

type session struct {
	Status  string   `json:"status"`
	Title   string   `json:"title"`
	Loading string   `json:"loading"`
	Prompts []prompt `json:"prompts"`
}

type prompt = slacktest.Prompt

type dialog struct {
	ID     string            `json:"id"`
	Looks  int               `json:"looks"`
	Title  string            `json:"title"`
	Submit string            `json:"submit"`
	Blocks json.RawMessage   `json:"blocks"`
	Errors map[string]string `json:"errors"`
}

type refusal struct {
	Method string `json:"method"`
	Error  string `json:"error"`
}

type deliveries struct {
	Sent   int `json:"sent"`
	Acked  int `json:"acked"`
	Missed int `json:"missed"`
}

// state answers with the picture, or waits until it is another than the one
// that the page has.
func (p *Page) state(r *http.Request) (any, error) {
	q := r.URL.Query()
	have, err := strconv.Atoi(q.Get("since"))
	if err != nil {
		have = -1
	}
	changed := p.Slack.Changed()
	if p.Slack.Revision() == have {
		t := time.NewTimer(hold)
		defer t.Stop()
		select {
		case <-changed:
		case <-t.C:
		case <-r.Context().Done():
		}
	}
	return p.picture(q.Get("user"), q.Get("channel"), q.Get("thread")), nil
}

func (p *Page) picture(user, where, thread string) picture {
	stats := p.Slack.Stats()
	out := picture{Revision: p.Slack.Revision(), Linked: p.Slack.Connected(), Bot: slacktest.Bot,
		Counts: deliveries{Sent: stats.Sent, Acked: stats.Acked, Missed: stats.Missed}}
	for _, f := range stats.Refused[max(0, len(stats.Refused)-5):] {
		out.Refused = append(out.Refused, refusal{Method: f.Method, Error: f.Error})
	}
	for _, u := range p.Slack.Users() {
		out.Users = append(out.Users, person{ID: u.ID, Name: u.Name, Note: note(u), Bot: u.Bot})
	}
	member := false
	for _, c := range p.Slack.Channels(user) {
		out.Channels = append(out.Channels, channel{ID: c.ID, Name: c.Name, DM: c.IM})
		if c.ID == where {
			member = true
			out.Prompts = c.PinnedPrompts
		}
	}
	if member {
		p.messages(&out, user, where, thread)
	}
	if views := p.Slack.Views(user); len(views) > 0 {
		out.Dialog = dialogOf(views[len(views)-1])
	}
	if v, ok := p.Slack.Home(user); ok {
		out.Home = dialogOf(v)
	}
	return out
}

// messages fills in what stands in the channel and in the open thread.
func (p *Page) messages(out *picture, user, where, thread string) {
	replies := map[string]int{}
	all := p.Slack.Messages(where)
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
	for _, m := range p.Slack.Ephemerals(where, user) {
		switch m.Root() {
		case m.TS:
			out.Messages = append(out.Messages, messageOf(m, 0))
		case thread:
			out.Thread = append(out.Thread, messageOf(m, 0))
		}
	}
	byTime := func(a, b message) int { return strings.Compare(a.TS, b.TS) }
	slices.SortStableFunc(out.Messages, byTime)
	slices.SortStableFunc(out.Thread, byTime)
	if thread != "" {
		s := p.Slack.Session(where, thread)
		out.Session = session{Status: s.Status, Title: s.Title, Loading: s.Loading, Prompts: s.Prompts}
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

func dialogOf(v slacktest.View) *dialog {
	return &dialog{ID: v.ID, Looks: v.Looks, Title: v.Title, Submit: v.Submit, Blocks: v.Blocks, Errors: v.Errors}
}

const maxPreview = 20_000 // bytes of a file

func messageOf(m slacktest.Message, replies int) message {
	out := message{TS: m.TS, User: m.User, Text: m.Text, Blocks: m.Blocks, Attachments: m.Attachments, Ephemeral: m.For != "", Edits: len(m.Versions) - 1,
		Streaming: m.Stream != nil && m.Stream.Open, Replies: replies}
	if m.Stream != nil {
		out.Edits = max(0, out.Edits-m.Stream.Appends-1) // what was appended, and the stop, are no edits
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, file{Name: f.Name, Size: len(f.Content), Text: string(f.Content[:min(len(f.Content), maxPreview)])})
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
