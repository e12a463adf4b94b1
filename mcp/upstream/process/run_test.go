package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// TestRun is jobs that end well, and those that don't, with and without the guard.
func TestRun(t *testing.T) {
	g, err := StartGuard(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("closing the guard: %v", err)
		}
	})
	for how, spawn := range map[string]func(Command) (Child, error){"guard": g.Spawn, "direct": SpawnDirect} {
		for script, want := range map[string]string{
			`cat`:                                "hello",
			`cat > /dev/null; printf ok`:         "ok",
			`exec 0<&-; printf unread`:           "unread",
			`echo a >&2; echo "b " >&2; exit 7`:  "it ended with exit status 7, last \"a\\nb\"",
			`kill -9 $$`:                         "it ended with signal: killed, last \"\"",
			`exec head -c 2000 /dev/zero`:        "it wrote an answer of more than 1000 bytes, last \"\"",
			`(sleep 1000 >&2) & printf left`:     "left", // and holds standard error
			`setsid sleep 2.5 & printf orphaned`: "orphaned",
			`x=$(head -c 100000000 /dev/zero | tr '\0' x); sleep 1000`: "it was killed: it held",
		} {
			if _, ok := Measure(); strings.HasPrefix(script, "x=") && !ok {
				continue // this system can't tell
			}
			out, err := Run(t.Context(), spawn, Job{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Input: []byte("hello"), MaxOutput: 1000, Memory: 64 << 20})
			got := string(out)
			var ended *JobError
			if errors.As(err, &ended) {
				got = ended.Error() + ", last " + strings.ReplaceAll(`"`+ended.Last+`"`, "\n", `\n`)
			} else if err != nil {
				got = err.Error()
			}
			if got != want && !(strings.HasSuffix(want, "held") && strings.HasPrefix(got, want) && strings.Contains(got, store.Size(64<<20).String())) {
				t.Errorf("%s: %s: %s\nwant %s", how, script, got, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := Run(ctx, spawn, Job{Argv: []string{"sleep", "1000"}, Dir: "/", MaxOutput: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: at the end of its time: %v", how, err)
		}
		cancel()
	}
}
