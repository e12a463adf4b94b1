package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/store"
)

// admin makes a user of the workspace an admin who gets copies.
func (w *whole) admin(id string) store.User {
	w.t.Helper()
	u, err := w.db.EnsureUser(w.t.Context(), "slack:"+slacktest.Team+":"+id, id, store.Member)
	if err != nil {
		w.t.Fatal(err)
	}
	u.Role = store.Admin
	if err := w.db.PutUser(w.t.Context(), store.System, u); err != nil {
		w.t.Fatal(err)
	}
	w.others.mu.Lock()
	defer w.others.mu.Unlock()
	w.others.ids = append(w.others.ids, u.ID)
	return u
}

// An approver is reminded once, in private and in their language, and so is the
// conversation; people who can't be reached don't count towards the limit.
func TestReminders(t *testing.T) {
	t.Parallel()
	w := startWhole(t, slacktest.Options{})
	for n := range 6 { // on no platform
		u, err := w.db.EnsureUser(t.Context(), fmt.Sprintf("local:%d", 100+n), "cli", store.Admin)
		if err != nil {
			t.Fatal(err)
		}
		w.others.ids = append(w.others.ids, u.ID)
	}
	w.admin(slacktest.Cho)
	asked, err := w.fake.Mention(slacktest.Ann, slacktest.General, `call toolbox:greet {"name":"Bo"}`)
	if err != nil {
		t.Fatal(err)
	}
	call := readMessage(t, w.sees(asked, "waiting for approval")).Card.Call
	private := w.fake.DMChannel(slacktest.Cho)
	w.until("Cho's copy", func() bool { return len(w.fake.Messages(private)) == 1 })
	w.until("its place is noted", func() bool {
		places, err := w.db.ListPlaces(context.WithoutCancel(t.Context()), call)
		w.fake.Look(slacktest.Ann, slacktest.General, "") // makes the fake check again
		return err == nil && slices.ContainsFunc([]store.Address{places["copy/"+w.others.ids[6]]}, func(at store.Address) bool { return at.Message != "" })
	})
	for range 3 {
		_, _ = w.db.Remind(t.Context(), call) // the store reports it once
	}
	w.sees(asked, "is still waiting for approval")
	w.until("Cho's reminder", func() bool {
		list := w.fake.Messages(private)
		return len(list) == 2 && strings.Contains(list[1].Text, "仍在等待批准") && strings.Contains(list[1].Text, call)
	})
	if err := w.fake.Press(t.Context(), slacktest.Ann, w.sees(asked, "waiting for approval"), "Run"); err != nil {
		t.Fatal(err)
	}
	w.sees(asked, "toolbox:greet is done")
	if list := w.fake.Messages(private); len(list) != 2 {
		t.Errorf("%d messages in private", len(list))
	}
}
