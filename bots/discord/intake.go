package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/posting"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/store"
)

// Kinds of items in the inbox.
const (
	keptMessage     = "discord.message"
	keptInteraction = "discord.interaction"
	keptLeft        = "discord.left"
)

// live is the bot with one account.
type live struct {
	b       *Bot
	account store.Bot
	guild   string
	wire    *wire.Client
	handler bots.Handler
	log     *slog.Logger
	lanes   *queue.Lanes
	intake  *account.Intake
	talk    *account.Talk
	people  *people.Directory
	posts   *posting.Poster
	presses *bots.Presses
	wg      sync.WaitGroup

	commands commander
	cards    presser
	attached attachments
	missed   *missed

	registering sync.Mutex // guards registered; held during the registration
	registered  string     // the commands registered with Discord
}

func newLive(b *Bot, used store.Bot, h bots.Handler) *live {
	l := &live{
		b: b, account: used, guild: used.Team, handler: h, lanes: queue.NewLanes(),
		log:  b.o.Log.With("guild", used.Team),
		wire: wire.New(b.o.wire(), used.Tokens[Token]),
	}
	l.intake = &account.Intake{
		Inbox: b.o.Store.Inbox, Kinds: "discord.", Title: "Discord", Lanes: l.lanes, Now: b.o.Now, Log: l.log, Health: l.setHealth, Decode: l.decodeItem, Retry: l.wire.Retry,
	}
	l.talk = &account.Talk{Threads: b.o.Store.Threads, Begins: b.o.Begins, MayBegin: b.o.MayBegin, Now: b.o.Now, Log: l.log}
	l.people = people.New(people.Options{
		Wire: l.wire, Store: b.o.Store.People, Config: b.o.Config, Now: b.o.Now, Log: l.log, Guild: used.Team,
	})
	l.posts = posting.New(posting.Options{
		Wire: l.wire, People: l.people, Store: b.o.Store.Posts, Calls: b.o.Calls, Now: b.o.Now, Pace: b.o.Pace, Log: l.log, Guild: used.Team, Self: used.User,
	})
	l.commands, l.cards, l.attached = commander{l}, presser{l}, attachments{l}
	l.missed = &missed{live: l, wanted: make(chan struct{}, 1)}
	l.presses = &bots.Presses{Handler: h, Calls: b.o.Calls, Approver: b.o.Approver, Places: b.o.Store.Posts, Log: l.log, Now: b.o.Now}
	return l
}

// Team implements [account.Live].
func (l *live) Team() string { return l.guild }

// Poster implements [account.Live].
func (l *live) Poster() account.Poster { return l.posts }

// Directory implements [account.Live].
func (l *live) Directory() account.Directory { return l.people }

// setHealth updates l's health, unless another account has replaced it.
func (l *live) setHealth(change func(*bots.Health)) { l.b.SetHealth(l, change) }

// Serve implements [account.Live].
func (l *live) Serve(ctx context.Context) {
	defer l.intake.Wait()
	defer l.wg.Wait()
	l.intake.Replay(ctx)
	l.wg.Go(func() { l.people.KeepSweeping(ctx) })
	l.wg.Go(func() { l.missed.keepFetching(ctx) })
	l.wg.Go(func() { l.posts.RepeatEdits(ctx) })
	l.keepLink(ctx)
}

// decodeItem decodes a stored item into the work to be done.
func (l *live) decodeItem(item store.Item) (w account.Work, err error) {
	switch item.Kind {
	case keptMessage:
		m, err := incoming.DecodeMessage(item.Payload)
		return account.Work{Lane: l.laneOf(m), Order: m.ID, Run: func(ctx context.Context, act string) error { return l.handleMessage(ctx, m, act) }}, err
	case keptInteraction:
		i, err := incoming.DecodeInteraction(item.Payload)
		r := l.respondLate(i)
		return account.Work{Lane: laneOfInteraction(i), Run: func(ctx context.Context, act string) error { return l.handleInteraction(ctx, i, r, act) }}, err
	case keptLeft:
		_, user, err := incoming.DecodeLeaver(item.Payload)
		return account.Work{Lane: "user:" + user, Run: func(ctx context.Context, _ string) error { return l.people.Left(ctx, user) }}, err
	}
	return w, nil // from an older or newer nize: drop it
}

// laneOf returns the thread that a message belongs to or will begin.
func (l *live) laneOf(m incoming.Message) string {
	if c, ok := l.people.KnownChannel(m.ChannelID); ok && !c.IsThread() && !incoming.Direct(c) {
		return m.ID
	}
	return m.ChannelID
}

func laneOfInteraction(i incoming.Interaction) string {
	if i.MessageID() != "" {
		return "press:" + i.MessageID()
	}
	return "user:" + i.User.ID
}

// dispatch handles one event: see [wire.Dispatch].
func (l *live) dispatch(ctx context.Context, kind string, data json.RawMessage, done func(bool)) {
	defer func() {
		if r := recover(); r != nil { // it would panic again
			l.log.Error("taking something of Discord's panicked", "kind", kind, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			done(true)
		}
	}()
	var err error
	switch kind {
	case "MESSAGE_CREATE":
		err = l.acceptMessage(ctx, data, done)
	case "INTERACTION_CREATE":
		err = l.acceptInteraction(ctx, data, done)
	case "GUILD_MEMBER_REMOVE":
		err = l.acceptLeaver(ctx, data, done)
	default:
		err = l.note(ctx, kind, data)
		done(true)
	}
	if err != nil {
		l.log.Warn("something of Discord's is left out", "kind", kind, "err", err)
		done(true) // a redelivery would be just as unreadable
	}
}

// note updates the state of the guild and the link from an event.
func (l *live) note(ctx context.Context, kind string, data json.RawMessage) error {
	switch kind {
	case "READY":
		l.setConnected()
		l.wg.Go(func() { l.commands.register(ctx) })
		l.missed.begin(ctx) // a new session doesn't deliver missed events
	case "RESUMED":
		l.setConnected()
	case "GUILD_CREATE":
		g, err := incoming.DecodeGuild(data)
		if err != nil {
			return err
		}
		if g.ID != l.guild {
			l.wg.Go(func() { l.leave(ctx, g) })
			return nil
		}
		l.people.SetGuild(g)
	case "GUILD_UPDATE", "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE":
		l.people.ForgetGuild()
	case "GUILD_DELETE":
		g, err := incoming.DecodeGuild(data)
		if err == nil && g.ID == l.guild && !g.Unavailable {
			l.setHealth(func(h *bots.Health) { h.State, h.Reason, h.Error = bots.Refused, "guild", removedFromGuild })
		}
		return err
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE", "CHANNEL_DELETE", "THREAD_DELETE":
		c, err := incoming.DecodeChannel(data)
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(kind, "DELETE"):
			l.people.ForgetChannel(c.ID)
		case c.GuildID == l.guild:
			l.people.SetChannel(c)
		}
	case "GUILD_MEMBER_UPDATE":
		_, user, err := incoming.DecodeLeaver(data) // both events have the same form
		if err == nil {
			l.people.Forget(user)
		}
		return err
	}
	return nil
}

// leave leaves a guild other than the configured one.
func (l *live) leave(ctx context.Context, g discordgo.Guild) {
	l.log.Warn("nize leaves a guild that it was not connected to", "left", g.ID, "name", store.Clip(g.Name, 100))
	err := l.wire.Do(ctx, wire.Request{Method: "DELETE", Path: "users/@me/guilds/" + g.ID})
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		l.log.Error("leaving a guild", "left", g.ID, "err", err)
	}
}

func (l *live) acceptLeaver(ctx context.Context, data json.RawMessage, done func(bool)) error {
	guild, user, err := incoming.DecodeLeaver(data)
	if err != nil {
		return err
	}
	if guild != l.guild {
		done(true)
		return nil
	}
	l.people.Forget(user) // before the next item from this person
	payload, err := json.Marshal(map[string]any{"guild_id": guild, "user": map[string]string{"id": user}})
	if err != nil {
		return err
	}
	l.intake.Accept(ctx, store.Item{Kind: keptLeft, Payload: payload}, done)
	return nil
}

// acceptMessage stores a message that needs work.
func (l *live) acceptMessage(ctx context.Context, data json.RawMessage, done func(bool)) error {
	m, err := incoming.DecodeMessage(data)
	if err != nil {
		return err
	}
	if !l.needsWork(ctx, m) {
		done(true)
		return nil
	}
	m.Mask()
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	l.intake.Accept(ctx, store.Item{Kind: keptMessage, Payload: payload, Keys: []string{"discord:msg:" + m.ID}}, done)
	return nil
}

// needsWork reports, without side effects, whether a message needs work.
func (l *live) needsWork(ctx context.Context, m incoming.Message) bool {
	switch {
	case !m.Spoken() || m.Author.ID == l.account.User || m.GuildID != "" && m.GuildID != l.guild:
		return false
	case m.Addresses(l.account.User):
		return true
	case l.lanes.Busy(m.ChannelID): // the conversation may be about to begin
		return true
	}
	c, known := l.people.KnownChannel(m.ChannelID)
	if !known {
		return true // decided when it is processed
	}
	at := l.place(cmp.Or(c.ParentID, c.ID), "")
	if !c.IsThread() {
		at = l.place(c.ID, "")
	}
	if l.talk.Mode(ctx, at) == store.ModeAll && !m.MentionEveryone {
		return true
	}
	if !c.IsThread() {
		return false
	}
	_, err := l.b.o.Store.Threads.FindThread(ctx, l.place(c.ParentID, c.ID))
	return err == nil
}

// place returns the address of a thread in the guild.
func (l *live) place(channel, thread string) store.Address {
	return store.Address{Surface: store.OnDiscord, Team: l.guild, Channel: channel, Thread: thread}
}

// welcome tells a new user once what data is kept about them.
func (l *live) welcome(ctx context.Context, p people.Person, r *response) {
	l.people.Welcome(ctx, p.Caller(), p.User, p.Words(), func(text string) error { return l.tell(ctx, p, r, text) })
}

// tellNoAccess informs a person that they have no access: once a day for messages, and
// always for presses and commands.
func (l *live) tellNoAccess(ctx context.Context, p people.Person, r *response) error {
	if r == nil {
		first, err := l.people.FirstToday(ctx, "refused:"+p.ID)
		if err != nil || !first {
			return err
		}
	}
	text := p.Words().Say(phrases.NotInGuild)
	if p.Member {
		text = p.Words().Say(phrases.Barred)
	}
	return unlessRefused(l.tell(ctx, p, r, text))
}

// tellMasked tells a person that their message contained a key.
func (l *live) tellMasked(ctx context.Context, p people.Person, r *response, key string) {
	l.people.MaskedKey(ctx, key, p.Words(), func(text string) error { return l.tell(ctx, p, r, text) })
}

// slow is the time limit for work that is not worth storing.
const slow = 30 * time.Second
