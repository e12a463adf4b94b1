package slack

import (
	"context"
	"errors"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// command runs a message as a command if it is one; done says that it was, or
// that its author was told what they may have meant.
func (l *live) command(ctx context.Context, p person, e event, thread, text string) (done bool, err error) {
	cmd, words, near, ok := l.b.o.Commands.Find(p.by(), text, true)
	if !ok {
		if near == "" {
			return false, nil
		}
		return true, l.tell(ctx, p, e.Channel, e.root(), p.words().Say(phrases.DidYouMean, near))
	}
	answer, err := l.b.o.Commands.Run(ctx, cmd, bots.Asked{
		By: p.by(), At: l.place(e.Channel, e.root()), Thread: thread, Words: words, Locale: p.locale, Zone: p.zone,
	})
	if err != nil {
		l.log.Error("running a command", "command", cmd.Name, "err", err)
	}
	return true, l.tell(ctx, p, e.Channel, e.root(), answer)
}

// slash works on a /nize command.
func (l *live) slash(ctx context.Context, s slash) error {
	if s.Team != l.account.Team {
		return nil
	}
	p, err := l.who(ctx, s.User, keepPerson)
	if err != nil {
		return err
	}
	if p.user.ID == "" {
		return l.refuse(ctx, p, s.Channel, "")
	}
	text := readText(s.Text, l.account.User, l.nameFor(ctx))
	if text == "" {
		text = "help"
	}
	cmd, words, near, ok := l.b.o.Commands.Find(p.by(), text, false)
	if !ok {
		answer := p.words().Say(phrases.UnknownCommand)
		if near != "" {
			answer = p.words().Say(phrases.DidYouMean, near)
		}
		return l.tell(ctx, p, s.Channel, "", answer)
	}
	answer, err := l.b.o.Commands.Run(ctx, cmd, bots.Asked{
		By: p.by(), At: l.place(s.Channel, ""), Words: words, Locale: p.locale, Zone: p.zone, Trigger: s.Trigger,
	})
	if err != nil {
		l.log.Error("running a command", "command", cmd.Name, "err", err)
	}
	return l.tell(ctx, p, s.Channel, "", answer)
}

// threadAt is the conversation of a thread, "" if there is none.
func (l *live) threadAt(ctx context.Context, channel, thread string) (string, error) {
	th, err := l.b.o.Store.FindThread(ctx, l.place(channel, thread))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return th.ID, err
}
