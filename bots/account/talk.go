package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Threads stores conversations and the settings of their channels.
type Threads interface {
	FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	ThreadAt(ctx context.Context, by store.Caller, th store.Thread) (store.Thread, bool, error)
	EditThread(ctx context.Context, by store.Caller, id string, edit func(*store.Thread)) (store.Thread, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// Talk opens conversations and decides which messages belong to them.
type Talk struct {
	Threads Threads
	Log     *slog.Logger
	// Begins returns the agent and the model for a person's new conversation if the channel
	// doesn't set them; if nil, the defaults apply.
	Begins func(ctx context.Context, by store.Caller, agent, model string) (string, string, error)
	// MayBegin returns ErrRefused if the caller may not start another conversation; nil
	// means no limit.
	MayBegin func(ctx context.Context, by store.Caller) error
	Now      func() time.Time
}

// Asker is the author of a message: their id on the platform, and their language and time
// zone.
type Asker struct {
	By               store.Caller
	ID, Locale, Zone string
	Alone            bool // the only reader
}

// Open returns the conversation at an address, and creates it if needed; from then on it
// follows the author.
func (t *Talk) Open(ctx context.Context, a Asker, at store.Address, title string) (store.Thread, error) {
	channel, err := t.Threads.GetChannel(ctx, at.Place())
	if err != nil {
		return store.Thread{}, fmt.Errorf("reading how the channel is set up: %w", err)
	}
	agent, model := channel.Agent, channel.Model
	if t.Begins != nil {
		if agent, model, err = t.Begins(ctx, a.By, agent, model); err != nil {
			return store.Thread{}, fmt.Errorf("reading what the person chose: %w", err)
		}
	}
	if t.MayBegin != nil {
		if _, err := t.Threads.FindThread(ctx, at); errors.Is(err, store.ErrNotFound) {
			if err := t.MayBegin(ctx, a.By); err != nil {
				return store.Thread{}, err
			}
		}
	}
	th, _, err := t.Threads.ThreadAt(ctx, a.By, store.Thread{
		Agent: agent, Model: model, ID: store.NewID(t.Now()), User: a.By.User, Address: at, Zone: a.Zone, Locale: a.Locale, Title: title, Follows: a.ID,
	})
	if err != nil {
		return th, err
	}
	// What only one person reads is in their language, even if that changes.
	alone := a.Alone && (th.Locale != a.Locale || th.Zone != a.Zone)
	if th.Follows == a.ID && !alone {
		return th, nil
	}
	_, err = t.Threads.EditThread(ctx, a.By, th.ID, func(th *store.Thread) {
		th.Follows = a.ID
		if alone {
			th.Locale, th.Zone = a.Locale, a.Zone
		}
	})
	return th, err
}

// Mode returns a channel's setting for when nize answers. If it can't be read, nize stays
// quiet.
func (t *Talk) Mode(ctx context.Context, at store.Address) string {
	c, err := t.Threads.GetChannel(ctx, at.Place())
	if err != nil {
		t.Log.Error("reading how a channel is set up", "channel", at.Channel, "err", err)
		return store.ModeMention
	}
	return c.EffectiveMode()
}

// Heard returns the keys of the messages that a conversation contains.
func Heard(ctx context.Context, of interface {
	Turns(ctx context.Context, thread string) ([]store.Turn, error)
}, thread string) (map[string]bool, error) {
	turns, err := of.Turns(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("reading a conversation: %w", err)
	}
	keys := map[string]bool{}
	for _, t := range turns {
		keys[t.Key] = true
	}
	return keys, nil
}

// Overheard is a message in a thread that doesn't address nize.
type Overheard struct {
	At     store.Address
	Author string // id on the platform
	All    bool   // it mentions everybody in the channel
	Others bool   // it mentions someone else
	Known  bool   // the thread is a conversation
}

// Answers reports whether such a message is for nize anyway: in follow mode, if its author
// was the last to address nize, mentions no one else, and no one else has written since. A
// message by another person ends following in any mode, even in a muted thread.
func (t *Talk) Answers(ctx context.Context, m Overheard, th store.Thread) (bool, error) {
	if th.Follows != m.Author {
		if err := t.Follow(ctx, th, ""); err != nil {
			return false, err
		}
	}
	if m.All || th.Muted {
		return false, nil
	}
	switch t.Mode(ctx, m.At) {
	case store.ModeAll:
		return true, nil
	case store.ModeMention:
		return false, nil
	}
	return m.Known && th.Follows == m.Author && !m.Others, nil
}

// Follow makes nize follow a user's messages in a thread; "" ends that.
func (t *Talk) Follow(ctx context.Context, th store.Thread, user string) error {
	if th.ID == "" || th.Follows == user {
		return nil
	}
	_, err := t.Threads.EditThread(ctx, store.System, th.ID, func(th *store.Thread) { th.Follows = user })
	return err
}

// Declined returns the reply to a message that was not accepted; ok is false for an error
// that is retried.
func Declined(err error, w phrases.Catalogue) (text string, ok bool) {
	var many *bots.TooManyError
	switch {
	case errors.As(err, &many):
		return many.Words(w), true
	case errors.Is(err, store.ErrInvalid):
		return w.Say(phrases.TooLong), true
	case errors.Is(err, store.ErrRefused):
		return bots.ErrorText(w, err), true
	}
	return "", false
}
