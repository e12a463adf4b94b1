package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

// Keys implements the operations on the master key and the data key.
type Keys struct {
	Directory *Directory
	DB        *database.DB
	Exclusive *Exclusive
	// Closing ends when a drain begins.
	Closing context.Context
	Log     *slog.Logger
}

// Mount registers the operations.
func (k *Keys) Mount(m *mux.Mux) {
	mux.Handle(m, api.ExportKey, k.Export)
	mux.Handle(m, api.RotateKeys, k.Rotate)
}

// Rotate replaces the data key and, unless NIZE_MASTER_KEY is set, the master key, and
// reseals everything. Calls continue meanwhile. It continues if the client disconnects; if
// the daemon stops, the next start resumes it.
func (k *Keys) Rotate(ctx context.Context, by store.Caller, _ api.Empty) (none api.Rotated, err error) {
	done, err := k.Exclusive.begin()
	if err != nil {
		return none, err
	}
	defer done()
	ctx = context.WithoutCancel(ctx)
	rotated := api.Rotated{Was: k.DB.KeyID()}
	file := k.Directory.file(keyName)
	next, err := k.next(file)
	if err != nil {
		return none, err
	}
	if rotated.DataKey, err = k.DB.Rotate(ctx, by, next); err != nil {
		return none, err
	}
	if rotated.Key = next.ID(); rotated.Key != rotated.Was {
		if rotated.Kept, err = seal.Adopt(file, rotated.Was); err != nil {
			return none, err
		}
	}
	if rotated.Resealed, err = k.DB.Reseal(k.Closing); err != nil {
		if k.Closing.Err() != nil {
			return none, fmt.Errorf("nized is stopping; it continues resealing when it starts again: %w", api.ErrUnavailable)
		}
		return none, err
	}
	return rotated, nil
}

// next returns a new master key for the key file, or the one from the environment, which
// can't be changed here.
func (k *Keys) next(file string) (*seal.Master, error) {
	if env := k.Directory.envKey(); !env.IsZero() {
		return seal.Open(file, env)
	}
	// The key on disk must be the one that opens the data, or replacing it would lose a
	// key.
	if _, id, err := seal.Export(file, store.Secret{}); err != nil || id != k.DB.KeyID() {
		return nil, errors.Join(k.otherKey(id), err)
	}
	return seal.Next(file)
}

func (k *Keys) otherKey(id string) error {
	return fmt.Errorf("%w: the master key in use is %s, but nized now finds %q; restore the key file", store.ErrConflict, k.DB.KeyID(), id)
}

// Export returns the master key to an admin and records that in the audit trail.
func (k *Keys) Export(ctx context.Context, by store.Caller, _ api.Empty) (none api.ExportedKey, err error) {
	text, id, err := seal.Export(k.Directory.file(keyName), k.Directory.envKey())
	if err != nil || id != k.DB.KeyID() {
		return none, errors.Join(k.otherKey(id), err)
	}
	k.DB.AddEvent(by, store.Event{Kind: "keys.export", Subject: id})
	if err := k.DB.Flush(ctx); err != nil { // the event must be recorded before the key is returned
		return none, fmt.Errorf("recording the export: %w", err)
	}
	return api.ExportedKey{ID: id, Key: api.Secret{Secret: text}}, nil
}

// FinishRotation reseals what an interrupted rotation left.
func (k *Keys) FinishRotation(context.Context) error {
	n, err := k.DB.DataKeys(k.Closing)
	if err != nil || n < 2 {
		return err
	}
	done, err := k.Exclusive.begin()
	if err != nil {
		return nil // a running rotation will complete this one, too
	}
	defer done()
	sealed, err := k.DB.Reseal(k.Closing)
	if err != nil {
		if k.Closing.Err() == nil {
			k.Log.Error("resealing after a key rotation", "err", err)
		}
		return nil // everything is readable; the next start retries
	}
	k.Log.Info("a rotation of the keys was finished", "sealed_anew", sealed)
	return nil
}
