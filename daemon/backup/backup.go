// Package backup keeps the database safe: its directory and who may open it,
// copies of it, a copy in its place, a migration that failed, and the master
// key.
package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/kv/bolt"
)

const (
	// keptDays is how many days the scheduled backups go back.
	keptDays = 7
	// backupTime is the time in the name of a scheduled backup: sorted by name
	// is sorted by time.
	backupTime = "20060102T150405Z"
	// backupEvent is what a backup leaves in the trail, and eventAge how long it
	// counts as the last one.
	backupEvent = "database.backup"
	eventAge    = 48 * time.Hour
)

var backupName = regexp.MustCompile(`^nize-(\d{8}T\d{6}Z)\.db$`)

// Backups makes copies of the database.
type Backups struct {
	Directory *Directory
	DB        *database.DB

	mu    sync.Mutex
	asked time.Time // when somebody asked last; the event is written a little later
}

// Download answers with a consistent copy. It is made beside the database first,
// so that a slow client holds up nobody, and has no name any more while it is
// sent.
func (b *Backups) Download(ctx context.Context, by store.Caller, _ api.Empty) (api.File, error) {
	now := b.Directory.Now()
	path := b.Directory.temp("backup", now)
	copied, err := b.copy(ctx, path)
	if err != nil {
		return api.File{}, err
	}
	f, err := os.Open(path)
	if err = errors.Join(err, os.Remove(path)); err != nil {
		return api.File{}, fmt.Errorf("opening the backup: %w", err)
	}
	b.mu.Lock()
	b.asked = b.Directory.Now()
	b.mu.Unlock()
	b.DB.AddEvent(by, store.Event{Kind: backupEvent, Subject: copied.SHA256})
	return api.File{ReadCloser: f, Size: copied.Size, Key: copied.Key, SHA256: copied.SHA256}, nil
}

// copy writes a copy that passed its check.
func (b *Backups) copy(ctx context.Context, path string) (database.Copy, error) {
	copied, err := b.DB.Backup(ctx, path)
	if err != nil {
		return copied, err
	}
	if err := bolt.CheckInChild(ctx, path); err != nil {
		return copied, errors.Join(fmt.Errorf("the copy did not pass its check: %w", err), os.Remove(path))
	}
	return copied, nil
}

// Keep puts a copy among the scheduled ones and removes those that are one too
// many.
func (b *Backups) Keep(ctx context.Context, now time.Time) (string, error) {
	dir := b.Directory.file(backupsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the directory of backups: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return "", err
	}
	part := b.Directory.temp("backup", now)
	if _, err := b.copy(ctx, part); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nize-"+now.UTC().Format(backupTime)+".db")
	if err := os.Rename(part, path); err != nil {
		return "", errors.Join(fmt.Errorf("keeping the backup: %w", err), os.Remove(part))
	}
	if err := syncDir(dir); err != nil {
		return path, err
	}
	b.DB.AddEvent(store.System, store.Event{Kind: backupEvent, Subject: filepath.Base(path)})
	if err := b.DB.Flush(ctx); err != nil { // who takes over would make it again
		return path, fmt.Errorf("noting the backup: %w", err)
	}
	for _, old := range surplus(backups(b.Directory.Path)) {
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

// Last is when a backup was made last: a scheduled one, or one that was asked
// for within two days. It is zero where there is none.
func (b *Backups) Last(ctx context.Context) time.Time {
	b.mu.Lock()
	asked := b.asked
	b.mu.Unlock()
	return latest(asked, b.newest(), b.told(ctx, ""))
}

// LastScheduled is when the newest scheduled backup was made: here, by its name, or
// within two days by a nized on another machine. It is zero where there is none.
func (b *Backups) LastScheduled(ctx context.Context) time.Time {
	return latest(b.newest(), b.told(ctx, store.System.User))
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// told is when the trail says that a user made the last one, "" for anybody.
func (b *Backups) told(ctx context.Context, user string) time.Time {
	list, err := b.DB.Events(ctx, store.EventQuery{Kind: backupEvent, User: user, Since: b.Directory.Now().Add(-eventAge), Limit: 1})
	if err != nil || len(list) == 0 {
		return time.Time{}
	}
	return list[0].At
}

func (b *Backups) newest() time.Time {
	m := backupName.FindStringSubmatch(filepath.Base(newestBackup(b.Directory.Path)))
	if m == nil {
		return time.Time{}
	}
	at, err := time.Parse(backupTime, m[1])
	if err != nil {
		return time.Time{}
	}
	return at
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
