package attachments

import (
	"context"
	"encoding/json"
	"slices"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/incoming"
	"nize/store"
)

// Messages that a person refers to explicitly: forwarded messages, and the one that the
// shortcut was used on. They are quotes, never the requester's own words.

// addForwarded adds the messages that were forwarded with a message.
func (ft *Fetcher) addForwarded(ctx context.Context, b *gathered, attachments json.RawMessage) {
	name, speaker := ft.People.NameFor(ctx), ft.speakerFor(ctx)
	for _, f := range incoming.DecodeForwarded(attachments) {
		m := f.Forwarded()
		if q, files := m.Quote(ft.Self, name, speaker); q.Text != "" {
			q.About = true
			b.add(q)
			b.files = append(b.files, files...)
		}
	}
}

// addAbout adds the message that the shortcut was used on, unless the thread's messages
// include it, and returns its files.
func (ft *Fetcher) addAbout(ctx context.Context, b *gathered, a *Subject) []incoming.File {
	who := ft.speakerFor(ctx)(&incoming.Message{Msg: slackgo.Msg{User: a.Author, BotID: a.Bot, Username: a.Name}})
	if b.earlier == nil || !slices.ContainsFunc(b.earlier.Quotes, func(q store.Quote) bool { return q.About }) {
		b.add(store.Quote{Speaker: who, Text: incoming.CutQuote(a.Text), At: incoming.StampTime(a.TS), About: true})
	}
	var files []incoming.File
	for _, id := range a.Files {
		if incoming.IDForm.MatchString(id) {
			files = append(files, incoming.File{File: slackgo.File{ID: id}, From: &who})
		}
	}
	return files
}

// add adds a quote, and drops the oldest if there is no room.
func (b *gathered) add(q store.Quote) {
	if b.earlier == nil {
		b.earlier = &store.Earlier{}
	}
	e := b.earlier
	size := len(q.Text)
	for _, other := range e.Quotes {
		size += len(other.Text)
	}
	for len(e.Quotes) > 0 && (len(e.Quotes) >= store.MaxQuotes || size > store.MaxQuoted) {
		size -= len(e.Quotes[0].Text)
		e.Quotes, e.Left = e.Quotes[1:], e.Left+1
	}
	e.Quotes = append(e.Quotes, q)
}

// Subject is the message that a question is about; the dialog carries it.
type Subject struct {
	Channel string   `json:"channel"`
	Thread  string   `json:"thread"`
	TS      string   `json:"ts,omitempty"`
	Author  string   `json:"author,omitempty"`
	Bot     string   `json:"bot,omitempty"`  // bot id, for a program's message
	Name    string   `json:"name,omitempty"` // name used by the program
	Text    string   `json:"text"`
	Files   []string `json:"files,omitempty"` // file ids
}
