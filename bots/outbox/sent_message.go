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

// Withdrawer is what a [Lister] implements too whose requests may be carried out
// after their sender has died or given them up: what was looked for, not found
// and posted again may stand there twice a moment later. A platform that posts
// nothing twice of one nonce needs none.
type Withdrawer interface {
	// Withdraw takes one of nize's own messages away.
	Withdraw(ctx context.Context, in store.Address, message string) error
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

	// Patience is how long a request may be on its way after its sender died or
	// gave it up: only then it is made again. It is set before anything is sent.
	Patience time.Duration
	// Account is the surface and the team whose doubts these are. It is set before
	// anything is sent.
	Account store.Address
	began   time.Time            // what an earlier run sent was sent before that
	doubts  *queue.Queue[string] // of doubtful
	editing *queue.Queue[string] // of edits

	notes    sync.Mutex         // held while a doubt is stored or forgotten, and before mu
	mu       sync.Mutex         // guards what follows
	lost     map[string]attempt // posts whose answer was lost
	known    map[string]bool    // messages of which it is known what they are
	made     map[string]bool    // messages that this run posted
	edits    map[string]*edit   // by channel and message, see [Sent.Edit]
	posting  map[string]int     // posts under way, by channel and thread
	doubtful map[string]*doubt  // what may come to stand there twice
}

// attempt is a post of which nobody knows whether it was done.
type attempt struct {
	began, ended time.Time
	answered     bool // it was, with a failure: it is on its way no more
}

// NewSent returns what is known at the start: nothing but what the store knows.
func NewSent(s SentStore, l Lister, now func() time.Time, log *slog.Logger) *Sent {
	return &Sent{
		store: s, lister: l, now: now, log: log, Patience: 3 * time.Second, began: now(), doubts: queue.New[string](now), editing: queue.New[string](now),
		lost: map[string]attempt{}, known: map[string]bool{}, made: map[string]bool{}, edits: map[string]*edit{}, posting: map[string]int{}, doubtful: map[string]*doubt{},
	}
}

func sentKey(at store.Address, id string) string { return threadKey(at) + "/" + id }

func threadKey(at store.Address) string { return at.Channel + "/" + at.Thread }

// errOnItsWay is why a message is not posted again yet.
var errOnItsWay = errors.New("an earlier post of it may be on its way still")

// Post makes a message once: where the answer to an earlier try was lost, it is
// looked for in the thread first, and found says so. What was found stays
// unsettled until the caller says by [Sent.Settle] that it is in use. unsure says
// whether nobody knows, by its error, if a post was done. One that may be on its
// way still is waited for: the error says so, and the caller tries again.
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

// answered says whether an error is what the platform answered, if only a page. A
// gateway's word that it lost the platform, or waited too long for it, is no answer:
// the request may be carried out yet.
func answered(err error) bool {
	var broken *url.Error
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) && (status.HTTPStatusCode() == http.StatusBadGateway || status.HTTPStatusCode() == http.StatusGatewayTimeout) {
		return false
	}
	return !errors.As(err, &broken)
}

// underWay counts the posts in a thread that are under way.
func (s *Sent) underWay(at store.Address, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posting[threadKey(at)] += n; s.posting[threadKey(at)] == 0 {
		delete(s.posting, threadKey(at))
	}
}

// Lost looks for a message whose post got no answer in this run, if it is one;
// it is "" where it did not get there.
func (s *Sent) Lost(ctx context.Context, at store.Address, id string) (message string, lost bool, err error) {
	s.mu.Lock()
	tried, lost := s.lost[sentKey(at, id)]
	s.mu.Unlock()
	if !lost {
		return "", false, nil
	}
	placed, err := s.placed(ctx, at, id) // of an earlier run, too
	if err != nil {
		return "", true, err
	}
	// By any clock that is right to a minute.
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
	// The last post may come yet; where it was found, it was posted before too.
	return message, true, s.doubt(ctx, at, id, tried.began.Add(-time.Minute))
}

// Settle notes that a message is the one of that id.
func (s *Sent) Settle(at store.Address, id, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(message)
	delete(s.lost, sentKey(at, id))
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
		if m.For == nil || m.For.At.IsZero() { // nothing says since when it may stand there, and it may come yet
			return in, cmp.Or(s.doubt(ctx, in, m.ID, s.began.Add(-time.Minute)), store.ErrNotFound)
		}
		placed, err := s.placed(ctx, in, m.ID)
		if err != nil {
			return in, err
		}
		// By any clock that is right to a minute.
		since, is = m.For.At.Add(-time.Minute), func(sent SentMessage) bool { return sent.Text && !placed[sent.ID] }
	}
	message, err := s.findBefore(ctx, in, since, "", m.ID, is)
	if err == nil && message == "" {
		err = store.ErrNotFound
	}
	in.Message = message
	return in, err
}

// FindSince is the message that is the post of m, "" for none: of this run, or of
// an earlier one if that can have known of what began then.
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

// findBefore is the message of an earlier run that is that one, "" for none. What
// that run sent as it ended may be on its way still.
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
