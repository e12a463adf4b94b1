package slack

import (
	"encoding/json"
	"slices"
	"testing"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// ear is a bot that only records what it hears, in a channel with a given mode.
type ear struct {
	t    *testing.T
	fake *slacktest.Server
	db   store.DB
	h    *heard
	root string // the thread of the messages, "" for none
}

func newEar(t *testing.T, mode string) *ear {
	t.Helper()
	e := &ear{t: t, fake: startFake(t, slacktest.Options{Unlimited: true}), db: databasetest.Open(t), h: newHeard()}
	e.mode(mode)
	commands := &bots.Commands{}
	runBot(t, e.fake, Options{Store: storeOf(e.db), Commands: commands}, e.h)
	commands.Add(bots.CoreCommands(commands, bots.Core{Threads: e.db, Claims: e.db, Handler: e.h, Calls: e.db})...)
	return e
}

func (e *ear) mode(mode string) {
	e.t.Helper()
	place := "slack:" + slacktest.Team + ":" + slacktest.General
	if _, err := e.db.EditChannel(e.t.Context(), store.System, place, func(c *store.Channel) { c.Mode = mode }); err != nil {
		e.t.Fatal(err)
	}
}

func (e *ear) say(user, text string) slacktest.Message { return e.post(user, text, "") }

// post posts a message whose text and blocks may differ.
func (e *ear) post(user, text, blocks string) slacktest.Message {
	e.t.Helper()
	said := slacktest.Said{User: user, Channel: slacktest.General, Text: text, Thread: e.root}
	if blocks != "" {
		said.Blocks = json.RawMessage(blocks)
	}
	m, err := e.fake.Post(said)
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// upTo waits until the last of these, which addresses nize, was heard, and compares
// everything heard in the thread, where messages stay in order.
func (e *ear) upTo(want ...string) {
	e.t.Helper()
	for !slices.Contains(e.h.texts(), want[len(want)-1]) {
		e.h.wait(e.t, 1)
	}
	if got := e.h.texts(); !slices.Equal(got, want) {
		e.t.Errorf("heard %q, want %q", got, want)
	}
}

const called = "<@" + slacktest.Bot + "> "

func richText(element string) string {
	return `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + element + `,{"type":"text","text":" look"}]}]}]`
}

// Which messages of a thread are answered although they don't address nize.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mode string
		talk       func(*ear)
		heard      []string // between the first and the last, which mention nize
	}{
		{"follow goes on", "", func(e *ear) {
			e.say(slacktest.Ann, "one")
			e.say(slacktest.Ann, "to <@"+slacktest.Cho+">")
			e.say(slacktest.Ann, "<!channel> all")
			e.say(slacktest.OtherBot, "a bot")
			e.say(slacktest.Ann, "two")
		}, []string{"one", "two"}},
		{"another's words to everybody end it", "", func(e *ear) {
			e.say(slacktest.Ben, "<!here> lunch")
			e.say(slacktest.Ann, "yes")
		}, nil},
		{"what stands only in blocks counts", store.ModeFollow, func(e *ear) {
			e.post(slacktest.Ann, "look", richText(`{"type":"broadcast","range":"here"}`))
			e.post(slacktest.Ann, "look", richText(`{"type":"usergroup","usergroup_id":"S0OPS"}`))
			e.post(slacktest.Ann, "look", richText(`{"type":"user","user_id":"`+slacktest.Cho+`"}`))
			e.post(slacktest.Ann, "look", richText(`{"type":"emoji","name":"eyes"}`))
		}, []string{"look"}},
		{"another's command ends it", "", func(e *ear) {
			e.say(slacktest.Ben, called+"help")
			e.say(slacktest.Ann, "mine")
		}, nil},
		{"who gave a command is followed", "", func(e *ear) {
			e.say(slacktest.Ben, called+"help")
			e.say(slacktest.Ben, "and this")
		}, []string{"and this"}},
		{"a guest's words end it", "", func(e *ear) {
			e.say(slacktest.Guest, "hello")
			e.say(slacktest.Ann, "mine")
		}, nil},
		{"a guest's mention ends it", "", func(e *ear) {
			e.say(slacktest.Guest, called+"hello")
			e.say(slacktest.Guest, "again")
			e.say(slacktest.Ann, "mine")
		}, nil},
		{"muted", "", func(e *ear) {
			e.say(slacktest.Ann, called+"mute")
			e.say(slacktest.Ann, "one")
			e.say(slacktest.Ann, called+"two")
			e.say(slacktest.Ann, called+"unmute")
			e.say(slacktest.Ann, "three")
		}, []string{"two", "three"}},
		{"who wrote in a muted thread counts", "", func(e *ear) {
			e.say(slacktest.Ben, called+"mute")
			e.say(slacktest.Ann, "to Ben")
			e.say(slacktest.Cho, called+"unmute")
			e.say(slacktest.Ben, "one")
			e.say(slacktest.Cho, "two")
		}, nil},
		{"mention", store.ModeMention, func(e *ear) {
			e.say(slacktest.Ann, "one")
			e.say(slacktest.Ann, called+"two")
			e.say(slacktest.Ben, "three")
		}, []string{"two"}},
		{"all", store.ModeAll, func(e *ear) {
			e.say(slacktest.Ben, "one")
			e.say(slacktest.Ann, "to <@"+slacktest.Cho+">")
			e.say(slacktest.Ann, "<!channel> all")
			e.say(slacktest.OtherBot, "a bot")
			e.say(slacktest.Guest, "a guest")
			e.say(slacktest.Ann, called+"mute")
			e.say(slacktest.Ann, "two")
			e.say(slacktest.Ann, called+"unmute")
			e.say(slacktest.Cho, "three")
		}, []string{"one", "to @cho", "three"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEar(t, c.mode)
			e.root = e.say(slacktest.Ann, called+"begin").TS
			c.talk(e) // at once: the conversation may only be starting
			e.say(slacktest.Cho, called+"end")
			e.upTo(append(append([]string{"begin"}, c.heard...), "end")...)
		})
	}
}

// A changed mode applies from the next message on, also in threads in which nize never was;
// authors before the change count.
func TestModeChanges(t *testing.T) {
	t.Parallel()
	e := newEar(t, store.ModeMention)
	old := e.say(slacktest.Ben, "among us").TS
	e.say(slacktest.Ann, "<!channel> hello")
	e.root = e.say(slacktest.Ann, called+"begin").TS
	e.say(slacktest.Ben, "in between")
	e.say(slacktest.Cho, called+"help") // answered after the earlier messages
	told := func() bool { return len(e.fake.Ephemerals(slacktest.General, slacktest.Cho)) > 0 }
	if err := e.fake.Wait(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	e.mode(store.ModeFollow)
	e.say(slacktest.Ann, "not followed")
	e.say(slacktest.Ann, called+"two")
	e.upTo("begin", "two")
	e.mode(store.ModeAll)
	e.root = old
	e.say(slacktest.Ann, "three")
	e.upTo("begin", "two", "three")
}
