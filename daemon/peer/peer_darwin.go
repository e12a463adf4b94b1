// Package peer says who is at the other end of a Unix socket, as the kernel
// knows it.
package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// IDs asks the kernel who opened the other end and in which groups they are
// (LOCAL_PEERCRED; it tells the first 16).
func IDs(c net.Conn) (uid uint32, groups []uint32, err error) {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return 0, nil, fmt.Errorf("%T is no Unix connection", c)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var cred *unix.Xucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return 0, nil, err
	}
	if credErr != nil {
		return 0, nil, credErr
	}
	return cred.Uid, cred.Groups[:min(max(int(cred.Ngroups), 0), len(cred.Groups))], nil
}
