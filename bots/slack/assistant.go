package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/store"
)

// handleOther handles events about the places in which people talk to nize.
func (t *talk) handleOther(ctx context.Context, e incoming.Event) error {
	switch e.Type {
	case "agent_session_stopped":
		return t.handleStop(ctx, e)
	case "app_home_opened":
		if e.Tab == "messages" {
			return t.posts.Suggest(ctx, e.User, e.Channel, "")
		}
		return t.openHome(ctx, e)
	case "user_change":
		return t.people.HandleUserChange(ctx, e)
	case "tokens_revoked", "app_uninstalled": // possibly for an earlier installation
		return t.wire.TestToken(ctx)
	case "assistant_thread_started":
		return t.posts.Suggest(ctx, e.User, e.Channel, e.ThreadTimestamp)
	case "agent_session_title_changed":
		return t.handleRename(ctx, e)
	}
	return nil
}

// handleStop handles a press on Slack's own Stop button. Slack has already ended the
// streams.
func (t *talk) handleStop(ctx context.Context, e incoming.Event) error {
	thread, err := t.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" {
		return err
	}
	p, err := t.people.Who(ctx, e.User, people.Fresh)
	if err != nil || p.User.ID == "" {
		return err
	}
	return t.handler.Stop(ctx, p.Caller(), thread)
}

// handleRename stores the title that a person gave to a conversation.
func (t *talk) handleRename(ctx context.Context, e incoming.Event) error {
	thread, err := t.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" || e.Title == "" {
		return err
	}
	_, err = t.store.EditThread(ctx, store.System, thread, func(th *store.Thread) { th.Title, th.Named = incoming.Title(e.Title), true })
	return err
}
