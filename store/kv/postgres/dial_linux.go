package postgres

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unanswered is how long the kernel waits for a server to acknowledge sent data before it
// ends the connection. Without it, if the other end vanished, the connection hangs for
// minutes, since keep-alives are not sent while data is unacknowledged.
const unanswered = 2 * idleLock

func setUserTimeout(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	// Ignore the error of a kernel without this option.
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered/time.Millisecond))
	})
}
