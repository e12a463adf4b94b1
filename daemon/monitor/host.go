package monitor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/backup"
	"nize/store"
	"nize/store/printable"
)

// Run is the result of a scheduled run; At is zero if there was none yet.
type Run struct {
	At  time.Time
	Err error
}

// Runs reports the results of scheduled work.
type Runs interface {
	// Backup and Audit return the last runs in this process.
	Backup() Run
	Audit() Run
	// LastBackup and LastAudit return the time of the last success, including those before
	// a restart.
	LastBackup(ctx context.Context) time.Time
	LastAudit(ctx context.Context, now time.Time) time.Time
}

// Migrations reports a migration that failed at an earlier start, when no daemon was
// running to send an alert.
type Migrations interface {
	// FailedMigration returns nil if none failed.
	FailedMigration() (*backup.FailedMigration, error)
	// ForgetFailedMigration must be called after the failure was reported as resolved.
	ForgetFailedMigration() error
}

// diskWell is by what factor free space must exceed alerts.disk before the incident ends.
const diskWell = 1.2

// DiskLow returns the fraction of the disk that must be free, 0 to 1.
func DiskLow(c store.Config) float64 { return float64(store.GetInt(c, "", "alerts.disk")) / 100 }

func (m *Monitor) disk(_ context.Context, r *alert.Result) error {
	space, err := m.Space(m.DataDir)
	if err != nil {
		return fmt.Errorf("looking at the disk: %w", err)
	}
	k := alert.Key{Kind: alert.Disk, Subject: m.DataDir}
	low := DiskLow(m.Config)
	switch part := space.Part(); {
	case part < low:
		r.Wrong = append(r.Wrong, alert.Symptom{
			Key: k, Title: store.Textf("The disk of nize is nearly full: %.0f %% are free", 100*part),
			Text: store.Textf("%s has %s free. When it is full, every tool call is refused.", m.DataDir, space),
			Cure: "df -h " + printable.ShellWord(m.DataDir),
		})
	case part < low*diskWell:
		r.Unknown = append(r.Unknown, k)
	}
	return nil
}

// scheduled reports the results of scheduled work. If it has not run in this process yet,
// the state is unknown.
func (m *Monitor) scheduled(_ context.Context, r *alert.Result) error {
	backup := alert.Symptom{
		Key: alert.Key{Kind: alert.Backup, Subject: "scheduled"}, Title: store.Textf("The scheduled backup failed"),
		Cure: "nizectl backup nize-copy.db",
	}
	audit := alert.Symptom{
		Key: alert.Key{Kind: alert.AuditFailed, Subject: "trail"}, Title: store.Textf("The audit trail failed verification"),
		Cure: "nizectl audit verify",
	}
	for _, job := range []struct {
		last Run
		key  string // the schedule's key
		what alert.Symptom
		text func(error) store.Text
	}{
		{m.Runs.Backup(), "backup.schedule", backup, func(err error) store.Text {
			return store.Textf("No new copy of the database was made: %s", store.ErrText(err))
		}},
		{m.Runs.Audit(), "audit.schedule", audit, func(err error) store.Text {
			return store.Textf("An event was changed or removed: %s", store.ErrText(err))
		}},
	} {
		switch {
		case m.Config.Get("", job.key) == "off":
		case job.last.At.IsZero():
			r.Unknown = append(r.Unknown, job.what.Key)
		case job.last.Err != nil:
			job.what.Text = job.text(job.last.Err)
			r.Wrong = append(r.Wrong, job.what)
		}
	}
	return nil
}

// Clocks compares the clocks of the nodes that share a database server.
type Clocks interface {
	// ClockApart returns by how much this machine's clock is ahead of the database's, and
	// an error if the difference prevents a takeover.
	ClockApart() (time.Duration, error)
	Replicas(ctx context.Context) ([]api.Replica, error)
}

// clocks reports nodes whose clocks prevent them from taking over.
func (m *Monitor) clocks(ctx context.Context, r *alert.Result) error {
	wrong := func(machine string, text store.Text) {
		r.Wrong = append(r.Wrong, alert.Symptom{
			Key: alert.Key{Kind: alert.Clock, Subject: machine}, Title: store.Textf("The clock of %s is wrong", store.Line(machine)), Text: text, Cure: "timedatectl set-ntp true",
		})
	}
	if _, err := m.Clocks.ClockApart(); err != nil {
		wrong("the active node", store.Plain(err.Error()))
	}
	list, err := m.Clocks.Replicas(ctx)
	for _, o := range list {
		if o.ClockApart {
			wrong(o.Address, store.Textf("It is more than 30 seconds from the database's, so the nized there can't take over."))
		}
	}
	return err
}

// migration reports a migration that failed at an earlier start, which left a note because
// no daemon was running to send an alert. If this daemon's schema is at least the wanted
// one, it has succeeded since: it is reported once, as resolved.
func (m *Monitor) migration(_ context.Context, r *alert.Result) error {
	note, err := m.Migrations.FailedMigration()
	if note == nil || err != nil {
		return err
	}
	if m.migrationTold && note.Passed() {
		return m.Migrations.ForgetFailedMigration()
	}
	m.migrationTold = true
	cure := "journalctl -u nized -e"
	if strings.Contains(note.Error, store.ErrDiskFull.Error()) {
		cure = "df -h " + printable.ShellWord(m.DataDir)
	}
	r.Wrong = append(r.Wrong, alert.Symptom{
		Key:   alert.Key{Kind: alert.Migration, Subject: fmt.Sprintf("schema %d", note.To)},
		Title: store.Textf("The upgrade of the database to schema %d failed", note.To),
		Text:  store.Textf("At %s: %s. Nothing was changed; start the newer nized again when that is fixed.", note.At.UTC().Format("2006-01-02 15:04 MST"), store.Line(note.Error)),
		Cure:  cure,
	})
	return nil
}

// withCause appends the cause to a sentence, if it is known.
func withCause(t store.Text, cause string) store.Text {
	if cause == "" {
		return t
	}
	return store.Textf("%s %s", t, cause)
}

// chats checks the enabled accounts on chat platforms.
func (m *Monitor) chats(ctx context.Context, r *alert.Result) error {
	states, err := m.Bots.States(ctx, true)
	if err != nil {
		return err
	}
	for _, b := range states {
		if b.State != bots.Connected {
			r.Wrong = append(r.Wrong, alert.Symptom{
				Key: alert.Key{Kind: alert.BotDown, Subject: b.Name}, Title: store.Textf("The bot on %s is down", b.Name),
				Text: withCause(store.Textf("It answers no one there."), store.Line(b.LastError)), Cure: "nizectl bots status",
			})
		}
	}
	return nil
}
