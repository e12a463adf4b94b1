package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/attachments"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

const (
	// aboutMessage is the callback_id of the shortcut in the manifest, and of the dialog
	// that it opens.
	aboutMessage = "ask_about_message"
	maxQuestion  = 3000
)

// askAbout opens a dialog for a question about a message.
func (t *talk) askAbout(ctx context.Context, p people.Person, i incoming.Interaction) error {
	w := p.Words()
	thread := i.Message.ThreadTimestamp
	if thread == "" {
		thread = i.Message.Timestamp
	}
	if i.Channel.ID == "" || thread == "" {
		return fmt.Errorf("%w shortcut: no message", store.ErrInvalid)
	}
	// The dialog must open within three seconds, so names are not looked up.
	m := attachments.Subject{
		Channel: i.Channel.ID, Thread: thread, TS: i.Message.Timestamp, Name: incoming.SpeakerName(i.Message.Username),
		Text: i.Message.Words(t.self, func(id string) string { return id }),
	}
	if incoming.IDForm.MatchString(i.Message.User) {
		m.Author = i.Message.User
	}
	if incoming.IDForm.MatchString(i.Message.BotID) {
		m.Bot = i.Message.BotID
	}
	for _, f := range incoming.DecodeFiles(i.Message.Files) {
		if len(m.Files) < store.MaxFiles {
			m.Files = append(m.Files, f.ID)
		}
	}
	metadata, err := json.Marshal(m)
	for err == nil && len(metadata) > view.MaxMetadata {
		m.Text = incoming.Cut(m.Text, len(m.Text)*9/10-len("…")) + "…"
		metadata, err = json.Marshal(m)
	}
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxQuestion)
	dialog := view.Modal(w.Say(phrases.AboutMessageTitle), w.Say(phrases.ButtonClose), slackgo.NewInputBlock("question", view.PlainText(w.Say(phrases.AboutMessageLabel)), nil, input))
	dialog.CallbackID, dialog.PrivateMetadata, dialog.Submit = aboutMessage, string(metadata), view.PlainText(w.Say(phrases.ButtonAsk))
	_, err = t.wire.OpenView(ctx, i.TriggerID, dialog)
	return err
}

// questionIn returns the question from the dialog.
func questionIn(i incoming.Interaction) string {
	return incoming.Typed(i.View.State.Values["question"]["value"])
}

// submitAbout asks the question below the message if nize is in the channel, otherwise in
// the person's own conversation with nize.
func (t *talk) submitAbout(ctx context.Context, p people.Person, i incoming.Interaction) error {
	var m attachments.Subject
	if json.Unmarshal([]byte(i.View.PrivateMetadata), &m) != nil || !incoming.IDForm.MatchString(m.Channel) || !incoming.StampForm.MatchString(m.Thread) {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	if i.Masked {
		t.access.tellMaskedKey(ctx, p, i.View.ID, m.Channel, m.Thread)
	}
	question := strings.TrimSpace(questionIn(i))
	if question == "" {
		return fmt.Errorf("%w dialog: no question", store.ErrInvalid)
	}
	in, err := t.people.Members(ctx, m.Channel)
	if err != nil || !slices.Contains(in, t.self) || !slices.Contains(in, p.ID) {
		channel, err := t.people.OpenDM(ctx, p.ID)
		if err != nil {
			return err
		}
		author := m.Name
		if m.Author != "" {
			author = t.people.NameFor(ctx)(m.Author)
		}
		shown := p.Words().Say(phrases.AboutMessageText, question, author, m.Text)
		return t.beginThreadShowing(ctx, p, incoming.Command{SlashCommand: slackgo.SlashCommand{ChannelID: channel}}, shown, attachments.Question{Text: question, About: &m})
	}
	// A dialog leaves no message: other readers should see the question.
	line, err := t.questionLine(ctx, p, m.Channel, question)
	if err != nil {
		return err
	}
	if _, err := t.posts.Put(ctx, place(t.team, m.Channel, m.Thread), "about/"+i.View.ID, view.Words(line)); err != nil {
		return fmt.Errorf("writing a question down: %w", err)
	}
	// The key is the dialog's id, because the message's own may have been used.
	return t.ask(ctx, p, incoming.Event{Message: incoming.Message{Msg: slackgo.Msg{Channel: m.Channel, Timestamp: i.View.ID, ThreadTimestamp: m.Thread}}}, attachments.Question{Text: question, About: &m})
}
