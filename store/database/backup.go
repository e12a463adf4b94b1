package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/kv/transfer"
	"nize/store/record/catalog"
	"nize/store/seal"
)

// Copy describes a backup. It does not contain the key: sealed values can only be opened
// with the master key of that id.
type Copy struct {
	Key    string // id of the master key
	Size   int64  // bytes
	SHA256 string // of the file, in hex
}

// Backup writes a consistent copy of the database to a new file at path, mode 0600, while
// the database is in use. It contains everything acknowledged before the call, including
// queued records. Backup returns an error if the file exists; if it fails, it removes the
// incomplete file.
//
// Free pages are not copied. path must be a local file, never a network connection: what a
// slow disk prolongs is the time for which writers wait at the end of the copy.
func (d *DB) Backup(ctx context.Context, path string) (c Copy, err error) {
	if err := d.Flush(ctx); err != nil {
		return c, fmt.Errorf("backing up: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return c, fmt.Errorf("backing up: %w", commit.NoRoom(err))
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, commit.RemoveIfThere(path))
		}
	}()
	if file, ok := d.engine.(*bolt.File); ok {
		if err = commit.NoRoom(file.CopyTo(ctx, path)); err == nil {
			c.Key, err = Inspect(path) // keys may have been rotated meanwhile
		}
		if err != nil {
			return c, fmt.Errorf("backing up: %w", err)
		}
	} else if err = d.Read(ctx, "backing up", func(t *commit.Tx) (err error) {
		if c.Key, err = wrappedBy(t); err != nil {
			return err
		}
		return commit.NoRoom(copyTo(ctx, d.engine, path, d.buckets))
	}); err != nil {
		return c, err
	}
	if err := f.Sync(); err != nil {
		return c, fmt.Errorf("backing up: %w", commit.NoRoom(err))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return c, fmt.Errorf("backing up: %w", err)
	}
	sum := sha256.New()
	if c.Size, err = io.Copy(sum, f); err != nil {
		return c, fmt.Errorf("backing up: %w", err)
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// Transfer returns a copy of a whole database from one engine to another. Sealed values
// stay sealed under the same keys.
func Transfer(from, to kv.Engine) (transfer.Copy, error) {
	c := transfer.Copy{From: from, To: to, Mark: "meta"}
	err := commit.Transact(from, false, func(b kv.Transaction) error {
		return b.Range("meta", kv.Range{Prefix: []byte(catalog.VectorsOf(""))}, func(k, _ []byte) bool {
			c.Within = append(c.Within, string(k))
			return true
		})
	})
	return c, err
}

// OpenCopy opens the target file of a copy. All keys are put in order, so pages are filled,
// except for some space in buckets that change afterwards. modules are [Options.Buckets].
func OpenCopy(path string, modules []kv.Bucket) (*bolt.File, error) {
	full := map[string]float64{}
	for _, b := range slices.Concat(Buckets, modules) {
		full[b.Name] = 0.9
	}
	maps.Copy(full, fillOf)
	return bolt.Open(path, bolt.Options{Fill: full})
}

// copyTo writes the whole content of an engine to a file of the embedded one.
func copyTo(ctx context.Context, e kv.Engine, path string, modules []kv.Bucket) (err error) {
	f, err := OpenCopy(path, modules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(false)) }()
	c, err := Transfer(e, f)
	if err == nil {
		err = c.Begin(ctx)
	}
	if err == nil {
		_, err = c.Run(ctx)
	}
	if err == nil {
		err = c.End(ctx)
	}
	return err
}

// Damaged reports whether err means that a file is damaged, so that a backup must be
// restored.
func Damaged(err error) bool { return errors.Is(err, commit.ErrDamaged) }

// wrappedBy returns the id of the master key that wraps all data keys.
func wrappedBy(t *commit.Tx) (string, error) {
	k := t.First("keys", nil)
	if k == nil {
		return "", fmt.Errorf("%w: no data key", commit.ErrDamaged)
	}
	return seal.WrappedBy(t.Get("keys", k))
}

// Inspect returns the id of the master key that the database at path is sealed with,
// without changing the file. It returns store.ErrInvalid for an empty file or another
// program's, and store.ErrOldSchema for a newer schema. The file should have passed [Check]
// in a child process.
func Inspect(path string) (key string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading database %s: %w", path, err)
		}
	}()
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if info.Size() == 0 {
		return "", fmt.Errorf("%w file: it is empty", store.ErrInvalid)
	}
	file, err := bolt.Open(path, bolt.Options{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close(false)) }()
	return InspectEngine(file)
}

// InspectEngine is [Inspect] for an open engine.
func InspectEngine(e kv.Engine) (key string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = commit.Recovered(r)
		}
	}()
	err = commit.Transact(e, false, func(b kv.Transaction) error {
		have, err := schemaOf(b)
		if err != nil {
			return err
		}
		newest := migrations[len(migrations)-1].version
		switch {
		case have == 0:
			return fmt.Errorf("%w file: it is an empty database", store.ErrInvalid)
		case have > newest:
			return fmt.Errorf("%w: its schema is %d, this nized knows %d; use the newer nized", store.ErrOldSchema, have, newest)
		}
		key, err = wrappedBy(&commit.Tx{Raw: b})
		return err
	})
	return key, err
}

// Replace replaces the database at path by the one at with; both are closed. It keeps the
// old one, if there is one, as keep. At every moment, and after a crash at any, there is a
// complete database at path.
func Replace(path, with, keep string) error {
	err := keepAside(path, keep)
	if err == nil {
		err = errors.Join(bolt.Unmark(path), commit.RemoveIfThere(commit.BesidePath(path)), commit.RemoveIfThere(commit.JournalPath(path)))
	}
	if err == nil {
		err = os.Rename(with, path)
	}
	if err == nil {
		err = os.Rename(bolt.MarkPath(with), bolt.MarkPath(path))
	}
	if err == nil {
		err = commit.RemoveIfThere(with + commit.ReserveName)
	}
	if err == nil {
		err = renameIfThere(commit.BesidePath(with), commit.BesidePath(path))
	}
	if err == nil {
		err = commit.SyncFile(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("replacing database %s: %w", path, commit.NoRoom(err))
	}
	return nil
}

// keepAside links the file under a second name, or copies it if the file system has no
// links.
func keepAside(path, keep string) error {
	err := os.Link(path, keep)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if errors.Is(err, os.ErrExist) {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(keep, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return errors.Join(err, commit.RemoveIfThere(keep))
	}
	return nil
}

func renameIfThere(from, to string) error {
	if err := os.Rename(from, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Discard removes a closed database and the files beside it.
func Discard(path string) error {
	found, err := filepath.Glob(path + ".before-schema-*")
	for _, f := range append(found, path, bolt.MarkPath(path), commit.BesidePath(path), commit.JournalPath(path), path+commit.ReserveName) {
		err = errors.Join(err, commit.RemoveIfThere(f))
	}
	return err
}

// Traces returns the files that exist beside a database once it was opened.
func Traces(path string) []string {
	return []string{bolt.MarkPath(path), path + commit.ReserveName, commit.BesidePath(path)}
}
