package postgres

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unanswered is how long the kernel waits for a server to acknowledge what was sent
// before it ends the connection. Without it a connection whose other end vanished hangs for
// minutes, since keep-alives are not sent while something is unacknowledged.
const unanswered = 2 * idleLock

func setUserTimeout(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	// A kernel without the option is as before.
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered/time.Millisecond))
	})
}
