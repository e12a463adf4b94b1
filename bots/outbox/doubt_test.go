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

// withdrawing is a chat whose messages can be deleted.
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

// If a message of an earlier run, or one that was given up, arrives only after it was
// looked for and posted again, it is deleted, whether it is a text, which carries no mark,
// or carries its id. Other messages stay.
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
			_ = queue.Sleep(ctx, time.Second) // like a screen
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

// If a text that an earlier run was about to post arrives late, and this run doesn't know
// of a message it answers, it is deleted.
func TestDoubleOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		at := store.Address{Channel: "C", Thread: "1"}
		no := func(store.Message) bool { return false }
		w := withdrawing{&chat{places: map[string]store.Address{"T/1": {Message: "10"}}}}
		w.sent = []SentMessage{{ID: "10", Text: true, Is: no}}
		s := NewSent(w, w, time.Now, slog.New(slog.NewTextHandler(t.Output(), nil)))
		go s.RemoveDoubles(ctx)
		if _, err := s.Find(ctx, at, store.Message{ID: "T/2", Kind: store.TextMessage}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is found: %v", err)
		}
		time.AfterFunc(5*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent = append(w.sent, SentMessage{ID: "11", Text: true, Is: no})
		})
		_ = queue.Sleep(ctx, time.Minute)
		if got := w.stands(); !slices.Equal(got, []string{"10"}) {
			t.Errorf("there stand %v, want 10", got)
		}
	})
}

// fate is the outcome of a post and of its sender.
type fate struct {
	what   string        // lost, taken: carried out; answered: carried out, and the run dies before it records that; late
	late   time.Duration // delay after which it is carried out
	killed bool          // otherwise the connection is cut
}

// For every sequence of outcomes of three posts of a message, of which a run may survive
// the last, the message is in its place once in the end, and its place is recorded: the
// senders may die too, and requests are carried out before the next run looks for the
// message, between the check and its post, and long after.
func TestEveryOrder(t *testing.T) {
	var fates []fate
	for _, killed := range []bool{true, false} {
		fates = append(fates, fate{"lost", 0, killed}, fate{"taken", 0, killed})
		for _, late := range []time.Duration{time.Second, 3100 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
			fates = append(fates, fate{"late", late, killed})
		}
	}
	fates = append(fates, fate{"answered", 0, true})
	for _, kind := range []store.MessageKind{store.TextMessage, store.NoticeMessage, store.CardMessage, said, file} {
		t.Run(string(kind), func(t *testing.T) {
			var failed []string
			for _, first := range fates {
				for _, second := range fates {
					for _, third := range fates {
						synctest.Test(t, func(t *testing.T) {
							if err := playFates(t, kind, []fate{first, second, third}); err != nil {
								failed = append(failed, fmt.Sprintf("%v, %v, %v: %v", first, second, third, err))
							}
						})
					}
				}
			}
			if len(failed) > 0 {
				t.Errorf("in %d of %d orders it went wrong, such as %s", len(failed), len(fates)*len(fates)*len(fates), failed[len(failed)/2])
			}
		})
	}
}

// Messages without a place, see [Sent.PostOnce].
const (
	said store.MessageKind = "said"
	file store.MessageKind = "file"
)

// playFates shows a message like a screen, in one run after another, or answers a person's
// action until the answer is recorded.
func playFates(t *testing.T, kind store.MessageKind, fates []fate) error {
	at := store.Address{Channel: "C", Thread: "1"}
	m := store.Message{ID: "T", Kind: kind, For: &store.Asker{At: time.Now()}}
	switch kind {
	case store.CardMessage:
		m.Card = &store.Card{Call: m.ID}
	case said:
		m.ID = SaidID("T", "words")
	case file:
		m.ID = FileID("T", "a.txt")
	}
	once, began := kind == said || kind == file, time.Now().Add(-time.Millisecond) // no run begins at the same time
	text := kind == store.TextMessage
	w := withdrawing{&chat{places: map[string]store.Address{"T/1": {Message: "10"}}}}
	w.sent = []SentMessage{{ID: "10", Text: true, Is: func(store.Message) bool { return false }}}
	arrive := func() (id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		id = fmt.Sprint(10 + w.made)
		w.made++
		w.sent = append(w.sent, SentMessage{ID: id, Text: text, Is: func(want store.Message) bool { return !text && (want.Kind == kind || once) && want.ID == m.ID }})
		return id
	}
	w.made = 1
	errKilled, cut := errors.New("killed"), &url.Error{Err: context.DeadlineExceeded}
	post := func(context.Context) (string, error) {
		if len(fates) == 0 {
			return arrive(), nil
		}
		f := fates[0]
		fates = fates[1:]
		switch f.what {
		case "taken", "answered":
			arrive()
		case "late":
			timer := time.AfterFunc(f.late, func() { arrive() })
			t.Cleanup(func() { timer.Stop() })
		}
		if f.killed {
			return "", errKilled
		}
		return "", cut
	}
	// run is one process, which in the end records the message's place, and dies.
	run := func(intended bool) (ended bool, err error) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := NewSent(w, w, time.Now, slog.New(slog.DiscardHandler))
		go s.RemoveDoubles(ctx)
		message := ""
		if intended && !once {
			found, err := s.Find(ctx, at, m)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return false, err
			}
			message = found.Message
		}
		for message == "" {
			var id string
			var found bool
			var err error
			unsure := func(err error) bool { return errors.Is(err, cut) }
			if once {
				id, err = s.PostOnce(ctx, at, m.ID, began, post, unsure)
			} else {
				_ = w.PutPlace(ctx, "T", m.ID, at)
				id, found, err = s.Post(ctx, at, m.ID, post, unsure)
			}
			switch {
			case errors.Is(err, errKilled):
				return false, nil
			case errors.Is(err, errOnItsWay), errors.Is(err, cut):
				_ = queue.Sleep(ctx, time.Second)
				continue
			case err != nil:
				return false, err
			}
			if message = id; found {
				s.Settle(at, m.ID, id)
			}
		}
		if !once {
			_ = w.PutPlace(ctx, "T", m.ID, store.Address{Channel: "C", Thread: "1", Message: message})
		}
		return true, nil
	}
	for runs := 0; ; runs++ {
		ended, err := run(runs > 0)
		if err != nil {
			return err
		}
		if ended {
			break
		}
	}
	// It is recorded, so a further run posts nothing and only looks for duplicates.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go NewSent(w, w, time.Now, slog.New(slog.DiscardHandler)).RemoveDoubles(ctx)
	_ = queue.Sleep(ctx, 2*time.Minute)
	if got, want := w.stands(), []string{"10", w.places[m.ID].Message}; once && len(got) == 2 && got[0] == "10" {
		return nil
	} else if !slices.Equal(got, want) {
		return fmt.Errorf("there stand %v, want %v", got, want)
	}
	if len(w.doubts) > 0 {
		return fmt.Errorf("doubts are left: %v", w.doubts)
	}
	return nil
}
