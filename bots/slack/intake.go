package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/slack-go/slack/socketmode"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/queue"
	"nize/bots/slack/attachments"
	"nize/bots/slack/home"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/wire"
	"nize/store"
)

// Kinds of items in the inbox.
const (
	keptEvent  = "slack.event"
	keptPress  = "slack.press"
	keptSubmit = "slack.submit"
	keptSlash  = "slack.slash"
)

// live is the bot with one account.
type live struct {
	b           *Bot
	account     store.Bot
	wire        *wire.Client
	handler     bots.Handler
	log         *slog.Logger
	lanes       *queue.Lanes
	intake      *account.Intake
	unacked     chan struct{} // has one element per frame that is not acknowledged
	people      *people.Directory
	posts       *posting.Poster
	attachments *attachments.Fetcher
	homes       *home.Homes
	access      *access
	commands    *commander
	cards       *cardPresses
	talk        *talk
	handlers    handlers
	wg          sync.WaitGroup

	mu   sync.Mutex      // guards life
	life context.Context // the context of Serve for HTTP requests; nil after its end

	rechecked bool // several links were counted once; only listen's goroutine uses it
}

func newLive(b *Bot, used store.Bot, h bots.Handler) *live {
	l := &live{
		b: b, account: used, handler: h, lanes: queue.NewLanes(), unacked: make(chan struct{}, maxUnacked),
		log:  b.o.Log.With("team", used.Team),
		wire: wire.New(b.o.wire(), used.Tokens[BotToken], used.Tokens[AppToken]),
	}
	l.intake = &account.Intake{
		Inbox: b.o.Store.Inbox, Kinds: "slack.", Title: "Slack", Lanes: l.lanes, Now: b.o.Now, Log: l.log, Health: l.setHealth, Decode: l.decodeItem, Retry: l.wire.Retry,
	}
	l.people = people.New(people.Options{
		Wire: l.wire, Store: b.o.Store.People, Config: b.o.Config, Admit: b.o.Admit, Now: b.o.Now, Log: l.log, Team: used.Team,
	})
	l.posts = posting.New(posting.Options{
		Wire: l.wire, People: l.people, Store: b.o.Store.Posts, Calls: b.o.Calls, Now: b.o.Now, Pace: b.o.Pace, Log: l.log, Team: used.Team, Self: used.User,
	})
	l.attachments = &attachments.Fetcher{Wire: l.wire, People: l.people, Store: b.o.Store.Attachments, Config: b.o.Config, Log: l.log, Self: used.User}
	l.homes = home.New(home.Options{
		Wire: l.wire, People: l.people, Posts: l.posts, Keeper: b.o.Keeper, Commands: b.o.Commands, Now: b.o.Now, Log: l.log, Team: used.Team,
	})
	l.access = &access{people: l.people, posts: l.posts}
	l.commands = &commander{
		list: b.o.Commands, keeper: b.o.Keeper, people: l.people, posts: l.posts, homes: l.homes, access: l.access,
		wire: l.wire, log: l.log, team: used.Team, wg: &l.wg,
	}
	l.cards = &cardPresses{
		Presses: &bots.Presses{Handler: h, Calls: b.o.Calls, Approver: b.o.Approver, Places: b.o.Store.Posts, Log: l.log, Now: b.o.Now},
		people:  l.people, posts: l.posts,
		wire: l.wire, log: l.log, now: b.o.Now, schema: b.o.Schema, fits: b.o.Fits,
	}
	l.talk = &talk{
		Talk: &account.Talk{Threads: b.o.Store.Threads, Begins: b.o.Begins, MayBegin: b.o.MayBegin, Now: b.o.Now, Log: l.log}, store: b.o.Store.Threads, commands: l.commands, access: l.access, people: l.people, posts: l.posts, homes: l.homes,
		attachments: l.attachments, handler: h, wire: l.wire, now: b.o.Now, log: l.log, team: used.Team, self: used.User,
	}
	l.handlers = l.newHandlers()
	l.wire.OnAnswer = l.checkAnswer
	return l
}

// Team implements [account.Live].
func (l *live) Team() string { return l.account.Team }

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
	l.openIntake(ctx)
	defer l.closeIntake()
	l.wg.Go(func() { l.keepTestingToken(ctx) })
	l.wg.Go(func() { l.people.KeepSweeping(ctx) })
	l.wg.Go(func() { l.posts.KeepStatusLines(ctx) })
	l.wg.Go(func() { l.posts.RemoveDoubles(ctx) })
	l.wg.Go(func() { l.posts.RepeatEdits(ctx) })
	if l.account.Mode == HTTPMode {
		l.setHealth(func(h *bots.Health) { h.State, h.Error = bots.Connected, noRequests })
		<-ctx.Done()
		return
	}
	l.keepLink(ctx)
}

// openIntake starts accepting HTTP requests; closeIntake stops it.
func (l *live) openIntake(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life = ctx
}

func (l *live) closeIntake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life = nil
}

// decodeItem decodes a stored item into the work to be done. Slack's redeliveries may
// arrive after later events.
func (l *live) decodeItem(item store.Item) (w account.Work, err error) {
	payload := item.Payload
	switch item.Kind {
	case keptEvent:
		e, err := incoming.DecodeEvent(payload)
		w := account.Work{Lane: laneOf(e), Run: func(ctx context.Context, act string) error { return l.talk.handleEvent(ctx, e, act) }}
		if e.Type == "message" || e.Type == "app_mention" {
			w.Order = strings.ReplaceAll(e.Timestamp, ".", "")
		}
		return w, err
	case keptPress:
		i, err := incoming.DecodeInteraction(payload)
		return account.Work{Lane: "press:" + i.Message.Timestamp + i.View.ID, Run: func(ctx context.Context, act string) error { return l.press(ctx, i, act) }}, err
	case keptSubmit:
		i, err := incoming.DecodeInteraction(payload)
		return account.Work{Lane: "view:" + i.View.ID, Run: func(ctx context.Context, act string) error { return l.submit(ctx, i, act) }}, err
	case keptSlash:
		s, err := incoming.DecodeCommand(payload)
		return account.Work{Lane: "slash:" + s.UserID, Run: func(ctx context.Context, act string) error { return l.talk.handleSlash(ctx, s, act) }}, err
	}
	return w, nil // from an older or newer nize: drop it
}

func laneOf(e incoming.Event) string {
	if e.Channel == "" {
		return "user:" + e.User
	}
	return e.Channel + ":" + e.Root()
}

// acceptPayload handles one payload. It calls done once: with ok set when it may be
// acknowledged, and with the content that Slack should show.
func (l *live) acceptPayload(ctx context.Context, kind string, payload json.RawMessage, done func(show any, ok bool)) {
	var once sync.Once
	answer := done
	done = func(show any, ok bool) { once.Do(func() { answer(show, ok) }) }
	defer func() {
		if r := recover(); r != nil { // it would panic again
			l.log.Error("taking something of Slack's panicked", "kind", kind, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			done(nil, true)
		}
	}()
	var err error
	switch kind {
	case socketmode.RequestTypeEventsAPI:
		err = l.acceptEvent(ctx, payload, done)
	case socketmode.RequestTypeInteractive:
		err = l.acceptInteraction(ctx, payload, done)
	case socketmode.RequestTypeSlashCommands:
		var s incoming.Command
		if s, err = incoming.DecodeCommand(payload); err == nil {
			var keys []string
			if s.TriggerID != "" { // without one, a redelivery can't be told from a second command
				keys = []string{"slack:slash:" + s.TriggerID}
			}
			l.storeAndWork(ctx, keptSlash, incoming.Mask(payload, s.Text, l.log), keys, done)
		}
	default:
		done(nil, true)
	}
	if err != nil {
		l.log.Warn("something of Slack's is left out", "kind", kind, "err", err)
		done(nil, true) // a redelivery would be just as unreadable
	}
}

// eventsLimited tells the operator what to do if Slack drops events.
const eventsLimited = "Slack leaves out events, since the app got more than 30,000 within an hour, or did not acknowledge most of them: take nize out of busy channels, and see that it can be reached"

func (l *live) acceptEvent(ctx context.Context, payload json.RawMessage, done func(any, bool)) error {
	if incoming.LimitedEvents(payload) {
		l.log.Warn("Slack leaves out events", "cure", eventsLimited)
		l.setHealth(func(h *bots.Health) { h.Error = "app_rate_limited: " + eventsLimited })
		done(nil, true)
		return nil
	}
	e, err := incoming.DecodeEvent(payload)
	if err != nil {
		return err
	}
	matters, keys := l.needsWork(ctx, &e)
	if !matters {
		done(nil, true)
		return nil
	}
	l.storeAndWork(ctx, keptEvent, incoming.Mask(payload, e.Text, l.log), keys, done)
	return nil
}

// needsWork reports, without side effects, whether an event needs work, and under which
// keys it is stored: a message that addresses nize arrives as two events.
func (l *live) needsWork(ctx context.Context, e *incoming.Event) (bool, []string) {
	keys := []string{"slack:ev:" + e.ID}
	if !happenedHere(e, l.account.Team) || !incoming.Used[e.Type] {
		return false, nil
	}
	if e.Type == "user_change" {
		l.people.Forget(e.User) // before the next item from this person
		return e.Left, keys
	}
	if e.Type != "message" && e.Type != "app_mention" {
		return true, keys
	}
	if e.BotID != "" || e.User == "" || e.User == l.account.User || e.User == "USLACKBOT" || e.Hidden || e.IsEdit() || !spoken[e.SubType] {
		return false, nil
	}
	if e.Addresses(l.account.User) {
		return true, append(keys, "slack:at:"+e.Channel+":"+e.Timestamp)
	}
	if l.talk.Mode(ctx, place(l.account.Team, e.Channel, "")) == store.ModeAll && !incoming.Broadcasts(&e.Message) {
		return true, keys
	}
	if e.ThreadTimestamp == "" {
		return false, keys
	}
	if l.lanes.Busy(laneOf(*e)) { // the conversation may be about to begin
		return true, keys
	}
	_, err := l.b.o.Store.Threads.FindThread(ctx, place(l.account.Team, e.Channel, e.Root()))
	return err == nil, keys
}

// spoken lists the subtypes of messages written by a person.
var spoken = map[string]bool{"": true, "file_share": true, "thread_broadcast": true, "me_message": true}

// storeAndWork stores a payload, lets it be acknowledged, and processes it in its lane. If
// it can't be stored, Slack sends it again.
func (l *live) storeAndWork(ctx context.Context, kind string, payload json.RawMessage, keys []string, done func(any, bool)) {
	l.intake.Accept(ctx, store.Item{Kind: kind, Keys: keys, Payload: payload}, func(ok bool) { done(nil, ok) })
}
