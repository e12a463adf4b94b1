package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"nize/daemon/api"
	"nize/daemon/settings"
	"nize/store"
	"nize/store/bolt"
)

const (
	// keptDays is how many days the scheduled backups go back.
	keptDays = 7
	// backupRetry is when a scheduled backup that failed is tried again.
	backupRetry = time.Hour
	// backupTime is the time in the name of a scheduled backup: sorted by name
	// is sorted by time.
	backupTime = "20060102T150405Z"
	// backupEvent is what a backup that was asked for leaves in the trail, and
	// backupAsked how long it counts as the last one.
	backupEvent = "database.backup"
	backupAsked = 48 * time.Hour
)

var backupName = regexp.MustCompile(`^nize-(\d{8}T\d{6}Z)\.db$`)

// download is an answer that is a file.
type download struct {
	file   *os.File
	copied bolt.Copy
}

// send writes the file and closes it.
func (f download) send(w http.ResponseWriter) {
	defer f.file.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(f.copied.Size, 10))
	h.Set(api.BackupKeyHeader, f.copied.Key)
	h.Set(api.BackupSumHeader, f.copied.SHA256)
	_, _ = io.Copy(w, f.file) // a client that gets less than was announced knows it
}

// backup answers with a consistent copy. It is made beside the database first,
// so that a slow client holds up nobody, and has no name any more while it is
// sent.
func (d *Daemon) backup(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	path := filepath.Join(d.opt.DataDir, tempMark+"backup-"+store.NewID(d.now()))
	copied, err := d.copyDatabase(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err = errors.Join(err, os.Remove(path)); err != nil {
		return nil, fmt.Errorf("opening the backup: %w", err)
	}
	d.ran.note(ranAskedBackup, d.now(), nil) // the event is written a little later
	d.db.AddEvent(by, store.Event{Kind: backupEvent, Subject: copied.SHA256})
	return download{f, copied}, nil
}

// copyDatabase writes a copy that passed its check.
func (d *Daemon) copyDatabase(ctx context.Context, path string) (bolt.Copy, error) {
	copied, err := d.db.Backup(ctx, path)
	if err != nil {
		return copied, err
	}
	if err := bolt.CheckInChild(ctx, path); err != nil {
		return copied, errors.Join(fmt.Errorf("the copy did not pass its check: %w", err), os.Remove(path))
	}
	return copied, nil
}

// turn is when something is next due by a schedule that a setting gives. Only
// the schedule's goroutine uses it.
type turn struct {
	line string // as it was read last
	next time.Time
}

// due says whether it is time, and looks for the turn after that. A line that
// changed counts from since, so that what was missed while no daemon ran is
// made up for.
func (t *turn) due(now time.Time, line string, since func() time.Time) bool {
	if line != t.line {
		t.line = line
		from := now
		if at := since(); !at.IsZero() && at.Before(now) {
			from = at.In(now.Location())
		}
		t.next = settings.NextTime(line, from)
	}
	if t.next.IsZero() || now.Before(t.next) {
		return false
	}
	t.next = settings.NextTime(t.line, now)
	return true
}

// again tries what failed before its next turn.
func (t *turn) again(now time.Time, after time.Duration) {
	if at := now.Add(after); at.Before(t.next) {
		t.next = at
	}
}

// scheduledBackup makes a backup if it is time for one.
func (d *Daemon) scheduledBackup(ctx context.Context, t *turn) {
	now := d.now()
	if !t.due(now, d.config.Get("", "backup.schedule"), func() time.Time {
		return backupAt(newestBackup(d.opt.DataDir))
	}) {
		return
	}
	path, err := d.keepBackup(ctx, now)
	if ctx.Err() != nil {
		return
	}
	d.ran.note(ranBackup, now, err)
	if err != nil {
		d.log.Error("scheduled backup", "err", err)
		t.again(now, backupRetry)
		return
	}
	d.log.Info("scheduled backup", "file", path)
}

// keepBackup puts a copy among the scheduled ones and removes those that are
// one too many.
func (d *Daemon) keepBackup(ctx context.Context, now time.Time) (string, error) {
	dir := filepath.Join(d.opt.DataDir, backupsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the directory of backups: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return "", err
	}
	part := filepath.Join(d.opt.DataDir, tempMark+"backup-"+store.NewID(now))
	if _, err := d.copyDatabase(ctx, part); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nize-"+now.UTC().Format(backupTime)+".db")
	if err := os.Rename(part, path); err != nil {
		return "", errors.Join(fmt.Errorf("keeping the backup: %w", err), os.Remove(part))
	}
	if err := syncDir(dir); err != nil {
		return path, err
	}
	for _, old := range surplus(backups(d.opt.DataDir)) {
		if err := os.Remove(filepath.Join(dir, old)); err != nil {
			return path, fmt.Errorf("removing an old backup: %w", err)
		}
	}
	return path, nil
}

// surplus returns those of the names, which are sorted, that are not the newest
// of one of the last seven days that have any.
func surplus(names []string) (old []string) {
	day, days := "", 0
	for _, name := range slices.Backward(names) {
		this := backupName.FindStringSubmatch(name)[1][:8]
		if this != day {
			day = this
			if days++; days <= keptDays {
				continue
			}
		}
		old = append(old, name)
	}
	return old
}

// backups lists the scheduled backups by time. What else is in their directory
// is not nize's.
func backups(dataDir string) []string {
	entries, err := os.ReadDir(filepath.Join(dataDir, backupsName))
	if err != nil {
		return nil // there is none yet
	}
	var names []string
	for _, e := range entries {
		if backupName.MatchString(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names // ReadDir sorts
}

// lastBackup is when a backup was made last: a scheduled one, or one that was
// asked for within backupAsked. It is zero where there is none.
func (d *Daemon) lastBackup(ctx context.Context) time.Time {
	last := backupAt(newestBackup(d.opt.DataDir))
	if at := d.ran.of(ranAskedBackup).at; at.After(last) {
		last = at
	}
	asked, err := d.db.Events(ctx, store.EventQuery{Kind: backupEvent, Since: d.now().Add(-backupAsked), Limit: 1})
	if err == nil && len(asked) > 0 && asked[0].At.After(last) {
		last = asked[0].At
	}
	return last
}

// newestBackup is the path of the newest scheduled backup, "" where there is
// none.
func newestBackup(dataDir string) string {
	names := backups(dataDir)
	if len(names) == 0 {
		return ""
	}
	return filepath.Join(dataDir, backupsName, names[len(names)-1])
}

// backupAt is when a scheduled backup was made, by its name; zero for another
// name.
func backupAt(path string) time.Time {
	m := backupName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return time.Time{}
	}
	at, err := time.Parse(backupTime, m[1])
	if err != nil {
		return time.Time{}
	}
	return at
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}
