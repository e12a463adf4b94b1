package daemon

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"nize/store"
)

// group is socket.group, whose members may use the control socket. The socket's mode keeps
// others out. The kernel's credentials of each connection are checked as well, in case the
// file's mode is opened to everyone.
type group struct {
	name string
	gid  uint32
}

// findGroup looks up a group by name or number.
func findGroup(name string) (group, error) {
	id := name
	if g, err := user.LookupGroup(name); err == nil {
		id = g.Gid
	}
	gid, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return group{}, fmt.Errorf("socket.group %q: %w; make it with groupadd, or name another", name, store.ErrNotFound)
	}
	return group{name, uint32(gid)}, nil
}

// admit opens the socket to the group. It doesn't change the directories above it: if one
// is closed to the group, it returns an error.
func (g *group) admit(path string) error {
	if err := os.Chown(path, -1, int(g.gid)); err != nil {
		return fmt.Errorf("giving the control socket to group %s: %w; add nized's user to that group", g.name, err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return fmt.Errorf("opening the control socket to group %s: %w", g.name, err)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("looking at the control socket's directory: %w", err)
		}
		owner, ok := fi.Sys().(*syscall.Stat_t)
		if mode := fi.Mode().Perm(); mode&0o001 == 0 && !(ok && owner.Gid == g.gid && mode&0o010 != 0) {
			return store.Mark(fmt.Errorf("members of %s can't reach %s, since %s is closed to them (%04o); put the socket elsewhere with --socket, or chmod o+x %s", g.name, path, dir, mode, dir), store.ErrRefused)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
