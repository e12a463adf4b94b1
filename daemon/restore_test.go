package daemon_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// copied makes a backup in memory.
func (k *killable) copied() []byte {
	k.t.Helper()
	var b bytes.Buffer
	said, err := api.SaveBackup(k.t.Context(), k.Client, &b)
	if err != nil || said.Size != int64(b.Len()) {
		k.t.Fatalf("backup %+v of %d bytes: %v", said, b.Len(), err)
	}
	return b.Bytes()
}

// restored puts a copy in place and waits until the daemon is back with it.
func (k *killable) restored(copied []byte, keepAccess bool) api.Restored {
	k.t.Helper()
	ctx := k.t.Context()
	before, err := api.GetStatus.Call(ctx, k.Client, api.Empty{})
	if err != nil {
		k.t.Fatal(err)
	}
	said, err := api.Restore.Call(ctx, k.Client, api.RestoreRequest{KeepAccess: keepAccess}, bytes.NewReader(copied), int64(len(copied)))
	if err != nil {
		k.t.Fatal(err)
	}
	k.until("nized is back", func() bool {
		s, err := api.GetStatus.Call(ctx, k.Client, api.Empty{})
		return err == nil && s.Started.After(before.Started) && s.PID == before.PID
	})
	if took, err := api.RestoredAs(ctx, k.Client, said.SHA256); err != nil || !took {
		k.t.Fatalf("restored %v, %v", took, err)
	}
	return said
}

// A copy made while others write restores to a database that holds together
// and has everything that was acknowledged before.
func TestRestoreUnderLoad(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.PutSetting.Call(ctx, k.Client, api.PutSettingRequest{Key: "limits.user.tokens", Value: "10000"}); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	stop, enough, failed := make(chan struct{}), make(chan struct{}), make(chan error, 3) // 3: one for each writer
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("t%d-%d", w, i)
				if _, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: name}); err != nil {
					failed <- err
					return
				}
				mu.Lock()
				if acked = append(acked, name); len(acked) == 60 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case err := <-failed:
		close(stop)
		writers.Wait()
		t.Fatal(err)
	}
	mu.Lock()
	before := append([]string(nil), acked...)
	mu.Unlock()
	copied := k.copied()
	close(stop)
	writers.Wait()
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
	said := k.restored(copied, false)
	if said.Tokens < len(before) {
		t.Errorf("%d tokens revoked of %d", said.Tokens, len(before))
	}
	state := map[string]string{}
	for cursor, more := "", true; more; more = cursor != "" {
		tokens, err := api.ListTokens.Call(ctx, k.Client, api.ListTokensRequest{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, tok := range tokens.Items {
			state[tok.Name] = tok.State
		}
		cursor = tokens.Next
	}
	for _, name := range before {
		if state[name] != "revoked" {
			t.Errorf("token %s is %q", name, state[name])
		}
	}
	if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}

// What is not a copy of ours is refused, and nothing changes.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	ctx := t.Context()
	good := k.copied()
	mark := []byte("\x00\x00\x00\x00\x00\x00\x00\x02")
	newer := bytes.ReplaceAll(bytes.Clone(good), append([]byte("schema"), mark...), append([]byte("schema"), 0, 0, 0, 0, 0, 0, 0, 99))
	if bytes.Equal(newer, good) {
		t.Fatal("the schema's version was not found")
	}
	other := newKillable(t)
	for _, test := range []struct {
		name   string
		copied []byte
		want   error
		says   string
	}{
		{"foreign", []byte("this is no database"), store.ErrInvalid, "no nize database"},
		{"truncated", good[:len(good)/2], store.ErrInvalid, "cut off"},
		{"newer schema", newer, store.ErrOldSchema, "its schema is 99"},
		{"another key", other.copied(), store.ErrRefused, "is not here"},
	} {
		_, err := api.Restore.Call(ctx, k.Client, api.RestoreRequest{}, bytes.NewReader(test.copied), int64(len(test.copied)))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(k.dir, "*restore*"))
	hidden, err2 := filepath.Glob(filepath.Join(k.dir, ".nize-*"))
	if err != nil || err2 != nil || len(left)+len(hidden) > 0 {
		t.Errorf("left behind: %v %v", left, hidden)
	}
	if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}

// TestRollback is the way back from an upgrade that migrated the database: the
// older nized refuses that, says what to do, and that works.
func TestRollback(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.AddUser.Call(ctx, k.Client, api.AddUserRequest{Name: "mia", Role: store.Member}); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "before-upgrade.db")
	if err := os.WriteFile(copied, k.copied(), 0o600); err != nil {
		t.Fatal(err)
	}
	k.kill()
	path := filepath.Join(k.dir, "nize.db")
	db, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now, later := []byte("schema\x00\x00\x00\x00\x00\x00\x00\x02"), []byte("schema\x00\x00\x00\x00\x00\x00\x00\x03")
	if err := os.WriteFile(path, bytes.ReplaceAll(db, now, later), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, k.path, append(args, "--data-dir", k.dir)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run("--listen", "127.0.0.1:0"); err == nil || !strings.Contains(out, "restore the backup made before the upgrade") {
		t.Fatalf("the older nized: %v, %s", err, out)
	}
	out, err := exec.CommandContext(ctx, k.path, "--data-dir", k.dir, "restore", copied).CombinedOutput()
	if err != nil {
		t.Fatalf("restoring: %v, %s", err, out)
	}
	k.start()
	users, err := api.ListUsers.Call(ctx, k.Client, api.Empty{})
	if err != nil || !slices.ContainsFunc(users.Items, func(u store.User) bool { return u.Name == "mia" }) {
		t.Errorf("after the way back: %v, %v", users, err)
	}
}

// Killed anywhere in a rotation, every secret stays readable, and the rotation
// is finished by the next start.
func TestKilledRotation(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	ctx := t.Context()
	var calls []string
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t), Args: []string{"--notes", filepath.Join(t.TempDir(), "n.json")}}}); err != nil {
		t.Fatal(err)
	}
	for i := range 120 { // more than one transaction
		c, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "toolbox:convert_units", Args: fmt.Appendf(nil, `{"value":%d,"from":"km","to":"m"}`, i)})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c.ID)
	}
	for range 12 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = api.RotateKeys.Call(ctx, k.Client, api.Empty{}) // it is cut off, or not
		}()
		select {
		case <-done:
		case <-time.After(time.Duration(rand.IntN(12_000)) * time.Microsecond):
		}
		k.kill()
		<-done
		k.start()
		for i, id := range calls {
			if c, err := api.GetCall.Call(ctx, k.Client, api.CallRequest{ID: id, Reason: "the test looks"}); err != nil || !strings.Contains(string(c.Args), fmt.Sprintf(`"value":%d}`, i)) {
				t.Fatalf("call %d: %s, %v", i, c.Args, err)
			}
		}
		if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
			t.Fatalf("audit %+v, %v", v, err)
		}
	}
}

// A kill between the commit and the key file's change is mended by the start.
func TestRotationCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := open(t, dir, nil)
	said, err := api.RotateKeys.Call(t.Context(), r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	key := filepath.Join(dir, "nize.key")
	for _, move := range [][2]string{{key, key + ".new"}, {said.Kept, key}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	r = open(t, dir, nil)
	if v, err := api.CheckAudit(t.Context(), r.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
	got, err := api.ExportKey.Call(t.Context(), r.Client, api.Empty{})
	if err != nil || got.ID != said.Key {
		t.Errorf("the key is %s, %v; want %s", got.ID, err, said.Key)
	}
}
