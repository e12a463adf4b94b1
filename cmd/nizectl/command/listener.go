package command

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"nize/daemon/api"
	"nize/daemon/peer"
)

// checkListener refuses a daemon of somebody who has no business with this one's
// secrets: anybody can listen in a directory that is theirs, and root, asked to
// send a key there, would. The listener must be root's, the caller's own, or
// belong to the owner of the data directory.
func checkListener(c net.Conn, socket string) error {
	uid, _, err := peer.IDs(c)
	if err != nil {
		return fmt.Errorf("reading who listens at %s: %w", socket, err)
	}
	if uid == 0 || int(uid) == os.Getuid() {
		return nil
	}
	for _, dir := range api.DataDirs() {
		if fi, err := os.Stat(dir); err == nil {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid == uid {
				return nil
			}
		}
	}
	whose := "user " + strconv.Itoa(int(uid))
	if u, err := user.LookupId(strconv.Itoa(int(uid))); err == nil {
		whose = u.Username
	}
	return &api.Error{Code: "refused", Message: fmt.Sprintf("%s listens at %s, and nothing was sent: that is neither you, nor root, nor the owner of the data directory; if it is right, say so with NIZE_DATA_DIR=DIR", whose, socket)}
}
