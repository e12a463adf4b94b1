package seal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"nize/store"
)

// A key file is replaced in three steps, so that the key of the data exists at every
// moment:
//
//	[Next]   creates a master key, whose first Wrap writes it to FILE.new
//	         the data keys are wrapped under it, in one transaction
//	[Adopt]  keeps FILE as FILE.ID and renames FILE.new to FILE
//
// If FILE does not open the data, [OpenFor] searches the others. If the data doesn't need
// FILE.new, its rotation never took place.

var keyID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Next creates a new master key to replace the one in keyFile. It removes the new key of an
// unfinished rotation, so it must only be called while keyFile opens the data.
func Next(keyFile string) (*Master, error) {
	next := keyFile + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("making a new master key: %w", err)
	}
	return Open(next, store.Secret{})
}

// Adopt makes the key of [Next] the one in keyFile. It keeps the previous one, with the id
// old, under the name that it returns, because earlier copies of the data need it.
func Adopt(keyFile, old string) (kept string, err error) {
	kept = keyFile + "." + old
	if err := os.Link(keyFile, kept); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("keeping the old master key: %w", err)
	}
	if err := os.Rename(keyFile+".new", keyFile); err != nil {
		return "", fmt.Errorf("putting the new master key in place: %w", err)
	}
	if err := syncDir(filepath.Dir(keyFile)); err != nil {
		return "", fmt.Errorf("putting the new master key in place: %w", err)
	}
	return kept, nil
}

// OpenFor returns the master key of that id from keyFile, from a rotation that was not
// adopted yet, or from those that rotations kept. It returns ErrWrongKey if it is not
// there. It never creates a key.
func OpenFor(keyFile, id string) (*Master, error) {
	if !keyID.MatchString(id) {
		return nil, fmt.Errorf("%w: %q is not a valid key id", ErrDamaged, id)
	}
	for _, path := range []string{keyFile, keyFile + ".new", keyFile + "." + id} {
		key, err := readKeyFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading key file %s: %w", path, err)
		}
		m, err := newMaster(key)
		if err != nil {
			return nil, err
		}
		if m.ID() == id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: key %s is not here; put its key file beside %s as %s.%s", ErrWrongKey, id, keyFile, filepath.Base(keyFile), id)
}
