package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/manifest"
	"nize/bots/slack/wire"
	"nize/store"
)

// stages is what is remembered of how threads look beyond their messages.
type stages struct {
	unsure unsurePosts

	mu       sync.Mutex      // guards what follows
	noStatus time.Time       // agent sessions are not for this app: not asked again before
	titled   map[string]bool // threads of an assistant that have a title
}

// noSession are Slack's answers where an app is no agent, or a thread can't
// have a session.
var noSession = map[string]bool{
	"unknown_method": true, "not_an_agent": true, "access_denied": true, "not_allowed": true, "no_permission": true,
	"feature_not_enabled": true, "method_not_supported_for_channel_type": true, "invalid_agent": true,
}

// Present implements [bots.Presence]: the status of Slack's agent session,
// with Slack's own Stop button while nize works; where the app is no agent,
// the older line of an assistant's thread.
func (b *Bot) Present(ctx context.Context, to store.Address, s bots.State) error {
	l, err := b.at(ctx, to)
	if err != nil {
		return err // it is shown when it is back
	}
	if s == bots.Idle {
		l.lines.close(to.Channel + "/" + to.Thread)
	}
	th, err := l.b.o.Store.FindThread(ctx, to)
	if err != nil {
		return fmt.Errorf("finding a conversation: %w", err)
	}
	if done, err := l.setSession(ctx, to, s, th); done || err != nil {
		return err
	}
	return l.setAssistant(ctx, to, s, th)
}

// setSession sets the status of an agent's session; done is false where the
// app, or the thread, has none. The title and who began it count when the
// session is made.
func (l *live) setSession(ctx context.Context, to store.Address, s bots.State, th store.Thread) (done bool, err error) {
	l.stages.mu.Lock()
	skip := l.b.o.Now().Before(l.stages.noStatus)
	l.stages.mu.Unlock()
	if skip {
		return false, nil
	}
	waits := s == bots.Waiting
	if noted, err := l.suspended(ctx, th.ID); err != nil || noted && waits {
		return noted && waits, err
	} else if noted {
		if err := l.noteSuspended(ctx, th.ID, false); err != nil {
			return false, err
		}
	}
	p := slackgo.AgentSessionSetStatusParameters{ChannelID: to.Channel, ThreadTS: to.Thread, Title: th.Title, Status: map[bots.State]string{
		bots.Working: slackgo.AgentSessionStatusProcessing, bots.Waiting: slackgo.AgentSessionStatusSuspended, bots.Idle: slackgo.AgentSessionStatusActive,
	}[s]}
	if p.InitiatorUserID, err = l.initiator(ctx, th); err != nil {
		return false, err
	}
	set := func(ctx context.Context) error {
		_, err := l.wire.API.SetAgentSessionStatusContext(ctx, p)
		return err
	}
	err = l.wire.Call(ctx, set)
	if c := wire.Code(err); c != "" && !noSession[c] && p.InitiatorUserID != "" { // they may have left the channel
		p.InitiatorUserID = ""
		err = l.wire.Call(ctx, set)
	}
	switch c := wire.Code(err); {
	case err == nil && waits:
		return true, l.noteSuspended(ctx, th.ID, true)
	case err == nil || c == "":
		return true, err
	case !noSession[c]: // of this thread; a status is no reason to alarm anybody
		l.log.Debug("no session status here", "channel", to.Channel, "err", err)
		return false, nil
	}
	l.stages.mu.Lock()
	defer l.stages.mu.Unlock()
	l.stages.noStatus = l.b.o.Now().Add(time.Hour)
	return false, nil
}

// initiator is who began a conversation, as this workspace knows them; "" for
// somebody who is nobody there.
func (l *live) initiator(ctx context.Context, th store.Thread) (string, error) {
	if th.User == "" {
		return "", nil
	}
	u, err := l.b.o.Store.GetUser(ctx, th.User)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading who began a conversation: %w", err)
	}
	for _, identity := range u.Identities {
		if id, ok := strings.CutPrefix(identity, "slack:"+l.account.Team+":"); ok && incoming.IdForm.MatchString(id) {
			return id, nil
		}
	}
	return "", nil
}

// first says whether a thread got no title yet.
func (s *stages) first(thread string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.titled == nil || len(s.titled) > maxUnsure {
		s.titled = map[string]bool{}
	}
	was := s.titled[thread]
	s.titled[thread] = true
	return !was
}

// stage works on events about the places where nize is talked to.
func (l *live) stage(ctx context.Context, e incoming.Event) error {
	switch e.Type {
	case "agent_session_stopped":
		return l.stopped(ctx, e)
	case "app_home_opened":
		if e.Tab == "messages" {
			return l.suggest(ctx, e.User, e.Channel, "")
		}
		return l.openHome(ctx, e)
	case "user_change":
		return l.left(ctx, e)
	case "tokens_revoked", "app_uninstalled": // maybe of the installation before this one
		return l.prove(ctx)
	case "assistant_thread_started":
		return l.suggest(ctx, e.User, e.Channel, e.Thread)
	case "agent_session_title_changed":
		return l.renamed(ctx, e)
	}
	return nil
}

// stopped is a press on Slack's own Stop. Slack has ended the streams already.
func (l *live) stopped(ctx context.Context, e incoming.Event) error {
	thread, err := l.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" {
		return err
	}
	p, err := l.who(ctx, e.User, freshPerson)
	if err != nil || p.user.ID == "" {
		return err
	}
	return l.handler.Stop(ctx, p.by(), thread)
}

// suggest pins what somebody could ask, in their language.
func (l *live) suggest(ctx context.Context, user, channel, thread string) error {
	if channel == "" {
		return nil
	}
	words := phrases.For("")
	if incoming.IdForm.MatchString(user) {
		p, err := l.look(ctx, user, keepPerson)
		if err != nil {
			return err
		}
		words = p.words()
	}
	var prompts []slackgo.AssistantThreadsPrompt
	for _, p := range manifest.Prompts() {
		prompts = append(prompts, slackgo.AssistantThreadsPrompt{Title: words.Translate(p.Title), Message: words.Translate(p.Message)})
	}
	err := l.wire.Call(ctx, func(ctx context.Context) error {
		return l.wire.API.SetAssistantThreadsSuggestedPromptsContext(ctx, slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: channel, ThreadTS: thread, Prompts: prompts})
	})
	if wire.Code(err) != "" {
		l.log.Debug("no suggestions here", "err", err)
		return nil
	}
	return err
}

// renamed keeps the title that a person gave a conversation.
func (l *live) renamed(ctx context.Context, e incoming.Event) error {
	thread, err := l.threadAt(ctx, e.Channel, e.Root())
	if err != nil || thread == "" || e.Title == "" {
		return err
	}
	_, err = l.b.o.Store.EditThread(ctx, store.System, thread, func(th *store.Thread) { th.Title = incoming.Title(e.Title) })
	return err
}
