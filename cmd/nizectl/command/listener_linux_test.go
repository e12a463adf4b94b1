package command

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/daemon/api"
)

// TestListenerOfAnother: root does not send a key to a socket on which some
// other user listens, and says whose it is. The owner of the data directory is
// trusted.
func TestListenerOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can listen as somebody else")
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "s")
	const nobody = 65534
	ln := listenAs(t, nobody, socket)
	t.Setenv("NIZE_DATA_DIR", data)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = checkListener(conn, socket)
	if got := api.ExitCode(err); got != api.ExitRefused || !strings.Contains(err.Error(), "nobody listens at") {
		t.Errorf("exit %d, %v", got, err)
	}
	t.Setenv("SUDO_UID", "1") // somebody else
	if checkListener(conn, socket) == nil {
		t.Error("the daemon of a user who did not run sudo is trusted")
	}
	t.Setenv("SUDO_UID", "65534")
	if err := checkListener(conn, socket); err != nil {
		t.Errorf("the one who ran sudo: %v", err)
	}
	t.Setenv("SUDO_UID", "")
	if err := os.Chown(data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := checkListener(conn, socket); err != nil {
		t.Errorf("the owner of the data directory: %v", err)
	}
	ln.Close()
}

// listenAs opens a socket whose owner is another user, as the kernel tells its
// clients: a thread of its own takes that user's id while it calls listen(2).
func listenAs(t *testing.T, uid uintptr, path string) net.Listener {
	t.Helper()
	type opened struct {
		ln  net.Listener
		err error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uid, ^uintptr(0)); errno != 0 {
			done <- opened{err: errno}
			return
		}
		ln, err := net.Listen("unix", path)
		done <- opened{ln, err}
	}()
	o := <-done
	if o.err != nil {
		t.Fatal(o.err)
	}
	t.Cleanup(func() { o.ln.Close() })
	return o.ln
}

// TestFindSocketOfAnother: a daemon that may not be trusted is passed over if there is
// another, and is no "not running" if there is none.
func TestFindSocketOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can listen as somebody else")
	}
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NIZE_DATA_DIR", filepath.Join(dir, "data"))
	others, own := filepath.Join(dir, "others"), filepath.Join(dir, "own")
	listenAs(t, 65534, others)
	if _, err := findSocket([]string{others, own}, time.Minute, func(string) {}); api.ExitCode(err) != api.ExitRefused || !strings.Contains(err.Error(), "nobody listens at "+others) {
		t.Errorf("alone: %v", err)
	}
	listenAs(t, 0, own)
	if got, err := findSocket([]string{others, own}, time.Minute, func(line string) { t.Errorf("said %q", line) }); got != own || err != nil {
		t.Errorf("with one of ours: %q, %v", got, err)
	}
}

// TestFindSocketThatIsForbidden: a socket that the user may not open is passed over if
// another one answers, and is no "not running" if none does.
func TestFindSocketThatIsForbidden(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a socket of somebody else")
	}
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret, open := filepath.Join(dir, "secret"), filepath.Join(dir, "open")
	for path, mode := range map[string]os.FileMode{secret: 0o600, open: 0o666} {
		listenAs(t, 0, path)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	type found struct {
		socket string
		err    error
	}
	asNobody := func(list ...string) found {
		done := make(chan found)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
			const nobody = 65534
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
				done <- found{err: errno}
				return
			}
			socket, err := findSocket(list, time.Minute, func(line string) { t.Errorf("said %q", line) })
			done <- found{socket, err}
		}()
		return <-done
	}
	if got := asNobody(secret, open); got.socket != open || got.err != nil {
		t.Errorf("with another: %q, %v", got.socket, got.err)
	}
	if got := asNobody(filepath.Join(dir, "none"), secret); api.ExitCode(got.err) != api.ExitRefused || !strings.Contains(got.err.Error(), "you may not open "+secret) {
		t.Errorf("alone: %q, %v", got.socket, got.err)
	}
}
