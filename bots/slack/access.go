package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/view"
	"nize/store"
)

// Who may talk to nize: full members of the workspace, and of those
// whom bots.access lets in. It is asked anew for each message, command, press
// and look at the Home, so a change of either holds at once.

// AdmitFunc says whether bots.access lets somebody in whom Slack does. Who comes
// for the first time has an identity and no id.
type AdmitFunc func(ctx context.Context, u store.User) (bool, error)

// who is the person behind an id, as a user of nize; one without access has no
// user. A first contact makes a member.
func (l *live) who(ctx context.Context, id string, age time.Duration) (person, error) {
	p, err := l.look(ctx, id, age)
	if err != nil || !p.member {
		return p, err
	}
	u, err := l.b.o.Store.FindUser(ctx, p.identity())
	known := err == nil
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = store.User{Name: p.name, Role: store.Member, State: store.Active, Identities: []string{p.identity()}}
	case err != nil:
		return p, fmt.Errorf("finding the user %s: %w", p.identity(), err)
	}
	p.locale = store.Language(l.b.o.Config, u.ID, p.locale)
	p.zone = store.TimeZone(l.b.o.Config, u.ID, p.zone)
	if u.State != store.Active {
		return p, nil
	}
	admitted, err := l.b.admits(ctx, u)
	if err != nil {
		return p, fmt.Errorf("asking whether %s may talk to nize: %w", p.identity(), err)
	}
	if !admitted {
		p.barred = true
		return p, nil
	}
	if !known {
		if u, err = l.b.o.Store.EnsureUser(ctx, p.identity(), p.name, store.Member); err != nil {
			return p, fmt.Errorf("finding the user %s: %w", p.identity(), err)
		}
	}
	if u.State == store.Active {
		p.user = u
	}
	return p, nil
}

func (b *Bot) admits(ctx context.Context, u store.User) (bool, error) {
	if b.o.Admit == nil {
		return true, nil
	}
	return b.o.Admit(ctx, u)
}

// noAccess is what somebody without access is told.
func noAccess(p person) string {
	if p.member {
		return p.words().Say(phrases.Barred)
	}
	return p.words().Say(phrases.NoAccess)
}

// refuse tells somebody without access so, once a day; bots are told nothing.
func (l *live) refuse(ctx context.Context, p person, channel, thread string) error {
	if p.bot {
		return nil
	}
	first, err := l.once(ctx, "refused:"+p.id)
	if err != nil || !first {
		return err
	}
	return l.tell(ctx, p, channel, thread, noAccess(p))
}

// claims runs the one command that somebody may give whom bots.access keeps
// out: a code is the operator's word, and who has it becomes an admin. A wrong
// one is answered as to anybody, and makes no user.
func (l *live) claims(ctx context.Context, p person, at store.Address, text, trigger string) (done bool, err error) {
	if !p.barred {
		return false, nil
	}
	cmd, words, _, ok := l.b.o.Commands.Find(p.by(), text, true)
	if !ok || cmd.Name != "claim" {
		return false, nil
	}
	return true, l.run(ctx, p, given{cmd: cmd, asked: l.asked(p, at, words), trigger: trigger})
}

// welcome says once what is kept of somebody, and never stands in the way of an
// answer. What could not be said is said the next day.
func (l *live) welcome(ctx context.Context, p person, channel, thread string) {
	if p.user.ID == "" || !p.user.PrivacyNotice.IsZero() {
		return
	}
	// Several of their first messages may be worked on at the same time.
	if first, err := l.once(ctx, "welcomed:"+p.user.ID); err != nil || !first {
		return
	}
	days := l.b.o.Config.Get("", "retention.conversations")
	err := l.tell(ctx, p, channel, thread, p.words().Say(phrases.FirstContact, p.words().Span(days)))
	if err == nil {
		err = l.b.o.Store.RecordPrivacyNotice(ctx, p.by(), p.user.ID)
	}
	if err != nil && ctx.Err() == nil {
		l.log.Warn("welcoming somebody", "user", p.id, "err", err)
	}
}

// drawRefused publishes the Home of somebody without access: what an earlier one
// showed is for those who have it.
func drawRefused(ctx context.Context, l *live, p person) error {
	if p.bot || p.id == "" {
		return nil
	}
	blocks := []slackgo.Block{slackgo.NewSectionBlock(view.PlainText(view.Clip(noAccess(p), view.MaxSection)), nil, nil)}
	view := slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: blocks}}
	return l.wire.Call(ctx, func(ctx context.Context) error {
		_, err := l.wire.API.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: p.id, View: view})
		return err
	})
}
