package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// withdrawing is a chat from which messages can be taken away.
type withdrawing struct{ *chat }

func (w withdrawing) Withdraw(_ context.Context, _ store.Address, message string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = slices.DeleteFunc(w.sent, func(m SentMessage) bool { return m.ID == message })
	return nil
}

func (w withdrawing) stands() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.sent {
		ids = append(ids, m.ID)
	}
	return ids
}

// What was sent before a run began, or was given up, and is carried out only
// when it was looked for and posted again, is taken away: a text, which carries
// nothing, and what carries its id. What else stands there stays.
func TestDoubles(t *testing.T) {
	for _, kind := range []store.MessageKind{store.TextMessage, store.NoticeMessage} {
		for _, killed := range []bool{true, false} {
			for _, late := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
				t.Run(fmt.Sprintf("%s killed %t late %s", kind, killed, late), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testDouble(t, kind, killed, late) })
				})
			}
		}
	}
}

func testDouble(t *testing.T, kind store.MessageKind, killed bool, late time.Duration) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at := store.Address{Channel: "C", Thread: "1"}
	m := store.Message{ID: "T/2", Kind: kind, For: &store.Asker{At: time.Now()}}
	is := func(want store.Message) bool { return kind != store.TextMessage && want.ID == m.ID && want.Card == nil }
	w := withdrawing{&chat{places: map[string]store.Address{"T/1": {Message: "10"}}}}
	w.sent = []SentMessage{{ID: "10", Text: true, Is: func(store.Message) bool { return false }}}
	s := NewSent(w, w, time.Now, slog.New(slog.NewTextHandler(t.Output(), nil)))
	go s.RemoveDoubles(ctx)
	post := func(id string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			if err == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.sent = append(w.sent, SentMessage{ID: id, Text: kind == store.TextMessage, Is: is})
			}
			return id, err
		}
	}
	unsure := func(error) bool { return true }
	if !killed {
		if _, _, err := s.Post(ctx, at, m.ID, post("", &url.Error{Err: context.DeadlineExceeded}), unsure); err == nil {
			t.Fatal("the first post worked")
		}
	}
	timer := time.AfterFunc(late, func() { _, _ = post("11", nil)(ctx) })
	defer timer.Stop()
	used := ""
	if killed {
		found, err := s.Find(ctx, at, m)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		used = found.Message
	}
	for used == "" {
		id, found, err := s.Post(ctx, at, m.ID, post("12", nil), unsure)
		if errors.Is(err, errOnItsWay) {
			_ = queue.Sleep(ctx, time.Second) // as a screen does
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if used = id; found {
			s.Settle(at, m.ID, id)
		}
	}
	_ = w.PutPlace(ctx, "T", m.ID, store.Address{Message: used})
	_ = queue.Sleep(ctx, time.Minute)
	if got := w.stands(); !slices.Equal(got, []string{"10", used}) {
		t.Errorf("there stand %v, want 10 and %s", got, used)
	}
	if late < s.Patience && used != "11" {
		t.Errorf("%s is in use: it was not waited for", used)
	}
}
