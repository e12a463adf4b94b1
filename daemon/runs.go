package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// What runs by a schedule, for ran, and the backup that somebody asked for.
const (
	ranBackup = iota
	ranAudit
	ranAskedBackup
	ranKinds
)

const (
	// auditFirst is when the audit trail is verified after a start that does
	// not know when it was last.
	auditFirst = 10 * time.Minute
	auditRetry = time.Hour
	auditEvent = "audit.verify"
)

// ran remembers how the last scheduled run of each kind in this process ended.
type ran struct {
	mu   sync.Mutex
	last [ranKinds]run
}

// run is one of them; at is zero where there was none yet.
type run struct {
	at  time.Time
	err error
}

func (r *ran) note(kind int, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[kind] = run{at, err}
}

func (r *ran) of(kind int) run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[kind]
}

// scheduledAudit verifies the audit trail if it is time, and leaves an event of
// it, by which the next start knows.
func (d *Daemon) scheduledAudit(ctx context.Context, t *turn) {
	now := d.now()
	fresh := t.line == ""
	due := t.due(now, d.config.Get("", "audit.schedule"), func() time.Time { return d.lastAudit(ctx, now) })
	if !due {
		return
	}
	if fresh {
		t.again(now, auditFirst) // a start has enough to do
		return
	}
	n, err := d.db.VerifyEvents(ctx)
	if ctx.Err() != nil {
		return
	}
	d.ran.note(ranAudit, now, err)
	if err != nil {
		d.log.Error("the audit trail does not hold", "err", err)
		t.again(now, auditRetry)
		d.db.AddEvent(store.System, store.Event{Kind: auditEvent, Subject: fmt.Sprintf("%d events", n), Outcome: store.Failed})
		return
	}
	d.log.Info("the audit trail holds", "events", n)
	if err := d.db.AddCheckpoint(ctx, store.System, n); err != nil && ctx.Err() == nil {
		d.log.Error("noting that the audit trail holds", "err", err)
	}
}

// lastAudit is when the trail was last verified well; a day and more ago counts
// as a day ago.
func (d *Daemon) lastAudit(ctx context.Context, now time.Time) time.Time {
	since := now.Add(-25 * time.Hour)
	events, err := d.db.Events(ctx, store.EventQuery{Kind: auditEvent, Outcome: store.Done, Since: since, Limit: 1})
	if err != nil || len(events) == 0 {
		return since
	}
	return events[0].At
}
