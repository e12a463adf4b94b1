// Package peer says who is at the other end of a Unix socket, as the kernel
// knows it.
package peer

import (
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// IDs asks the kernel who opened the other end (SO_PEERCRED) and in which
// groups they were then (SO_PEERGROUPS), unix(7).
func IDs(c net.Conn) (uid uint32, groups []uint32, err error) {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return 0, nil, fmt.Errorf("%T is no Unix connection", c)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr == nil {
			groups, credErr = peerGroups(fd)
		}
	}); err != nil {
		return 0, nil, err
	}
	if credErr != nil {
		return 0, nil, credErr
	}
	return cred.Uid, append(groups, cred.Gid), nil
}

// peerGroups reads SO_PEERGROUPS, which x/sys has no function for. Linux knows
// at most 65,536 groups of a process and says by ERANGE how many there are.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 32)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS, uintptr(unsafe.Pointer(unsafe.SliceData(groups))), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == unix.ERANGE && int(size/4) > len(groups):
			groups = make([]uint32, size/4)
		default:
			return nil, errno
		}
	}
}
