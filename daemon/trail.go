package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"nize/daemon/api"
	"nize/store"
)

// resumeErasures ends what a kill interrupted: nobody may have to ask twice to
// be forgotten.
func (d *Daemon) resumeErasures(ctx context.Context) {
	n, err := d.db.ResumeErasures(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.log.Error("resuming an erasure", "err", err)
	case n > 0:
		d.log.Info("resumed an erasure", "events", n)
	}
}

// audit yields the newest events that match, oldest first, and then, with
// follow, what comes.
func (d *Daemon) audit(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	p := r.URL.Query()
	q := store.EventQuery{Tool: p.Get("tool"), Outcome: store.State(p.Get("outcome")), Kind: p.Get("kind"), Limit: 100}
	var err error
	if q.Since, err = sinceOf(p.Get("since")); err != nil {
		return err
	}
	if who := p.Get("user"); who != "" {
		if q.User, err = d.userOf(ctx, by, who); err != nil {
			return err
		}
	}
	if v := p.Get("limit"); v != "" {
		if q.Limit, err = strconv.Atoi(v); err != nil || q.Limit < 1 || q.Limit > 1_000_000 {
			return fmt.Errorf("%w limit %q: use 1 to 1000000", store.ErrInvalid, v)
		}
	}
	from := d.db.Last()
	if err := d.db.Flush(ctx); err != nil {
		return fmt.Errorf("writing what waits: %w", err)
	}
	events, err := d.db.Events(ctx, q)
	if err != nil {
		return fmt.Errorf("reading the audit trail: %w", err)
	}
	var last uint64
	for i := len(events) - 1; i >= 0; i-- {
		last = max(last, events[i].Seq)
		if err := send(events[i]); err != nil {
			return err
		}
	}
	if p.Get("follow") == "" {
		return nil
	}
	if len(events) == 0 {
		newest, err := d.db.Events(ctx, store.EventQuery{Limit: 1})
		if err != nil {
			return fmt.Errorf("reading the audit trail: %w", err)
		}
		for _, e := range newest {
			last = e.Seq
		}
	}
	return d.followAudit(ctx, q, last, from, send)
}

// followAudit reads on in the trail whenever the feed says that something was
// committed.
func (d *Daemon) followAudit(ctx context.Context, q store.EventQuery, last uint64, from store.Seq, send func(any) error) error {
	for _, err := range d.db.Watch(ctx, from) {
		if err != nil {
			return fmt.Errorf("following the audit trail: %w", err)
		}
		for {
			q.After, q.Limit = last, 500
			more, err := d.db.Events(ctx, q)
			if err != nil {
				return fmt.Errorf("reading the audit trail: %w", err)
			}
			for _, e := range more {
				last = e.Seq
				if err := send(e); err != nil {
					return err
				}
			}
			if len(more) < 500 {
				break
			}
		}
	}
	return nil
}

func (d *Daemon) verifyAudit(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	n, err := d.db.VerifyEvents(ctx)
	out := api.Verified{OK: err == nil, Events: n}
	if err != nil {
		out.Error = err.Error()
	}
	return out, nil
}
