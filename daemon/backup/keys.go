package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"nize/daemon/api"
	"nize/store"
	"nize/store/seal"
)

// rotateKeys replaces the master key, unless NIZE_MASTER_KEY gives it, and the
// data key, and seals everything anew. Calls go on meanwhile. A client that
// leaves stops nothing; a stop does, and the next start goes on.
func (d *Daemon) rotateKeys(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	done, err := d.keeping.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	ctx = context.WithoutCancel(ctx)
	said := api.Rotated{Was: d.db.KeyID()}
	file := filepath.Join(d.opt.DataDir, keyName)
	next, err := d.nextMaster(file)
	if err != nil {
		return nil, err
	}
	if said.DataKey, err = d.db.Rotate(ctx, by, next); err != nil {
		return nil, err
	}
	if said.Key = next.ID(); said.Key != said.Was {
		if said.Kept, err = seal.Adopt(file, said.Was); err != nil {
			return nil, err
		}
	}
	if said.Resealed, err = d.db.Reseal(d.closing); err != nil {
		if d.closing.Err() != nil {
			return nil, fmt.Errorf("nized stops; it goes on sealing anew when it starts: %w", api.ErrUnavailable)
		}
		return nil, err
	}
	return said, nil
}

// nextMaster is a new master key for the key file, or the one that the
// environment gives, which nobody here can change.
func (d *Daemon) nextMaster(file string) (*seal.Master, error) {
	if env := store.NewSecret(d.opt.Env("NIZE_MASTER_KEY")); !env.IsZero() {
		return seal.Open(file, env)
	}
	// What is on disk must be what opens the data, or replacing it loses a key.
	if _, id, err := seal.Export(file, store.Secret{}); err != nil || id != d.db.KeyID() {
		return nil, errors.Join(d.otherKey(id), err)
	}
	return seal.Next(file)
}

func (d *Daemon) otherKey(id string) error {
	return fmt.Errorf("%w: the master key in use is %s, and what nized finds now is %q; put the key file back", store.ErrConflict, d.db.KeyID(), id)
}

// exportKey gives an admin the master key, and the trail says so.
func (d *Daemon) exportKey(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	text, id, err := seal.Export(filepath.Join(d.opt.DataDir, keyName), store.NewSecret(d.opt.Env("NIZE_MASTER_KEY")))
	if err != nil || id != d.db.KeyID() {
		return nil, errors.Join(d.otherKey(id), err)
	}
	d.db.AddEvent(by, store.Event{Kind: "keys.export", Subject: id})
	if err := d.db.Flush(ctx); err != nil { // no key leaves unnoticed
		return nil, fmt.Errorf("recording the export: %w", err)
	}
	return api.ExportedKey{ID: id, Key: api.Secret{Secret: text}}, nil
}

// keepKeys finishes a rotation that was cut off.
func (d *Daemon) keepKeys(context.Context) error {
	n, err := d.db.DataKeys(d.closing)
	if err != nil || n < 2 {
		return err
	}
	done, err := d.keeping.begin()
	if err != nil {
		return nil // a rotation is under way, which ends this one too
	}
	defer done()
	sealed, err := d.db.Reseal(d.closing)
	if err != nil {
		if d.closing.Err() == nil {
			d.log.Error("sealing anew after a rotation of the keys", "err", err)
		}
		return nil // everything is readable; the next start tries again
	}
	d.log.Info("a rotation of the keys was finished", "sealed_anew", sealed)
	return nil
}
