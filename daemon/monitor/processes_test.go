package monitor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
)

func TestReadStat(t *testing.T) {
	line := "4711 (a b) c) (x) S 1 4700 4700 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 1000000 25 18446744073709551615 1 1"
	p, ok := readStat([]byte(line))
	if want := (process{parent: 1, name: "a b) c) (x", resident: 25 * uint64(os.Getpagesize())}); !ok || p != want {
		t.Errorf("got %+v, %t", p, ok)
	}
	for _, bad := range []string{"", "1", "1 (x", "1 x) S 1", ") (", "1 (x) S a 1 " + line[30:], "1 (x) S 1 1"} {
		if p, ok := readStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func FuzzReadStat(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 1000000 25 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, stat []byte) { readStat(stat) })
}

// The tree is followed by parents, and one that loops ends.
func TestBelow(t *testing.T) {
	all := map[int]process{}
	for pid, parent := range map[int]int{10: 2, 11: 10, 12: 11, 20: 2, 30: 31, 31: 30} {
		all[pid] = process{pid: pid, parent: parent, name: "x", resident: 5}
	}
	got := children(below(all, 10), map[int]string{11: "box", 12: "box", 40: "other"})
	want := []api.ChildProcess{{PID: 11, Name: "x", Server: "box", ResidentBytes: 5}, {PID: 12, Name: "x", Server: "box", ResidentBytes: 5}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestMemoryLimitOfTheGroup(t *testing.T) {
	root := t.TempDir()
	for dir, limit := range map[string]string{"a": "1000\n", "a/b": "max\n", "a/b/c": "2000\n"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "memory.max"), []byte(limit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for group, want := range map[string]uint64{"/a/b/c": 1000, "/a/b": 1000, "/a": 1000, "/": 0, "": 0, "/../..": 0, "/none": 0} {
		if got := limitAt(root, group); got != want {
			t.Errorf("%s: %d, want %d", group, got, want)
		}
	}
}
