package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// Lister is what a platform gives whose posts may get no answer: nize's own
// messages, so that one that was posted is not posted again.
type Lister interface {
	// Sent lists nize's own messages in a thread, or in a channel outside any,
	// but for the one that began the thread: those that were posted at since or
	// later, by any clock that is right to a second, and behind the message after,
	// "" for all.
	Sent(ctx context.Context, in store.Address, since time.Time, after string) ([]SentMessage, error)
}

// SentMessage is one of them.
type SentMessage struct {
	ID   string
	Text bool // it can be an assistant's text: nothing says what it is
	// Is says whether it is the post of m, by what it carries: a text carries
	// nothing while it streams.
	Is func(m store.Message) bool
}

// SentStore is what of the store is needed to find sent messages again.
type SentStore interface {
	FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	GetThread(ctx context.Context, id string) (store.Thread, error)
	ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error)
	PutPlace(ctx context.Context, owner, name string, at store.Address) error
	MovePlace(ctx context.Context, owner, from, to string, at store.Address) error
}

// maxLost is how many messages are remembered whose post got no answer.
const maxLost = 10_000

// Sent finds nize's own messages again whose post got no answer, in this run or
// in one that ended before it came, and knows where the further messages of a
// long text stand.
type Sent struct {
	store  SentStore
	lister Lister
	now    func() time.Time
	log    *slog.Logger

	mu    sync.Mutex           // guards what follows
	since map[string]time.Time // posts whose answer was lost
	known map[string]bool      // messages of which it is known what they are
}

// NewSent returns what is known at the start: nothing but what the store knows.
func NewSent(s SentStore, l Lister, now func() time.Time, log *slog.Logger) *Sent {
	return &Sent{store: s, lister: l, now: now, log: log, since: map[string]time.Time{}, known: map[string]bool{}}
}

func sentKey(at store.Address, id string) string { return at.Channel + "/" + at.Thread + "/" + id }

// Post makes a message once: where the answer to an earlier try was lost, it is
// looked for in the thread first, and found says so. What was found stays
// unsettled until the caller says by [Sent.Settle] that it is in use. unsure says
// whether nobody knows, by its error, if a post was done.
func (s *Sent) Post(ctx context.Context, at store.Address, id string, post func(context.Context) (string, error), unsure func(error) bool) (message string, found bool, err error) {
	message, lost, err := s.Lost(ctx, at, id)
	if err != nil || message != "" {
		return message, message != "", err
	}
	began := s.now()
	message, err = post(ctx)
	switch {
	case err == nil:
		s.Settle(at, id, message)
	case unsure(err) && !lost:
		s.mu.Lock()
		if len(s.since) > maxLost {
			clear(s.since)
		}
		s.since[sentKey(at, id)] = began
		s.mu.Unlock()
	}
	return message, false, err
}

// Lost looks for a message whose post got no answer in this run, if it is one;
// it is "" where it did not get there.
func (s *Sent) Lost(ctx context.Context, at store.Address, id string) (message string, lost bool, err error) {
	s.mu.Lock()
	since, lost := s.since[sentKey(at, id)]
	s.mu.Unlock()
	if !lost {
		return "", false, nil
	}
	placed, err := s.placed(ctx, at, id) // of an earlier run, too
	if err != nil {
		return "", true, err
	}
	// By any clock that is right to a minute.
	list, err := s.lister.Sent(ctx, at, since.Add(-time.Minute), "")
	if err != nil {
		return "", true, fmt.Errorf("looking for a message whose post got no answer: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range list {
		if !s.known[m.ID] && !placed[m.ID] {
			return m.ID, true, nil
		}
	}
	return "", true, nil
}

// Settle notes that a message is the one of that id.
func (s *Sent) Settle(at store.Address, id, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(message)
	delete(s.since, sentKey(at, id))
}

// Know notes that these are messages of which it is known what they are.
func (s *Sent) Know(messages ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.knowLocked(m)
	}
}

func (s *Sent) knowLocked(message string) {
	if len(s.known) > maxLost {
		clear(s.known)
	}
	s.known[message] = true
}

// Find implements [Finder] for a platform that lists its messages. A text is the
// one that nothing else accounts for.
func (s *Sent) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	var since time.Time
	is := func(sent SentMessage) bool { return sent.Is(m) }
	if m.Card == nil && m.Kind == store.TextMessage {
		if m.For == nil || m.For.At.IsZero() {
			return in, store.ErrNotFound
		}
		placed, err := s.placed(ctx, in, m.ID)
		if err != nil {
			return in, err
		}
		// By any clock that is right to a minute.
		since, is = m.For.At.Add(-time.Minute), func(sent SentMessage) bool { return sent.Text && !placed[sent.ID] }
	}
	list, err := s.lister.Sent(ctx, in, since, "")
	if err != nil {
		return in, err
	}
	for _, sent := range list {
		if is(sent) {
			in.Message = sent.ID
			return in, nil
		}
	}
	return in, store.ErrNotFound
}

// owner is the conversation that a text belongs to: the one at at, or where a
// person reads alone, that of the turn which the text is.
func (s *Sent) owner(ctx context.Context, at store.Address, text string) (string, error) {
	th, err := s.store.FindThread(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		id, _, _ := strings.Cut(text, "/")
		th, err = s.store.GetThread(ctx, id)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("finding a conversation: %w", err)
	}
	return th.ID, nil
}

// places are the places that are noted with the text's conversation, none where
// it belongs to none.
func (s *Sent) places(ctx context.Context, at store.Address, text string) (map[string]store.Address, error) {
	owner, err := s.owner(ctx, at, text)
	if err != nil || owner == "" {
		return nil, err
	}
	places, err := s.store.ListPlaces(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("reading where messages stand: %w", err)
	}
	return places, nil
}

// placed are the messages that places of the text's conversation name.
func (s *Sent) placed(ctx context.Context, at store.Address, text string) (map[string]bool, error) {
	places, err := s.places(ctx, at, text)
	return named(places), err
}

func named(places map[string]store.Address) map[string]bool {
	known := map[string]bool{}
	for _, p := range places {
		known[p.Message] = true
	}
	return known
}
