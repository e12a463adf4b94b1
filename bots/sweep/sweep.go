// Package sweep finds people who left a chat platform, and disables those without another
// identity.
//
// Platforms report departures by events, which are lost while nobody listens. So all users
// are looked up once a day, one after the other and far below any rate limit, and those
// whose accounts no longer exist are disabled. If a user can't be looked up, they are left
// as they are.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"nize/bots/queue"
	"nize/store"
)

const (
	Every       = 24 * time.Hour
	Spread      = 30 * time.Minute // random delay of the next sweep
	startPause  = time.Minute      // after a start, which is busy enough
	retryPause  = time.Hour        // after a failure of the platform
	personPause = 1500 * time.Millisecond
	// MaxFails is the number of consecutive failures that end a sweep.
	MaxFails = 5
	// saveEvery is after how many people the progress is stored.
	saveEvery = 20
)

// ErrSilent is returned if the platform failed to answer for several people in a row.
var ErrSilent = errors.New("it does not tell who people are")

// Store is the part of the store that a sweep needs.
type Store interface {
	GetUser(ctx context.Context, id string) (store.User, error)
	ListUsers(ctx context.Context) ([]store.User, error)
	PutUser(ctx context.Context, by store.Caller, u store.User) error
	GetSweep(ctx context.Context, surface store.Surface) (store.Sweep, error)
	PutSweep(ctx context.Context, by store.Caller, s store.Sweep) error
}

// Options configure a [Sweeper].
type Options struct {
	Store   Store
	Surface store.Surface
	Title   string // the platform's name in its usual spelling
	Team    string
	Now     func() time.Time
	Wait    func(ctx context.Context, d time.Duration) error
	Log     *slog.Logger
	// Gone reports whether the account of an identity no longer exists, according to the
	// platform now.
	Gone func(ctx context.Context, identity string) (bool, error)
	// Unknown reports whether an error means that the platform answered, but doesn't know
	// the account.
	Unknown func(error) bool
}

// Sweeper looks for people who left one team of a platform.
type Sweeper struct {
	o   Options
	due *queue.Queue[string] // the time of the next sweep
}

// New returns a Sweeper; call [Sweeper.Run] to start it.
func New(o Options) *Sweeper { return &Sweeper{o: o, due: queue.New[string](o.Now)} }

// Begin starts a sweep now, unless one is in progress.
func (d *Sweeper) Begin() { d.due.Set(everybody, d.o.Now()) }

// everybody is the only key of due.
const everybody = "everybody"

// Run runs the periodic sweeps until ctx ends.
func (d *Sweeper) Run(ctx context.Context) {
	d.planSweep(ctx, startPause+rand.N(startPause))
	d.due.Run(ctx, 1, func(ctx context.Context, _ string) {
		least := time.Duration(0)
		if err := d.Sweep(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Warn("looking up who left; it goes on later", "err", err)
			least = retryPause
		}
		d.planSweep(ctx, least)
	})
}

// planSweep schedules the next sweep, not before least has passed. It doesn't delay one
// that was requested in the meantime.
func (d *Sweeper) planSweep(ctx context.Context, least time.Duration) {
	s, err := d.lastSweep(ctx)
	if ctx.Err() != nil {
		return
	}
	due := retryPause
	if err == nil {
		due = max(least, d.Until(s))
	} else {
		d.o.Log.Error("reading when everybody was looked up", "err", err)
	}
	d.due.Advance(everybody, d.o.Now().Add(due))
}

// Until returns the time from now to the sweep after s.
func (d *Sweeper) Until(s store.Sweep) time.Duration {
	if s.UnderWay() {
		return 0
	}
	return s.Ended.Add(Every + rand.N(Spread)).Sub(d.o.Now())
}

// lastSweep returns this team's last sweep.
func (d *Sweeper) lastSweep(ctx context.Context) (store.Sweep, error) {
	s, err := d.o.Store.GetSweep(ctx, d.o.Surface)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Team != d.o.Team {
		return store.Sweep{Surface: d.o.Surface, Team: d.o.Team}, nil
	}
	return s, err
}

// Sweep looks up all users, or continues an unfinished sweep.
func (d *Sweeper) Sweep(ctx context.Context) error {
	s, err := d.lastSweep(ctx)
	if err != nil {
		return err
	}
	if !s.UnderWay() {
		s = store.Sweep{Surface: s.Surface, Team: s.Team, Ended: s.Ended, Began: d.o.Now()}
	}
	users, err := d.o.Store.ListUsers(ctx) // sorted by id
	if err != nil {
		return fmt.Errorf("listing users: %w", err)
	}
	saved, failed := s, 0 // failed counts consecutive failures
	for _, u := range users {
		if u.ID <= s.After || u.State != store.Active || !d.known(u) {
			continue
		}
		if err := d.o.Wait(ctx, personPause); err != nil {
			return err
		}
		gone, err := d.DisableGone(ctx, u)
		s.After, s.Checked = u.ID, s.Checked+1
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return ctx.Err()
		case d.o.Unknown(err), errors.Is(err, store.ErrNotFound):
			failed, s.Failed = 0, s.Failed+1
		default:
			s.Failed++
			if failed++; failed == MaxFails {
				return errors.Join(fmt.Errorf("%w: %w", ErrSilent, err), d.o.Store.PutSweep(ctx, store.System, saved))
			}
			continue
		}
		if gone {
			s.Disabled = append(s.Disabled, u.ID)
		}
		if gone || s.Checked >= saved.Checked+saveEvery {
			saved = s
			if err := d.o.Store.PutSweep(ctx, store.System, s); err != nil {
				return fmt.Errorf("keeping how far it is: %w", err)
			}
		}
	}
	s.Ended, s.After = d.o.Now(), ""
	if !s.Ended.After(s.Began) {
		s.Ended = s.Began
	}
	if err := d.o.Store.PutSweep(ctx, store.System, s); err != nil {
		return fmt.Errorf("keeping that it ended: %w", err)
	}
	d.o.Log.Info("everybody was looked up", "users", s.Checked, "disabled", len(s.Disabled), "failed", s.Failed)
	return nil
}

// own reports whether an identity is one of the platform's.
func (d *Sweeper) own(identity string) bool {
	return strings.HasPrefix(identity, string(d.o.Surface)+":")
}

func (d *Sweeper) known(u store.User) bool { return slices.ContainsFunc(u.Identities, d.own) }

// DisableGone disables a user whose account no longer exists, unless they have another live
// identity. Identities on other platforms and accounts unknown to the platform count as
// live.
func (d *Sweeper) DisableGone(ctx context.Context, u store.User) (done bool, err error) {
	if u.State != store.Active || !d.known(u) {
		return false, nil
	}
	for _, identity := range u.Identities {
		if !d.own(identity) {
			return false, nil
		}
		if gone, err := d.o.Gone(ctx, identity); err != nil || !gone {
			return false, err
		}
	}
	// Read again: the user may be outdated, for instance their role.
	if u, err = d.o.Store.GetUser(ctx, u.ID); err != nil || u.State != store.Active {
		return false, err
	}
	u.State = store.Disabled
	err = d.o.Store.PutUser(ctx, store.System, u)
	if errors.Is(err, store.ErrRefused) {
		d.o.Log.Warn("the last admin's account is gone; they stay an admin of nize", "platform", d.o.Title, "user", u.ID)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("disabling who left %s: %w", d.o.Title, err)
	}
	d.o.Log.Info("a user was disabled, since their account is gone", "platform", d.o.Title, "user", u.ID)
	return true, nil
}
