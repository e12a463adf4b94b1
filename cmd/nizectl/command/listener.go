package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/daemon/peer"
)

// dialTime limits a connection attempt to one socket.
const dialTime = time.Second

// probeTime limits the response time of one of several daemons.
const probeTime = 3 * time.Second

// findSocket returns the first of the sockets with a trusted daemon that listens, and
// prints a note if there are several. If the first one does not respond within that time,
// the next one is used. It returns "no daemon" only if none listens at any of them: if a
// socket may not be opened, or belongs to another user, the error says so.
func findSocket(list []string, within time.Duration, say func(string)) (string, error) {
	var answering []string
	var files []os.FileInfo // of these sockets: one may have several paths
	var refused error
	for _, socket := range list {
		file, err := os.Stat(socket)
		if err == nil && slices.ContainsFunc(files, func(f os.FileInfo) bool { return os.SameFile(f, file) }) {
			continue
		}
		conn, err := net.DialTimeout("unix", socket, dialTime)
		switch {
		case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
			err = api.ForbiddenSocket(socket)
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded): // its backlog is full
			err = api.Mute(socket, dialTime)
		case err == nil:
			err = checkListener(conn, socket)
			_ = conn.Close() // nothing was sent
		default:
			continue
		}
		switch {
		case err == nil:
			answering, files = append(answering, socket), append(files, file)
		case refused == nil:
			refused = err
		}
	}
	switch {
	case len(answering) == 0 && refused != nil:
		return "", refused
	case len(answering) == 0:
		return "", api.NoDaemon(list...)
	case len(answering) == 1: // its first request shows whether it responds
		return answering[0], nil
	}
	live := probeSockets(answering, within)
	switch {
	case len(live) == 0:
		return answering[0], nil
	case len(live) > 1:
		say(fmt.Sprintf("%d daemons answer; this is the one at %s; for another, add --socket: %s", len(live), live[0], strings.Join(live[1:], ", ")))
	case live[0] != answering[0]:
		say(fmt.Sprintf("%s accepts connections, but nothing answers there; this is the daemon at %s", answering[0], live[0]))
	}
	return live[0], nil
}

// probeSockets returns the sockets at which a daemon responds; it probes all concurrently.
func probeSockets(list []string, within time.Duration) []string {
	mute := make([]bool, len(list))
	var all sync.WaitGroup
	for i, socket := range list {
		all.Go(func() {
			client := api.New(socket)
			defer client.Close()
			mute[i] = client.Probe(context.Background(), within) != nil
		})
	}
	all.Wait()
	var live []string
	for i, socket := range list {
		if !mute[i] {
			live = append(live, socket)
		}
	}
	return live
}

// checkListener refuses a daemon of an unrelated user: anyone can listen in a directory of
// their own, and root, told to send a key there, would. The listener must be root's, the
// caller's own (also if they became root by sudo), or belong to the owner of the data
// directory.
func checkListener(c net.Conn, socket string) error {
	uid, _, err := peer.IDs(c)
	if err != nil {
		return fmt.Errorf("identifying the listener at %s: %w", socket, err)
	}
	if uid == 0 || int(uid) == os.Getuid() {
		return nil
	}
	if before, ok := api.UserBefore(); ok && before == strconv.FormatUint(uint64(uid), 10) {
		return nil // the user who became root
	}
	for _, dir := range api.DataDirs() {
		if fi, err := os.Stat(dir); err == nil {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid == uid {
				return nil
			}
		}
	}
	return &api.Error{Code: "refused", Message: fmt.Sprintf("%s listens at %s, so nothing was sent: the listener is neither you, nor root, nor the owner of the data directory; if it is trusted, set NIZE_DATA_DIR=DIR", api.LoginName(int(uid)), socket)}
}
