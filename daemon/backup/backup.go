// Package backup manages the data directory, backups and restores of the database, failed
// migrations, and the master key.
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
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
	"nize/store/kv/bolt"
)

const (
	// keptDays is for how many days scheduled backups are kept.
	keptDays = 7
	// backupTime is the format of the time in a scheduled backup's name. Names in this
	// format sort by time.
	backupTime = "20060102T150405Z"
	// backupEvent is the kind of the event that records a backup, and eventAge is for how
	// long it counts as the last one.
	backupEvent = "database.backup"
	eventAge    = 48 * time.Hour
)

var backupName = regexp.MustCompile(`^nize-(\d{8}T\d{6}Z)\.db$`)

// Backups creates copies of the database.
type Backups struct {
	Directory *Directory
	DB        *database.DB

	mu    sync.Mutex
	asked time.Time // time of the last request; the event is written a little later
}

// Mount registers the operations.
func (b *Backups) Mount(m *mux.Mux) {
	mux.HandleDownload(m, api.DownloadBackup, b.Download)
}

// Download returns a consistent copy. It first writes the copy beside the database, so that
// a slow client doesn't block anyone. The file is unlinked while it is sent.
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

// copy writes a copy and verifies it.
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

// Keep creates a scheduled backup and removes surplus ones.
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
		return "", errors.Join(fmt.Errorf("storing the backup: %w", err), os.Remove(part))
	}
	if err := syncDir(dir); err != nil {
		return path, err
	}
	b.DB.AddEvent(store.System, store.Event{Kind: backupEvent, Subject: filepath.Base(path)})
	if err := b.DB.Flush(ctx); err != nil { // without its event, another node that takes over would repeat it
		return path, fmt.Errorf("recording the backup: %w", err)
	}
	for _, old := range surplus(backups(b.Directory.Path)) {
		if err := os.Remove(filepath.Join(dir, old)); err != nil {
			return path, fmt.Errorf("removing an old backup: %w", err)
		}
	}
	return path, nil
}

// surplus returns the names to remove. For each of the last seven days that have backups,
// it keeps the newest. The names must be sorted.
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

// backups returns the scheduled backups by time. It ignores other files in their directory.
func backups(dataDir string) []string {
	entries, err := os.ReadDir(filepath.Join(dataDir, backupsName))
	if err != nil {
		return nil // no backup yet
	}
	var names []string
	for _, e := range entries {
		if backupName.MatchString(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names // ReadDir sorts
}

// Last returns the time of the last backup: a scheduled one, or one requested within the
// last two days. It returns zero if there is none.
func (b *Backups) Last(ctx context.Context) time.Time {
	b.mu.Lock()
	asked := b.asked
	b.mu.Unlock()
	return latest(asked, b.newest(), b.told(ctx, ""))
}

// LastScheduled returns the time of the newest scheduled backup: here, by its name, or
// within the last two days on another node. It returns zero if there is none.
func (b *Backups) LastScheduled(ctx context.Context) time.Time {
	return latest(b.newest(), b.told(ctx, store.System.User))
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// told returns the time of the user's last backup in the audit trail; user "" is anyone.
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

// newestBackup returns the path of the newest scheduled backup, "" if there is none.
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
