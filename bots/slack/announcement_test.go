package slack

import (
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/store/database/databasetest"
)

// An alert whose post may have succeeded is found by the process that sent it and by the
// next one; a later alert is posted anew.
func TestAnnouncedOnce(t *testing.T) {
	t.Parallel()
	fake, db := startFake(t, slacktest.Options{Unlimited: true}), databasetest.Open(t)
	since := time.Now()
	tell := func(b *Bot, id, text string) error {
		_, err := b.Tell(t.Context(), bots.Announcement{Channel: slacktest.General, ID: id, Since: since, Text: text})
		return err
	}
	said := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range fake.Messages(slacktest.General) {
			if m.User == slacktest.Bot {
				got = append(got, m.Text)
			}
		}
		if len(got) != len(want) || len(got) > 0 && got[len(got)-1] != want[len(want)-1] {
			t.Errorf("the channel says %q, want %q", got, want)
		}
	}
	first := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	fake.Fail("chat.postMessage", slacktest.Fault{Status: 502, After: true})
	if tell(first, "1", "the disk is full") == nil {
		t.Fatal("its answer was not lost")
	}
	said("the disk is full")
	next := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	for range 2 {
		if err := tell(next, "1", "the disk is full, still"); err != nil {
			t.Fatal(err)
		}
		said("the disk is full, still")
	}
	if err := tell(next, "2", "the disk is full, still"); err != nil {
		t.Fatal(err)
	}
	said("the disk is full, still", "the disk is full, still")
}
