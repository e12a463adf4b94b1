package backup

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/bolt"
	"nize/store/kv/postgres"
	"nize/store/seal"
)

// A copy to another engine writes to its target only after the source was verified: its key
// opens it, its audit trail is valid, and every secret in it decrypts. Before anything
// else, a mark is written to the target (package transfer), which is removed when the
// target has been verified in the same way.

// held is an engine that is locked against other users.
type held struct {
	kv.Engine
	lock *os.File // lock of its data directory, if it is in one
}

func (h *held) close(clean bool) error {
	err := h.Close(clean)
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	return err
}

// CopyTo copies the database to that of to, which must be empty. Both are locked meanwhile.
func (d *Directory) CopyTo(ctx context.Context, to *Directory) (said api.Copied, err error) {
	if said.From, said.To = d.place(), to.place(); said.From == said.To {
		return said, store.Mark(fmt.Errorf("%s is the source and the target", said.From), store.ErrConflict)
	}
	from, err := d.source(ctx)
	if err != nil {
		return said, fmt.Errorf("the source %s: %w; nothing was copied", said.From, err)
	}
	defer func() { err = errors.Join(err, from.close(false)) }()
	_, err = database.InspectEngine(from.Engine)
	var master *seal.Master
	if err == nil {
		master, err = seal.Open(d.file(keyName), d.envKey())
	}
	if err == nil {
		_, _, err = database.VerifyEngine(ctx, from.Engine, master, d.Buckets)
	}
	if err != nil {
		return said, fmt.Errorf("the source %s: %w; nothing was copied", said.From, err)
	}
	said.Key = master.ID()
	target, err := to.target(ctx, master, func(e kv.Engine) error {
		c, err := database.Transfer(from.Engine, e)
		if err == nil {
			err = c.Begin(ctx)
		}
		return err
	})
	if err != nil {
		return said, fmt.Errorf("the target %s: %w; nothing was copied", said.To, err)
	}
	err = fill(ctx, from, target, master, d.Buckets, &said)
	if err = errors.Join(err, target.close(err == nil)); err != nil {
		return said, fmt.Errorf("the target %s is an incomplete copy, which nized refuses to open; empty it before you try again: %w", said.To, err)
	}
	if _, err := os.Stat(to.file(keyName)); err != nil && to.envKey().IsZero() {
		said.Lacks = to.file(keyName)
	}
	return said, nil
}

func fill(ctx context.Context, from, target *held, master *seal.Master, modules []kv.Bucket, said *api.Copied) error {
	c, err := database.Transfer(from.Engine, target.Engine)
	if err != nil {
		return err
	}
	contents, err := c.Run(ctx)
	if err != nil {
		return err
	}
	for _, one := range contents {
		said.Buckets, said.Keys, said.Bytes = said.Buckets+1, said.Keys+one.Keys, said.Bytes+one.Bytes
	}
	if said.Events, said.Secrets, err = database.VerifyEngine(ctx, target.Engine, master, modules); err != nil {
		return err
	}
	return c.End(ctx)
}

// place names the database, without credentials.
func (d *Directory) place() string {
	if d.Database.IsZero() {
		return realPath(d.Path)
	}
	u, err := url.Parse(d.Database.Reveal())
	if err != nil {
		return "server" // opening it returns a more specific error
	}
	named := url.Values{}
	for _, key := range []string{"host", "port"} {
		if v := u.Query().Get(key); v != "" {
			named.Set(key, v)
		}
	}
	return (&url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path, RawQuery: named.Encode()}).String()
}

// realPath resolves the links in a directory's path, as far as it exists.
func realPath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// serve opens the engine on the server exclusively.
func (d *Directory) serve(ctx context.Context) (*held, error) {
	e, err := postgres.Open(ctx, postgres.Options{URL: d.Database, Log: d.Log})
	if err != nil {
		return nil, err
	}
	return &held{Engine: e}, nil
}

// source opens the database to copy. A file is first opened as nized does, to include what
// a killed nized left beside it.
func (d *Directory) source(ctx context.Context) (h *held, err error) {
	if !d.Database.IsZero() {
		return d.serve(ctx)
	}
	path := d.file(databaseName)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil, fmt.Errorf("there is no database: %w", store.ErrNotFound)
	}
	h = &held{}
	if h.lock, err = d.Lock(); err != nil {
		return nil, err
	}
	err = bolt.CheckInChild(ctx, path)
	if err == nil {
		err = d.settle(ctx)
	}
	if err == nil {
		h.Engine, err = bolt.Open(path, bolt.Options{ReadOnly: true})
	}
	if err != nil {
		return nil, errors.Join(err, h.lock.Close())
	}
	return h, nil
}

// settle opens the database as nized does, and closes it.
func (d *Directory) settle(ctx context.Context) error {
	db, err := d.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(db.CheckTrailEnd(ctx), db.Close())
}

// target opens the database to copy to, and calls begin to mark it.
func (d *Directory) target(ctx context.Context, master *seal.Master, begin func(kv.Engine) error) (h *held, err error) {
	if !d.Database.IsZero() {
		if h, err = d.serve(ctx); err != nil {
			return nil, err
		}
		if err = begin(h.Engine); err != nil {
			return nil, errors.Join(err, h.close(false))
		}
		return h, nil
	}
	h = &held{}
	if h.lock, err = d.Lock(); err != nil {
		return nil, err
	}
	if h.Engine, err = d.newFile(master, begin); err != nil {
		return nil, errors.Join(err, h.lock.Close())
	}
	return h, nil
}

// newFile creates the file of a target. The file gets its name after the mark is written.
func (d *Directory) newFile(master *seal.Master, begin func(kv.Engine) error) (kv.Engine, error) {
	path := d.file(databaseName)
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) > 0 {
		return nil, errors.Join(err, store.Mark(fmt.Errorf("it is not empty: move %s away first, and what is named like it (%s may stay)", path, keyName), store.ErrConflict))
	}
	if _, err := os.Stat(d.file(keyName)); err == nil && d.envKey().IsZero() {
		if own, err := seal.Open(d.file(keyName), store.Secret{}); err != nil || own.ID() != master.ID() {
			return nil, errors.Join(err, store.Mark(fmt.Errorf("its %s is not the key of the source, which is %s", keyName, master.ID()), store.ErrConflict))
		}
	}
	temp := d.temp("copy", d.Now())
	f, err := database.OpenCopy(temp, d.Buckets)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(begin(f), f.Close(false)); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Rename(temp, path), syncDir(d.Path)); err != nil {
		return nil, err
	}
	return database.OpenCopy(path, d.Buckets)
}
