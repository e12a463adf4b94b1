package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nize/daemon/backup"
	"nize/daemon/monitor"
	"nize/daemon/settings"
	"nize/store"
	"nize/store/database"
)

const (
	// pruneEvery is how often retention is applied.
	pruneEvery = time.Hour
	// backupRetry and auditRetry are the delays before a retry after a failure.
	backupRetry = time.Hour
	auditRetry  = time.Hour
	// auditFirst is the delay before the audit trail is verified after a start, if the time
	// of the last verification is unknown.
	auditFirst = 10 * time.Minute
	auditEvent = "audit.verify"
)

// scheduler runs all scheduled work, in one goroutine.
type scheduler struct {
	db      *database.DB
	config  store.Config
	backups *backup.Backups
	refresh func(ctx context.Context) // refreshes the tools
	log     *slog.Logger
	now     func() time.Time

	backupsDue, auditsDue due // used only by the goroutine

	mu                    sync.Mutex
	lastBackup, lastAudit monitor.Run // since the start
}

// run refreshes the tools by index.schedule, makes backups by backup.schedule, verifies the
// audit trail by audit.schedule, and applies retention every hour. It rereads the settings
// at least every minute, so that a change takes effect without a restart.
func (s *scheduler) run(ctx context.Context) error {
	line, next := "", time.Time{}
	pruned := s.now()
	s.resumeErasures(ctx)
	for {
		s.backup(ctx)
		s.audit(ctx)
		if now := s.config.Get("", "index.schedule"); now != line {
			line = now
			schedule, err := settings.ParseSchedule(line)
			if err != nil {
				return err // it was validated when it was set
			}
			next = schedule.Next(s.now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.rest(next)):
		}
		now := s.now()
		if !now.Before(next) {
			s.refresh(ctx)
			next = settings.NextTime(line, s.now())
		}
		if now.Sub(pruned) >= pruneEvery {
			pruned = now
			s.prune(ctx)
		}
	}
}

// rest returns the time until something is due, at most a minute.
func (s *scheduler) rest(refresh time.Time) time.Duration {
	rest, now := time.Minute, s.now()
	for _, at := range []time.Time{refresh, s.backupsDue.next, s.auditsDue.next} {
		if !at.IsZero() {
			rest = min(rest, at.Sub(now))
		}
	}
	return max(rest, time.Second) // the clock may be set back
}

// due computes the next run of a schedule.
type due struct {
	line string // the schedule when it was last read
	next time.Time
}

// now reports whether a run is due, and if so computes the next one. If the schedule
// changed, it counts from since, so that a run missed while no daemon was running is made
// up.
func (d *due) now(now time.Time, line string, since func() time.Time) bool {
	if line != d.line {
		d.line = line
		from := now
		if at := since(); !at.IsZero() && !at.After(now) {
			from = at.In(now.Location())
		}
		d.next = settings.NextTime(line, from)
	}
	if d.next.IsZero() || now.Before(d.next) {
		return false
	}
	d.next = settings.NextTime(d.line, now)
	return true
}

// sooner sets the next run to now+after, unless it is already earlier.
func (d *due) sooner(now time.Time, after time.Duration) {
	if at := now.Add(after); at.Before(d.next) {
		d.next = at
	}
}

// backup makes a backup if one is due.
func (s *scheduler) backup(ctx context.Context) {
	now := s.now()
	if !s.backupsDue.now(now, s.config.Get("", "backup.schedule"), func() time.Time { return s.backups.LastScheduled(ctx) }) {
		return
	}
	path, err := s.backups.Keep(ctx, now)
	if ctx.Err() != nil {
		return
	}
	s.note(&s.lastBackup, now, err)
	if err != nil {
		s.log.Error("scheduled backup", "err", err)
		s.backupsDue.sooner(now, backupRetry)
		return
	}
	s.log.Info("scheduled backup", "file", path)
}

// audit verifies the audit trail if that is due, and records an event from which the next
// start learns the time.
func (s *scheduler) audit(ctx context.Context) {
	now := s.now()
	first := s.auditsDue.line == ""
	if !s.auditsDue.now(now, s.config.Get("", "audit.schedule"), func() time.Time { return s.LastAudit(ctx, now) }) {
		return
	}
	if first {
		s.auditsDue.sooner(now, auditFirst) // don't add load at a start
		return
	}
	n, err := s.db.VerifyEvents(ctx)
	if ctx.Err() != nil {
		return
	}
	s.note(&s.lastAudit, now, err)
	if err != nil {
		s.log.Error("the audit trail failed verification", "err", err)
		s.auditsDue.sooner(now, auditRetry)
		s.db.AddEvent(store.System, store.Event{Kind: auditEvent, Subject: fmt.Sprintf("%d events", n), Outcome: store.Failed})
		return
	}
	s.log.Info("the audit trail holds", "events", n)
	if err := s.db.AddCheckpoint(ctx, store.System, n); err != nil && ctx.Err() == nil {
		s.log.Error("noting that the audit trail holds", "err", err)
	}
}

func (s *scheduler) note(last *monitor.Run, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*last = monitor.Run{At: at, Err: err}
}

// Backup and the next three methods implement monitor.Runs.
func (s *scheduler) Backup() monitor.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastBackup
}

func (s *scheduler) Audit() monitor.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastAudit
}

func (s *scheduler) LastBackup(ctx context.Context) time.Time { return s.backups.Last(ctx) }

// LastAudit returns when the trail was last verified successfully, at the earliest 25 hours
// ago.
func (s *scheduler) LastAudit(ctx context.Context, now time.Time) time.Time {
	since := now.Add(-25 * time.Hour)
	events, err := s.db.Events(ctx, store.EventQuery{Kind: auditEvent, Outcome: store.Done, Since: since, Limit: 1})
	if err != nil || len(events) == 0 {
		return since
	}
	return events[0].At
}

// resumeErasures completes interrupted erasures, so that a person need not request one
// again.
func (s *scheduler) resumeErasures(ctx context.Context) {
	n, err := s.db.ResumeErasures(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Error("resuming an erasure", "err", err)
	case n > 0:
		s.log.Info("resumed an erasure", "events", n)
	}
}

func (s *scheduler) prune(ctx context.Context) {
	keep := store.Retention{
		Conversations: store.GetSpan(s.config, "", "retention.conversations"),
		Output:        store.GetSpan(s.config, "", "retention.output"),
		Audit:         store.GetSpan(s.config, "", "retention.audit"),
		Usage:         store.GetSpan(s.config, "", "retention.usage"),
	}
	if keep.Conversations > 0 {
		if _, err := s.db.PruneRounds(ctx, s.now().Add(-keep.Conversations)); err != nil && ctx.Err() == nil {
			s.log.Error("retention of rounds", "err", err)
		}
	}
	if err := s.db.PruneSignIns(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("forgetting sign-ins that ended", "err", err)
	}
	p, err := s.db.Prune(ctx, keep)
	if err != nil && ctx.Err() == nil {
		s.log.Error("retention", "err", err)
		return
	}
	if p != (store.Pruned{}) {
		s.log.Info("retention", "conversations", p.Threads, "outputs", p.Outputs, "events", p.Events, "spends", p.Spends)
	}
	c, done, err := s.db.CompactIfHalfFree(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.log.Error("compacting the database, of which more than half is free", "err", err)
	case done:
		s.log.Info("the database was compacted, since more than half of it was free", "before", c.FileBefore, "after", c.FileAfter)
	}
}
