package upstream

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"nize/mcp/mcptest"
	"nize/mcp/upstream/process"
)

// newGuard starts a guard that ends with the test.
func newGuard(t *testing.T) *process.Guard {
	t.Helper()
	g, err := process.StartGuard(t.Context(), slog.New(slog.DiscardHandler))
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

// forks has a child with a grandchild in its group and one that left it.
func forks() mcptest.Options {
	return mcptest.Options{Tools: []mcptest.Tool{{Name: "fork", Fault: mcptest.Fork}, {Name: "escape", Fault: mcptest.Escape}, echo}}
}

// pid runs a tool that answers with a process id.
func (b *bench) pid(id string) int {
	b.t.Helper()
	res, err := b.run(b.t.Context(), id, `{}`)
	if err != nil {
		b.t.Fatal(err)
	}
	pid, err := strconv.Atoi(res.Text())
	if err != nil || pid == 0 {
		b.t.Fatalf("%s answered %q", id, res.Text())
	}
	return pid
}

// gone waits until none of the processes is left.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprint("the end of process ", pid), func() bool { return !running(pid) })
	}
}

// running reports whether a process runs and is not a zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestStopTakesTheGrandchildren(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"guard": true, "direct": false} {
		t.Run(name, func(t *testing.T) {
			var g *process.Guard
			if guarded {
				g = newGuard(t)
			}
			b := newBench(t, g)
			m := mcptest.New(t, forks())
			b.register(stdio(m))
			st := b.Status()[0]
			pids := []int{st.PID, b.pid("child:fork")}
			if guarded {
				pids = append(pids, b.pid("child:escape"))
			}
			for _, pid := range pids {
				if !running(pid) {
					t.Fatalf("process %d does not run", pid)
				}
			}
			if got := b.Status()[0].Children; got != len(pids) {
				t.Errorf("%d processes, want %d", got, len(pids))
			}
			if err := b.db.DeleteServer(t.Context(), admin, "child"); err != nil {
				t.Fatal(err)
			}
			b.sync(admin, "child")
			gone(t, pids...)
		})
	}
}

// TestCyclesLeaveNothing adds a server, has it start processes that leave its group,
// and removes it, eight times.
func TestCyclesLeaveNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, newGuard(t))
	m := mcptest.New(t, forks())
	var pids []int
	for range 8 {
		b.register(stdio(m))
		pids = append(pids, b.Status()[0].PID, b.pid("child:fork"), b.pid("child:escape"), b.pid("child:escape"))
		if got := b.Status()[0].Children; got != 4 {
			t.Errorf("%d processes, want 4", got)
		}
		if err := b.db.DeleteServer(t.Context(), admin, "child"); err != nil {
			t.Fatal(err)
		}
		b.sync(admin, "child")
		for _, pid := range pids {
			if running(pid) {
				t.Errorf("process %d outlived its server", pid)
			}
		}
	}
}

func TestCrashOfAChildTakesItsDescendants(t *testing.T) {
	t.Parallel()
	b := newBench(t, newGuard(t))
	m := mcptest.New(t, forks())
	b.register(stdio(m))
	child, grand, escaped := b.Status()[0].PID, b.pid("child:fork"), b.pid("child:escape")
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, child, grand, escaped)
	eventually(t, "a new child", func() bool { _, err := b.run(t.Context(), "child:echo", `{}`); return err == nil })
	if !strings.Contains(b.log.String(), "signal: killed") {
		t.Errorf("the log does not say how it ended:\n%s", b.log)
	}
}

func TestStubbornChildIsKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t, newGuard(t))
	m := mcptest.New(t, mcptest.Options{Fault: mcptest.Stubborn, Tools: []mcptest.Tool{echo}})
	b.register(stdio(m))
	pid := b.Status()[0].PID
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// parent returns the parent of a process; for a child, its guard.
func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	ppid, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

func TestDeathOfTheGuard(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	b := newBench(t, g)
	m := mcptest.New(t, forks())
	b.register(stdio(m))
	child, grand, escaped := b.Status()[0].PID, b.pid("child:fork"), b.pid("child:escape")
	guard := parent(t, child)
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, guard, child, grand, escaped)
	eventually(t, "a child of a new guard", func() bool { _, err := b.run(t.Context(), "child:echo", `{}`); return err == nil })
	if !strings.Contains(b.log.String(), "the end of the guard") {
		t.Errorf("the log does not tell of it:\n%s", b.log)
	}
}

// TestKillOfTheDaemon kills a daemon without a chance to clean up: a process
// that runs this test binary as a small daemon of its own.
func TestKillOfTheDaemon(t *testing.T) {
	if os.Getenv("UPSTREAM_DAEMON") != "" {
		smallDaemon(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillOfTheDaemon$", "-test.v")
	cmd.Env = append(os.Environ(), "UPSTREAM_DAEMON=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if text, ok := strings.CutPrefix(sc.Text(), "PIDS "); ok {
			for f := range strings.FieldsSeq(text) {
				pid, err := strconv.Atoi(f)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			break
		}
	}
	if len(pids) != 4 {
		t.Fatalf("the small daemon told of %v, want 4 processes", pids)
	}
	for _, pid := range pids {
		if !running(pid) {
			t.Errorf("process %d does not run", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	gone(t, pids...)
}

// smallDaemon prints the process IDs of a guard, a child and two grandchildren, one of
// which left the group, and waits to be killed.
func smallDaemon(t *testing.T) {
	g := newGuard(t)
	b := newBench(t, g)
	m := mcptest.New(t, forks())
	b.register(stdio(m))
	child := b.Status()[0].PID
	fmt.Println("PIDS", parent(t, child), child, b.pid("child:fork"), b.pid("child:escape"))
	select {}
}

func TestManyChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t, newGuard(t))
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	for i := range 12 {
		cfg := stdio(m)
		cfg.Name = fmt.Sprint("c", i)
		b.put(cfg)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "12 children", func() bool {
		n := 0
		for _, st := range b.Status() {
			if st.State == Connected {
				n++
			}
		}
		return n == 12
	})
	var pids []int
	for _, st := range b.Status() {
		pids = append(pids, st.PID)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	gone(t, pids...)
}
