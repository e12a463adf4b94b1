package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/store"
)

// handleOther works on events about the places where nize is talked to.
func (l *talk) handleOther(ctx context.Context, e incoming.Event) error {
	switch e.Type {
	case "agent_session_stopped":
		return l.handleStop(ctx, e)
	case "app_home_opened":
		if e.Tab == "messages" {
			return l.posts.Suggest(ctx, e.User, e.Channel, "")
		}
		return l.openHome(ctx, e)
	case "user_change":
		return l.people.HandleUserChange(ctx, e)
	case "tokens_revoked", "app_uninstalled": // maybe of the installation before this one
		return l.wire.TestToken(ctx)
	case "assistant_thread_started":
		return l.posts.Suggest(ctx, e.User, e.Channel, e.Thread)
	case "agent_session_title_changed":
		return l.handleRename(ctx, e)
	}
	return nil
}

// handleStop is a press on Slack's own Stop. Slack has ended the streams already.
func (l *talk) handleStop(ctx context.Context, e incoming.Event) error {
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

// handleRename keeps the title that a person gave a conversation.
func (l *talk) handleRename(ctx context.Context, e incoming.Event) error {
	thread, err := l.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" || e.Title == "" {
		return err
	}
	_, err = l.store.EditThread(ctx, store.System, thread, func(th *store.Thread) { th.Title = incoming.Title(e.Title) })
	return err
}
