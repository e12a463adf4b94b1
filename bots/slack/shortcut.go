package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/store"
)

const (
	// aboutMessage is the shortcut's callback_id in the manifest, and the
	// dialog's that it opens.
	aboutMessage = "ask_about_message"
	maxQuestion  = 3000
)

// about is the message that a question is about; it travels in the dialog.
type about struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
	Author  string `json:"author,omitempty"`
	Text    string `json:"text"`
}

// askAbout opens a dialog for a question about a message.
func askAbout(ctx context.Context, l *live, p person, i interaction) error {
	w := p.words()
	thread := i.Message.Thread
	if thread == "" {
		thread = i.Message.TS
	}
	if i.Channel.ID == "" || thread == "" {
		return fmt.Errorf("%w shortcut: no message", store.ErrInvalid)
	}
	m := about{Channel: i.Channel.ID, Thread: thread, Text: readText(i.Message.Text, l.account.User, func(id string) string { return id })}
	if i.Message.User != "" && idForm.MatchString(i.Message.User) {
		m.Author = i.Message.User
	}
	metadata, err := json.Marshal(m)
	for err == nil && len(metadata) > maxMetadata {
		m.Text = cut(m.Text, len(m.Text)*9/10-len("…")) + "…"
		metadata, err = json.Marshal(m)
	}
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxQuestion)
	view := modal(w.Say(phrases.AboutMessageTitle), w.Say(phrases.ButtonClose), slackgo.NewInputBlock("question", plainText(w.Say(phrases.AboutMessageLabel)), nil, input))
	view.CallbackID, view.PrivateMetadata, view.Submit = aboutMessage, string(metadata), plainText(w.Say(phrases.ButtonAsk))
	return l.openView(ctx, i.Trigger, view)
}

// submitAbout asks: below the message where nize is in the channel, else in
// the person's own conversation with nize.
func submitAbout(ctx context.Context, l *live, p person, i interaction) error {
	var m about
	if json.Unmarshal([]byte(i.View.Metadata), &m) != nil || !idForm.MatchString(m.Channel) || !stampForm.MatchString(m.Thread) {
		return fmt.Errorf("%w dialog", store.ErrInvalid)
	}
	question := strings.TrimSpace(i.View.State.Values["question"]["value"].text())
	if question == "" {
		return fmt.Errorf("%w dialog: no question", store.ErrInvalid)
	}
	author := m.Author
	if author != "" {
		author = l.nameFor(ctx)(author)
	}
	text := p.words().Say(phrases.AboutMessageText, question, author, m.Text)
	in, err := l.members(ctx, m.Channel)
	if err != nil || !slices.Contains(in, l.account.User) || !slices.Contains(in, p.id) {
		channel, err := l.dm(ctx, p.id)
		if err != nil {
			return err
		}
		return l.begin(ctx, p, slash{Channel: channel}, text)
	}
	// The dialog's id is the question's key: the message's own may have been
	// heard before.
	return l.hear(ctx, p, event{message: message{Channel: m.Channel, TS: i.View.ID, Thread: m.Thread}}, text)
}
