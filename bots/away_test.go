package bots_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/store"
)

// When a platform returns after hours, it gets the messages and the state that it lacks,
// without a restart and without a new message; the outage is logged once.
func TestPlatformAwayForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		memory := botstest.NewMemory(store.OnSlack)
		memory.Break(200)
		c := bots.New(bots.Options{Agent: &botstest.Agent{Threads: o.db, Calls: o.db, Now: time.Now}, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now},
			Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db, Places: o.db, Backlog: o.db, Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		id := store.NewID(time.Now())
		th := store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Channel: "C1", Thread: id}}
		if err := o.db.PutThread(ctx, store.System, th); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Message(ctx, store.Inbound{Key: "1", Thread: id, By: o.by, Text: "say the answer"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Hour) // the bubble's clock
		synctest.Wait()
		shown, err := memory.See(ctx, func([]store.Message) bool { return true })
		if err != nil || len(shown) != 1 || shown[0].Text != "the answer" || !shown[0].Final {
			t.Errorf("shown %+v, %v", shown, err)
		}
		if behind, err := o.db.LaggingThreads(ctx); err != nil || len(behind) > 0 {
			t.Errorf("the chat lacks %v, %v", behind, err)
		}
		if n := strings.Count(o.log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors were logged, want 1: %s", n, o.log)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
