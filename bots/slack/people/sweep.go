package people

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"nize/bots/slack/wire"
	"nize/store"
)

// Slack tells of people who leave, by events, which may have been lost while
// nobody listened. So once a day everybody is looked up, one after the other and
// far below Slack's limit (100 a minute), and who was switched off is disabled.
// Who can't be looked up stays as they are.

const (
	sweepEvery  = 24 * time.Hour
	sweepSpread = 30 * time.Minute // that the next one may be later
	sweepStart  = time.Minute      // after a start, which has enough to do
	sweepRetry  = time.Hour        // after Slack failed
	sweepPace   = 1500 * time.Millisecond
	// sweepFails is after how many failures in a row Slack is left alone.
	sweepFails = 5
	// sweepSave is after how many people it is kept how far it is.
	sweepSave = 20
)

// errSweep says that Slack did not tell of several people in a row.
var errSweep = errors.New("slack does not tell who people are")

// Sweep begins to look everybody up now, or leaves one that is under way.
func (d *Directory) Sweep() { d.sweeps.Set(wholeWorkspace, d.o.Now()) }

// wholeWorkspace is the one key of the sweeps that are due.
const wholeWorkspace = "workspace"

// KeepSweeping sweeps when it is time, until ctx ends.
func (d *Directory) KeepSweeping(ctx context.Context) {
	d.planSweep(ctx, sweepStart+rand.N(sweepStart))
	d.sweeps.Run(ctx, 1, func(ctx context.Context, _ string) {
		least := time.Duration(0)
		if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Warn("looking up who left Slack; it goes on later", "err", err)
			least = sweepRetry
		}
		d.planSweep(ctx, least)
	})
}

// planSweep makes the next sweep due when it is time, and not before least is
// over. One that somebody asked for meanwhile is not put off.
func (d *Directory) planSweep(ctx context.Context, least time.Duration) {
	s, err := d.lastSweep(ctx)
	if ctx.Err() != nil {
		return
	}
	due := sweepRetry
	if err == nil {
		due = max(least, d.untilSweep(s))
	} else {
		d.o.Log.Error("reading when everybody was looked up", "err", err)
	}
	d.sweeps.Advance(wholeWorkspace, d.o.Now().Add(due))
}

// untilSweep is how long it is until the next one.
func (d *Directory) untilSweep(s store.Sweep) time.Duration {
	if s.UnderWay() {
		return 0
	}
	return s.Ended.Add(sweepEvery + rand.N(sweepSpread)).Sub(d.o.Now())
}

// lastSweep is the one of this workspace.
func (d *Directory) lastSweep(ctx context.Context) (store.Sweep, error) {
	s, err := d.o.Store.GetSweep(ctx, store.OnSlack)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Team != d.o.Team {
		return store.Sweep{Surface: store.OnSlack, Team: d.o.Team}, nil
	}
	return s, err
}

// sweep looks everybody up, or goes on with it.
func (d *Directory) sweep(ctx context.Context) error {
	s, err := d.lastSweep(ctx)
	if err != nil {
		return err
	}
	if !s.UnderWay() {
		s = store.Sweep{Surface: s.Surface, Team: s.Team, Ended: s.Ended, Began: d.o.Now()}
	}
	users, err := d.o.Store.ListUsers(ctx) // by id
	if err != nil {
		return fmt.Errorf("listing users: %w", err)
	}
	saved, failed := s, 0 // in a row
	for _, u := range users {
		if u.ID <= s.After || u.State != store.Active || len(IDs(u)) == 0 {
			continue
		}
		if err := d.o.Wire.Wait(ctx, sweepPace); err != nil {
			return err
		}
		gone, err := d.disableGone(ctx, u)
		s.After, s.Checked = u.ID, s.Checked+1
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return ctx.Err()
		case wire.Code(err) == "user_not_found", wire.Code(err) == "user_not_visible", errors.Is(err, store.ErrNotFound):
			failed, s.Failed = 0, s.Failed+1 // Slack tells, but not of them
		default:
			s.Failed++
			if failed++; failed == sweepFails {
				return errors.Join(fmt.Errorf("%w: %w", errSweep, err), d.o.Store.PutSweep(ctx, store.System, saved))
			}
			continue
		}
		if gone {
			s.Disabled = append(s.Disabled, u.ID)
		}
		if gone || s.Checked >= saved.Checked+sweepSave {
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
	d.o.Log.Info("everybody was looked up on Slack", "users", s.Checked, "disabled", len(s.Disabled), "failed", s.Failed)
	return nil
}
