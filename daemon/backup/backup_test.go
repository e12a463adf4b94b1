package backup

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
	"nize/store/database"
	"nize/store/kv/bolt"
)

// TestMain makes the test's program one that checks a database as nized does.
func TestMain(m *testing.M) {
	bolt.CheckMain()
	os.Exit(m.Run())
}

func TestSurplus(t *testing.T) {
	names := func(list ...string) (out []string) {
		for _, n := range list {
			out = append(out, "nize-202601"+n+"00Z.db")
		}
		return out
	}
	got := surplus(names("01T0000", "03T0000", "03T1200", "04T0000", "05T0000", "06T0000", "07T0000", "08T0000", "09T0000", "09T0600"))
	if diff := cmp.Diff(got, names("09T0000", "03T0000", "01T0000")); diff != "" {
		t.Errorf("one too many (-got +want):\n%s", diff)
	}
	if got := surplus(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
}

// Eight days of backups leave seven whole ones, for nobody else to read, and
// what is not nize's is left alone.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	place := &Directory{Path: dir, Env: func(string) string { return "" }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	db, err := place.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &Backups{Directory: place, DB: db}
	if err := os.MkdirAll(filepath.Join(dir, backupsName), 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, backupsName, "mine.db")
	if err := os.WriteFile(own, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		path, err := b.Keep(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if newestBackup(dir) != path {
			t.Errorf("the newest is %s, not %s", newestBackup(dir), path)
		}
		now = now.Add(24 * time.Hour)
	}
	kept := backups(dir)
	if len(kept) != keptDays || kept[0] != "nize-20260303T000000Z.db" {
		t.Errorf("kept %v", kept)
	}
	for _, name := range kept {
		path := filepath.Join(dir, backupsName, name)
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
		if key, err := database.Inspect(path); err != nil || key != db.KeyID() {
			t.Errorf("%s: key %s, %v", name, key, err)
		}
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	if hint := place.wayBack(); !strings.HasSuffix(hint, " restore "+newestBackup(dir)) {
		t.Errorf("the way back is %q", hint)
	}
}

// A migration that failed leaves a note, other errors none.
func TestNoteMigration(t *testing.T) {
	d := &Directory{Path: t.TempDir(), Now: time.Now}
	for _, err := range []error{nil, store.ErrDiskFull} {
		if got := d.noteMigration(err); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	if note, err := d.FailedMigration(); note != nil || err != nil {
		t.Errorf("a note of none: %v, %v", note, err)
	}
	failed := fmt.Errorf("opening database: %w", &database.MigrationError{To: database.Schema() + 1, Err: store.ErrDiskFull})
	if got := d.noteMigration(failed); got != failed {
		t.Errorf("got %v", got)
	}
	note, err := d.FailedMigration()
	if err != nil || note.To != database.Schema()+1 || note.Passed() || note.Error != store.ErrDiskFull.Error() {
		t.Errorf("the note is %+v, %v", note, err)
	}
	if err := d.ForgetFailedMigration(); err != nil {
		t.Error(err)
	}
}
