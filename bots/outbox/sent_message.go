package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// Lister lists nize's own messages, for a platform whose posts may get no response, so that
// a message that was posted is not posted again.
type Lister interface {
	// Sent lists nize's own messages in a thread, or in a channel outside threads, without
	// the one that began the thread. It returns those that were posted at since or later,
	// by clocks that are right to a second, and after the message after, or all if that is
	// "".
	Sent(ctx context.Context, in store.Address, since time.Time, after string) ([]SentMessage, error)
}

// SentMessage is a message listed by [Lister].
type SentMessage struct {
	ID   string
	Text bool // it may be an assistant's text: it carries no mark
	// Is reports whether this is the post of m, judging by its content: a text carries no
	// mark while it streams.
	Is func(m store.Message) bool
}

// SentStore is the part of the store needed to find sent messages.
type SentStore interface {
	FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	GetThread(ctx context.Context, id string) (store.Thread, error)
	ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error)
	PutPlace(ctx context.Context, owner, name string, at store.Address) error
	MovePlace(ctx context.Context, owner, from, to string, at store.Address) error
}

// Withdrawer is implemented by a [Lister] of a platform that may carry out a request after
// its sender died or gave up: a message that was not found and was posted again may appear
// twice a moment later. A platform that never posts the same nonce twice doesn't need it.
type Withdrawer interface {
	// Withdraw deletes one of nize's own messages.
	Withdraw(ctx context.Context, in store.Address, message string) error
}

// maxLost is how many messages without a response are kept in memory.
const maxLost = 10_000

// Sent finds nize's own messages whose post got no response, in this run or in an earlier
// one, and keeps the places of the further parts of a long text.
type Sent struct {
	store  SentStore
	lister Lister
	now    func() time.Time
	log    *slog.Logger

	// Patience is how long a request may be in flight after its sender died or gave up: it
	// is repeated only after that time. Set it before anything is sent.
	Patience time.Duration
	// Account is the surface and the team that own these doubts. Set it before anything is
	// sent.
	Account store.Address
	began   time.Time            // messages of earlier runs were sent before this time
	doubts  *queue.Queue[string] // schedule of doubtful
	editing *queue.Queue[string] // schedule of edits

	notes    sync.Mutex         // held while a doubt is stored or deleted; locked before mu
	mu       sync.Mutex         // guards the fields below
	lost     map[string]attempt // posts whose response was lost
	known    map[string]bool    // messages whose identity is known
	made     map[string]bool    // messages that this run posted
	edits    map[string]*edit   // keyed by channel and message, see [Sent.Edit]
	posting  map[string]int     // posts in progress, keyed by channel and thread
	doubtful map[string]*doubt  // messages that may appear twice
}

// attempt is a post whose outcome is unknown.
type attempt struct {
	began, ended time.Time
	answered     bool // the platform answered with an error, so the request is not in flight any more
}

// NewSent returns a Sent that knows only what the store knows.
func NewSent(s SentStore, l Lister, now func() time.Time, log *slog.Logger) *Sent {
	return &Sent{
		store: s, lister: l, now: now, log: log, Patience: 3 * time.Second, began: now(), doubts: queue.New[string](now), editing: queue.New[string](now),
		lost: map[string]attempt{}, known: map[string]bool{}, made: map[string]bool{}, edits: map[string]*edit{}, posting: map[string]int{}, doubtful: map[string]*doubt{},
	}
}

func sentKey(at store.Address, id string) string { return threadKey(at) + "/" + id }

func threadKey(at store.Address) string { return at.Channel + "/" + at.Thread }

// errOnItsWay is returned if it is too early to post a message again.
var errOnItsWay = errors.New("an earlier post of it may be on its way still")

// Post posts a message once. If the response to an earlier attempt was lost, it first looks
// for the message in the thread; found reports that it was there. A found message stays
// unsettled until the caller confirms by [Sent.Settle] that it is in use. unsure reports
// whether an error leaves it open if the post was made. If an earlier post may still be in
// flight, Post returns an error and the caller retries.
func (s *Sent) Post(ctx context.Context, at store.Address, id string, post func(context.Context) (string, error), unsure func(error) bool) (message string, found bool, err error) {
	message, lost, err := s.Lost(ctx, at, id)
	if err != nil || message != "" {
		return message, message != "", err
	}
	began := s.now()
	s.underWay(at, 1)
	message, err = post(ctx)
	switch {
	case err == nil && message == "":
	case err == nil:
		s.Settle(at, id, message)
		s.mu.Lock()
		if len(s.made) > maxLost {
			clear(s.made)
		}
		s.made[message] = true
		s.mu.Unlock()
	case unsure(err):
		s.mu.Lock()
		if len(s.lost) > maxLost {
			clear(s.lost)
		}
		if lost {
			began = s.lost[sentKey(at, id)].began
		}
		s.lost[sentKey(at, id)] = attempt{began: began, ended: s.now(), answered: answered(err) && !isFile(id)}
		s.mu.Unlock()
	}
	s.underWay(at, -1)
	return message, false, err
}

// answered reports whether an error is the platform's response, even if only an HTML page.
// A gateway's error that it lost the platform or timed out is not: the request may still be
// carried out.
func answered(err error) bool {
	var broken *url.Error
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) && (status.HTTPStatusCode() == http.StatusBadGateway || status.HTTPStatusCode() == http.StatusGatewayTimeout) {
		return false
	}
	return !errors.As(err, &broken)
}

// underWay counts the posts in progress in a thread.
func (s *Sent) underWay(at store.Address, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posting[threadKey(at)] += n; s.posting[threadKey(at)] == 0 {
		delete(s.posting, threadKey(at))
	}
}

// Lost looks for a message whose post got no response in this run, and reports in lost
// whether there was such a post. message is "" if it did not arrive.
func (s *Sent) Lost(ctx context.Context, at store.Address, id string) (message string, lost bool, err error) {
	s.mu.Lock()
	tried, lost := s.lost[sentKey(at, id)]
	s.mu.Unlock()
	if !lost {
		return "", false, nil
	}
	placed, err := s.placed(ctx, at, id) // recorded by earlier runs too
	if err != nil {
		return "", true, err
	}
	// Allow for clocks that differ by up to a minute.
	list, err := s.lister.Sent(ctx, at, tried.began.Add(-time.Minute), "")
	if err != nil {
		return "", true, fmt.Errorf("looking for a message whose post got no answer: %w", err)
	}
	s.mu.Lock()
	is := isMarked(id)
	n := slices.IndexFunc(list, func(m SentMessage) bool { return !s.known[m.ID] && !placed[m.ID] && (!carriesMark(id) || is(m)) })
	doubted := s.doubtful[sentKey(at, id)] != nil
	s.mu.Unlock()
	if n >= 0 {
		message = list[n].ID
	}
	switch {
	case tried.answered, message != "" && !doubted:
		return message, true, nil
	case message == "" && s.now().Sub(tried.ended) < s.patience(id):
		return "", true, errOnItsWay
	}
	// The last post may still arrive. If the message was found, an earlier attempt posted
	// it too.
	return message, true, s.doubt(ctx, at, id, tried.began.Add(-time.Minute))
}

// Settle records that message is the post with that id.
func (s *Sent) Settle(at store.Address, id, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(message)
	delete(s.lost, sentKey(at, id))
}

// Know records messages whose identity is known.
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

// Find implements [Finder] for a platform with a [Lister]. A text is the message that no
// record accounts for.
func (s *Sent) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	var since time.Time
	is := func(sent SentMessage) bool { return sent.Is(m) }
	if m.Card == nil && m.Kind == store.TextMessage {
		if m.For == nil || m.For.At.IsZero() { // there is no lower bound for its time, and it may still arrive
			return in, cmp.Or(s.doubt(ctx, in, m.ID, s.began.Add(-time.Minute)), store.ErrNotFound)
		}
		placed, err := s.placed(ctx, in, m.ID)
		if err != nil {
			return in, err
		}
		// Allow for clocks that differ by up to a minute.
		since, is = m.For.At.Add(-time.Minute), func(sent SentMessage) bool { return sent.Text && !placed[sent.ID] }
	}
	message, err := s.findBefore(ctx, in, since, "", m.ID, is)
	if err == nil && message == "" {
		err = store.ErrNotFound
	}
	in.Message = message
	return in, err
}

// FindSince returns the message that is the post of m, "" for none: of this run, or of an
// earlier one if since lies before this run.
func (s *Sent) FindSince(ctx context.Context, in store.Address, m store.Message, since time.Time) (string, error) {
	is := func(sent SentMessage) bool { return sent.Is(m) }
	if since.Before(s.began) {
		return s.findBefore(ctx, in, since, "", m.ID, is)
	}
	list, err := s.lister.Sent(ctx, in, since, "")
	if n := slices.IndexFunc(list, is); n >= 0 {
		return list[n].ID, err
	}
	return "", err
}

// findBefore returns the matching message of an earlier run, "" for none. It waits first if
// that run's last requests may still be in flight.
func (s *Sent) findBefore(ctx context.Context, in store.Address, since time.Time, after, id string, is func(SentMessage) bool) (string, error) {
	for range 2 {
		wait := s.patience(id) - s.now().Sub(s.began)
		list, err := s.lister.Sent(ctx, in, since, after)
		if err != nil {
			return "", err
		}
		if n := slices.IndexFunc(list, is); n >= 0 {
			return list[n].ID, nil
		}
		if wait <= 0 {
			break
		}
		if err := queue.Sleep(ctx, wait); err != nil {
			return "", err
		}
	}
	return "", s.doubt(ctx, in, id, since)
}

// owner returns the conversation of a text: the one at at or, in a person's private place,
// that of the turn.
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

// places returns the recorded places of the text's conversation, none if it has no
// conversation.
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

// placed returns the messages at the recorded places of the text's conversation.
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
