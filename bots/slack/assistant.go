package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/store"
)

// stage works on events about the places where nize is talked to.
func (l *talk) stage(ctx context.Context, e incoming.Event) error {
	switch e.Type {
	case "agent_session_stopped":
		return l.stopped(ctx, e)
	case "app_home_opened":
		if e.Tab == "messages" {
			return l.posts.Suggest(ctx, e.User, e.Channel, "")
		}
		return l.openHome(ctx, e)
	case "user_change":
		return l.people.HandleUserChange(ctx, e)
	case "tokens_revoked", "app_uninstalled": // maybe of the installation before this one
		return l.wire.Prove(ctx)
	case "assistant_thread_started":
		return l.posts.Suggest(ctx, e.User, e.Channel, e.Thread)
	case "agent_session_title_changed":
		return l.renamed(ctx, e)
	}
	return nil
}

// stopped is a press on Slack's own Stop. Slack has ended the streams already.
func (l *talk) stopped(ctx context.Context, e incoming.Event) error {
	thread, err := l.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" {
		return err
	}
	p, err := l.people.Who(ctx, e.User, people.Fresh)
	if err != nil || p.User.ID == "" {
		return err
	}
	return l.handler.Stop(ctx, p.Caller(), thread)
}

// renamed keeps the title that a person gave a conversation.
func (l *talk) renamed(ctx context.Context, e incoming.Event) error {
	thread, err := l.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" || e.Title == "" {
		return err
	}
	_, err = l.store.EditThread(ctx, store.System, thread, func(th *store.Thread) { th.Title = incoming.Title(e.Title) })
	return err
}
