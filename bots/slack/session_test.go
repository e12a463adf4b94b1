package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/store"
)

// asks stores a waiting call, as made by a program of the user over HTTP.
func (w *whole) asks(u store.User, session, command string) store.Call {
	w.t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	c := store.Call{ID: store.NewID(now), Server: "claude-code", Tool: "Bash", Args: args, By: u.ID, ByName: u.Name, Surface: store.OnHTTP, Policy: store.ByRequester,
		Step: "ask-" + session, Ask: &store.Ask{Session: session, Cwd: "/srv"}, State: store.Pending, Created: now, Expires: now.Add(time.Hour)}
	c.Digest = c.ComputeDigest()
	if err := w.db.Begin(w.t.Context(), store.Caller{User: u.ID, Name: u.Name, Surface: store.OnHTTP}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// copyOf waits for the card of a call in a private conversation.
func (w *whole) copyOf(channel string, c store.Call) (found slacktest.Message) {
	w.t.Helper()
	w.until("the card of "+string(c.Args), func() bool {
		n := 0
		for _, m := range w.fake.Messages(channel) {
			if strings.Contains(m.Text, c.ID) {
				found = m
				n++
			}
		}
		if n > 1 {
			w.t.Errorf("%d cards of %s", n, c.Args)
		}
		return n > 0
	})
	return found
}

// TestAsksOfOneSession: a requester over HTTP gets the card in private. The cards of one
// session are below the first one, even if they arrived at once, and their buttons work. If
// the thread is deleted, the next card is outside it.
func TestAsksOfOneSession(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	ann, err := w.db.EnsureUser(t.Context(), "slack:"+slacktest.Team+":"+slacktest.Ann, "Ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	private := w.fake.DMChannel(slacktest.Ann)
	var calls []store.Call
	for n := range 4 {
		calls = append(calls, w.asks(ann, "one", fmt.Sprintf("make %d", n)))
	}
	roots := map[string]int{}
	var cards []slacktest.Message
	for _, c := range calls {
		m := w.copyOf(private, c)
		cards = append(cards, m)
		roots[m.Root()]++
	}
	if len(roots) != 1 {
		t.Fatalf("the cards of one session stand in %d threads", len(roots))
	}
	if other := w.copyOf(private, w.asks(ann, "two", "ls")); roots[other.Root()] != 0 {
		t.Error("the card of another session stands in the thread of the first")
	}
	below := cards[0]
	for _, m := range cards {
		if m.TS != m.Root() {
			below = m
		}
	}
	if err := w.fake.Press(t.Context(), slacktest.Ann, below, "Run"); err != nil {
		t.Fatal(err)
	}
	w.until("it was pressed", func() bool {
		m, _ := w.fake.Message(below.Channel, below.TS)
		return !strings.Contains(m.Text, "Waiting") && m.Text != below.Text
	})
	for _, m := range cards {
		if m.TS == m.Root() {
			if err := w.fake.Delete(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := w.asks(ann, "one", "make more")
	if m := w.copyOf(private, after); m.TS != m.Root() {
		t.Errorf("the card stands below one that was deleted")
	}
	if c, err := w.db.GetCall(context.WithoutCancel(t.Context()), after.ID); err != nil || !c.Waiting() {
		t.Errorf("%+v, %v", c, err)
	}
}
