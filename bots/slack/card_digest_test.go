package slack

import (
	"testing"

	"nize/bots/outbox"
	"nize/bots/slack/slacktest"
	"nize/store"
)

// After a restart each waiting card is checked: if it already shows the right content, it
// isn't edited, nor is its session's status set again. An edit without a response is
// uncertain, so it is repeated.
func TestCardDrawnOnce(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	ctx := t.Context()
	asked, err := w.fake.Mention(slacktest.Ann, slacktest.General, `call toolbox:greet {"name":"Bo"}`)
	if err != nil {
		t.Fatal(err)
	}
	call := readMessage(t, w.sees(asked, "waiting for approval")).Card.Call
	to := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: asked.Channel, Thread: asked.Root()}
	th, err := w.db.FindThread(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	w.until("the session waits", func() bool { return w.fake.Session(to.Channel, to.Thread).Status == "suspended" })
	at := w.placed(th.ID, call)
	w.placed(call, "drawn/"+at.Channel+"/"+at.Thread)
	w.placed(th.ID, "suspended")

	card, err := w.gateway.Card(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	other := card
	other.State = store.Cancelled
	calls := func(method string) int { return w.fake.Stats().Calls[method] }
	edits, statuses := calls("chat.update"), calls("agents.sessions.setStatus")
	for _, step := range []struct {
		what  string
		card  store.Card
		lost  bool
		edits int
	}{
		{"the same", card, false, 0},
		{"another", other, false, 1},
		{"the same other", other, false, 0},
		{"the first again", card, true, 1},
		{"the other again, which nobody knows to have gone", other, false, 1},
		{"and still", other, false, 0},
	} {
		if step.lost {
			w.fake.Fail("chat.update", slacktest.Fault{Status: 500, After: true})
		}
		err := w.Update(ctx, at, store.Message{ID: call, Kind: store.CardMessage, Card: &step.card})
		if (err != nil) != step.lost {
			t.Errorf("%s: %v", step.what, err)
		}
		edits += step.edits
		if n := calls("chat.update"); n != edits {
			t.Errorf("%s: %d edits, want %d", step.what, n, edits)
			edits = n
		}
	}
	for _, step := range []struct {
		state outbox.State
		calls int
	}{{outbox.Waiting, 0}, {outbox.Working, 1}, {outbox.Waiting, 1}, {outbox.Waiting, 0}, {outbox.Idle, 1}} {
		if err := w.Present(ctx, to, step.state); err != nil {
			t.Errorf("%s: %v", step.state, err)
		}
		statuses += step.calls
		if n := calls("agents.sessions.setStatus"); n != statuses {
			t.Errorf("%s: set %d times, want %d", step.state, n, statuses)
			statuses = n
		}
	}
}

// placed waits for the place recorded with its owner under a name.
func (w *whole) placed(owner, name string) (at store.Address) {
	w.t.Helper()
	w.until(name+" is noted", func() bool {
		var err error
		at, err = w.db.GetPlace(w.t.Context(), owner, name)
		w.fake.Look(slacktest.Ann, slacktest.General, "") // makes the fake check again
		return err == nil && (at.Message != "" || name == "suspended")
	})
	return at
}
