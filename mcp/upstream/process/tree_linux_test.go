package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nize/store"
)

func startGuard(t *testing.T) *Guard {
	t.Helper()
	g, err := StartGuard(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("closing the guard: %v", err)
		}
	})
	return g
}

// alive lists the processes of this system whose command line has a word.
func alive(t *testing.T, word string) (list []string) {
	t.Helper()
	for pid, e := range readTree() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && !e.zombie && strings.Contains(string(b), word) {
			list = append(list, fmt.Sprint(pid, " ", strings.ReplaceAll(string(b), "\x00", " ")))
		}
	}
	return list
}

// ways are how a process gets away from the one that started it. Each starts what
// comes after it. They end at once, but for the first.
var ways = map[string]string{
	"a child":                       `%s & `,
	"a session":                     `setsid %s & `,
	"a session of an orphan":        `setsid sh -c 'setsid %s & exit' ; `,
	"without an environment":        `env -i /bin/sh -c 'PATH=/usr/bin:/bin; setsid %s & exit' ; `,
	"in a session of three deep":    `setsid sh -c 'setsid sh -c "setsid %s & exit" & exit' ; `,
	"under another mark":            `prlimit --locks=7:7 sh -c 'setsid %s & exit' ; `,
	"without a mark":                `prlimit --locks=unlimited sh -c 'setsid %s & exit' ; `,
	"with another mark, as a child": `prlimit --locks=7:7 setsid %s & `,
	"as a daemon":                   `setsid sh -c 'cd /; umask 0; (trap "" HUP TERM INT; setsid %s <&- & exit) & exit' ; `,
	"in namespaces of its own":      `unshare --fork --pid --mount-proc setsid %s & `,
	"in a user namespace":           `unshare --user --map-root-user --fork --pid setsid %s & `,
	"with another name":             `setsid sh -c 'exec -a kworker %s & exit' ; setsid %[1]s & `,
	"below a subreaper":             `perl -MPOSIX -e 'syscall(157,36,1,0,0,0); if (!fork) { POSIX::setsid(); if (!fork) { POSIX::setsid(); exec "%s" } exit } sleep 1 while 1' & `,
	"from memory":                   `perl -MPOSIX -e 'open F,"<","/usr/bin/sleep" or die; binmode F; local $/; my $b=<F>; my $n="x"; my $fd=syscall(319,$n,0); open G,">&=",$fd; binmode G; print G $b; G->flush; if (!fork) { POSIX::setsid(); exec {"/proc/self/fd/$fd"} split " ", "%s" } exit' ; `,
}

// TestNothingOutlivesItsJob is descendants that left the group and session of a job:
// none is there when it has ended, neither by itself nor by its time.
func TestNothingOutlivesItsJob(t *testing.T) {
	t.Parallel()
	g := startGuard(t)
	other, err := g.Spawn(Command{Path: "/bin/sh", Args: []string{"-c", "setsid sleep 98765.9 & read x"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Files: pipes(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, way := range ways {
		n++
		word := fmt.Sprint("98765.00", n)
		run := func(ctx context.Context, after string) (string, error) {
			out, err := Run(ctx, g.Spawn, Job{Argv: []string{"sh", "-c", fmt.Sprintf(way, "sleep "+word+" >/dev/null 2>&1") + after}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", MaxOutput: 1000})
			return string(out), err
		}
		if out, err := run(t.Context(), "printf done"); err != nil || out != "done" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if left := alive(t, word); len(left) > 0 {
			t.Errorf("%s: it outlived the job: %s", name, left)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := run(ctx, "sleep 1000"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: at the end of its time: %v", name, err)
		}
		cancel()
		if left := alive(t, word); len(left) > 0 {
			t.Errorf("%s: it outlived a job that was ended: %s", name, left)
		}
	}
	if left := alive(t, "98765.9"); len(left) != 2 { // the shell has the word, too
		t.Errorf("of another child are left: %s", left)
	}
	if used, ok := Measure(other); !ok || len(used[0].PIDs) != 2 {
		t.Errorf("the other child uses %v", used)
	}
}

// pipes are the three files of a child that reads for ever.
func pipes(t *testing.T) (files [3]*os.File) {
	t.Helper()
	for i := range files {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		if files[i] = w; i == 0 {
			files[i] = r
		}
	}
	return files
}

// TestComet is a process that is another one, in another session, each time somebody
// looks.
func TestComet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("there is no perl")
	}
	g := startGuard(t)
	script := `perl -MPOSIX -e 'exit if fork; close STDOUT; close STDERR; for (;;) { POSIX::setsid(); exit if fork } # comet-98765'; printf done`
	out, err := Run(t.Context(), g.Spawn, Job{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", MaxOutput: 1000})
	if err != nil || string(out) != "done" {
		t.Fatalf("%q, %v", out, err)
	}
	if left := alive(t, "comet-98765"); len(left) > 0 {
		t.Errorf("it outlived its job: %s", left)
	}
}

// TestLimitsOfTheTree is a job whose descendants, wherever they have gone, together
// hold too much or are too many.
func TestLimitsOfTheTree(t *testing.T) {
	t.Parallel()
	g := startGuard(t)
	dir := t.TempDir()
	many := filepath.Join(dir, "many")
	big := filepath.Join(dir, "big")
	for path, script := range map[string]string{
		many: "#!/bin/sh\ni=0; while [ $i -lt 30 ]; do sleep 1000 & i=$((i+1)); done; wait\n",
		big:  "#!/bin/sh\nx=$(head -c 100000000 /dev/zero | tr '\\0' x); sleep 1000\n",
	} {
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, way := range ways {
		if strings.Contains(name, "mark") && strings.Contains(way, "exit'") {
			continue // it is killed by itself
		}
		if name == "from memory" {
			continue // it runs a copy of sleep, whatever the program
		}
		for program, want := range map[string]string{many: "was killed: it ran ", big: "was killed: it held "} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := Run(ctx, g.Spawn, Job{Argv: []string{"sh", "-c", fmt.Sprintf(way, program+" >/dev/null 2>&1") + "sleep 1000"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", MaxOutput: 1000, Memory: 64 << 20, Processes: 20})
			cancel()
			if ended := new(JobError); !errors.As(err, &ended) || !strings.HasPrefix(ended.Why, want) {
				t.Errorf("%s, %s: %v, want %s…", name, filepath.Base(program), err, want)
			}
			if left := alive(t, dir); len(left) > 0 {
				t.Errorf("%s, %s: left: %s", name, filepath.Base(program), left)
			}
		}
	}
}

// TestStrayIsKilled is that a process that hides whose it is doesn't live on as
// nobody's while its child does.
func TestStrayIsKilled(t *testing.T) {
	t.Parallel()
	g := startGuard(t)
	c, err := g.Spawn(Command{Path: "/bin/sh", Args: []string{"-c", "prlimit --locks=7:7 sh -c 'setsid sleep 98765.8 & exit'; echo; read x"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Files: pipes(t)})
	if err != nil {
		t.Fatal(err)
	}
	for tries := 0; len(alive(t, "sleep\x0098765.8")) > 0 || tries == 0; tries++ {
		if tries == 1000 {
			t.Fatal("it lives on")
		}
		<-time.After(10 * time.Millisecond)
	}
	if c.Err() != nil {
		t.Errorf("its child has ended: %v", c.Err())
	}
}

func TestParseEntry(t *testing.T) {
	line := "4711 (a b) c) (x) S 1 4700 4700 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 1000000 25 18446744073709551615 1 1"
	e, ok := parseEntry([]byte(line))
	if want := (entry{parent: 1, group: 4700, resident: 25 * store.Size(os.Getpagesize())}); !ok || e != want {
		t.Errorf("got %+v, %t", e, ok)
	}
	if e, ok := parseEntry([]byte(strings.Replace(line, ") S ", ") Z ", 1))); !ok || !e.zombie {
		t.Errorf("a zombie: %+v, %t", e, ok)
	}
	for _, bad := range []string{"", "1", "1 (x", "1 x) S 1", ") (", "1 (x) S a 1 " + line[30:], "1 (x) S 1 1"} {
		if e, ok := parseEntry([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, e)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 1000000 25 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, stat []byte) { parseEntry(stat) })
}
