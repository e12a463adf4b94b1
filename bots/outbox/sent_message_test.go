package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

// chat is a platform that lists its messages, and the store of one conversation.
type chat struct {
	mu     sync.Mutex // guards the fields below if several goroutines use them
	sent   []SentMessage
	places map[string]store.Address // of the conversation
	doubts map[string]store.Address
	made   int // number of messages, used by [playFates]
}

// of returns the places of an owner.
func (c *chat) of(owner string) map[string]store.Address {
	if owner != store.DoubtfulPlaces {
		return c.places
	}
	if c.doubts == nil {
		c.doubts = map[string]store.Address{}
	}
	return c.doubts
}

func (c *chat) Sent(_ context.Context, _ store.Address, _ time.Time, after string) ([]SentMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.sent), func(m SentMessage) bool { return m.ID <= after }), nil
}

func (c *chat) FindThread(context.Context, store.Address) (store.Thread, error) {
	return store.Thread{ID: "T"}, nil
}

func (c *chat) GetThread(context.Context, string) (store.Thread, error) {
	return store.Thread{}, store.ErrNotFound
}

func (c *chat) ListPlaces(_ context.Context, owner string) (map[string]store.Address, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.of(owner)), nil
}

func (c *chat) GetPlace(_ context.Context, _, name string) (store.Address, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.places[name]
	if !ok {
		return at, store.ErrNotFound
	}
	return at, nil
}

func (c *chat) PutPlace(_ context.Context, owner, name string, at store.Address) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(owner)[name] = at
	return nil
}

func (c *chat) MovePlace(_ context.Context, owner, from, to string, at store.Address) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of(owner), from)
	if to != "" {
		c.of(owner)[to] = at
	}
	return nil
}

func newChat(t *testing.T) (*chat, *Sent) {
	c := &chat{places: map[string]store.Address{}}
	s := NewSent(c, c, time.Now, slog.New(slog.NewTextHandler(t.Output(), nil)))
	s.Patience = 0
	return c, s
}

// A post without a response is repeated only if it did not arrive, and a message known to
// be another one is not mistaken for it.
func TestPostOnce(t *testing.T) {
	ctx, at := t.Context(), store.Address{Channel: "C", Thread: "1"}
	lost := errors.New("no answer")
	unsure := func(err error) bool { return errors.Is(err, lost) }
	for _, arrives := range []bool{true, false} {
		c, s := newChat(t)
		posts := 0
		post := func(answer error) func(context.Context) (string, error) {
			return func(context.Context) (string, error) {
				posts++
				if answer == nil || arrives {
					c.sent = append(c.sent, SentMessage{ID: fmt.Sprint(10 + len(c.sent))})
				}
				return fmt.Sprint(9 + len(c.sent)), answer
			}
		}
		if id, found, err := s.Post(ctx, at, "before", post(nil), unsure); id != "10" || found || err != nil {
			t.Fatalf("%q, %v, %v", id, found, err)
		}
		if _, _, err := s.Post(ctx, at, "m", post(lost), unsure); !errors.Is(err, lost) {
			t.Fatal(err)
		}
		id, found, err := s.Post(ctx, at, "m", post(nil), unsure)
		if id != "11" || found != arrives || err != nil {
			t.Errorf("it arrives: %v; then %q, found %v, %v", arrives, id, found, err)
		}
		if want := 3; arrives && posts != want-1 || !arrives && posts != want {
			t.Errorf("it arrives: %v; %d posts", arrives, posts)
		}
		s.Settle(at, "m", id)
		if id, wasLost, err := s.Lost(ctx, at, "m"); id != "" || wasLost || err != nil {
			t.Errorf("it is lost still: %q, %v, %v", id, wasLost, err)
		}
	}
}

// A message of an earlier run is found by its mark; a text is the one that no record
// accounts for.
func TestFindSent(t *testing.T) {
	ctx, at := t.Context(), store.Address{Channel: "C", Thread: "1"}
	c, s := newChat(t)
	is := func(id string) func(store.Message) bool { return func(m store.Message) bool { return m.ID == id } }
	c.sent = []SentMessage{{ID: "10", Is: is("a")}, {ID: "11", Text: true, Is: is("")}, {ID: "12", Text: true, Is: is("")}}
	c.places["T/1"] = store.Address{Message: "11"}
	asker := &store.Asker{At: time.Now()}
	for _, row := range []struct {
		m    store.Message
		want string
	}{
		{store.Message{ID: "a", Kind: store.NoticeMessage}, "10"},
		{store.Message{ID: "b", Kind: store.NoticeMessage}, ""},
		{store.Message{ID: "T/2", Kind: store.TextMessage, For: asker}, "12"},
		{store.Message{ID: "T/2", Kind: store.TextMessage}, ""},
	} {
		got, err := s.Find(ctx, at, row.m)
		if got.Message != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v; want %q", row.m.ID, got.Message, err, row.want)
		}
	}
}

// The further messages of a text are found by the first one, including one that was about
// to be posted.
func TestParts(t *testing.T) {
	ctx, at := t.Context(), store.Address{Channel: "C", Thread: "1", Message: "10"}
	c, s := newChat(t)
	c.sent = []SentMessage{{ID: "10", Text: true}, {ID: "11", Text: true}, {ID: "12"}, {ID: "13", Text: true}}
	part := func(message string) store.Address { return store.Address{Channel: "C", Thread: "1", Message: message} }
	s.NotePart(ctx, part("11"), "T/1", "10", 1)
	s.NotePart(ctx, part(""), "T/1", "10", 2)
	for range 2 { // the second time it is recorded
		if got, err := s.Parts(ctx, at, "T/1"); err != nil || !slices.Equal(got, []string{"10", "11", "13"}) {
			t.Errorf("the parts are %v, %v", got, err)
		}
	}
	if err := s.DropPart(ctx, at, "T/1", "10", 2); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Parts(ctx, at, "T/1"); err != nil || len(got) != 2 {
		t.Errorf("the parts are %v, %v", got, err)
	}
}

// The digest of a card matches only for the same message, and its record is deleted before
// new content is sent.
func TestDigest(t *testing.T) {
	ctx := t.Context()
	c, _ := newChat(t)
	d := Digest{Store: c, Log: slog.New(slog.DiscardHandler), Call: "X", At: store.Address{Channel: "C", Thread: "1", Message: "10"}}
	is := func(content string) bool {
		yes, err := d.Is(ctx, content)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if is("a") {
		t.Error("it says what nobody noted")
	}
	d.Put(ctx, "10", "a")
	if !is("a") {
		t.Error("what was noted is gone")
	}
	if is("b") || is("a") {
		t.Error("it was to say something else, and is the same")
	}
	d.Put(ctx, "11", "a")
	if is("a") {
		t.Error("another message said so")
	}
}

// An attempt that posts nothing, because the platform defers the message, doesn't settle an
// earlier attempt whose message arrives late.
func TestTryThatPostsNothing(t *testing.T) {
	ctx, at := t.Context(), store.Address{Channel: "C", Thread: "1"}
	lost := errors.New("a page in place of an answer")
	c, s := newChat(t)
	try := func(message string, err error) (string, bool, error) {
		return s.Post(ctx, at, "m", func(context.Context) (string, error) { return message, err }, func(err error) bool { return err != nil })
	}
	if _, _, err := try("", lost); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if message, found, err := try("", nil); message != "" || found || err != nil {
		t.Fatalf("%q, %v, %v", message, found, err)
	}
	c.sent = append(c.sent, SentMessage{ID: "10"})
	if message, found, err := try("11", nil); message != "10" || !found || err != nil {
		t.Errorf("%q, found %v, %v; want the first one", message, found, err)
	}
}

// gatewayError is a response of a gateway in front of the platform.
type gatewayError int

func (e gatewayError) Error() string       { return fmt.Sprint("status ", int(e)) }
func (e gatewayError) HTTPStatusCode() int { return int(e) }

// A post that only a gateway answered may still be carried out: it is waited for, and
// doubted when it is repeated.
func TestGatewayAnswers(t *testing.T) {
	for status, sure := range map[int]bool{500: true, 502: false, 503: true, 504: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, at := t.Context(), store.Address{Channel: "C", Thread: "1"}
			c := &chat{places: map[string]store.Address{}}
			s := NewSent(c, withdrawing{c}, time.Now, slog.New(slog.NewTextHandler(t.Output(), nil)))
			try := func(message string, err error) error {
				_, _, err = s.Post(ctx, at, "m", func(context.Context) (string, error) { return message, err }, func(err error) bool { return err != nil })
				return err
			}
			if err := try("", fmt.Errorf("posting: %w", gatewayError(status))); err == nil {
				t.Fatal("no error")
			}
			if err := try("11", nil); errors.Is(err, errOnItsWay) == sure {
				t.Errorf("%d: at once: %v", status, err)
			}
			<-time.After(s.Patience)
			if err := try("11", nil); err != nil {
				t.Errorf("%d: later: %v", status, err)
			}
			if doubted := len(c.doubts) > 0; doubted == sure {
				t.Errorf("%d: doubted %v", status, doubted)
			}
		})
	}
}
