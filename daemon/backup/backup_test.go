package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store/bolt"
)

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
func TestKeepBackup(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	opt := Options{DataDir: dir, Env: func(string) string { return "" }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	db, err := openDB(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := &Daemon{opt: opt, now: opt.Now, log: slog.New(slog.DiscardHandler), db: db}
	if err := os.MkdirAll(filepath.Join(dir, backupsName), 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, backupsName, "mine.db")
	if err := os.WriteFile(own, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		path, err := d.keepBackup(t.Context(), now)
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
		if key, err := bolt.Inspect(path); err != nil || key != db.KeyID() {
			t.Errorf("%s: key %s, %v", name, key, err)
		}
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	if hint := wayBack(dir); !strings.HasSuffix(hint, " restore "+newestBackup(dir)) {
		t.Errorf("the way back is %q", hint)
	}
}
