package daemon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
	"nize/store/kv/bolt"
)

func TestMain(m *testing.M) {
	daemon.ChildMain()
	// Tests of daemons wait far more than they compute: for a disk, for another
	// process, for the pace of a platform. More of them run at once than there are
	// cores; a -parallel of the command line counts all the same.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removePrograms()
		os.Exit(code)
	}))
}

// testDaemon is a daemon of a test.
type testDaemon struct {
	*api.Client
	dir  string
	stop func()
}

// open starts a daemon in dir with the environment given. How full the disk of
// this machine is, is no incident of it.
func open(t testing.TB, dir string, env map[string]string, change ...func(*daemon.Options)) *testDaemon {
	t.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	opt := daemon.Options{
		DataDir: dir, Listen: "127.0.0.1:0", Socket: filepath.Join(dir, "s"), Log: slog.New(slog.DiscardHandler),
		Env: func(name string) string {
			if v, ok := env[name]; ok || name != "NIZE_ALERTS_DISK" {
				return v
			}
			return "0"
		}, Now: time.Now,
	}
	for _, f := range change {
		f(&opt)
	}
	d, err := daemon.New(ctx, opt)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	r := &testDaemon{Client: api.New(filepath.Join(dir, "s")), dir: dir}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		r.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the daemon: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// toolbox builds the real server of everyday tools.
func toolbox(t *testing.T) string {
	t.Helper()
	return nizeToolbox.build(t)
}

func TestMainJob(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	ctx := t.Context()
	view, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t), Args: []string{"--notes", filepath.Join(t.TempDir(), "notes.json")}}})
	if err != nil || view.ToolCount < 10 || view.State != "ready" {
		t.Fatalf("adding the toolbox: %+v, %v", view.Health, err)
	}
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: view.Server}); !errors.Is(err, store.ErrExists) {
		t.Errorf("adding it twice: %v", err)
	}
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{Zone: "Europe/Paris"})
	if err != nil {
		t.Fatal(err)
	}
	answer, sent, approved := "", false, 0
	for e, err := range api.FollowConversation.Call(ctx, r.Client, api.ConversationRequest{ID: th.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if !sent {
			sent = true
			for range 3 { // a client that is unsure sends again
				if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "m1", Text: "What time is it in Tokyo?"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if m := e.Message; m != nil && m.Card != nil && m.Card.State == store.Pending && !m.Card.Approved && approved == 0 {
			approved++
			if _, err := api.DecideCall.Call(ctx, r.Client, api.DecideCallRequest{ID: m.Card.Call, Verb: store.Approve, Digest: m.Card.Digest}); err != nil {
				t.Fatal(err)
			}
		}
		if m := e.Message; m != nil && m.Kind == store.TextMessage {
			answer = m.Text
		}
		if e.State == api.ChatIdle && answer != "" && approved > 0 {
			break
		}
	}
	if !strings.Contains(answer, "Asia/Tokyo") {
		t.Errorf("answer %q", answer)
	}
	whole, err := api.ShowConversation.Call(ctx, r.Client, api.ShowConversationRequest{ID: th.ID})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, turn := range whole.Turns {
		if turn.Role == store.FromUser {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the message is in the thread %d times, want once", asked)
	}
	if v, err := api.CheckAudit(ctx, r.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
	if report, err := api.GetUsage.Call(ctx, r.Client, api.GetUsageRequest{By: "provider"}); err != nil || len(report.Rows) != 1 || report.Rows[0].Key != "offline" {
		t.Errorf("usage %+v, %v", report, err)
	}
}

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	s, err := api.GetStatus.Call(t.Context(), r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(s.Listen, ":")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/mcp", "/mcp/", "/healthz", "/readyz", "/nothing"} {
		for _, c := range []struct {
			host, origin string
			forbidden    bool
		}{
			{"127.0.0.1:" + port, "", false},
			{"localhost:" + port, "http://localhost:" + port, false},
			{"evil.example", "", true},
			{"127.0.0.1.evil.example:" + port, "", true},
			{"localhost:1", "", true},
			{"127.0.0.1:" + port, "http://evil.example", true},
			{"127.0.0.1:" + port, "null", true},
			{"127.0.0.1:" + port, "http://localhost.evil.example:" + port, true},
			{"127.0.0.1:" + port, "http://localhost:1", true},
		} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Listen+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			health := path == "/healthz" || path == "/readyz" // a prober may name any host, and learns nothing
			if (resp.StatusCode == http.StatusForbidden) != (c.forbidden && !health) {
				t.Errorf("%s with Host %s and Origin %q: %s", path, c.host, c.origin, resp.Status)
			}
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Listen+"/mcp?access_token=x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token in the URL: %s", resp.Status)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), map[string]string{"NIZE_APPROVALS_MODE": "all"})
	ctx := t.Context()
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "approvals.mode", Value: "none"}); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "NIZE_APPROVALS_MODE") {
		t.Errorf("a key that the environment sets: %v", err)
	}
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "approvals.mod", Value: "none"}); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "approvals.mode") {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "index.schedule", Value: "now and then"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a broken schedule: %v", err)
	}
	s, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: "agent.tools.maxSteps", Value: "6"})
	if err != nil || s.Value != "6" || s.Source != "system" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = api.UnsetSetting.Call(ctx, r.Client, api.UnsetSettingRequest{Key: "agent.tools.maxSteps"}); err != nil || s.Value != "10" || s.Source != "default" {
		t.Errorf("%+v, %v", s, err)
	}
}

// optionsIn are those of a daemon that says nothing and knows no environment.
func optionsIn(dir string) daemon.Options {
	return daemon.Options{DataDir: dir, Listen: "127.0.0.1:0", Socket: filepath.Join(dir, "s"), Log: slog.New(slog.DiscardHandler), Env: func(string) string { return "" }, Now: time.Now}
}

func TestSecondDaemonAndPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, nil)
	opt := optionsIn(dir)
	opt.Socket += "2"
	_, err := daemon.New(t.Context(), opt)
	if err == nil {
		t.Fatal("a second daemon started")
	}
	err = filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLostDatabase: a database that is gone, or was cut to nothing, is not taken
// for a first start; a first start that was cut off is one.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "nize.db")
	start := func(fresh bool) error {
		ctx, cancel := context.WithCancel(t.Context())
		opt := optionsIn(dir)
		opt.New = fresh
		d, err := daemon.New(ctx, opt)
		cancel()
		if err != nil {
			return err
		}
		return d.Run(ctx)
	}
	if err := start(false); err != nil {
		t.Fatalf("a first start: %v", err)
	}
	for what, lose := range map[string]func() error{
		"empty":   func() error { return os.Truncate(path, 0) },
		"missing": func() error { return os.Remove(path) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		if err := start(false); err == nil || !strings.Contains(err.Error(), "is "+what) || !strings.Contains(err.Error(), "restore FILE") || !strings.Contains(err.Error(), "--new") {
			t.Errorf("%s: %v", what, err)
		}
		if err := start(true); err != nil {
			t.Errorf("%s, and a new one is wanted: %v", what, err)
		}
	}
	for _, name := range []string{"nize.db", "nize.db.clean", "nize.db.audit"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+".begins", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(false); err != nil {
		t.Errorf("after a first start that was cut off: %v", err)
	}
}

// TestDamageFoundLater: damage in a large bucket of a database that was not closed is found
// while the daemon runs, which then ends with the error of a start, and doesn't start
// again.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "nize.db")
	start := func(ctx context.Context, ready func()) (started bool, err error) {
		opt := optionsIn(dir)
		opt.Ready = ready
		d, err := daemon.New(ctx, opt)
		if err != nil {
			return false, err
		}
		return true, d.Run(ctx)
	}
	sound := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		if started, err := start(ctx, cancel); !started || err != nil {
			t.Fatalf("a sound database: %v", err)
		}
	}
	sound()
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := file.Begin(t.Context(), true)
	value := bytes.Repeat([]byte("unused vector "), 140)
	for i := 0; i < 30_000 && err == nil; i++ {
		err = tx.Put("vectors/test", fmt.Appendf(nil, "tool-%06d", i), value)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err := errors.Join(err, file.Close(false)); err != nil {
		t.Fatal(err)
	}
	sound()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	at := bytes.LastIndex(content, append([]byte("tool-015000"), value...)) / size * size
	binary.NativeEndian.PutUint32(content[at+16+4:], 1<<20) // where the key of the first entry is
	if err := errors.Join(os.WriteFile(path, content, 0o600), os.Remove(bolt.MarkPath(path))); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for n, started := range []bool{true, false, false} {
		got, err := start(t.Context(), func() {})
		if got != started || err == nil || !strings.Contains(err.Error(), "the database did not pass its check: ") || !strings.Contains(err.Error(), "ends outside of it") && started || !strings.Contains(err.Error(), " restore FILE") {
			t.Errorf("start %d: started %t, %v", n, got, err)
		}
	}
}

// TestTaken: neither the control socket nor the port of a daemon that runs is
// taken from it by one on another data directory, and a socket that was left
// behind is in nobody's way. It runs alone: a child that another test is starting
// has what is closed here open for a moment, and would seem to listen.
func TestTaken(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	r := open(t, dir, nil)
	s, err := api.GetStatus.Call(t.Context(), r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	start := func(listen, socket string) error {
		if err := os.Chmod(other, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		opt := optionsIn(other)
		opt.Listen, opt.Socket = listen, socket
		d, err := daemon.New(ctx, opt)
		if err != nil {
			return err
		}
		cancel()
		return d.Run(ctx)
	}
	if err := start("127.0.0.1:0", s.Socket); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "--socket") {
		t.Errorf("on a live socket: %v", err)
	}
	if err := start(s.Listen, filepath.Join(other, "s")); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("on a port in use: %v", err)
	}
	if _, err := api.GetStatus.Call(t.Context(), r.Client, api.Empty{}); err != nil {
		t.Errorf("the first daemon afterwards: %v", err)
	}
	left := filepath.Join(other, "left")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := start("127.0.0.1:0", left); err != nil {
		t.Errorf("on a socket that was left behind: %v", err)
	}
}

// Nothing that a token or credential holds may be found on disk.
func TestSecretsOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := open(t, dir, nil)
	ctx := t.Context()
	const canary = "canary-4f1d-secret"
	if _, err := api.PutCredential.Call(ctx, r.Client, api.PutCredentialRequest{CredentialKey: store.CredentialKey{Service: "tracker", Name: "KEY"}, Secret: api.NewSecret(canary)}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "openai", Key: api.NewSecret("sk-" + canary)}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := api.ListCredentials.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(all.Items)
	if err != nil || strings.Contains(string(shown), canary) {
		t.Errorf("credentials show %s (%v)", shown, err)
	}
	r.stop()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{canary, made.Secret.Reveal()} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s holds a secret", f.Name())
			}
		}
	}
}
