package peer

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// idsOf returns the user who opened the other end (SO_PEERCRED), and their groups at that
// time (SO_PEERGROUPS), unix(7).
func idsOf(fd uintptr) (uid uint32, groups []uint32, err error) {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, nil, err
	}
	groups, err = peerGroups(fd)
	return cred.Uid, append(groups, cred.Gid), err
}

// peerGroups reads SO_PEERGROUPS, for which x/sys has no function. On Linux a process has
// at most 65,536 groups; ERANGE returns their number.
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
