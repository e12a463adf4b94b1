package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"nize/bots"
	"nize/store"
)

// lastSweep is when nize last looked for people who left a platform, nil before
// the first time.
func (d *Daemon) lastSweep(ctx context.Context, at store.Surface) (*store.Sweep, error) {
	s, err := d.db.GetSweep(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last sweep of %s: %w", at, err)
	}
	return &s, nil
}

// sweepBot begins a sweep and does not wait for its end: it asks the platform
// for one person after the other, slowly.
func (d *Daemon) sweepBot(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	name, bot, err := d.bot(r)
	if err != nil {
		return nil, err
	}
	account, err := d.account(ctx, name)
	if err != nil {
		return nil, err
	}
	if !account.Enabled {
		return nil, fmt.Errorf("%w: the bot on %s is stopped: nizectl bots %s start", store.ErrRefused, name, name)
	}
	sweeper, ok := bot.(bots.Sweeper)
	if !ok {
		return nil, fmt.Errorf("%w: the bot on %s does not look for people who left", store.ErrRefused, name)
	}
	if err := sweeper.Sweep(); err != nil {
		return nil, err
	}
	v := viewOfBot(account, bot.Health())
	v.Sweep, err = d.lastSweep(ctx, account.Surface)
	return v, err
}
