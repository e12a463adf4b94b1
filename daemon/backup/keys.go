package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

// Keys are the operations on the master key and the data key.
type Keys struct {
	Directory *Directory
	DB        *database.DB
	Exclusive *Exclusive
	// Closing ends when a drain begins.
	Closing context.Context
	Log     *slog.Logger
}

// Rotate replaces the master key, unless NIZE_MASTER_KEY gives it, and the data
// key, and seals everything again. Calls go on meanwhile. A client that leaves
// stops nothing; a stop does, and the next start goes on.
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
			return none, fmt.Errorf("nized stops; it goes on sealing again when it starts: %w", api.ErrUnavailable)
		}
		return none, err
	}
	return rotated, nil
}

// next is a new master key for the key file, or the one that the environment
// gives, which nobody here can change.
func (k *Keys) next(file string) (*seal.Master, error) {
	if env := k.Directory.envKey(); !env.IsZero() {
		return seal.Open(file, env)
	}
	// What is on disk must be what opens the data, or replacing it loses a key.
	if _, id, err := seal.Export(file, store.Secret{}); err != nil || id != k.DB.KeyID() {
		return nil, errors.Join(k.otherKey(id), err)
	}
	return seal.Next(file)
}

func (k *Keys) otherKey(id string) error {
	return fmt.Errorf("%w: the master key in use is %s, and what nized finds now is %q; put the key file back", store.ErrConflict, k.DB.KeyID(), id)
}

// Export gives an admin the master key, and the trail says so.
func (k *Keys) Export(ctx context.Context, by store.Caller, _ api.Empty) (none api.ExportedKey, err error) {
	text, id, err := seal.Export(k.Directory.file(keyName), k.Directory.envKey())
	if err != nil || id != k.DB.KeyID() {
		return none, errors.Join(k.otherKey(id), err)
	}
	k.DB.AddEvent(by, store.Event{Kind: "keys.export", Subject: id})
	if err := k.DB.Flush(ctx); err != nil { // no key leaves unnoticed
		return none, fmt.Errorf("recording the export: %w", err)
	}
	return api.ExportedKey{ID: id, Key: api.Secret{Secret: text}}, nil
}

// FinishRotation seals what a rotation that was cut off left.
func (k *Keys) FinishRotation(context.Context) error {
	n, err := k.DB.DataKeys(k.Closing)
	if err != nil || n < 2 {
		return err
	}
	done, err := k.Exclusive.begin()
	if err != nil {
		return nil // a rotation is under way, which ends this one too
	}
	defer done()
	sealed, err := k.DB.Reseal(k.Closing)
	if err != nil {
		if k.Closing.Err() == nil {
			k.Log.Error("sealing again after a rotation of the keys", "err", err)
		}
		return nil // everything is readable; the next start tries again
	}
	k.Log.Info("a rotation of the keys was finished", "sealed_anew", sealed)
	return nil
}
