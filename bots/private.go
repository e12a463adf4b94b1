package bots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Private results. What the agent marks as one person's goes, where
// others read along, to where that person reads alone; the thread says once
// that it did. Where a person can't be reached it is shown to nobody. Who got it
// may share it: the store takes the mark off, and the thread shows the answer.

// Aside is what a [Platform] implements too where several people may read a
// thread. What is for one person alone is shown on others as all else.
type Aside interface {
	// Shared says whether more than one person may read what is shown there.
	Shared(at store.Address) bool
	// Aside opens a place where the person alone reads what is theirs of the
	// conversation in, and returns it. ErrNotFound for somebody who can't be
	// reached so.
	Aside(ctx context.Context, user store.User, in store.Address) (store.Address, error)
}

// Trail notes what changes no record; [store.Ledger] has it.
type Trail interface {
	AddEvent(by store.Caller, e store.Event)
}

// Sharing takes the mark off what was private; [store.Privacy] has it.
type Sharing interface {
	ShareTurns(ctx context.Context, by store.Caller, thread string, n int) (store.Turn, error)
}

// asidePrefix heads the names under which the places of [Aside] are kept, by
// user.
const asidePrefix = "aside/"

// errUnreached is why a private message is shown to nobody.
var errUnreached = errors.New("nobody to show it to")

// shared says whether others read this thread, too.
func (s *screen) shared() bool {
	p, ok := s.platform.(Aside)
	return ok && p.Shared(s.to)
}

// target is where a message goes.
func (s *screen) target(ctx context.Context, m store.Message) (store.Address, error) {
	if m.Only == "" || !s.shared() {
		return s.to, nil
	}
	return s.aside(ctx, m.Only, false)
}

// aside is where the person reads alone; anew forgets the place that was used
// so far. Somebody who can't be reached is asked for once in a turn.
func (s *screen) aside(ctx context.Context, user string, anew bool) (store.Address, error) {
	s.mu.Lock()
	lost := slices.Contains(s.unreached, user)
	s.mu.Unlock()
	if lost || s.c.o.Places == nil || s.c.o.Audience == nil {
		return store.Address{}, errUnreached
	}
	name := asidePrefix + user
	at, err := s.c.o.Places.GetPlace(ctx, s.thread, name)
	if err == nil && !anew {
		return at, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return at, fmt.Errorf("finding where somebody reads alone: %w", err)
	}
	u, err := s.c.o.Audience.GetUser(ctx, user)
	if err == nil {
		at, err = s.platform.(Aside).Aside(ctx, u, s.to)
	}
	if errors.Is(err, store.ErrNotFound) {
		s.mu.Lock()
		s.unreached = append(s.unreached, user)
		s.mu.Unlock()
		s.notice(s.words().Say(phrases.AsideUnreached, Escape(u.Name)))
		return at, errUnreached
	}
	if err != nil {
		return at, fmt.Errorf("opening where somebody reads alone: %w", err)
	}
	s.notePlace(ctx, name, at)
	return at, nil
}

// post posts m and notes where it stands under that name, also where only a
// part of it does. A person's own place that is gone is opened anew.
func (s *screen) post(ctx context.Context, name string, m store.Message) (store.Address, error) {
	to, err := s.target(ctx, m)
	if err != nil {
		return to, err
	}
	for anew := false; ; anew = true {
		if s.finds() {
			s.notePlace(ctx, name, to) // it may stand there soon, whatever becomes of us
			s.mark(ctx, name, m)
		}
		at, err := s.platform.Post(ctx, to, m)
		if at.Message != "" && (err == nil || at.Message != to.Message) {
			s.notePlace(ctx, name, at)
			return at, err
		}
		if err != nil {
			at.Message = "" // nothing stands there
		}
		if !errors.Is(err, store.ErrNotFound) || to.Channel == s.to.Channel || anew {
			return at, err
		}
		if to, err = s.aside(ctx, m.Only, true); err != nil {
			return to, err
		}
	}
}

// misplaced says whether a message stands where others read what is private
// now. It is left there as it is and goes on in private.
func (s *screen) misplaced(m store.Message, at store.Address) bool {
	return m.Only != "" && s.shared() && at.Channel == s.to.Channel
}

// beside says for whom alone the card of a call is, "" if it stands in the
// thread: one that a private turn proposed may quote that, and is for the
// requester unless the channel decides.
func (s *screen) beside(ctx context.Context, card store.Card) (string, error) {
	if !card.InPrivateTurn || !s.shared() {
		return "", nil
	}
	for _, who := range card.Policy.Approvers().Who {
		if p := store.Policy(who); p == store.ByChannel || p == store.ByChannelAdmins {
			return "", nil
		}
	}
	call, err := s.c.o.Calls.GetCall(ctx, card.Call)
	if err != nil {
		return "", fmt.Errorf("reading call %s: %w", card.Call, err)
	}
	return call.By, nil
}

// await waits until what was put under that id stands there.
func (s *screen) await(ctx context.Context, id string) error {
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

// onlyLocked is who alone may read what p tells, "" for everybody; the thread
// says once for each message that it is answered aside. v.mu is held.
func (v *turnView) onlyLocked(p store.Progress) string {
	if p.For == "" || !v.s.shared() {
		return ""
	}
	if v.aside != p.Re+1 {
		v.aside = p.Re + 1
		v.s.put(store.Message{
			ID: asidePrefix + strconv.Itoa(p.Re), Kind: store.NoticeMessage, Final: true,
			Text: v.s.words().Say(phrases.AnswerAside, Escape(v.s.c.nameOf(p.For))),
		})
	}
	return p.For
}

// offerLocked lets the person share the answer that was just told; v.mu is
// held.
func (v *turnView) offerLocked(p store.Progress, only string) {
	if only == "" || !p.Ends || p.Text == "" {
		return
	}
	if n, ok := placeOf(v.s.thread, cmp.Or(p.Stored, p.Turn)); ok {
		v.s.put(v.s.offer(n, only, false))
	}
}

// offer is the message by which a turn is shared, or that says that it was.
func (s *screen) offer(n int, only string, done bool) store.Message {
	words := s.words()
	text := words.Say(phrases.ShareOffer)
	if done {
		text = words.Say(phrases.ShareDone)
	}
	return store.Message{
		ID: shareID(n), Kind: store.NoticeMessage, Only: only, Final: true, Text: text,
		Share: &store.Share{Thread: s.thread, N: n, In: s.to, Done: done},
	}
}

// shareID is the id of the message by which a turn is shared.
func shareID(n int) string { return "share/" + strconv.Itoa(n) }

// placeOf is the place in thread of a turn's id.
func placeOf(thread, turn string) (int, bool) {
	if len(turn) <= len(thread)+1 || turn[:len(thread)+1] != thread+"/" {
		return 0, false
	}
	n, err := strconv.Atoi(turn[len(thread)+1:])
	return n, err == nil
}

// nameOf is what a user is called, "" where that can't be read.
func (c *Conversation) nameOf(user string) string {
	if c.o.Audience == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the store's, at hand
	defer cancel()
	u, err := c.o.Audience.GetUser(ctx, user)
	if err != nil {
		return ""
	}
	return u.Name
}

// shareTime bounds how long a press waits for the answer to stand in the thread.
const shareTime = time.Minute

// Share implements [Handler]. Who shared before is helped to the end of it: the
// answer may not have reached the thread.
func (c *Conversation) Share(ctx context.Context, by store.Caller, thread string, n int) error {
	th, err := c.o.Threads.GetThread(ctx, thread)
	if err != nil {
		return fmt.Errorf("sharing an answer: %w", err)
	}
	if c.o.Privacy == nil {
		return fmt.Errorf("sharing an answer: %w here", store.ErrRefused)
	}
	turn, err := c.o.Privacy.ShareTurns(ctx, by, thread, n)
	again := errors.Is(err, store.ErrDecided)
	if errors.Is(err, store.ErrRefused) && c.o.Trail != nil {
		c.o.Trail.AddEvent(by, store.Event{Kind: "thread.share_refused", Subject: thread, Outcome: store.Refused})
	}
	if err != nil && !again {
		return fmt.Errorf("sharing an answer: %w", err)
	}
	sc := c.screenFor(ctx, th)
	if sc == nil {
		return err
	}
	id := "shared/" + strconv.Itoa(n)
	sc.putStored(store.Message{
		ID: id, Kind: store.TextMessage, Final: true, For: &store.Asker{User: by.User, Identity: by.Identity},
		Text: sc.words().Say(phrases.SharedBy, Escape(by.Name)) + "\n\n" + turn.Text,
	}, id)
	sc.put(sc.offer(n, by.User, true))
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	if waited := sc.await(ctx, id); waited != nil {
		return waited
	}
	if again {
		return fmt.Errorf("sharing an answer: %w", store.ErrDecided)
	}
	return nil
}
