package discord

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nize/bots"
	"nize/bots/discord/discordtest"
	"nize/store"
)

// TestMangledEvents: ten thousand arbitrarily damaged events crash nothing: a message after
// them is answered.
func TestMangledEvents(t *testing.T) {
	t.Parallel()
	count := 10_000
	if testing.Short() {
		count = 500
	}
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{})
	s.sees(s.mention(discordtest.Ann, "say before").ID, "before")
	events := s.fake.Events()
	random := rand.New(rand.NewPCG(7, 7))
	odd := []string{`null`, `{}`, `[]`, `7`, `-1`, `""`, `"x"`, `true`, `[null]`, `{"type":99}`, `{"id":7}`, `"\u0000\u202e"`, `"99999999999999999999"`, `"` + strings.Repeat("<@1>", 600) + `"`, `[{"type":18,"component":{"type":4}}]`}
	for range count {
		e := events[random.IntN(len(events))]
		raw := []byte(e.Payload)
		switch random.IntN(3) {
		case 0: // another value somewhere
			var fields map[string]json.RawMessage
			if json.Unmarshal(raw, &fields) != nil {
				continue
			}
			names := make([]string, 0, len(fields))
			for name := range fields {
				names = append(names, name)
			}
			slices.Sort(names)
			fields[names[random.IntN(len(names))]] = json.RawMessage(odd[random.IntN(len(odd))])
			raw, _ = json.Marshal(fields)
		case 1: // arbitrary bytes
			for range 1 + random.IntN(8) {
				raw = slices.Clone(raw)
				raw[random.IntN(len(raw))] = byte(random.IntN(256))
			}
			if !json.Valid(raw) {
				s.fake.SendRaw(raw)
				continue
			}
		case 2:
			raw = []byte(odd[random.IntN(len(odd))])
		}
		s.fake.SendEvent(e.Name, raw)
	}
	s.wait("the link", func() bool { return s.Health().State == bots.Connected })
	s.sees(s.mention(discordtest.Ann, "say after").ID, "after")
}

// panicking panics if a stored item contains a certain text.
type panicking struct{ store.Inbox }

func (p panicking) Accept(ctx context.Context, item store.Item) (bool, error) {
	if strings.Contains(string(item.Payload), "boom-stored") {
		panic("on request")
	}
	return p.Inbox.Accept(ctx, item)
}

// TestPanics: a panic in the bot, a command or the agent is logged, and ends nothing else.
func TestPanics(t *testing.T) {
	t.Parallel()
	commands := &bots.Commands{}
	commands.Add(bots.Command{Name: "boom", Run: func(context.Context, bots.Asked) (bots.Answer, error) { panic("on request") }})
	s := newScene(t, discordtest.Options{Unlimited: true}, Options{Commands: commands})
	s.stop()
	s.o.Store.Inbox = panicking{s.db}
	s.start()
	s.mention(discordtest.Ann, "say boom-stored")
	s.mention(discordtest.Ann, "boom")
	s.mention(discordtest.Ann, "panic")
	s.sees(s.mention(discordtest.Ann, "say on").ID, "on")
	if h := s.Health(); h.State != bots.Connected {
		t.Errorf("after panics: %+v", h)
	}
}
