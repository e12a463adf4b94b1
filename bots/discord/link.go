package discord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/store"
	"nize/store/backoff"
)

const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// hopeless is the pause after an error that only the operator can fix.
	hopeless = 5 * time.Minute
)

const removedFromGuild = "nize was removed from the guild: let it in again with nizectl bots discord invite-url"

// cures maps the close codes that no retry can fix to one word for the cause and to what
// the operator can do.
var cures = map[int][2]string{
	wire.CloseToken:   {"token", "Discord does not take the token any more: it was reset. Copy the new one from the app's page Bot, then nizectl bots discord connect"},
	wire.CloseIntents: {"intents", "Discord refuses an intent that the app does not have: switch Message Content Intent on at the app's page Bot, or off there and start the bot again; without it nize is told of mentions and direct messages alone"},
	4010:              {"gateway", "Discord refuses how nize connects (invalid shard): upgrade nize"},
	4011:              {"gateway", "the bot is in too many guilds for one link: nize works in one; take it out of the others"},
	4012:              {"gateway", "Discord refuses how nize connects (API version): upgrade nize"},
	4013:              {"gateway", "Discord refuses how nize connects (invalid intents): upgrade nize"},
}

// setConnected records that Discord accepted the session.
func (l *live) setConnected() {
	advice := ""
	if l.account.Mode == Mentions {
		advice = mentionsOnly
	}
	l.log.Info("linked with Discord")
	l.setHealth(func(h *bots.Health) { h.State, h.Reason, h.Error, h.Links = bots.Connected, "", advice, 1 })
}

// mentionsOnly explains which messages the bot doesn't receive.
const mentionsOnly = "the Message Content Intent is off, so nize is told only of messages that mention it or are direct; to let it follow threads, switch it on at the app's page Bot"

// keepLink keeps a link to Discord until ctx ends.
func (l *live) keepLink(ctx context.Context) {
	session, failures := &wire.Session{}, 0
	for ctx.Err() == nil {
		greeted, err := l.serveLink(ctx, session)
		if ctx.Err() != nil {
			return
		}
		code := wire.ClosedAs(err)
		cure, known := cures[code]
		if wire.TokenGone(err) {
			cure, known = cures[wire.CloseToken], true
		}
		if after, limited := wire.LimitOf(err); limited {
			l.log.Error("Discord lets the bot in no more for now", "err", err)
			l.setHealth(func(h *bots.Health) { h.State, h.Reason, h.Error = bots.Connecting, "", err.Error() })
			failures = 0
			if l.wire.Wait(ctx, after) != nil {
				return
			}
			continue
		}
		var pause time.Duration
		switch {
		case known:
			l.log.Error("Discord refuses the link", "err", err, "cure", cure[1])
			l.setHealth(func(h *bots.Health) { h.State, h.Reason, h.Error = bots.Refused, cure[0], cure[1] })
			pause = hopeless
		case greeted:
			failures = 0
			l.log.Info("the link with Discord ended", "err", err)
			l.setHealth(func(h *bots.Health) { h.State = bots.Connecting })
		default:
			failures++
			l.log.Warn("the link with Discord broke", "err", err)
			l.setHealth(func(h *bots.Health) {
				h.State, h.Error = bots.Connecting, "no link with Discord, trying again: "+err.Error()
			})
			if failures > 2 {
				pause = backoff.Exponential{First: firstPause, Most: lastPause}.After(failures - 2)
			}
		}
		if pause > 0 && l.wire.Wait(ctx, pause+rand.N(pause/2+1)) != nil {
			return
		}
	}
}

// serveLink serves one link. Before a new session, it reads the app's intents, because the
// operator may have changed them.
func (l *live) serveLink(ctx context.Context, s *wire.Session) (greeted bool, err error) {
	if !s.Resumable() {
		app, err := askApp(ctx, l.wire)
		if err != nil {
			return false, fmt.Errorf("asking Discord about the app: %w", err)
		}
		l.account.Mode = modeOf(app)
		return l.wire.ServeLink(ctx, s, intentsOf(app), l.dispatch)
	}
	return l.wire.ServeLink(ctx, s, 0, l.dispatch)
}

// Flags of an app: an intent is enabled, for apps of either size.
const (
	flagMembers = 1<<14 | 1<<15
	flagContent = 1<<18 | 1<<19
)

func askApp(ctx context.Context, w *wire.Client) (a discordgo.Application, err error) {
	err = w.Do(ctx, wire.Request{Method: "GET", Path: "applications/@me", Into: &a})
	if err == nil && !incoming.IDForm.MatchString(a.ID) {
		err = fmt.Errorf("%w answer: no app", store.ErrInvalid)
	}
	return a, err
}

func modeOf(a discordgo.Application) string {
	if a.Flags&flagContent == 0 {
		return Mentions
	}
	return AllMessages
}

// intentsOf returns the intents of an identify. Those of members and of contents are
// privileged: they are enabled on the app's page in Discord's portal.
func intentsOf(a discordgo.Application) discordgo.Intent {
	intents := discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages
	if a.Flags&flagContent != 0 {
		intents |= discordgo.IntentMessageContent
	}
	if a.Flags&flagMembers != 0 {
		intents |= discordgo.IntentGuildMembers
	}
	return intents
}
