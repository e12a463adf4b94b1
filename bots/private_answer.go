package bots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// Trail records events that change no record; [store.Ledger] implements it.
type Trail interface {
	AddEvent(by store.Caller, e store.Event)
}

// Sharing removes the private mark from a turn; [store.Privacy] implements it.
type Sharing interface {
	ShareTurns(ctx context.Context, by store.Caller, thread string, n int) (store.Turn, error)
}

// onlyLocked returns the only user who may read p, or "" for everybody. For each message
// that is answered privately, it posts a notice in the thread once. v.mu is held.
func (v *turnView) onlyLocked(p store.Progress) string {
	if p.For == "" || !v.s.Shared() {
		return ""
	}
	if v.answeredPrivately != p.Re+1 {
		v.answeredPrivately = p.Re + 1
		v.s.Put(store.Message{
			ID: outbox.PrivatePrefix + strconv.Itoa(p.Re), Kind: store.NoticeMessage, Final: true,
			Text: v.s.Words().Say(phrases.AnswerAside, Escape(v.c.nameOf(p.For))),
		})
	}
	return p.For
}

// offerLocked offers the person to share the private answer; v.mu is held.
func (v *turnView) offerLocked(p store.Progress, only string) {
	if only == "" || !p.Ends || p.Text == "" {
		return
	}
	if n, ok := placeOf(v.s.Thread, cmp.Or(p.Stored, p.Turn)); ok {
		v.s.Put(v.s.Offer(n, only, false))
	}
}

// placeOf returns the position in thread of a turn's id.
func placeOf(thread, turn string) (int, bool) {
	if len(turn) <= len(thread)+1 || turn[:len(thread)+1] != thread+"/" {
		return 0, false
	}
	n, err := strconv.Atoi(turn[len(thread)+1:])
	return n, err == nil
}

// nameOf returns a user's name, or "" if it can't be read.
func (c *Conversation) nameOf(user string) string {
	if c.o.Audience == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // a read from the local store is fast
	defer cancel()
	u, err := c.o.Audience.GetUser(ctx, user)
	if err != nil {
		return ""
	}
	return u.Name
}

// shareTime limits how long a press waits until the thread shows the answer.
const shareTime = time.Minute

// Share implements [Handler]. Repeating it is useful: the answer may not have reached the
// thread the first time.
func (c *Conversation) Share(ctx context.Context, by store.Caller, thread string, n int) error {
	th, err := c.o.Threads.GetThread(ctx, thread)
	if err != nil {
		return fmt.Errorf("sharing an answer: %w", err)
	}
	if c.o.Privacy == nil {
		return store.Mark(store.Errorf("an answer can't be shared here"), store.ErrRefused)
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
	sc.PutStored(store.Message{
		ID: id, Kind: store.TextMessage, Final: true, For: &store.Asker{User: by.User, Identity: by.Identity, At: turn.At},
		Text: sc.Words().Say(phrases.SharedBy, Escape(by.Name)) + "\n\n" + turn.Text,
	}, id)
	sc.Put(sc.Offer(n, by.User, true))
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	if waited := sc.Await(ctx, id); waited != nil {
		return waited
	}
	if again {
		return fmt.Errorf("sharing an answer: %w", store.ErrDecided)
	}
	return nil
}
