package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/daemon/standby"
	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/kv/postgres"
	"nize/store/printable"
	"nize/store/seal"
)

// The names in the data directory. Files that begin with tempMark aren't needed after the
// daemon has ended.
const (
	databaseName = "nize.db"
	keyName      = "nize.key"
	lockName     = "nized.lock"
	backupsName  = "backups"
	tempMark     = ".nize-"
)

// Directory is a daemon's data directory.
type Directory struct {
	Path string
	New  bool // start with an empty database although there was one
	// Database is the URL of the server that has the database; if it is zero, the database
	// is a file here.
	Database store.Secret
	// Buckets are those of the modules, beside the records'.
	Buckets []kv.Bucket
	// Standby is called if another node is active on that server, before this one waits for
	// it to stop; then end is called. owner returns the active node, and all returns every
	// node that shares the database. If Standby is nil, the open fails instead.
	Standby func(owner func(context.Context) (standby.Owner, error), all func(context.Context) ([]api.Replica, error)) (end func(), err error)
	// Says returns this nized's version and address, for the other nodes. It may be nil.
	Says func() string
	Env  func(string) string
	Now  func() time.Time
	Log  *slog.Logger

	engine *postgres.Engine // of Database, after it is opened
}

func (d *Directory) file(name string) string { return filepath.Join(d.Path, name) }

// temp returns a path for a file that is needed only while the daemon runs.
func (d *Directory) temp(what string, now time.Time) string {
	return d.file(tempMark + what + "-" + store.NewID(now))
}

// envKey returns the master key from the environment, zero if there is none.
func (d *Directory) envKey() store.Secret { return store.NewSecret(d.Env("NIZE_MASTER_KEY")) }

// Lock creates the directory if it is missing, returns an error if others can read it,
// locks it against other processes, and removes unfinished files. The lock ends when the
// file is closed or the process ends.
func (d *Directory) Lock() (*os.File, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	if err := checkPrivate(d.Path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.file(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = errors.Join(err, f.Close())
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, inUse(d.Path)
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	left, err := filepath.Glob(d.file(tempMark + "*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("removing unfinished files: %w", err), f.Close())
	}
	return f, nil
}

// checkPrivate returns an error for a directory that others can read.
func checkPrivate(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("looking at the data directory: %w", err)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("data directory %s is open to others (%04o): chmod 700 %s", dir, fi.Mode().Perm(), dir)
	}
	return nil
}

// inUse is the error for a data directory that another nized is using: a conflict with its
// own text.
type inUse string

func (dir inUse) Error() string {
	return "another nized runs on " + string(dir) + "; stop it first, or choose another --data-dir"
}

// Is makes it match ErrConflict.
func (inUse) Is(target error) bool { return target == store.ErrConflict }

// checkKilled checks a database that was not closed, and returns what remains to be checked
// while it is in use. If it finds damage, the error is that of the thorough check in a
// child process, which describes all of it.
func checkKilled(ctx context.Context, path string) (*bolt.Unchecked, error) {
	rest, err := bolt.CheckStart(ctx, path)
	if err == nil || ctx.Err() != nil {
		return rest, err
	}
	if thorough := bolt.CheckInChild(ctx, path); thorough != nil {
		return nil, thorough
	}
	return nil, err
}

// CheckRest checks the part of the database that Open did not, because it would have taken
// too long. If it is damaged, nothing more is stored in it, and the daemon must end: the
// next Open checks the whole file and returns the same error.
func (d *Directory) CheckRest(ctx context.Context, db *database.DB) error {
	if !db.Unchecked() {
		return nil
	}
	begin := time.Now()
	switch err := db.CheckRest(ctx); {
	case err == nil:
		d.Log.Info("the whole database is checked", "took", time.Since(begin).Round(time.Millisecond))
	case database.Damaged(err):
		return fmt.Errorf("the database did not pass its check: %w; %s", err, d.wayBack())
	case ctx.Err() == nil && !errors.Is(err, store.ErrNotOpen):
		d.Log.Warn("the database could not be checked; the next start tries again", "err", err)
	}
	return nil
}

// Open opens the database with its key. If the database was not closed cleanly, it is
// checked first, since reading a damaged one can crash the process; CheckRest must be
// called later. The caller must hold the directory's lock.
func (d *Directory) Open(ctx context.Context) (*database.DB, error) {
	if !d.Database.IsZero() {
		return d.openServer(ctx)
	}
	path := d.file(databaseName)
	if err := d.checkMissing(path); err != nil {
		return nil, err
	}
	var rest *bolt.Unchecked
	if !bolt.Clean(path) {
		d.Log.Info("the database was not closed; checking it", "path", path)
		var err error
		if rest, err = checkKilled(ctx, path); err != nil {
			switch {
			case ctx.Err() != nil:
				return nil, fmt.Errorf("checking the database: %w", ctx.Err())
			case errors.Is(err, store.ErrConflict):
				return nil, inUse(d.Path)
			}
			return nil, fmt.Errorf("the database did not pass its check: %w; %s", err, d.wayBack())
		}
	}
	keyFile, env := d.file(keyName), d.envKey()
	master, err := seal.Open(keyFile, env)
	if err != nil {
		return nil, fmt.Errorf("opening the master key: %w", err)
	}
	opt := database.Options{Path: path, Master: master, Unchecked: rest, Now: d.Now, Log: d.Log.With("component", "store"), Buckets: d.Buckets}
	db, err := database.Open(ctx, opt)
	if errors.Is(err, seal.ErrWrongKey) && env.IsZero() {
		db, err = finishRotation(ctx, keyFile, opt, err)
	}
	err = d.noteMigration(err)
	if database.Damaged(err) {
		return nil, fmt.Errorf("opening the database: %w; %s", err, d.wayBack())
	}
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	if err := os.Remove(path + beginName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("creating a new database: %w", err), db.Close())
	}
	return db, nil
}

// beginName marks a database that is being created, since an interrupted first start would
// otherwise look like a lost database.
const beginName = ".begins"

// checkMissing returns an error if a database existed but its file is missing or empty.
// That must not be treated as a first start, which would run without any of the rules,
// tokens and audit events.
func (d *Directory) checkMissing(path string) error {
	what := "missing"
	switch fi, err := os.Stat(path); {
	case err == nil && fi.Size() > 0:
		return nil
	case err == nil:
		what = "empty"
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("opening the database: %w", err)
	}
	_, err := os.Stat(path + beginName)
	if begun := err == nil; !d.New && !begun {
		traces := append(database.Traces(path), d.file(keyName))
		if name := newestBackup(d.Path); name != "" {
			traces = append(traces, name)
		}
		for _, left := range traces {
			if _, err := os.Stat(left); err == nil {
				return fmt.Errorf("the database %s is %s, and %s says that there was one: %s; to start with an empty one, run once: nized --new", path, what, filepath.Base(left), d.wayBack())
			}
		}
	}
	if err := os.WriteFile(path+beginName, nil, 0o600); err != nil {
		return fmt.Errorf("creating a new database: %w", err)
	}
	return nil
}

// finishRotation opens a database whose key rotation was interrupted between its commit and
// the change of the key file; if that isn't the case, it returns wrong.
func finishRotation(ctx context.Context, keyFile string, opt database.Options, wrong error) (*database.DB, error) {
	next, err := seal.Open(keyFile+".new", store.Secret{})
	if err != nil {
		return nil, wrong
	}
	if key, err := database.Inspect(opt.Path); err != nil || key != next.ID() {
		return nil, wrong
	}
	if _, err := seal.Adopt(keyFile, opt.Master.ID()); err != nil {
		return nil, err
	}
	opt.Log.Info("a rotation of the master key was finished", "key", next.ID())
	opt.Master = next
	return database.Open(ctx, opt)
}

// wayBack returns the command that restores the newest backup.
func (d *Directory) wayBack() string {
	dir := d.Path
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // for a reader in another directory
	}
	if name := newestBackup(dir); name != "" {
		return fmt.Sprintf("go back to the newest backup with: nized --data-dir %s restore %s", printable.ShellWord(dir), printable.ShellWord(name))
	}
	return fmt.Sprintf("there is no backup in %s; restore one of yours with: nized --data-dir %s restore FILE", filepath.Join(dir, backupsName), printable.ShellWord(dir))
}
