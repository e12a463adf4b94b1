package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"nize/daemon/api"
	"nize/store"
	"nize/store/bolt"
	"nize/store/seal"
)

// A restore changes nothing until all is known to be well:
//
//	the copy arrives in the data directory, under a name of its own
//	a child process looks through it; its schema and its key are looked at
//	it is opened: an older schema is migrated, the audit trail is verified
//	what its past left open is settled in it
//	the daemon drains and closes its database
//	one rename puts the copy in place; the old file keeps a second name
//	the daemon starts again, in the same process
//
// A crash at any point leaves one whole database or the other.

// ErrRestart is what Run returns when nized shall start again: its database was
// replaced.
var ErrRestart = errors.New("nized starts again")

// spareSpace is left free beside an uploaded copy, for the daemon that runs on.
const spareSpace = 32 << 20

// keeping lets one restore or rotation of keys happen at a time.
type keeping struct {
	busy   sync.Mutex
	staged chan staged // holds the one that a drain waits for
}

// staged is a checked and settled copy that waits to be put in place.
type staged struct{ path, kept string }

func newKeeping() *keeping { return &keeping{staged: make(chan staged, 1)} }

func (k *keeping) begin() (done func(), err error) {
	if !k.busy.TryLock() {
		return nil, fmt.Errorf("a restore or a rotation of the keys is under way: %w; try again when it is done", store.ErrConflict)
	}
	return k.busy.Unlock, nil
}

// take returns what was staged, also by a request that was still under way when
// the drain began.
func (k *keeping) take(s *staged) *staged {
	if s != nil {
		return s
	}
	select {
	case late := <-k.staged:
		return &late
	default:
		return nil
	}
}

// restore takes a copy in. When it has answered, Run drains and swaps.
func (d *Daemon) restore(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	done, err := d.keeping.begin()
	if err != nil {
		return nil, err
	}
	if r.ContentLength < 0 {
		done()
		return nil, fmt.Errorf("%w request: it does not say how long the copy is", store.ErrInvalid)
	}
	in := incoming{from: r.Body, size: r.ContentLength, keepAccess: r.URL.Query().Get("keep_access") != "", by: by}
	said, ready, err := in.stage(ctx, d.opt)
	if err != nil {
		done()
		return nil, err
	}
	d.keeping.staged <- ready // and nothing else is kept from here on
	return said, nil
}

// swap puts a staged copy in place after the database was closed. It returns
// ErrRestart, also where the old database must serve on, and nil where nothing
// was staged.
func (d *Daemon) swap(s *staged) error {
	if s == nil {
		return nil
	}
	if err := s.replace(d.opt.DataDir); err != nil {
		d.log.Error("restoring; the database from before serves on", "err", err)
	} else {
		d.log.Info("the database was restored", "kept", s.kept)
	}
	return ErrRestart
}

func (s *staged) replace(dir string) error {
	err := bolt.Replace(filepath.Join(dir, databaseName), s.path, s.kept)
	if err != nil {
		return errors.Join(err, bolt.Discard(s.path))
	}
	return nil
}

// Restore puts the copy in file in the place of the database, where no daemon
// runs. The rules are those of a running one.
func Restore(ctx context.Context, opt Options, file string, keepAccess bool) (api.Restored, error) {
	var said api.Restored
	if err := os.MkdirAll(opt.DataDir, 0o700); err != nil {
		return said, fmt.Errorf("making the data directory: %w", err)
	}
	if err := checkPrivate(opt.DataDir); err != nil {
		return said, err
	}
	lock, err := lockDir(opt.DataDir)
	if err != nil {
		return said, err
	}
	defer lock.Close()
	f, err := os.Open(file)
	if err != nil {
		return said, fmt.Errorf("opening the copy: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return said, fmt.Errorf("opening the copy: %w", err)
	}
	if !info.Mode().IsRegular() {
		return said, fmt.Errorf("%w copy: %s is no file", store.ErrInvalid, file)
	}
	in := incoming{from: f, size: info.Size(), keepAccess: keepAccess, by: store.System}
	said, ready, err := in.stage(ctx, opt)
	if err != nil {
		return said, err
	}
	if err := ready.replace(opt.DataDir); err != nil {
		return said, err
	}
	if _, err := os.Stat(ready.kept); errors.Is(err, os.ErrNotExist) {
		said.Kept = "" // there was none
	}
	return said, nil
}

// incoming is a copy on its way in.
type incoming struct {
	from       io.Reader
	size       int64
	keepAccess bool
	by         store.Caller
}

// stage writes, checks and settles the copy. If it fails nothing is left.
func (in incoming) stage(ctx context.Context, opt Options) (said api.Restored, s staged, err error) {
	now := opt.Now()
	s = staged{
		path: filepath.Join(opt.DataDir, tempMark+"restore-"+store.NewID(now)),
		kept: filepath.Join(opt.DataDir, databaseName+".before-restore-"+now.UTC().Format("20060102T150405.000Z")),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, bolt.Discard(s.path))
		}
	}()
	said.Kept = s.kept
	if said.Size, said.SHA256, err = in.write(s.path, opt.DataDir); err != nil {
		return said, s, err
	}
	if err := bolt.CheckInChild(ctx, s.path); err != nil {
		return said, s, fmt.Errorf("%w copy, nothing was changed: %w", store.ErrInvalid, err)
	}
	if said.Key, err = bolt.Inspect(s.path); err != nil {
		return said, s, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := in.settle(ctx, opt, s.path, &said); err != nil {
		return said, s, fmt.Errorf("nothing was changed: %w", err)
	}
	return said, s, nil
}

// write takes the copy onto the disk, if there is room for it.
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
		return 0, "", fmt.Errorf("%w copy: %d bytes of %d came", store.ErrInvalid, n, in.size)
	}
	return n, hex.EncodeToString(sum.Sum(nil)), nil
}

// settle opens the copy, ends in it what its past left open, and leaves it
// closed and under the master key that is in use here.
func (in incoming) settle(ctx context.Context, opt Options, path string, said *api.Restored) (err error) {
	keyFile := filepath.Join(opt.DataDir, keyName)
	current, err := seal.Open(keyFile, store.NewSecret(opt.Env("NIZE_MASTER_KEY")))
	if err != nil {
		return fmt.Errorf("opening the master key: %w", err)
	}
	master := current
	if said.Key != current.ID() {
		if master, err = seal.OpenFor(keyFile, said.Key); err != nil {
			return fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
	}
	db, err := bolt.Open(ctx, bolt.Options{Path: path, Master: master, Now: opt.Now, Log: opt.Log.With("component", "store")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.VerifyEvents(ctx); err != nil {
		return fmt.Errorf("%w copy: %w", store.ErrInvalid, err)
	}
	if said.Expired, said.Lost, err = settleCalls(ctx, db); err != nil {
		return err
	}
	if !in.keepAccess {
		if said.Tokens, err = db.RevokeTokens(ctx, in.by, "", ""); err != nil {
			return err
		}
		if said.Grants, err = revokeGrants(ctx, db, in.by); err != nil {
			return err
		}
	}
	if master != current {
		if _, err := db.Rotate(ctx, in.by, current); err != nil {
			return err
		}
	}
	db.AddEvent(in.by, store.Event{Kind: api.RestoreEvent, Subject: said.SHA256})
	return db.Flush(ctx)
}

// settleCalls ends every call that was open when the copy was made. They may
// have run since, approved or not, so none may run from here.
func settleCalls(ctx context.Context, db store.Calls) (expired, lost int, err error) {
	const why = "the database was restored from a copy made while this call was open"
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
