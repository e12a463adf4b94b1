package daemon_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// A real nized takes both sockets from systemd, tells it how it is, and leaves
// the socket's file, which is systemd's.
func TestUnderSystemd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	control, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "control"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	control.SetUnlinkOnClose(false)
	defer control.Close()
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer public.Close()

	// Only a shell can say what its process id is to the program it becomes.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" --data-dir "$1"`, nized.build(t), filepath.Join(dir, "data"))
	for _, l := range []interface{ File() (*os.File, error) }{control, public.(*net.TCPListener)} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LISTEN_FDS=2", "LISTEN_FDNAMES=nized.socket:nized.socket", "NOTIFY_SOCKET=" + filepath.Join(dir, "notify"), "WATCHDOG_USEC=200000"}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill() // the test failed already
			_ = cmd.Wait()
		}
	}()

	seen := ""
	told := func(want string) {
		t.Helper()
		if err := notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for buf := make([]byte, 4096); ; {
			n, err := notify.Read(buf)
			if err != nil {
				t.Fatalf("systemd is not told %s: %v; it was told %q", want, err, seen)
			}
			seen = string(buf[:n])
			if strings.HasPrefix(seen, want) {
				return
			}
		}
	}
	told("READY=1")
	c := api.New(filepath.Join(dir, "control"))
	defer c.Close()
	s, err := api.GetStatus.Call(t.Context(), c, api.Empty{})
	if err != nil || s.Listen != public.Addr().String() || s.Socket != filepath.Join(dir, "control") {
		t.Errorf("status %+v, %v", s, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+public.Addr().String()+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", resp.Status)
	}
	told("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	told("RELOADING=1\nMONOTONIC_USEC=")
	told("READY=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told("STOPPING=1")
	notify.Close() // or the watchdog's words, which nobody reads now, fill it and hold up the end
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("nized ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "control")); err != nil {
		t.Errorf("the socket's file: %v", err)
	}
}

// Members of socket.group come in as members, and nobody else does.
func TestSocketGroup(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be several users")
	}
	dir, err := os.MkdirTemp("", "nize") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	nized, nizectl := nized.build(t), nizectl.build(t)
	const gid = 54321
	socket := filepath.Join(dir, "s")
	env := []string{"HOME=" + dir, "NIZE_SOCKET_GROUP=54321"}
	cmd := exec.Command(nized, "--data-dir", filepath.Join(dir, "data"), "--socket", socket, "--listen", "127.0.0.1:0", "--log-level", "error")
	cmd.Env, cmd.Stderr = env, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		if err := cmd.Wait(); err != nil {
			t.Errorf("nized ended with %v", err)
		}
	}()
	c := api.New(socket)
	defer c.Close()
	ctx := t.Context()
	eventually(t, "nized answers", func() bool { _, err := api.GetStatus.Call(ctx, c, api.Empty{}); return err == nil })
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o660 {
		t.Errorf("the socket's mode is %v, %v", fi.Mode(), err)
	}
	as := func(uid, primary uint32, groups []uint32, args ...string) (string, int) {
		cmd := exec.CommandContext(ctx, nizectl, append([]string{"--socket", socket}, args...)...)
		cmd.Env = env
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: primary, Groups: groups}}
		out, _ := cmd.CombinedOutput() // the exit code is what is looked at
		return string(out), cmd.ProcessState.ExitCode()
	}
	many := []uint32{gid}
	for g := uint32(60000); g < 60060; g++ { // more than the first question has room for
		many = append(many, g)
	}
	for _, who := range []struct {
		gid    uint32
		groups []uint32
	}{{gid, nil}, {7, []uint32{gid}}, {7, many}} {
		out, code := as(4321, who.gid, who.groups, "status", "--json")
		if code != 0 || !strings.Contains(out, `"role": "member"`) || !strings.Contains(out, `"identity": "local:4321"`) {
			t.Errorf("groups %d and %d: exit %d, %s", who.gid, len(who.groups), code, out)
		}
	}
	if out, code := as(4321, gid, nil, "users", "list"); code != 6 {
		t.Errorf("a member's admin command: exit %d, %s", code, out)
	}
	for _, name := range []string{"private", "public"} {
		if _, err := api.AddServer.Call(ctx, c, api.AddServerRequest{Server: store.Server{Name: name, Command: "/bin/sh", Args: []string{"-c", "exit 3"}, Env: map[string]store.Value{"WHERE": {Text: "in-the-cellar"}}}, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := api.PatchServer.Call(ctx, c, api.PatchServerRequest{Name: "public", Visibility: &[]string{"all"}}); err != nil {
		t.Fatal(err)
	}
	out, code := as(4321, gid, nil, "servers", "list", "--json")
	if code != 0 || strings.Contains(out, "private") || !strings.Contains(out, "public") || strings.Contains(out, "cellar") || strings.Contains(out, "exit 3") {
		t.Errorf("a member sees these servers: %s", out)
	}
	hidden, code := as(4321, gid, nil, "servers", "show", "private")
	missing, missingCode := as(4321, gid, nil, "servers", "show", "missing")
	if code != 4 || missingCode != 4 || hidden != strings.ReplaceAll(missing, "missing", "private") {
		t.Errorf("a hidden server tells of itself: %q, a missing one %q", hidden, missing)
	}
	member := func(args ...string) (string, int) { return as(4321, gid, nil, args...) }
	membersUse(ctx, t, c, member)
	membersSpend(ctx, t, c, member)
	membersLeave(ctx, t, c, member)
	if out, code := as(4322, 7, nil, "status"); code == 0 {
		t.Errorf("a stranger: %s", out)
	}
	if err := os.Chmod(socket, 0o666); err != nil { // somebody opens it by mistake
		t.Fatal(err)
	}
	if out, code := as(4322, 7, nil, "status"); code != 6 {
		t.Errorf("a stranger at an open socket: exit %d, %s", code, out)
	}
}
