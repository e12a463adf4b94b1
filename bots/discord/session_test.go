package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/discord/discordtest"
	"nize/bots/discord/view"
	"nize/store"
)

// askers sends the cards of calls only to their requesters.
type askers struct{ store.DB }

func (askers) Approvers(context.Context, string) ([]store.User, error) { return nil, nil }
func (askers) Sees(context.Context, store.Caller, store.Call) bool     { return true }

// TestAsksOfOneSession: a direct channel has no threads, so the cards of one session reply
// to its first one, even if they arrive at once. Their buttons work. After the first card
// was deleted, the next is posted by itself.
func TestAsksOfOneSession(t *testing.T) {
	t.Parallel()
	s := unstarted(t, discordtest.Options{}, Options{})
	s.audience = askers{s.db}
	s.start()
	t.Cleanup(func() { s.stop() })
	ann, err := s.db.EnsureUser(t.Context(), "discord:"+discordtest.Ann, "Ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	asks := func(session, command string) store.Call {
		t.Helper()
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		c := store.Call{ID: store.NewID(now), Server: "claude-code", Tool: "Bash", Args: args, By: ann.ID, ByName: ann.Name, Surface: store.OnHTTP, Policy: store.ByRequester,
			Step: "ask-" + session, Ask: &store.Ask{Session: session, Cwd: "/srv"}, State: store.Pending, Created: now, Expires: now.Add(time.Hour)}
		c.Digest = c.ComputeDigest()
		if err := s.db.Begin(t.Context(), store.Caller{User: ann.ID, Name: ann.Name, Surface: store.OnHTTP}, c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	private := s.fake.DMChannel(discordtest.Ann)
	cardOf := func(c store.Call) (found discordtest.Message) {
		t.Helper()
		s.wait("the card of "+string(c.Args), func() bool {
			n := 0
			for _, m := range s.fake.Messages(private) {
				if strings.Contains(string(m.Components), c.ID) {
					found = m
					n++
				}
			}
			if n > 1 {
				t.Errorf("%d cards of %s", n, c.Args)
			}
			return n > 0
		})
		return found
	}
	var calls []store.Call
	for n := range 4 {
		calls = append(calls, asks("one", fmt.Sprintf("make %d", n)))
	}
	var first, below discordtest.Message
	roots := map[string]int{}
	for _, c := range calls {
		m := cardOf(c)
		if m.Reply == "" {
			first = m
		} else {
			below = m
		}
		roots[m.Reply]++
	}
	if roots[""] != 1 || roots[first.ID] != 3 {
		t.Fatalf("the cards of one session reply to %v", roots)
	}
	if other := cardOf(asks("two", "ls")); other.Reply != "" {
		t.Error("the card of another session replies to the first")
	}
	if err := s.fake.Press(t.Context(), discordtest.Ann, below, view.CallID+":"+bots.VerbRun+" *"); err != nil {
		t.Fatal(err)
	}
	s.wait("the press", func() bool {
		for _, m := range s.fake.Messages(private) {
			if m.ID == below.ID {
				return string(m.Components) != string(below.Components)
			}
		}
		return false
	})
	if err := s.fake.Delete(first); err != nil {
		t.Fatal(err)
	}
	if m := cardOf(asks("one", "make more")); m.Reply != "" {
		t.Error("the card replies to one that was deleted")
	}
}
