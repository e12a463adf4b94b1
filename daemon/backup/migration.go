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

// If a migration fails, the start fails: no daemon is running to send an alert, and the
// database is not open to store an incident. The failure is written to a note beside the
// database, which the monitor of the next daemon reports.

const failedMigrationName = databaseName + ".migration-failed"

// FailedMigration is the content of the note.
type FailedMigration struct {
	At    time.Time `json:"at"`
	To    uint64    `json:"to"` // the target schema
	Error string    `json:"error"`
}

// noteMigration writes a note if err is from a failed migration, and returns err.
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
		return errors.Join(err, fmt.Errorf("writing a note about it: %w", noteErr))
	}
	return err
}

// FailedMigration reads the note; it returns nil if there is none.
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

// Passed reports whether the running daemon's schema is at least the target.
func (n *FailedMigration) Passed() bool { return database.Schema() >= n.To }

// ForgetFailedMigration removes the note.
func (d *Directory) ForgetFailedMigration() error {
	if err := os.Remove(d.file(failedMigrationName)); err != nil {
		return fmt.Errorf("removing the note of a failed migration: %w", err)
	}
	return nil
}
