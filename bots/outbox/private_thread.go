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

// Private results. If other people read the thread, what the agent marks as one person's is
// sent to that person's private place, and the thread gets a notice once. If the person
// can't be reached, nobody sees it. Its reader may share it: the store then removes the
// mark, and the thread shows the answer.

// PrivateThreads is implemented by a [Platform] with threads that several people may read.
// Other platforms show private messages like all others.
type PrivateThreads interface {
	// Shared reports whether more than one person may read messages there.
	Shared(at store.Address) bool
	// PrivateThread opens, and returns, a place where only the user reads their private
	// part of the conversation in. ErrNotFound if the user can't be reached that way.
	PrivateThread(ctx context.Context, user store.User, in store.Address) (store.Address, error)
}

// PrivatePrefix is the prefix of the names under which the places of [PrivateThreads] are
// stored, followed by the user.
const PrivatePrefix = "aside/"

// errUnreached is returned if a private message can't be shown to its reader.
var errUnreached = errors.New("nobody to show it to")

// Shared reports whether several people read this thread.
func (s *Screen) Shared() bool {
	p, ok := s.Platform.(PrivateThreads)
	return ok && p.Shared(s.To)
}

// target returns the place for a message.
func (s *Screen) target(ctx context.Context, m store.Message) (store.Address, error) {
	if m.Only == "" || !s.Shared() {
		return s.To, nil
	}
	return s.privateThread(ctx, m.Only, false)
}

// privateThread returns the user's private place; anew replaces the place used so far. If a
// user can't be reached, that is tried only once per turn.
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

// post posts m and records its place under name, even if only a part of it was posted. If a
// user's private place no longer exists, post opens a new one.
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
			at.Message = "" // nothing was posted
		}
		if !errors.Is(err, store.ErrNotFound) || to.Channel == s.To.Channel || anew {
			return at, err
		}
		if to, err = s.privateThread(ctx, m.Only, true); err != nil {
			return to, err
		}
	}
}

// misplaced reports whether a message that is private now is in a place that other people
// read. It stays there as it is and continues in private.
func (s *Screen) misplaced(m store.Message, at store.Address) bool {
	return m.Only != "" && s.Shared() && at.Channel == s.To.Channel
}

// cardFor returns the only reader of a call's card, "" if the thread shows it. A card
// proposed by a private turn may quote that turn, so it goes to the requester, unless the
// channel decides.
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

// Await waits until the message with that id is shown.
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

// Offer returns the message that offers to share a turn or, if done is set, says that it
// was shared.
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

// ShareID returns the id of that message.
func ShareID(n int) string { return "share/" + strconv.Itoa(n) }
