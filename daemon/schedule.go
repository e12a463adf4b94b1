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
	// backupRetry and auditRetry are when what failed is tried again.
	backupRetry = time.Hour
	auditRetry  = time.Hour
	// auditFirst is when the audit trail is verified after a start that does
	// not know when it was last.
	auditFirst = 10 * time.Minute
	auditEvent = "audit.verify"
)

// scheduler does what is due by the clock, in one goroutine.
type scheduler struct {
	db      *database.DB
	config  store.Config
	backups *backup.Backups
	refresh func(ctx context.Context) // the tools
	log     *slog.Logger
	now     func() time.Time

	backupsDue, auditsDue due // only the goroutine uses them

	mu                    sync.Mutex
	lastBackup, lastAudit monitor.Run // of this process
}

// run refreshes the tools when index.schedule says so, makes backups when
// backup.schedule does, verifies the audit trail when audit.schedule does, and
// applies retention every hour. It reads the settings again at least each minute,
// so that a change holds without a restart.
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
				return err // it was checked when it was set
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

// rest is how long nothing is due, at most a minute.
func (s *scheduler) rest(refresh time.Time) time.Duration {
	rest, now := time.Minute, s.now()
	for _, at := range []time.Time{refresh, s.backupsDue.next, s.auditsDue.next} {
		if !at.IsZero() {
			rest = min(rest, at.Sub(now))
		}
	}
	return max(rest, time.Second) // a clock may be set back
}

// due is when something is next due by a schedule that a setting gives.
type due struct {
	line string // as it was read last
	next time.Time
}

// now says whether it is time, and sets when it is again. A line that changed
// counts from since, so that what was missed while no daemon ran is made up
// for.
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

// sooner makes it due after that time, unless it is earlier already.
func (d *due) sooner(now time.Time, after time.Duration) {
	if at := now.Add(after); at.Before(d.next) {
		d.next = at
	}
}

// backup makes a backup if it is time for one.
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

// audit verifies the audit trail if it is time, and leaves an event of it, by
// which the next start knows.
func (s *scheduler) audit(ctx context.Context) {
	now := s.now()
	first := s.auditsDue.line == ""
	if !s.auditsDue.now(now, s.config.Get("", "audit.schedule"), func() time.Time { return s.LastAudit(ctx, now) }) {
		return
	}
	if first {
		s.auditsDue.sooner(now, auditFirst) // a start has enough to do
		return
	}
	n, err := s.db.VerifyEvents(ctx)
	if ctx.Err() != nil {
		return
	}
	s.note(&s.lastAudit, now, err)
	if err != nil {
		s.log.Error("the audit trail does not hold", "err", err)
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

// Backup implements monitor.Runs, as the next three do.
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

// LastAudit is when the trail was last verified well; a day and more ago counts
// as a day ago.
func (s *scheduler) LastAudit(ctx context.Context, now time.Time) time.Time {
	since := now.Add(-25 * time.Hour)
	events, err := s.db.Events(ctx, store.EventQuery{Kind: auditEvent, Outcome: store.Done, Since: since, Limit: 1})
	if err != nil || len(events) == 0 {
		return since
	}
	return events[0].At
}

// resumeErasures ends what a kill interrupted: nobody may have to ask twice to
// be forgotten.
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
}
