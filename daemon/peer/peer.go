// Package peer returns the kernel's credentials of a Unix socket's peer.
package peer

import (
	"fmt"
	"net"
)

// IDs returns the user who opened the other end, and their groups. A connection that wraps
// another one must have a NetConn method.
func IDs(c net.Conn) (uid uint32, groups []uint32, err error) {
	if below, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = below.NetConn()
	}
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return 0, nil, fmt.Errorf("%T is not a Unix connection", c)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var readErr error
	if err := raw.Control(func(fd uintptr) { uid, groups, readErr = idsOf(fd) }); err != nil {
		return 0, nil, err
	}
	if readErr != nil {
		return 0, nil, readErr
	}
	return uid, groups, nil
}
