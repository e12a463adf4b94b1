package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"nize/store"
	"nize/store/bolt"
	"nize/store/seal"
)

// The names in the data directory. Of files that begin with tempMark nothing
// is needed once the daemon has ended.
const (
	databaseName = "nize.db"
	keyName      = "nize.key"
	lockName     = "nized.lock"
	backupsName  = "backups"
	tempMark     = ".nize-"
)

// lockDir makes sure that nobody else works on a data directory, and removes
// what was left there half done. The lock ends with the file, or the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = errors.Join(err, f.Close())
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, inUse(dir)
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, tempMark+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("removing what was left half done: %w", err), f.Close())
	}
	return f, nil
}

// openDB opens the database with its key; one that was not closed is looked
// through first, in a child process, since a damaged one can end the process
// that reads it. The caller holds the directory's lock.
func openDB(ctx context.Context, opt Options) (*bolt.DB, error) {
	path := filepath.Join(opt.DataDir, databaseName)
	if err := checkMissing(opt, path); err != nil {
		return nil, err
	}
	if !bolt.Clean(path) {
		opt.Log.Info("the database was not closed; checking it", "path", path)
		if err := bolt.CheckInChild(ctx, path); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return nil, inUse(opt.DataDir)
			}
			return nil, fmt.Errorf("the database did not pass its check: %w; %s", err, wayBack(opt.DataDir))
		}
	}
	keyFile, env := filepath.Join(opt.DataDir, keyName), store.NewSecret(opt.Env("NIZE_MASTER_KEY"))
	master, err := seal.Open(keyFile, env)
	if err != nil {
		return nil, fmt.Errorf("opening the master key: %w", err)
	}
	bopt := bolt.Options{Path: path, Master: master, Now: opt.Now, Log: opt.Log.With("component", "store")}
	db, err := bolt.Open(ctx, bopt)
	if errors.Is(err, seal.ErrWrongKey) && env.IsZero() {
		db, err = finishRotation(ctx, keyFile, bopt, err)
	}
	err = noteMigration(opt.DataDir, opt.Now(), err)
	if bolt.Damaged(err) {
		return nil, fmt.Errorf("opening the database: %w; %s", err, wayBack(opt.DataDir))
	}
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	if err := os.Remove(path + beginName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("beginning with a new database: %w", err), db.Close())
	}
	return db, nil
}

// beginName marks a database that is just being made: a first start that was
// cut off left what a database that is lost would leave, too.
const beginName = ".begins"

// checkMissing refuses to make a database where there was one: a file that was
// lost, or cut to nothing, must not look like a first start, which would serve
// with every rule, token and audit event missing.
func checkMissing(opt Options, path string) error {
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
	if begun := err == nil; !opt.New && !begun {
		traces := append(bolt.Traces(path), filepath.Join(opt.DataDir, keyName))
		if name := newestBackup(opt.DataDir); name != "" {
			traces = append(traces, name)
		}
		for _, left := range traces {
			if _, err := os.Stat(left); err == nil {
				return fmt.Errorf("the database %s is %s, and %s says that there was one: %s; to begin with an empty one, say so once: nized --new", path, what, filepath.Base(left), wayBack(opt.DataDir))
			}
		}
	}
	if err := os.WriteFile(path+beginName, nil, 0o600); err != nil {
		return fmt.Errorf("beginning with a new database: %w", err)
	}
	return nil
}

// finishRotation opens a database whose rotation was cut off between its
// commit and the key file's change; otherwise wrong stands.
func finishRotation(ctx context.Context, keyFile string, opt bolt.Options, wrong error) (*bolt.DB, error) {
	next, err := seal.Open(keyFile+".new", store.Secret{})
	if err != nil {
		return nil, wrong
	}
	if key, err := bolt.Inspect(opt.Path); err != nil || key != next.ID() {
		return nil, wrong
	}
	if _, err := seal.Adopt(keyFile, opt.Master.ID()); err != nil {
		return nil, err
	}
	opt.Log.Info("a rotation of the master key was finished", "key", next.ID())
	opt.Master = next
	return bolt.Open(ctx, opt)
}

// wayBack is the command that restores the newest backup.
func wayBack(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // for whoever reads it elsewhere
	}
	if name := newestBackup(dir); name != "" {
		return fmt.Sprintf("go back to the newest backup with: nized --data-dir %s restore %s", store.ShellWord(dir), store.ShellWord(name))
	}
	return fmt.Sprintf("there is no backup in %s; restore one of yours with: nized --data-dir %s restore FILE", filepath.Join(dir, backupsName), store.ShellWord(dir))
}

// unlock lets the next daemon in.
func (d *Daemon) unlock() {
	if d.lock != nil {
		_ = d.lock.Close() // nothing was written to it
	}
}

// inUse is the error for a data directory that another nized has: a conflict,
// in its own words.
type inUse string

func (dir inUse) Error() string {
	return "another nized runs on " + string(dir) + "; stop it first, or choose another --data-dir"
}

// Is meets the sentinel.
func (inUse) Is(target error) bool { return target == store.ErrConflict }
