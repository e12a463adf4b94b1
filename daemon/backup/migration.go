package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nize/store"
	"nize/store/bolt"
)

// A migration that fails ends the start, so no daemon is there to tell of it,
// and the database is not open to keep an incident. A note beside it does; the
// next daemon that starts tells (incidents.go).

const failedMigrationName = databaseName + ".migration-failed"

// errNoNote means that no migration failed.
var errNoNote = errors.New("no note of a failed migration")

// failedMigration is the note.
type failedMigration struct {
	At    time.Time `json:"at"`
	To    uint64    `json:"to"` // the schema that was wanted
	Error string    `json:"error"`
}

// noteMigration leaves a note if err is a failed migration's, and returns err.
func noteMigration(dir string, at time.Time, err error) error {
	var failed *bolt.MigrationError
	if !errors.As(err, &failed) {
		return err
	}
	body, noteErr := json.Marshal(failedMigration{at, failed.To, store.RedactText(failed.Err.Error())})
	if noteErr == nil {
		noteErr = os.WriteFile(filepath.Join(dir, failedMigrationName), body, 0o600)
	}
	if noteErr != nil {
		return errors.Join(err, fmt.Errorf("leaving a note of it: %w", noteErr))
	}
	return err
}

func readFailedMigration(dir string) (failedMigration, error) {
	var note failedMigration
	body, err := os.ReadFile(filepath.Join(dir, failedMigrationName))
	if errors.Is(err, os.ErrNotExist) {
		return note, errNoNote
	}
	if err != nil {
		return note, fmt.Errorf("reading the note of a failed migration: %w", err)
	}
	if err := json.Unmarshal(body, &note); err != nil {
		return note, fmt.Errorf("reading the note of a failed migration: %w", err)
	}
	return note, nil
}

// passed says whether the running daemon's database is as new as was wanted.
func (n failedMigration) passed() bool { return bolt.Schema() >= n.To }

func (failedMigration) remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, failedMigrationName)); err != nil {
		return fmt.Errorf("removing the note of a failed migration: %w", err)
	}
	return nil
}
