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

// Run is how a scheduled run ended; At is zero where there was none yet.
type Run struct {
	At  time.Time
	Err error
}

// Runs is what runs by a schedule.
type Runs interface {
	// Backup and Audit are the last runs in this process.
	Backup() Run
	Audit() Run
	// LastBackup and LastAudit are when it last went well, also before a restart.
	LastBackup(ctx context.Context) time.Time
	LastAudit(ctx context.Context, now time.Time) time.Time
}

// Migrations remembers a failed one, since no daemon was there to tell of it.
type Migrations interface {
	// FailedMigration is nil where none failed.
	FailedMigration() (*backup.FailedMigration, error)
	// ForgetFailedMigration is called when the failure has been told as over.
	ForgetFailedMigration() error
}

// diskWell is how much more than alerts.disk must be free before the disk is
// well again.
const diskWell = 1.2

// DiskLow is which part of the disk must be free, 0 to 1.
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

// scheduled tells how the scheduled work ended. Until it ran in this process, nobody
// knows.
func (m *Monitor) scheduled(_ context.Context, r *alert.Result) error {
	backup := alert.Symptom{
		Key: alert.Key{Kind: alert.Backup, Subject: "scheduled"}, Title: store.Textf("The scheduled backup failed"),
		Cure: "nizectl backup nize-copy.db",
	}
	audit := alert.Symptom{
		Key: alert.Key{Kind: alert.AuditFailed, Subject: "trail"}, Title: store.Textf("The audit trail does not hold"),
		Cure: "nizectl audit verify",
	}
	for _, job := range []struct {
		last Run
		key  string // of the schedule
		what alert.Symptom
		text func(error) store.Text
	}{
		{m.Runs.Backup(), "backup.schedule", backup, func(err error) store.Text {
			return store.Textf("No new copy of the database was made: %s", store.ErrText(err))
		}},
		{m.Runs.Audit(), "audit.schedule", audit, func(err error) store.Text {
			return store.Textf("Somebody or something changed or removed an event: %s", store.ErrText(err))
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

// migration tells of one that failed at a start, which left a note since there
// was no daemon to tell. Where this daemon's schema is as new as the wanted one,
// it has succeeded since: it is told once, as over.
// Clocks compares the clocks of the machines that share a database on a server.
type Clocks interface {
	// ClockApart returns by how much this machine's clock is ahead of the database's, and
	// an error if that is too much to take over.
	ClockApart() (time.Duration, error)
	Replicas(ctx context.Context) ([]api.Replica, error)
}

// clocks reports the machines whose clocks keep them from taking over.
func (m *Monitor) clocks(ctx context.Context, r *alert.Result) error {
	wrong := func(machine string, text store.Text) {
		r.Wrong = append(r.Wrong, alert.Symptom{
			Key: alert.Key{Kind: alert.Clock, Subject: machine}, Title: store.Textf("The clock of %s is wrong", store.Line(machine)), Text: text, Cure: "timedatectl set-ntp true",
		})
	}
	if _, err := m.Clocks.ClockApart(); err != nil {
		wrong("the nized that works", store.Plain(err.Error()))
	}
	list, err := m.Clocks.Replicas(ctx)
	for _, o := range list {
		if o.ClockApart {
			wrong(o.Address, store.Textf("It is more than 30 seconds from the database's, so the nized there can't take over."))
		}
	}
	return err
}

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
		Text:  store.Textf("At %s: %s. Nothing was changed; start the newer nized again when that is mended.", note.At.UTC().Format("2006-01-02 15:04 MST"), store.Line(note.Error)),
		Cure:  cure,
	})
	return nil
}

// withCause puts behind a sentence what was heard of the cause, if anything was.
func withCause(t store.Text, cause string) store.Text {
	if cause == "" {
		return t
	}
	return store.Textf("%s %s", t, cause)
}

// chats checks the accounts on chat platforms that are switched on.
func (m *Monitor) chats(ctx context.Context, r *alert.Result) error {
	states, err := m.Bots.States(ctx, true)
	if err != nil {
		return err
	}
	for _, b := range states {
		if b.State != bots.Connected {
			r.Wrong = append(r.Wrong, alert.Symptom{
				Key: alert.Key{Kind: alert.BotDown, Subject: b.Name}, Title: store.Textf("The bot on %s is down", b.Name),
				Text: withCause(store.Textf("Nobody there is answered."), store.Line(b.LastError)), Cure: "nizectl bots status",
			})
		}
	}
	return nil
}
