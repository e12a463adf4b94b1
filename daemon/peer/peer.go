// Package peer says who is at the other end of a Unix socket, as the kernel
// knows it.
package peer

import (
	"fmt"
	"net"
)

// IDs asks the kernel who opened the other end and in which groups they are. A connection
// that wraps another one has a NetConn.
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
