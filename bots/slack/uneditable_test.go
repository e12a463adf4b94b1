package slack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/view"
	"nize/store"
	"nize/store/database/databasetest"
)

func askedBy(user string) *store.Asker {
	return &store.Asker{Identity: "slack:" + slacktest.Team + ":" + user, At: time.Now()}
}

// in returns the thread begun by a message of Ann in a channel.
func in(t *testing.T, fake *slacktest.Server, channel string) (slacktest.Message, store.Address) {
	t.Helper()
	root, err := fake.Say(slacktest.Ann, channel, "go")
	if err != nil {
		t.Fatal(err)
	}
	return root, store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
}

// A notice with code may be changed to one without: Slack replaces rich text only by rich
// text.
func TestNoticeLosesItsCode(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, at := in(t, fake, slacktest.General)
	m := store.Message{ID: "m1", Kind: store.NoticeMessage, Text: "write `nizectl doctor`", Final: true}
	at, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, m.Text = range []string{"it is over", "again: `nizectl doctor`", "over for good"} {
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatalf("%q: %v", m.Text, err)
		}
	}
	if list := fake.Thread(root.Channel, root.TS); len(list) != 2 || list[1].Text != m.Text {
		t.Errorf("the thread is %+v", list)
	}
	ts, err := b.Tell(t.Context(), bots.Announcement{Channel: slacktest.General, ID: "1", Text: "disk full: `nizectl doctor`"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tell(t.Context(), bots.Announcement{Channel: slacktest.General, ID: "1", Message: ts, Text: "the disk has room again"}); err != nil {
		t.Errorf("an alert that is over: %v", err)
	}
}

// A message that can't be edited is replaced by a new one.
func TestUneditable(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"block_mismatch", "cant_update_message", "edit_window_closed"} {
		fake := startFake(t, slacktest.Options{Unlimited: true})
		b := runBot(t, fake, Options{}, nobody{})
		root, at := in(t, fake, slacktest.General)
		m := store.Message{ID: "m1", Kind: store.NoticeMessage, Text: "one", Final: true}
		posted, err := b.Post(t.Context(), at, m)
		if err != nil {
			t.Fatal(err)
		}
		fake.Fail("chat.update", slacktest.Fault{Error: code})
		m.Text = "two"
		if err := b.Update(t.Context(), posted, m); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s: %v, want that it is not there", code, err)
		}
		if _, err := b.Post(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
		if got := written(fake, root); got != "two" {
			t.Errorf("%s: the thread says %q", code, got)
		}
	}
}

// A message that can be neither edited nor deleted stays, without endless retries.
func TestUneditableStays(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, at := in(t, fake, slacktest.General)
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "half", For: askedBy(slacktest.Ann)}
	posted, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	restart(t, b)
	fake.Fail("chat.update", slacktest.Fault{Error: "cant_update_message"})
	fake.Fail("chat.delete", slacktest.Fault{Error: "cant_delete_message"})
	m.Text, m.Final = "half and the rest", true
	if err := b.Update(t.Context(), posted, m); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("%v, want that it is not there", err)
	}
	if _, err := b.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	if got := written(fake, root); got != "half"+m.Text {
		t.Errorf("the thread says %q", got)
	}
}

// While a text that can't be edited grows, messages are not deleted and posted again for
// each piece: the rest is posted when it is complete.
func TestUneditableGrows(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true, FixedStreams: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, at := in(t, fake, slacktest.General)
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "one", For: askedBy(slacktest.Ann)}
	at, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	restart(t, b)
	for _, m.Text = range []string{"one two", "one two three", "one two three four"} {
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
	}
	if st := fake.Stats(); st.Calls["chat.update"] != 1 || st.Calls["chat.delete"] != 0 {
		t.Errorf("while it grew: %d edits, %d deletions", st.Calls["chat.update"], st.Calls["chat.delete"])
	}
	m.Final = true
	if err := b.Update(t.Context(), at, m); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("%v, want that it is not there", err)
	}
	at.Message = ""
	if _, err := b.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	if got := written(fake, root); got != m.Text {
		t.Errorf("the thread says %q", got)
	}
}

// If a partial text was deleted while nize was down, that is reported instead of posting it
// in an unrecorded place.
func TestDeletedWhileAway(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{}, nobody{})
	root, at := in(t, fake, slacktest.General)
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "one", For: askedBy(slacktest.Ann)}
	at, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	restart(t, b)
	half, _ := fake.Message(root.Channel, at.Message)
	if err := fake.Delete(half); err != nil {
		t.Fatal(err)
	}
	for _, m.Text = range []string{"one two", "one two three"} {
		if err := b.Update(t.Context(), at, m); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v, want that it is not there", m.Text, err)
		}
	}
	if list := fake.Thread(root.Channel, root.TS); len(list) != 1 {
		t.Errorf("the thread is %+v", list)
	}
}

// An answer is streamed in a direct conversation too, and only to the requester.
func TestStreamToOne(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true, Events: []string{}}) // no events arrive, and there is no welcome message
	b := runBot(t, fake, Options{}, nobody{})
	root, at := in(t, fake, fake.DMChannel(slacktest.Ann))
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "an answer", Final: true, For: askedBy(slacktest.Ann)}
	if _, err := b.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	list := fake.Thread(root.Channel, root.TS)
	if len(list) != 2 || list[1].Stream == nil || list[1].Text != m.Text {
		t.Errorf("the thread is %+v", list)
	}
	if refused := fake.Stats().Refused; len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// Trailing whitespace is not sent until more text follows.
func TestBlankPieces(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	b := runBot(t, fake, Options{Pace: time.Nanosecond}, nobody{})
	root, at := in(t, fake, slacktest.General)
	m := store.Message{ID: "t/1", Kind: store.TextMessage, Text: "one", For: askedBy(slacktest.Ann)}
	at, err := b.Post(t.Context(), at, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{" ", "\n", "\n", "two", "\n\n"} {
		m.Text += more
		if err := b.Update(t.Context(), at, m); err != nil {
			t.Fatal(err)
		}
	}
	m.Final = true
	if err := b.Update(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
	if got := written(fake, root); got != strings.TrimSpace(m.Text) {
		t.Errorf("the thread says %q", got)
	}
	if refused := fake.Stats().Refused; len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// However Slack counts a message's size: a card is posted with its buttons, and says where
// the rest of it is.
func TestCardWhereBytesCount(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true, CountBytes: true})
	db := databasetest.Open(t)
	b := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
	root, at := in(t, fake, slacktest.General)
	if _, _, err := db.ThreadAt(t.Context(), store.System, store.Thread{ID: store.NewID(someTime), User: "u", Address: at}); err != nil {
		t.Fatal(err)
	}
	c := store.Card{Call: store.NewID(someTime), Tool: "tracker:create_issue", Title: "Create an issue", Server: "tracker", By: "ann", Digest: strings.Repeat("ab12", 16), Policy: store.ByRequester, Expires: someTime.Add(15 * time.Minute)}
	c.Args = []byte(`{"text":"` + strings.Repeat("你好", 2_000) + `"}`)
	c.Description = strings.Repeat("描述", 400)
	for _, c.State = range []store.State{store.Pending, store.Done} {
		var err error
		m := store.Message{ID: c.Call, Kind: store.CardMessage, Card: &c}
		if at.Message == "" {
			at, err = b.Post(t.Context(), at, m)
		} else {
			err = b.Update(t.Context(), at, m)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.State, err)
		}
		posted, _ := fake.Message(at.Channel, at.Message)
		want := []string{bots.VerbShow, view.FileName(c), "你好你好"}
		if c.State == store.Done { // only one line remains
			want = []string{bots.VerbShow, "Created an issue"}
		}
		for _, want := range want {
			if !strings.Contains(string(posted.Blocks), want) {
				t.Errorf("%s: the card does not hold %q: %s", c.State, want, posted.Blocks)
			}
		}
	}
	files := 0
	if err := fake.Wait(t.Context(), func() bool { // a share follows the response
		files = 0
		for _, m := range fake.Thread(root.Channel, root.TS) {
			files += len(m.Files)
		}
		return files > 0
	}); err != nil || files != 1 {
		t.Errorf("%d files, %v", files, err)
	}
}
