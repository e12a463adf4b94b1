package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/phrases"
	"nize/bots/slack/attachments"
	"nize/bots/slack/home"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// commander runs commands and shows the replies to their authors.
type commander struct {
	list   *bots.Commands
	keeper bots.Keeper // accepts credentials; nil accepts none
	people *people.Directory
	posts  *posting.Poster
	homes  *home.Homes
	access *access
	wire   *wire.Client
	log    *slog.Logger
	team   string
	wg     *sync.WaitGroup // goroutines that the bot waits for when it ends
}

// given is a command with the circumstances in which it was given.
type given struct {
	cmd     bots.Command
	asked   bots.Asked
	trigger string // opens a dialog within three seconds; "" if there is none
	outside bool   // the message began a thread, in which Slack can't show anything to a single person
}

// at returns where the reply is shown.
func (g given) at() store.Address {
	at := g.asked.At
	if g.outside {
		at.Thread = ""
	}
	return at
}

// line returns how to give the command in a way that can open a dialog.
func (g given) line() string {
	return bots.Plain(strings.TrimSpace("/nize " + g.cmd.Name + " " + g.asked.Words))
}

// runCommandIn runs a message as a command if it is one. done reports that it was, or that
// its author was asked what they meant.
func (t *talk) runCommandIn(ctx context.Context, p people.Person, e incoming.Event, thread, text string) (done bool, err error) {
	cmd, words, near, ok := t.commands.list.Find(p.Caller(), text, true)
	if !ok {
		if near == "" {
			return false, nil
		}
		return true, t.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.DidYouMean, near))
	}
	asked := p.Asked(place(t.team, e.Channel, e.Root()), words)
	asked.Thread, asked.Open = thread, !e.Direct()
	asked.Say = func(ctx context.Context, words string) error { return t.say(ctx, p, e, words) }
	return true, t.commands.runCommand(ctx, p, given{cmd: cmd, asked: asked, outside: e.PrivateThread() == ""})
}

// handleSlash handles a /nize command. Several words that form no command are a question.
func (t *talk) handleSlash(ctx context.Context, s incoming.Command, act string) error {
	if s.TeamID != t.team {
		return nil
	}
	p, err := t.people.Who(ctx, s.UserID, people.Recent)
	if err != nil {
		return err
	}
	p.Act = act
	if s.ChannelID, err = t.answerChannel(ctx, p, s.ChannelID); err != nil {
		return err
	}
	text := incoming.ReadText(s.Text, t.self, t.people.NameFor(ctx))
	if p.User.ID == "" {
		if done, err := t.commands.runClaim(ctx, p, place(t.team, s.ChannelID, ""), text, s.TriggerID); done || err != nil {
			return err
		}
		if word, _, _ := strings.Cut(text, " "); !p.IsBot && (word == "" || word == "help") { // a request for help is always answered
			return t.access.posts.Tell(ctx, p, s.ChannelID, "", noAccess(p))
		}
		return t.access.tellNoAccess(ctx, p, s.ChannelID, "")
	}
	t.access.welcome(ctx, p, "", "")
	if s.Masked {
		t.access.tellMaskedKey(ctx, p, s.UserID+":"+s.TriggerID, s.ChannelID, "")
	}
	if text == "" {
		text = "help"
	}
	cmd, words, near, ok := t.commands.list.Find(p.Caller(), text, false)
	if !ok {
		if near == "" && strings.ContainsAny(text, " \n") {
			return t.beginThread(ctx, p, s, text)
		}
		return t.posts.Tell(ctx, p, s.ChannelID, "", account.Unknown(p.Words(), near))
	}
	asked := p.Asked(place(t.team, s.ChannelID, ""), words)
	asked.Say = func(ctx context.Context, words string) error { return t.beginThread(ctx, p, s, words) }
	return t.commands.runCommand(ctx, p, given{cmd: cmd, asked: asked, trigger: s.TriggerID})
}

// answerChannel returns where a command is answered. Slack also offers /nize in direct
// messages between two people, where nize isn't a member; such a command is answered in the
// person's own conversation with nize.
func (t *talk) answerChannel(ctx context.Context, p people.Person, channel string) (string, error) {
	if channel[0] != 'D' {
		return channel, nil
	}
	switch user, err := t.people.ReaderOf(ctx, channel); {
	case err == nil && user == p.ID:
		return channel, nil
	case err != nil && wire.Code(err) != "channel_not_found":
		return "", fmt.Errorf("asking Slack whose conversation %s is: %w", channel, err)
	}
	return t.people.OpenDM(ctx, p.ID)
}

// beginThread asks the question of a /nize command: since a command leaves no message, nize
// posts the question and answers below it.
func (t *talk) beginThread(ctx context.Context, p people.Person, s incoming.Command, text string) error {
	return t.beginThreadShowing(ctx, p, s, text, attachments.Question{Text: text})
}

// beginThreadShowing is beginThread if the posted question differs from the message for the
// model.
func (t *talk) beginThreadShowing(ctx context.Context, p people.Person, s incoming.Command, shown string, said attachments.Question) error {
	line, err := t.questionLine(ctx, p, s.ChannelID, shown)
	if err != nil {
		return err
	}
	ts, err := t.posts.Say(ctx, p, store.Address{Channel: s.ChannelID}, line)
	channel := s.ChannelID
	if c := wire.Code(err); c == "not_in_channel" || c == "channel_not_found" {
		if channel, err = t.people.OpenDM(ctx, p.ID); err == nil {
			ts, err = t.posts.Say(ctx, p, store.Address{Channel: channel}, line)
		}
	}
	if err != nil {
		return fmt.Errorf("writing a question down: %w", err)
	}
	return t.ask(ctx, p, incoming.Event{Message: incoming.Message{Msg: slackgo.Msg{Channel: channel, Timestamp: ts}}}, said)
}

// questionLine returns a question as posted for everyone in a channel.
func (t *talk) questionLine(ctx context.Context, p people.Person, channel, text string) (string, error) {
	locale, err := bots.Spoken(ctx, t.store, store.Thread{Address: place(t.team, channel, ""), Locale: p.Locale})
	if err != nil {
		return "", fmt.Errorf("reading the language of the channel: %w", err)
	}
	return bots.Plain(phrases.For(locale).Say(phrases.AsksHere, p.Name, text)), nil
}

// runCommand runs a command and shows the reply to its author.
func (c *commander) runCommand(ctx context.Context, p people.Person, g given) error {
	if g.cmd.Decides {
		now, err := c.people.Who(ctx, p.ID, people.Fresh)
		if err != nil {
			return err
		}
		now.Act = p.Act
		if now.User.ID == "" {
			return c.access.tellNoAccess(ctx, now, g.asked.At.Channel, g.at().Thread)
		}
		p, g.asked.By = now, now.Caller()
	}
	if g.cmd.Secret != nil && g.cmd.Secret(g.asked.Words) {
		return c.runDialog(ctx, p, g)
	}
	if c.runForm(ctx, p, g) {
		return nil
	}
	answer, err := c.list.Run(ctx, g.cmd, g.asked)
	if err != nil {
		c.log.Error("running a command", "command", g.cmd.Name, "err", err)
	}
	if answer.Prompt != nil && g.trigger != "" {
		if _, err = c.wire.OpenView(ctx, g.trigger, view.SecretModal(*answer.Prompt, p.Words())); err == nil || wire.Code(err) == "" {
			return err
		}
		c.log.Info("a dialog was not opened", "command", g.cmd.Name, "err", err)
	}
	if answer.Text == "" {
		return nil
	}
	// The command has run: if its reply can't be sent, only that is retried. Running it
	// again could fail, for instance because a claim code is used up.
	if err := c.wire.Retry(ctx, func(ctx context.Context) error { return c.showAnswer(ctx, p, g.at(), answer) }); err != nil || answer.Picture == nil {
		return account.Final(err, wire.Lasting)
	}
	c.posts.SendPicture(ctx, p, g.asked.At, *answer.Picture)
	return nil
}

// runDialog shows the reply in a dialog. The dialog is opened first: if that fails, the
// command has not created anything that nobody could read.
func (c *commander) runDialog(ctx context.Context, p people.Person, g given) error {
	w := p.Words()
	if g.trigger == "" {
		return c.posts.Tell(ctx, p, g.asked.At.Channel, g.at().Thread, w.Say(phrases.OnlyDialog, g.line()))
	}
	page := func(a bots.Answer) slackgo.ModalViewRequest {
		blocks := view.WordsBlocks(a.Text)
		if len(a.Buttons) > 0 {
			blocks = append(blocks, view.AnswerButtons(a, p.Words()))
		}
		return view.Modal(w.Say(phrases.DialogTitle), w.Say(phrases.ButtonClose), blocks[:min(len(blocks), view.MaxViewBlocks)]...)
	}
	opened, err := c.wire.OpenView(ctx, g.trigger, page(bots.Said(w.Say(phrases.ToolCalling))))
	if err != nil {
		if wire.Code(err) == "" {
			return err
		}
		c.log.Info("a dialog was not opened", "command", g.cmd.Name, "err", err)
		return c.posts.Tell(ctx, p, g.asked.At.Channel, g.at().Thread, w.Say(phrases.OnlyDialog, g.line()))
	}
	answer, err := c.list.Run(ctx, g.cmd, g.asked)
	if err != nil {
		c.log.Error("running a command", "command", g.cmd.Name, "err", err)
	}
	if answer.Text == "" {
		answer.Text = w.Say(phrases.ResultNone)
	}
	err = c.wire.Retry(ctx, func(ctx context.Context) error {
		return c.wire.UpdateView(ctx, opened.ID, "", page(answer))
	})
	if wire.Code(err) == "not_found" {
		return nil // the person has closed it
	}
	return account.Final(err, wire.Lasting)
}

// showAnswer shows a reply to one person.
func (c *commander) showAnswer(ctx context.Context, p people.Person, at store.Address, a bots.Answer) error {
	if len(a.Buttons) == 0 {
		return c.posts.Tell(ctx, p, at.Channel, at.Thread, a.Text)
	}
	return c.posts.TellBlocks(ctx, p, at, a.Text, view.AnswerButtons(a, p.Words()))
}

// pressWords runs a button's command.
func (c *commander) pressWords(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	if len(a.Value) > view.MaxValue {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	cmd, words, _, ok := c.list.Find(p.Caller(), a.Value, false)
	if !ok {
		return fmt.Errorf("%w press: no such command", store.ErrInvalid)
	}
	g := given{cmd: cmd, asked: p.Asked(place(c.team, i.Channel.ID, i.Message.ThreadTimestamp), words), trigger: i.TriggerID}
	if i.View.ID == "" {
		return c.runCommand(ctx, p, g)
	}
	if i.View.Type == "home" && c.runForm(ctx, p, g) {
		return nil
	}
	// A person who presses in a dialog or the Home doesn't see messages.
	if err := c.runDialog(ctx, p, g); err != nil || i.View.Type != "home" {
		return err
	}
	return c.homes.Draw(ctx, p, view.ReadHomeState(i.View.PrivateMetadata), "")
}

// threadAt returns the conversation of a thread, "" if there is none.
func (t *talk) threadAt(ctx context.Context, channel, thread string) (string, error) {
	th, err := t.store.FindThread(ctx, place(t.team, channel, thread))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return th.ID, err
}
