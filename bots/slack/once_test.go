package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/bots/slack/slacktest"
	"nize/store"
	"nize/store/database/databasetest"
)

// undone is an inbox of a process that dies before it marks items as done.
type undone struct{ store.Inbox }

func (undone) Done(context.Context, string) error { return errors.New("killed") }

// A reply to a person's action is posted once, even if the response to a post was lost, or
// the process died before it recorded the reply.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	said := func(channel, text string) (n int) {
		for _, m := range fake.Messages(channel) {
			if m.User == slacktest.Bot && strings.Contains(m.Text, text) {
				n++
			}
		}
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	see := func(t *testing.T, channel, text string) {
		t.Helper()
		if err := fake.Wait(ctx, func() bool { return said(channel, text) > 0 }); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	commands := &bots.Commands{}
	commands.Add(bots.Command{Name: "count", Run: func(context.Context, bots.Asked) (bots.Answer, error) { return bots.Said("counted"), nil }})
	commands.Add(bots.Command{Name: "offer", Run: func(context.Context, bots.Asked) (bots.Answer, error) {
		return bots.Answer{Text: "offered", Buttons: []bots.Button{{Words: "count", Label: "Count"}}}, nil
	}})
	dm := fake.DMChannel(slacktest.Ann)
	asks := map[string]string{"counted": dm, "offered": dm, "what is it?": slacktest.General}
	t.Run("killed", func(t *testing.T) {
		o := Options{Commands: commands, Store: storeOf(db)}
		o.Store.Inbox = undone{db}
		linkedBot(t, fake, o, newHeard())
		fake.Fail("chat.postMessage", slacktest.Fault{Status: 502, After: true, Times: len(asks) + 1}) // one for the welcome message
		for _, text := range []string{"count", "offer"} {
			if _, err := fake.DM(slacktest.Ann, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := fake.Slash(t.Context(), slacktest.Ann, slacktest.General, "/nize what is it?"); err != nil {
			t.Fatal(err)
		}
		for text, channel := range asks {
			see(t, channel, text)
		}
		if err := fake.Wait(t.Context(), func() bool {
			return fake.Stats().Calls["conversations.history"]+fake.Stats().Calls["conversations.replies"] >= len(asks)
		}); err != nil {
			t.Fatalf("what was lost is not looked for: %v", err)
		}
	})
	h := newHeard()
	runBot(t, fake, Options{Commands: commands, Store: storeOf(db)}, h)
	h.wait(t, 1) // the question
	for {        // all items are processed
		items, err := db.Pending(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		_ = queue.Sleep(ctx, 5*time.Millisecond)
	}
	for text, channel := range asks {
		if n := said(channel, text); n != 1 {
			t.Errorf("%q was said %d times", text, n)
		}
	}
}

// A card's file is posted once, too.
func TestFileOnce(t *testing.T) {
	t.Parallel()
	fake := startFake(t, slacktest.Options{Unlimited: true})
	db := databasetest.Open(t)
	root, err := fake.Say(slacktest.Ann, slacktest.General, "go")
	if err != nil {
		t.Fatal(err)
	}
	at := store.Address{Surface: store.OnSlack, Team: slacktest.Team, Channel: root.Channel, Thread: root.TS}
	if err := db.PutThread(t.Context(), store.System, store.Thread{ID: store.NewID(time.Now()), User: "ann", Address: at, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	card := &store.Card{Call: store.NewID(time.Now()), Tool: "box:note", State: store.Pending, Digest: strings.Repeat("0", 64), Args: json.RawMessage(`{"text":"` + strings.Repeat("word ", 2000) + `"}`)}
	m := store.Message{ID: card.Call, Kind: store.CardMessage, Card: card}
	files := func() (n int) {
		for _, m := range fake.Thread(root.Channel, root.TS) {
			n += len(m.Files)
		}
		return n
	}
	for _, name := range []string{"lost", "killed"} {
		t.Run(name, func(t *testing.T) {
			b := runBot(t, fake, Options{Store: storeOf(db)}, nobody{})
			if name == "lost" {
				fake.Fail("files.completeUploadExternal", slacktest.Fault{Status: 502, After: true})
			}
			for tries := 0; ; tries++ {
				_, err := b.Post(t.Context(), at, m)
				if err == nil {
					break
				}
				if tries == 100 {
					t.Fatal(err)
				}
				_ = queue.Sleep(t.Context(), 50*time.Millisecond)
			}
			if n := files(); n != 1 {
				t.Errorf("%d files stand there", n)
			}
		})
		// As if the process had died before it recorded the file.
		th, err := db.FindThread(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.MovePlace(t.Context(), th.ID, "file/"+card.Call, "", store.Address{}); err != nil {
			t.Fatal(err)
		}
	}
}
