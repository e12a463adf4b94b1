package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
	"nize/store/kv/bolt"
	"nize/store/seal"
)

// A restore changes nothing until the copy has passed all checks:
//
//	the copy is written to the data directory, under a name of its own
//	a child process checks it; its schema and its key are read
//	it is opened: an older schema is migrated, the audit trail is verified
//	calls that were open in it are ended
//	the daemon drains and closes its database
//	one rename puts the copy in place; the old file keeps a second name
//	the daemon starts again, in the same process
//
// After a crash at any point there is one whole database or the other.

// spareSpace is left free beside an uploaded copy, for the running daemon.
const spareSpace = 32 << 20

// Exclusive allows only one restore or key rotation at a time.
type Exclusive struct{ busy sync.Mutex }

func (e *Exclusive) begin() (done func(), err error) {
	if !e.busy.TryLock() {
		return nil, fmt.Errorf("a restore or a rotation of the keys is under way: %w; try again when it is done", store.ErrConflict)
	}
	return e.busy.Unlock, nil
}

// Restores accepts copies while a daemon is running.
type Restores struct {
	directory *Directory
	exclusive *Exclusive
	staged    chan Staged // capacity 1; the request that stages a copy keeps the exclusive lock
}

// Mount registers the operations.
func (r *Restores) Mount(m *mux.Mux) {
	mux.HandleUpload(m, api.Restore, r.Upload)
}

// NewRestores returns the restore operation for the directory.
func NewRestores(d *Directory, e *Exclusive) *Restores {
	return &Restores{directory: d, exclusive: e, staged: make(chan Staged, 1)}
}

// Staged is a checked copy that is ready to be put in place.
type Staged struct{ path, kept string }

// Kept returns the path at which the previous database is kept.
func (s *Staged) Kept() string { return s.kept }

// Staged returns the channel of the copy for which the daemon must drain.
func (r *Restores) Staged() <-chan Staged { return r.staged }

// Late returns s, or a copy staged by a request that was still in progress when the drain
// began; nil if there is none.
func (r *Restores) Late(s *Staged) *Staged {
	if s != nil {
		return s
	}
	select {
	case late := <-r.staged:
		return &late
	default:
		return nil
	}
}

// Upload receives a copy. After it returns, the daemon drains and puts the copy in place.
func (r *Restores) Upload(ctx context.Context, by store.Caller, req api.RestoreRequest, f api.File) (none api.Restored, err error) {
	if !r.directory.Database.IsZero() {
		return none, ErrServer
	}
	done, err := r.exclusive.begin()
	if err != nil {
		return none, err
	}
	in := incoming{from: f, size: f.Size, keepAccess: req.KeepAccess, by: by}
	restored, ready, err := in.stage(ctx, r.directory)
	if err != nil {
		done()
		return none, err
	}
	r.staged <- ready // the exclusive lock is kept from here on
	return restored, nil
}

// Replace puts a staged copy in place after the database was closed. If it fails, the
// previous database is still there.
func (d *Directory) Replace(s *Staged) error {
	err := database.Replace(d.file(databaseName), s.path, s.kept)
	if err != nil {
		return errors.Join(err, database.Discard(s.path))
	}
	return nil
}

// Restore replaces the database with the copy in file, while no daemon is running. The same
// rules apply as for a running one.
func (d *Directory) Restore(ctx context.Context, file string, keepAccess bool) (restored api.Restored, err error) {
	if !d.Database.IsZero() {
		return restored, ErrServer
	}
	lock, err := d.Lock()
	if err != nil {
		return restored, err
	}
	defer lock.Close()
	f, err := os.Open(file)
	if err != nil {
		return restored, fmt.Errorf("opening the copy: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return restored, fmt.Errorf("opening the copy: %w", err)
	}
	if !info.Mode().IsRegular() {
		return restored, fmt.Errorf("%w copy: %s is not a file", store.ErrInvalid, file)
	}
	in := incoming{from: f, size: info.Size(), keepAccess: keepAccess, by: store.System}
	restored, ready, err := in.stage(ctx, d)
	if err != nil {
		return restored, err
	}
	if err := d.Replace(&ready); err != nil {
		return restored, err
	}
	if _, err := os.Stat(ready.kept); errors.Is(err, os.ErrNotExist) {
		restored.Kept = "" // there was no previous database
	}
	return restored, nil
}

// incoming is a copy that is being received.
type incoming struct {
	from       io.Reader
	size       int64
	keepAccess bool
	by         store.Caller
}

// stage writes, checks and settles the copy. On an error it leaves nothing.
func (in incoming) stage(ctx context.Context, d *Directory) (restored api.Restored, s Staged, err error) {
	now := d.Now()
	s = Staged{path: d.temp("restore", now), kept: d.file(databaseName + ".before-restore-" + now.UTC().Format("20060102T150405.000Z"))}
	defer func() {
		if err != nil {
			err = errors.Join(err, database.Discard(s.path))
		}
	}()
	restored.Kept = s.kept
	if restored.Size, restored.SHA256, err = in.write(s.path, d.Path); err != nil {
		return restored, s, err
	}
	if err := bolt.CheckInChild(ctx, s.path); err != nil {
		return restored, s, fmt.Errorf("%w copy, nothing was changed: %w", store.ErrInvalid, err)
	}
	if restored.Key, err = database.Inspect(s.path); err != nil {
		return restored, s, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := in.settle(ctx, d, s.path, &restored); err != nil {
		return restored, s, fmt.Errorf("nothing was changed: %w", err)
	}
	return restored, s, nil
}

// write writes the copy to disk, if there is enough space.
func (in incoming) write(path, dir string) (int64, string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err == nil {
		if free, need := fs.Bavail*uint64(fs.Bsize), uint64(in.size)+spareSpace; free < need {
			return 0, "", fmt.Errorf("%w: the copy needs %d MiB free, there are %d", store.ErrDiskFull, need>>20+1, free>>20)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", fmt.Errorf("writing the copy: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(in.from, in.size))
	if err = errors.Join(err, f.Sync(), f.Close()); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return 0, "", fmt.Errorf("writing the copy: %w", store.ErrDiskFull)
	}
	if err != nil {
		return 0, "", fmt.Errorf("writing the copy: %w", err)
	}
	if n != in.size {
		return 0, "", fmt.Errorf("%w copy: only %d of %d bytes were received", store.ErrInvalid, n, in.size)
	}
	return n, hex.EncodeToString(sum.Sum(nil)), nil
}

// settle opens the copy, ends the calls that were open in it, and leaves it closed and
// sealed with this directory's master key.
func (in incoming) settle(ctx context.Context, d *Directory, path string, restored *api.Restored) (err error) {
	keyFile := d.file(keyName)
	current, err := seal.Open(keyFile, d.envKey())
	if err != nil {
		return fmt.Errorf("opening the master key: %w", err)
	}
	master := current
	if restored.Key != current.ID() {
		if master, err = seal.OpenFor(keyFile, restored.Key); err != nil {
			return store.Mark(err, store.ErrRefused)
		}
	}
	db, err := database.Open(ctx, database.Options{Path: path, Master: master, Now: d.Now, Log: d.Log.With("component", "store"), Buckets: d.Buckets})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.VerifyEvents(ctx); err != nil {
		return fmt.Errorf("%w copy: %w", store.ErrInvalid, err)
	}
	if restored.Expired, restored.Lost, err = settleCalls(ctx, db); err != nil {
		return err
	}
	if !in.keepAccess {
		if restored.Tokens, err = db.RevokeTokens(ctx, in.by, "", ""); err != nil {
			return err
		}
		if restored.Grants, err = revokeGrants(ctx, db, in.by); err != nil {
			return err
		}
	}
	if master != current {
		if _, err := db.Rotate(ctx, in.by, current); err != nil {
			return err
		}
	}
	db.AddEvent(in.by, store.Event{Kind: api.RestoreEvent, Subject: restored.SHA256})
	return db.Flush(ctx)
}

// settleCalls ends every call that was open when the copy was made. It may have run since,
// approved or not, so it must not run again.
func settleCalls(ctx context.Context, db store.Calls) (expired, lost int, err error) {
	why := store.Textf("the database was restored from a copy made while this call was open")
	for _, s := range []struct {
		state store.State
		end   store.Outcome
		count *int
	}{
		{store.Planned, store.Outcome{State: store.Expired, Reason: why}, &expired},
		{store.Pending, store.Outcome{State: store.Expired, Reason: why}, &expired},
		{store.Running, store.Outcome{State: store.Lost, Reason: why, Result: &store.Result{IsError: true, Error: &store.CallError{Code: store.CodeUnknown, Message: why}}}, &lost},
	} {
		for {
			calls, err := db.ListCalls(ctx, store.CallQuery{States: []store.State{s.state}, Limit: 500})
			if err != nil {
				return expired, lost, fmt.Errorf("reading open calls: %w", err)
			}
			if len(calls) == 0 {
				break
			}
			for _, c := range calls {
				if _, err := db.Finish(ctx, store.System, c.ID, s.end); err != nil {
					return expired, lost, fmt.Errorf("ending call %s: %w", c.ID, err)
				}
				*s.count++
			}
		}
	}
	return expired, lost, nil
}

func revokeGrants(ctx context.Context, db store.Grants, by store.Caller) (int, error) {
	grants, err := db.ListGrants(ctx, "")
	if err != nil {
		return 0, fmt.Errorf("listing grants: %w", err)
	}
	for i, g := range grants {
		if err := db.DeleteGrant(ctx, by, g.ID); err != nil {
			return i, fmt.Errorf("revoking grant %s: %w", g.ID, err)
		}
	}
	return len(grants), nil
}
