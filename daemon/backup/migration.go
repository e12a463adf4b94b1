package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"nize/store"
	"nize/store/database"
)

// A migration that fails ends the start, so no daemon is there to tell of it,
// and the database is not open to keep an incident. A note beside it does; the
// monitor of the next daemon that starts tells.

const failedMigrationName = databaseName + ".migration-failed"

// FailedMigration is the note.
type FailedMigration struct {
	At    time.Time `json:"at"`
	To    uint64    `json:"to"` // the schema that was wanted
	Error string    `json:"error"`
}

// noteMigration leaves a note if err is a failed migration's, and returns err.
func (d *Directory) noteMigration(err error) error {
	var failed *database.MigrationError
	if !errors.As(err, &failed) {
		return err
	}
	body, noteErr := json.Marshal(FailedMigration{d.Now(), failed.To, store.RedactText(failed.Err.Error())})
	if noteErr == nil {
		noteErr = os.WriteFile(d.file(failedMigrationName), body, 0o600)
	}
	if noteErr != nil {
		return errors.Join(err, fmt.Errorf("leaving a note of it: %w", noteErr))
	}
	return err
}

// FailedMigration reads the note; nil where none failed.
func (d *Directory) FailedMigration() (*FailedMigration, error) {
	body, err := os.ReadFile(d.file(failedMigrationName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var note FailedMigration
	if err == nil {
		err = json.Unmarshal(body, &note)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the note of a failed migration: %w", err)
	}
	return &note, nil
}

// Passed says whether the running daemon's database is as new as was wanted.
func (n *FailedMigration) Passed() bool { return database.Schema() >= n.To }

// ForgetFailedMigration removes the note.
func (d *Directory) ForgetFailedMigration() error {
	if err := os.Remove(d.file(failedMigrationName)); err != nil {
		return fmt.Errorf("removing the note of a failed migration: %w", err)
	}
	return nil
}
