package seal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nize/store"
)

// At each step of a rotation, and after a crash there, the key of the data is
// found.
func TestReplaceKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	dk := NewDataKey(1)
	old, err := Open(file, store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Wrap(dk); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", nil, 0o600); err != nil { // a power cut while it was written
		t.Fatal(err)
	}
	next, err := Next(file)
	if err != nil {
		t.Fatal(err)
	}
	find := func(id string) {
		t.Helper()
		m, err := OpenFor(file, id)
		if err != nil || m.ID() != id {
			t.Fatalf("key %s: %v", id, err)
		}
	}
	find(old.ID())
	wrapped, err := next.Wrap(dk)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := WrappedBy(wrapped); err != nil || id != next.ID() {
		t.Fatalf("wrapped by %s, %v", id, err)
	}
	find(old.ID())
	find(next.ID())
	for range 2 { // the second is that of a start after a crash
		if err := os.Link(file, file+"."+old.ID()); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	kept, err := Adopt(file, old.ID())
	if err != nil {
		t.Fatal(err)
	}
	find(old.ID())
	find(next.ID())
	for _, path := range []string{file, kept} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, fi, err)
		}
	}
	text, id, err := Export(file, store.Secret{})
	if err != nil || id != next.ID() {
		t.Fatalf("export %s, %v", id, err)
	}
	if m, err := Open(filepath.Join(t.TempDir(), "none"), text); err != nil || m.ID() != id {
		t.Errorf("what was exported does not open: %v", err)
	}
	for _, id := range []string{"0123456789abcdef", "../../etc/passwd"} {
		if _, err := OpenFor(file, id); err == nil {
			t.Errorf("%q was found", id)
		}
	}
	if _, _, err := Export(filepath.Join(t.TempDir(), "none"), store.Secret{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("export of no key: %v", err)
	}
}
