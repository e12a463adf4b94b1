package upstream

import (
	"log/slog"
	"os"
	"strings"
	"testing"
)

// What a command writes while it ends is kept, also what is still in the pipe
// when its end is known.
func TestLastWordsOfAStop(t *testing.T) {
	for range 10 {
		var ours, theirs [3]*os.File
		for i := range ours {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if ours[i], theirs[i] = r, w; i == 0 {
				ours[i], theirs[i] = w, r
			}
		}
		proc, err := spawnDirect(Command{Path: "/bin/sh", Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: theirs,
			Args: []string{"-c", `cat >/dev/null; head -c 60000 /dev/zero | tr '\0' x >&2; echo >&2; echo goodbye >&2`}})
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		log := newRing(slog.New(slog.DiscardHandler))
		f := startStdio(proc, ours, log, func(msg string) { t.Error(msg) })
		f.close(false)
		if got := log.last(1); !strings.Contains(got, "goodbye") {
			t.Fatalf("its last words are %q", got)
		}
	}
}
