package posting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/manifest"
	"nize/bots/slack/people"
	"nize/bots/slack/wire"
	"nize/store"
)

// maxTitled bounds how many threads are remembered that have a title.
const maxTitled = 10_000

// presence is how threads look beyond their messages.
type presence struct {
	messages *messages
	lines    *toolLines
	status   *statusLines

	mu       sync.Mutex        // guards what follows
	noStatus time.Time         // agent sessions are not for this app: not asked again before
	titled   map[string]string // threads of an assistant that have a title
}

// noSession are Slack's answers where an app is no agent, or a thread can't
// have a session.
var noSession = map[string]bool{
	"unknown_method": true, "not_an_agent": true, "access_denied": true, "not_allowed": true, "no_permission": true,
	"feature_not_enabled": true, "method_not_supported_for_channel_type": true, "invalid_agent": true,
}

// Present shows a state: the status of Slack's agent session,
// with Slack's own Stop button while nize works; where the app is no agent,
// the older line of an assistant's thread.
func (pr *presence) Present(ctx context.Context, to store.Address, s outbox.State) error {
	if s == outbox.Idle {
		pr.lines.End(to.Channel + "/" + to.Thread)
	}
	th, err := pr.messages.store.FindThread(ctx, to)
	if err != nil {
		return fmt.Errorf("finding a conversation: %w", err)
	}
	if done, err := pr.setSession(ctx, to, s, th); done || err != nil {
		return err
	}
	return pr.setAssistant(ctx, to, s, th)
}

// setSession sets the status of an agent's session; done is false where the
// app, or the thread, has none. The title and who began it count when the
// session is made.
func (pr *presence) setSession(ctx context.Context, to store.Address, s outbox.State, th store.Thread) (done bool, err error) {
	pr.mu.Lock()
	skip := pr.messages.now().Before(pr.noStatus)
	pr.mu.Unlock()
	if skip {
		return false, nil
	}
	waits := s == outbox.Waiting
	if noted, err := pr.suspended(ctx, th.ID); err != nil || noted && waits {
		return noted && waits, err
	} else if noted {
		if err := pr.noteSuspended(ctx, th.ID, false); err != nil {
			return false, err
		}
	}
	p := slackgo.AgentSessionSetStatusParameters{ChannelID: to.Channel, ThreadTS: to.Thread, Title: bots.Plain(th.Title), Status: map[outbox.State]string{
		outbox.Working: slackgo.AgentSessionStatusProcessing, outbox.Waiting: slackgo.AgentSessionStatusSuspended, outbox.Idle: slackgo.AgentSessionStatusActive,
	}[s]}
	if p.InitiatorUserID, err = pr.initiator(ctx, th); err != nil {
		return false, err
	}
	set := func(ctx context.Context) error {
		_, err := pr.messages.wire.API.SetAgentSessionStatusContext(ctx, p)
		return err
	}
	err = pr.messages.wire.Call(ctx, set)
	if c := wire.Code(err); c != "" && !noSession[c] && p.InitiatorUserID != "" { // they may have left the channel
		p.InitiatorUserID = ""
		err = pr.messages.wire.Call(ctx, set)
	}
	switch c := wire.Code(err); {
	case err == nil && waits:
		return true, pr.noteSuspended(ctx, th.ID, true)
	case err == nil || c == "":
		return true, err
	case !noSession[c]: // of this thread; a status is no reason to alarm anybody
		pr.messages.log.Debug("no session status here", "channel", to.Channel, "err", err)
		return false, nil
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.noStatus = pr.messages.now().Add(time.Hour)
	return false, nil
}

// initiator is who began a conversation, as this workspace knows them; "" for
// somebody who is nobody there.
func (pr *presence) initiator(ctx context.Context, th store.Thread) (string, error) {
	if th.User == "" {
		return "", nil
	}
	u, err := pr.messages.store.GetUser(ctx, th.User)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading who began a conversation: %w", err)
	}
	for _, identity := range u.Identities {
		if id, ok := strings.CutPrefix(identity, "slack:"+pr.messages.team+":"); ok && incoming.IDForm.MatchString(id) {
			return id, nil
		}
	}
	return "", nil
}

// newTitle says whether a thread has another title by now than it was told of.
func (pr *presence) newTitle(thread, title string) bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.titled == nil || len(pr.titled) > maxTitled {
		pr.titled = map[string]string{}
	}
	was := pr.titled[thread]
	pr.titled[thread] = title
	return was != title
}

// Suggest pins what somebody could ask, in their language.
func (pr *presence) Suggest(ctx context.Context, user, channel, thread string) error {
	if channel == "" {
		return nil
	}
	words := phrases.For("")
	if incoming.IDForm.MatchString(user) {
		p, err := pr.messages.people.LookUp(ctx, user, people.Recent)
		if err != nil {
			return err
		}
		words = p.Words()
	}
	var prompts []slackgo.AssistantThreadsPrompt
	for _, p := range manifest.Prompts() {
		prompts = append(prompts, slackgo.AssistantThreadsPrompt{Title: words.Say(phrases.Key(p.Title)), Message: words.Say(phrases.Key(p.Message))})
	}
	err := pr.messages.wire.Call(ctx, func(ctx context.Context) error {
		return pr.messages.wire.API.SetAssistantThreadsSuggestedPromptsContext(ctx, slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: channel, ThreadTS: thread, Prompts: prompts})
	})
	if wire.Code(err) != "" {
		pr.messages.log.Debug("no suggestions here", "err", err)
		return nil
	}
	return err
}

// suspendedMark is the name under which it is noted that a conversation's session
// shows that it waits: like a card, that is not said again after a restart.
const suspendedMark = "suspended"

// suspended says whether that is noted.
func (pr *presence) suspended(ctx context.Context, thread string) (bool, error) {
	_, err := pr.messages.store.GetPlace(ctx, thread, suspendedMark)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading what a session shows: %w", err)
	}
	return err == nil, nil
}

// noteSuspended notes it, or forgets it.
func (pr *presence) noteSuspended(ctx context.Context, thread string, yes bool) error {
	to := ""
	if yes {
		to = suspendedMark
	}
	if err := pr.messages.store.MovePlace(ctx, thread, suspendedMark, to, store.Address{Surface: store.OnSlack}); err != nil {
		return fmt.Errorf("noting what a session shows: %w", err)
	}
	return nil
}
