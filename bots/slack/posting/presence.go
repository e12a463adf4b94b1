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

// maxTitled limits how many threads with a title are kept in memory.
const maxTitled = 10_000

// presence shows the state of threads.
type presence struct {
	messages *messages
	lines    *toolLines
	status   *statusLines

	mu       sync.Mutex        // guards the fields below
	noStatus time.Time         // agent sessions are unavailable for this app; don't try again before then
	titled   map[string]string // titles of assistant threads, by thread
}

// noSession are Slack's error codes if an app is not an agent, or a thread can't have a
// session.
var noSession = map[string]bool{
	"unknown_method": true, "not_an_agent": true, "access_denied": true, "not_allowed": true, "no_permission": true,
	"feature_not_enabled": true, "method_not_supported_for_channel_type": true, "invalid_agent": true,
}

// Present shows a state as the status of Slack's agent session, which has Slack's own Stop
// button while nize works. If the app is not an agent, it sets the status line of an older
// assistant thread.
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

// setSession sets the status of an agent session; done is false if the app or the thread
// has none. Slack uses the title and the initiator only when it creates the session.
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
	if c := wire.Code(err); c != "" && !noSession[c] && p.InitiatorUserID != "" { // the initiator may have left the channel
		p.InitiatorUserID = ""
		err = pr.messages.wire.Call(ctx, set)
	}
	switch c := wire.Code(err); {
	case err == nil && waits:
		return true, pr.noteSuspended(ctx, th.ID, true)
	case err == nil || c == "":
		return true, err
	case !noSession[c]: // specific to this thread; a status is not worth a warning
		pr.messages.log.Debug("no session status here", "channel", to.Channel, "err", err)
		return false, nil
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.noStatus = pr.messages.now().Add(time.Hour)
	return false, nil
}

// initiator returns who began a conversation, if they are in this workspace; otherwise "".
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

// newTitle reports whether a thread's title differs from the last one sent.
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

// Suggest shows suggested questions in the person's language.
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

// suspendedMark is the name under which a conversation records that its session shows the
// waiting state, so that, like a card, it isn't set again after a restart.
const suspendedMark = "suspended"

// suspended reports whether that is recorded.
func (pr *presence) suspended(ctx context.Context, thread string) (bool, error) {
	_, err := pr.messages.store.GetPlace(ctx, thread, suspendedMark)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading what a session shows: %w", err)
	}
	return err == nil, nil
}

// noteSuspended records it, or deletes the record.
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
