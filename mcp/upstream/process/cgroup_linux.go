package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nize/store"
)

// If the service manager has delegated a control group (version 2, with the controllers
// memory and pids) to this service, the guard creates a group below it for each child with
// limits, and the kernel enforces the limits and kills the whole child. systemd marks such
// a group (Delegate=) with an attribute; a group without it must not be divided by nize. A
// control group with controllers for its children can't contain processes itself, so the
// daemon and the guard move to a group of their own.
//
//	DELEGATED/nized             the daemon and the guard
//	DELEGATED/child-GUARD-ID    a child and its descendants
const (
	delegateMark  = "user.delegate"
	daemonCgroup  = "nized"
	childCgroup   = "child-"
	tasksPerChild = 16 // threads per process, on average, since the kernel counts threads
)

// delegatedCgroup returns the directory of the delegated control group, prepared for
// children, or an error that says why there is none.
func delegatedCgroup() (string, error) {
	own, err := ownCgroup()
	if err != nil {
		return "", err
	}
	dir := own
	if !isDelegated(dir) {
		if dir = filepath.Dir(own); !isDelegated(dir) {
			return "", errors.New("no control group is delegated to this service (systemd: Delegate=memory pids)")
		}
	}
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", fmt.Errorf("reading the delegated control group: %w", err)
	}
	for _, controller := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(has)), controller) {
			return "", fmt.Errorf("the delegated control group lacks the controller %s", controller)
		}
	}
	if dir == own {
		if err := moveProcesses(dir, filepath.Join(dir, daemonCgroup)); err != nil {
			return "", err
		}
	}
	if err := writeCgroup(dir, "cgroup.subtree_control", "+memory +pids"); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(dir, childCgroup+"*")) // left by a guard that was killed
	for _, child := range left {
		killCgroup(child)
		_ = os.Remove(child) // a group that still contains a process is left for the next start
	}
	return dir, nil
}

func isDelegated(dir string) bool {
	var value [8]byte
	n, err := unix.Getxattr(dir, delegateMark, value[:])
	return err == nil && string(value[:n]) == "1"
}

// ownCgroup returns the directory of this process's control group.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("finding control groups: %w", err)
	}
	path, err := cgroupOf(os.Getpid())
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		// 30 24 0:27 ROOT MOUNTPOINT options… - cgroup2 …
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		if below, err := filepath.Rel(fields[3], path); err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below), nil
		}
	}
	return "", errors.New("no control groups of version 2 are mounted")
}

// cgroupOf returns the control group of a process by its path in the hierarchy.
func cgroupOf(pid int) (string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", fmt.Errorf("reading the control group of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("the system has no control groups of version 2")
}

// moveProcesses moves all processes of a control group into one below it.
func moveProcesses(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making a control group: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("reading the delegated control group: %w", err)
	}
	for _, pid := range strings.Fields(string(b)) {
		if err := writeCgroup(to, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func writeCgroup(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // never creates a file: these belong to the kernel
	if err == nil {
		_, err = f.WriteString(value)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("setting %s of a control group: %w", file, err)
	}
	return nil
}

// newCgroup creates the control group of one child.
func newCgroup(dir string, memory store.Size, processes int) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("making a control group: %w", err)
	}
	var errs []error
	if memory > 0 {
		errs = append(errs, setMemory(dir, memory), writeCgroup(dir, "memory.oom.group", "1"))
		if err := writeCgroup(dir, "memory.swap.max", "0"); !errors.Is(err, os.ErrNotExist) { // the kernel may have no swap
			errs = append(errs, err)
		}
	}
	if processes > 0 {
		errs = append(errs, writeCgroup(dir, "pids.max", strconv.Itoa(tasksPerChild*processes)))
	}
	if err := errors.Join(errs...); err != nil {
		_ = os.Remove(dir) // it is empty
		return err
	}
	return nil
}

func setMemory(dir string, memory store.Size) error {
	if memory == 0 {
		return writeCgroup(dir, "memory.max", "max")
	}
	return writeCgroup(dir, "memory.max", strconv.FormatInt(int64(memory), 10))
}

// killCgroup kills every process in a control group and its subgroups. Kernels before 5.14
// don't support that, but the guard kills the descendants one by one anyway.
func killCgroup(dir string) { _ = writeCgroup(dir, "cgroup.kill", "1") }

// hadTooMuch reports whether the kernel killed processes of a control group because they
// exceeded their memory limit.
func hadTooMuch(dir string) bool { return cgroupCount(dir, "memory.events", "oom_kill") > 0 }

// isPopulated reports whether a control group or its subgroups contain processes.
func isPopulated(dir string) bool { return cgroupCount(dir, "cgroup.events", "populated") > 0 }

// cgroupCount returns one count from a file of lines "name count".
func cgroupCount(dir, file, name string) int {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if count, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count))
			return n
		}
	}
	return 0
}

// removeCgroup removes a control group without processes, and the subgroups that its
// processes created.
func removeCgroup(dir string) {
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, file := range below {
		removeCgroup(filepath.Dir(file))
	}
	_ = os.Remove(dir) // retried at the next start
}
