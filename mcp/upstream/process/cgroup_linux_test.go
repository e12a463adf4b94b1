package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nize/store"
)

// inCgroup runs a test again in a process within a control group that is delegated
// as systemd does it; within says that this is that process. It takes root, and
// controllers that control groups of version 1 don't have.
func inCgroup(t *testing.T) (within bool) {
	t.Helper()
	if os.Getenv("NIZE_TEST_CGROUP") != "" {
		return true
	}
	own, err := ownCgroup()
	if err != nil {
		t.Skip(err)
	}
	root := own // the hierarchy's
	for {
		if _, err := os.Stat(filepath.Join(filepath.Dir(root), "cgroup.procs")); err != nil {
			break
		}
		root = filepath.Dir(root)
	}
	if err := writeCgroup(root, "cgroup.subtree_control", "+memory +pids"); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(root, fmt.Sprint("nize-test-", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		killCgroup(dir)
		for isPopulated(dir) {
			<-time.After(time.Millisecond)
		}
		removeCgroup(dir)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	})
	if err := unix.Setxattr(dir, delegateMark, []byte("1"), 0); err != nil {
		t.Skip(err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "NIZE_TEST_CGROUP="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestKernelLimits is limits that the kernel holds, of jobs and of a child whose
// limit is changed, whatever they do to get away.
func TestKernelLimits(t *testing.T) {
	if !inCgroup(t) {
		return
	}
	g := startGuard(t)
	const memory = 64 << 20
	big := `sh -c 'x=$(head -c 100000000 /dev/zero | tr "\\0" x); sleep 1000'`
	for name, test := range map[string]struct{ script, want string }{
		"itself":    {big, "killed: it held more memory than its limit of 64MiB"},
		"a session": {`setsid ` + big + ` & read x; sleep 1000`, "killed: it held more memory than its limit of 64MiB"},
		"forks":     {`i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done; sleep 1000`, "killed: it ran "},
		"well":      {`setsid sleep 1000 & printf done`, ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := Run(ctx, g.Spawn, Job{Argv: []string{"sh", "-c", test.script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", MaxOutput: 1000, Memory: memory, Processes: 20})
		cancel()
		if ended := new(JobError); test.want == "" && (err != nil || string(out) != "done") || test.want != "" && (!errors.As(err, &ended) || !strings.Contains(ended.Why, test.want)) {
			t.Errorf("%s: %q, %v, want %s", name, out, err, test.want)
		}
	}
	c, err := g.Spawn(Command{Path: "/bin/sh", Args: []string{"-c", "echo $$ > " + os.Getenv("NIZE_TEST_CGROUP") + "/nized/cgroup.procs; setsid sleep 1000 & read x"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Files: pipes(t), Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Limit(memory) {
		t.Fatal("the kernel does not hold the limit")
	}
	for tries := 0; ; tries++ { // it left its group, and is brought back
		path, err := cgroupOf(c.PID())
		if err != nil || tries == 1000 {
			t.Fatalf("it is in %s, %v", path, err)
		}
		if strings.Contains(path, childCgroup) && tries > 10 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if !c.Limit(store.Size(1 << 12)) {
		t.Fatal("its limit can't be changed")
	}
	<-c.Done()
	if over := new(MemoryError); !errors.As(c.Err(), &over) || over.Limit != 1<<12 {
		t.Errorf("it ended with %v", c.Err())
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("NIZE_TEST_CGROUP"), childCgroup+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("control groups are left: %s, %v", left, err)
	}
}
