package daemon_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
)

// TestBrokenDatabase: if the database can't be written any more, status and doctor say so, with
// the command that helps.
func TestBrokenDatabase(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	d, err := daemon.New(running, daemon.Options{
		DataDir: dir, Listen: "127.0.0.1:0", Socket: filepath.Join(dir, "s"), Log: slog.New(slog.DiscardHandler), Env: func(string) string { return "" }, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(running) }()
	client := api.New(filepath.Join(dir, "s"))
	defer func() {
		client.Close()
		stop()
		<-ended // its database can't be closed
	}()
	warned := func() bool {
		t.Helper()
		s, err := api.GetStatus.Call(ctx, client, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(s.Warnings, "\n"), "nothing can be stored until nized is restarted")
	}
	found := func() *api.Finding {
		t.Helper()
		diagnosis, err := api.Doctor.Call(ctx, client, api.DoctorRequest{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(diagnosis.Findings, func(f api.Finding) bool { return f.Check == "database" })
		return &diagnosis.Findings[i]
	}
	if f := found(); f.Level == "problem" || warned() {
		t.Fatalf("before: %+v", f)
	}
	closeToWriters(t, filepath.Join(dir, "nize.db"))
	if _, err := api.AddUser.Call(ctx, client, api.AddUserRequest{Name: "mia", Role: store.Member}); err == nil {
		t.Fatal("a change was acknowledged")
	}
	if f := found(); f.Level != "problem" || !strings.Contains(f.Text.String(), "nothing can be stored until nized is restarted") || !strings.Contains(f.Cure, "systemctl restart nized") {
		t.Errorf("doctor: %+v", f)
	}
	if !warned() {
		t.Error("status has no warning")
	}
}

// closeToWriters makes all writes to an open file of this process fail, as a broken disk does.
func closeToWriters(t *testing.T, path string) {
	t.Helper()
	read, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		var fd int
		for _, c := range e.Name() {
			fd = 10*fd + int(c-'0')
		}
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || to != path || fd == int(read.Fd()) {
			continue
		}
		if err := syscall.Dup3(int(read.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
}
