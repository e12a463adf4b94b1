// Package account is the common part of the chat bots: the account in use, its health, and the
// intake of events.
//
// [Holder] implements the interfaces of [bots.Bot] for the account in use. [Intake] stores
// each event before it is processed.
package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/store"
)

// Live is a bot with one account.
type Live interface {
	comparable
	// Serve processes events until ctx ends, and waits for what it started.
	Serve(ctx context.Context)
	Team() string
	Poster() Poster
	Directory() Directory
}

// Poster sends the messages of a [Live].
type Poster interface {
	// Show posts m, or edits it at at.Message, and returns its id.
	Show(ctx context.Context, at store.Address, m store.Message) (string, error)
	Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error)
	Remove(ctx context.Context, at store.Address, m store.Message) error
	Present(ctx context.Context, to store.Address, s outbox.State) error
	// Announce posts a message outside conversations.
	Announce(ctx context.Context, at store.Address, a bots.Announcement) (string, error)
}

// Directory looks up people for a [Live].
type Directory interface {
	Member(ctx context.Context, channel, user string) (bool, error)
	Admins(ctx context.Context, channel string) ([]string, error)
	TeamAdmins(ctx context.Context) ([]string, error)
	ChannelName(ctx context.Context, channel string) (string, error)
	UserGroup(ctx context.Context, name string) (source, handle string, err error)
	InUserGroup(ctx context.Context, id string) ([]string, error)
	// Direct returns a person's direct conversation with nize. Only people with access get
	// messages.
	Direct(ctx context.Context, u store.User) (store.Address, error)
	Sweep()
}

// Options configure a [Holder].
type Options[L Live] struct {
	Surface store.Surface
	Title   string // the platform's name in its usual spelling
	Now     func() time.Time
	// Open returns the Live for an account, without making a request.
	Open func(account store.Bot, h bots.Handler) L
}

// Holder is the part of a [bots.Bot] that all platforms share. A bot embeds it.
type Holder[L Live] struct {
	o Options[L]

	mu         sync.Mutex // guards the fields below
	account    *store.Bot
	changed    chan struct{} // closed and replaced when account changes
	live       L             // zero while no account is in use
	ready      chan struct{} // closed while live is set
	health     bots.Health
	fault      string // error shown regardless of other changes, "" for none
	faultSince time.Time
}

// New returns a Holder without an account; [Holder.Use] sets it.
func New[L Live](o Options[L]) *Holder[L] {
	return &Holder[L]{o: o, changed: make(chan struct{}), ready: make(chan struct{}), health: bots.Health{State: bots.Stopped, Since: o.Now()}}
}

// Surface implements [bots.Platform].
func (b *Holder[L]) Surface() store.Surface { return b.o.Surface }

// Title implements [bots.Bot].
func (b *Holder[L]) Title() string { return b.o.Title }

// Use implements [bots.Bot]. Later requests never reach the previous account, and its
// health is no longer reported.
func (b *Holder[L]) Use(account *store.Bot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account = account
	if account != nil {
		b.retireLocked(bots.Connecting)
	} else {
		b.retireLocked(bots.Stopped)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// retireLocked stops serving the current account, if there is one; b.mu is held.
func (b *Holder[L]) retireLocked(state string) {
	var none L
	if b.live == none {
		return
	}
	b.live, b.fault = none, ""
	b.ready = make(chan struct{})
	b.health = bots.Health{State: state, Since: b.o.Now()}
}

// Health implements [bots.Bot].
func (b *Holder[L]) Health() bots.Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.health
	if b.fault != "" && h.State != bots.Stopped {
		h.State, h.Error, h.Since = bots.Refused, b.fault, b.faultSince
	}
	return h
}

// SetHealth updates l's health, unless another account has replaced it.
func (b *Holder[L]) SetHealth(l L, change func(*bots.Health)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live != l {
		return
	}
	was := b.health.State
	change(&b.health)
	if b.health.State != was {
		b.health.Since = b.o.Now()
	}
}

// SetFault sets an error for l that remains until it is cleared with "", whatever else is
// reported. changed reports whether it differs from before.
func (b *Holder[L]) SetFault(l L, fault string) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live != l || (b.fault == "") == (fault == "") {
		return false
	}
	b.fault, b.faultSince = fault, b.o.Now()
	return true
}

// Run implements [bots.Platform]: it serves the account in use until ctx ends.
func (b *Holder[L]) Run(ctx context.Context, h bots.Handler) error {
	var none L
	for ctx.Err() == nil {
		b.mu.Lock()
		account, changed := b.account, b.changed
		l := none
		if account != nil {
			l = b.o.Open(*account, h)
			b.live, b.fault = l, ""
			b.health = bots.Health{State: bots.Connecting, Since: b.o.Now()}
			close(b.ready)
		}
		b.mu.Unlock()
		serving, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		if l != none {
			wg.Go(func() { l.Serve(serving) })
		}
		select {
		case <-changed: // Use retired l
		case <-ctx.Done():
		}
		stop()
		wg.Wait()
		b.mu.Lock()
		if b.live == l {
			b.retireLocked(bots.Stopped)
		}
		b.mu.Unlock()
	}
	return nil
}

// ErrOff is returned if nothing can be shown because no account is in use.
var ErrOff = errors.New("not connected")

func (b *Holder[L]) errOff() error { return fmt.Errorf("%s is %w", b.o.Surface, ErrOff) }

// startTime is how long a message waits for a bot that is starting.
const startTime = 5 * time.Second

// Current returns the Live of the account in use, zero for none.
func (b *Holder[L]) Current() L {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live
}

// Used is Current that waits briefly if the bot is starting.
func (b *Holder[L]) Used(ctx context.Context) (L, error) {
	var none L
	b.mu.Lock()
	l, ready, wanted := b.live, b.ready, b.account != nil
	b.mu.Unlock()
	if l == none && wanted {
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		select {
		case <-ready:
		case <-ctx.Done():
		}
		l = b.Current()
	}
	if l == none {
		return none, b.errOff()
	}
	return l, nil
}

// At returns the Live of the account that an address belongs to.
func (b *Holder[L]) At(ctx context.Context, a store.Address) (L, error) {
	l, err := b.Used(ctx)
	if err == nil && l.Team() != a.Team {
		var none L
		return none, fmt.Errorf("%w: it is in another team, %s", b.errOff(), a.Team)
	}
	return l, err
}

// Post implements [bots.Platform].
func (b *Holder[L]) Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error) {
	l, err := b.At(ctx, to)
	if err != nil {
		return store.Address{}, err
	}
	to.Message, err = l.Poster().Show(ctx, to, m)
	return to, err
}

// Update implements [bots.Platform].
func (b *Holder[L]) Update(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.At(ctx, at)
	if err != nil {
		return err
	}
	_, err = l.Poster().Show(ctx, at, m)
	return err
}

// Tell implements [bots.Announcer].
func (b *Holder[L]) Tell(ctx context.Context, a bots.Announcement) (string, error) {
	var none L
	l := b.Current()
	if l == none {
		return "", b.errOff()
	}
	at := store.Address{Surface: b.o.Surface, Team: l.Team(), Channel: a.Channel, Message: a.Message}
	return l.Poster().Announce(ctx, at, a)
}

// Find implements [outbox.Finder].
func (b *Holder[L]) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	l, err := b.At(ctx, in)
	if err != nil {
		return in, err
	}
	return l.Poster().Find(ctx, in, m)
}

// Remove implements [outbox.Remover].
func (b *Holder[L]) Remove(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.At(ctx, at)
	if err != nil {
		return err
	}
	return l.Poster().Remove(ctx, at, m)
}

// Present implements [outbox.Presence].
func (b *Holder[L]) Present(ctx context.Context, to store.Address, s outbox.State) error {
	l, err := b.At(ctx, to)
	if err != nil {
		return err // it is shown when the bot is back
	}
	return l.Poster().Present(ctx, to, s)
}

// Member implements [bots.ChannelDirectory].
func (b *Holder[L]) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	l, err := b.At(ctx, at)
	if err != nil {
		return false, err
	}
	return l.Directory().Member(ctx, at.Channel, user)
}

// Admins implements [bots.ChannelDirectory].
func (b *Holder[L]) Admins(ctx context.Context, at store.Address) ([]string, error) {
	l, err := b.At(ctx, at)
	if err != nil {
		return nil, err
	}
	return l.Directory().Admins(ctx, at.Channel)
}

// TeamAdmins implements [bots.TeamDirectory].
func (b *Holder[L]) TeamAdmins(ctx context.Context, team string) ([]string, error) {
	l, err := b.At(ctx, store.Address{Surface: b.o.Surface, Team: team})
	if err != nil {
		return nil, err
	}
	return l.Directory().TeamAdmins(ctx)
}

// ChannelName implements [bots.ChannelDirectory].
func (b *Holder[L]) ChannelName(ctx context.Context, at store.Address) (string, error) {
	l, err := b.At(ctx, at)
	if err != nil {
		return "", err
	}
	return l.Directory().ChannelName(ctx, at.Channel)
}

// UserGroup implements [bots.GroupDirectory]. If there is no such group, the error suggests
// the nearest one.
func (b *Holder[L]) UserGroup(ctx context.Context, name string) (source, handle string, err error) {
	l, err := b.Used(ctx)
	if err != nil {
		return "", "", err
	}
	return l.Directory().UserGroup(ctx, name)
}

// InUserGroup implements [bots.GroupDirectory].
func (b *Holder[L]) InUserGroup(ctx context.Context, source string) ([]string, error) {
	parts := strings.Split(source, ":")
	if len(parts) != 3 || parts[0] != string(b.o.Surface) {
		return nil, fmt.Errorf("%w source %q: it is no group of %s's", store.ErrInvalid, source, b.o.Title)
	}
	l, err := b.At(ctx, store.Address{Team: parts[1]})
	if err != nil {
		return nil, err
	}
	return l.Directory().InUserGroup(ctx, parts[2])
}

// Direct implements [outbox.Courier].
func (b *Holder[L]) Direct(ctx context.Context, u store.User) (store.Address, error) {
	var none L
	l := b.Current()
	if l == none {
		return store.Address{}, fmt.Errorf("%w: %w", store.ErrNotFound, b.errOff())
	}
	return l.Directory().Direct(ctx, u)
}

// Sweep implements [bots.Sweeper].
func (b *Holder[L]) Sweep() error {
	var none L
	l := b.Current()
	if l == none {
		return store.Mark(b.errOff(), store.ErrRefused)
	}
	l.Directory().Sweep()
	return nil
}
