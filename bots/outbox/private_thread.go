package outbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"nize/bots/phrases"
	"nize/store"
	"nize/store/printable"
)

// Private results. What the agent marks as one person's goes, where
// others read along, to where that person reads alone; the thread says once
// that it did. Where a person can't be reached it is shown to nobody. Who got it
// may share it: the store takes the mark off, and the thread shows the answer.

// PrivateThreads is what a [Platform] implements too where several people may read a
// thread. What is for one person alone is shown on others as all else.
type PrivateThreads interface {
	// Shared says whether more than one person may read what is shown there.
	Shared(at store.Address) bool
	// PrivateThread opens a place where the person alone reads what is theirs of the
	// conversation in, and returns it. ErrNotFound for somebody who can't be
	// reached so.
	PrivateThread(ctx context.Context, user store.User, in store.Address) (store.Address, error)
}

// PrivatePrefix heads the names under which the places of [PrivateThreads] are kept, by
// user.
const PrivatePrefix = "aside/"

// errUnreached is why a private message is shown to nobody.
var errUnreached = errors.New("nobody to show it to")

// Shared says whether others read this thread, too.
func (s *Screen) Shared() bool {
	p, ok := s.Platform.(PrivateThreads)
	return ok && p.Shared(s.To)
}

// target is where a message goes.
func (s *Screen) target(ctx context.Context, m store.Message) (store.Address, error) {
	if m.Only == "" || !s.Shared() {
		return s.To, nil
	}
	return s.privateThread(ctx, m.Only, false)
}

// privateThread is where the person reads alone; again forgets the place that was used
// so far. Somebody who can't be reached is asked for once in a turn.
func (s *Screen) privateThread(ctx context.Context, user string, anew bool) (store.Address, error) {
	s.mu.Lock()
	lost := slices.Contains(s.unreached, user)
	s.mu.Unlock()
	if lost || s.o.Places == nil || s.o.People == nil {
		return store.Address{}, errUnreached
	}
	name := PrivatePrefix + user
	at, err := s.o.Places.GetPlace(ctx, s.Thread, name)
	if err == nil && !anew {
		return at, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return at, fmt.Errorf("finding where somebody reads alone: %w", err)
	}
	u, err := s.o.People.GetUser(ctx, user)
	if err == nil {
		at, err = s.Platform.(PrivateThreads).PrivateThread(ctx, u, s.To)
	}
	if errors.Is(err, store.ErrNotFound) {
		s.mu.Lock()
		s.unreached = append(s.unreached, user)
		s.mu.Unlock()
		s.Notice(s.Words().Say(phrases.AsideUnreached, printable.Escape(u.Name)))
		return at, errUnreached
	}
	if err != nil {
		return at, fmt.Errorf("opening where somebody reads alone: %w", err)
	}
	s.ledger.notePlace(ctx, name, at)
	return at, nil
}

// post posts m and notes where it stands under that name, also where only a
// part of it does. A person's own place that is gone is opened again.
func (s *Screen) post(ctx context.Context, name string, m store.Message) (store.Address, error) {
	to, err := s.target(ctx, m)
	if err != nil {
		return to, err
	}
	for anew := false; ; anew = true {
		if s.ledger.finds() {
			if err := s.ledger.noteIntent(ctx, name, to); err != nil {
				return to, err
			}
			s.mark(ctx, name, m)
		}
		at, err := s.Platform.Post(ctx, to, m)
		if at.Message != "" && (err == nil || at.Message != to.Message) {
			s.ledger.notePlace(ctx, name, at)
			return at, err
		}
		if err != nil {
			at.Message = "" // nothing stands there
		}
		if !errors.Is(err, store.ErrNotFound) || to.Channel == s.To.Channel || anew {
			return at, err
		}
		if to, err = s.privateThread(ctx, m.Only, true); err != nil {
			return to, err
		}
	}
}

// misplaced says whether a message stands where others read what is private
// now. It is left there as it is and goes on in private.
func (s *Screen) misplaced(m store.Message, at store.Address) bool {
	return m.Only != "" && s.Shared() && at.Channel == s.To.Channel
}

// cardFor says for whom alone the card of a call is, "" if it stands in the
// thread: one that a private turn proposed may quote that, and is for the
// requester unless the channel decides.
func (s *Screen) cardFor(ctx context.Context, card store.Card) (string, error) {
	if !card.InPrivateTurn || !s.Shared() {
		return "", nil
	}
	for _, who := range card.Policy.Approvers().Who {
		if p := store.Policy(who); p == store.ByChannel || p == store.ByChannelAdmins {
			return "", nil
		}
	}
	call, err := s.o.Calls.GetCall(ctx, card.Call)
	if err != nil {
		return "", fmt.Errorf("reading call %s: %w", card.Call, err)
	}
	return call.By, nil
}

// Await waits until what was put under that id stands there.
func (s *Screen) Await(ctx context.Context, id string) error {
	s.mu.Lock()
	e := s.shown[id]
	if e == nil || e.posted && reflect.DeepEqual(e.sent, e.want) {
		s.mu.Unlock()
		return nil
	}
	if e.stands == nil {
		e.stands = make(chan struct{})
	}
	stands := e.stands
	s.mu.Unlock()
	select {
	case <-stands:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("showing a message: %w", ctx.Err())
	}
}

// Offer is the message by which a turn is shared, or that says that it was.
func (s *Screen) Offer(n int, only string, done bool) store.Message {
	words := s.Words()
	text := words.Say(phrases.ShareOffer)
	if done {
		text = words.Say(phrases.ShareDone)
	}
	return store.Message{
		ID: ShareID(n), Kind: store.NoticeMessage, Only: only, Final: true, Text: text,
		Share: &store.Share{Thread: s.Thread, N: n, In: s.To, Done: done},
	}
}

// ShareID is the id of the message by which a turn is shared.
func ShareID(n int) string { return "share/" + strconv.Itoa(n) }
