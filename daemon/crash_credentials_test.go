package daemon_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/credential"
)

// vault is a nized with a server that is called with a declared credential, which is
// set, replaced and removed.
type vault struct {
	*killable
	up     *mcptest.Server
	values []string // all that were ever set
	// What the last acknowledged change left, and what one that was not may have; ""
	// is none.
	have, maybe string
}

var deskKey = store.CredentialKey{Service: "desk", Name: credential.KeyName}

// change sets a new value, or removes the one there is, and sometimes seals all again
// with other keys. It says whether nized acknowledged that.
func (v *vault) change(c *api.Client, n int, sent func()) bool {
	ctx := v.t.Context()
	if n%5 == 4 {
		sent()
		_, err := api.RotateKeys.Call(ctx, c, api.Empty{})
		return err == nil
	}
	v.maybe = ""
	sent()
	var err error
	if n%5 == 3 && v.have != "" {
		_, err = api.DeleteCredential.Call(ctx, c, api.DeleteCredentialRequest(deskKey))
	} else {
		v.maybe = fmt.Sprintf("desk-ATATT3xFfGF0-%04d-of-the-desk", len(v.values))
		v.values = append(v.values, v.maybe)
		_, err = api.PutCredential.Call(ctx, c, api.PutCredentialRequest{CredentialKey: deskKey, Secret: api.NewSecret(v.maybe)})
	}
	if err == nil {
		v.have = v.maybe
	}
	return err == nil
}

// used is the value with which the server is called now, "" where the call is refused
// because there is none.
func (v *vault) used() string {
	v.t.Helper()
	before := len(v.up.Headers())
	call, err := api.CallTool.Call(v.t.Context(), v.Client, api.CallToolRequest{ID: "board:read"})
	switch {
	case errors.Is(err, store.ErrRefused) && strings.Contains(err.Error(), "Desk is not connected"):
		return ""
	case err != nil || call.State != store.Done:
		v.t.Fatalf("a call with the credential: %s, %v", call.State, err)
	}
	for _, h := range v.up.Headers()[before:] {
		if value, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
			return value
		}
	}
	v.t.Fatal("the call went without the credential")
	return ""
}

// clean says whether no value is in the files of nized or in its log.
func (v *vault) clean(said []byte) {
	v.t.Helper()
	check := func(where string, content []byte) {
		for _, value := range v.values {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))[:24]} {
				if bytes.Contains(content, []byte(form)) {
					v.t.Errorf("%s has the value %s", where, value)
					return
				}
			}
		}
	}
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		check(d.Name(), content)
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	check("the log", said)
}

// A nized that is killed while a credential is set, replaced, removed and sealed with
// other keys: once it runs again, a call has the value that was acknowledged last, or
// that of the change under way. No value is in a file, in the most talkative log, or
// in what nized writes when it is made to crash, and it leaves no core.
func TestKilledCredentials(t *testing.T) {
	began, hold := make(chan struct{}, 1), make(chan struct{})
	defer close(hold)
	v := &vault{up: mcptest.New(t, mcptest.Options{Name: "desk", Tools: []mcptest.Tool{
		{Name: "read", Description: "Reads."},
		{Name: "slow", Description: "Takes long.", Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
			began <- struct{}{}
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return json.RawMessage(`{"content":[]}`)
		}},
	}})}
	said := &bytes.Buffer{} // is read when nized has ended
	v.killable = &killable{t: t, path: nized.build(t), dir: t.TempDir(), level: "debug", log: said}
	if err := os.Chmod(v.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	v.start()
	t.Cleanup(func() { v.kill() })
	ctx := t.Context()
	d := credential.Declaration{Name: "Desk", Mode: credential.UserKey, WhenMissing: credential.Fail, Host: "127.0.0.1"}
	if _, err := api.Declare.Call(ctx, v.Client, api.DeclareRequest{ID: "desk", Declaration: d}); err != nil {
		t.Fatal(err)
	}
	s := store.Server{Name: "board", URL: v.up.HTTP(), Headers: map[string]store.Value{"Authorization": {Credential: "desk"}}, Approval: store.ApproveNever}
	if _, err := api.AddServer.Call(ctx, v.Client, api.AddServerRequest{Server: s}); err != nil {
		t.Fatal(err)
	}

	random := rand.New(rand.NewPCG(18, 1))
	rounds := 6
	if testing.Short() {
		rounds = 3
	}
	n := 0
	for round := range rounds {
		left := 1 + random.IntN(6) // changes in this life
		ended := make(chan struct{})
		life := v.cmd.Process
		die := func() { _ = life.Kill() } // it may have ended
		moment := time.Duration(random.IntN(3000)) * time.Microsecond
		go func() {
			defer close(ended)
			for ok := true; ok; n++ {
				left--
				ok = v.change(v.Client, n, func() {
					if left == 0 && round%3 == 0 { // while the change is on its way
						time.AfterFunc(moment, die)
					}
				})
				if left == 0 && round%3 == 1 { // as soon as it is acknowledged
					die()
				}
				if left == 0 && round%3 == 2 { // at any moment of those that follow
					time.AfterFunc(10*moment, die)
				}
			}
		}()
		<-ended
		v.kill()
		v.start()
		if got := v.used(); got != v.have && got != v.maybe {
			t.Fatalf("round %d: a call went with %q; %q was acknowledged, %q was under way", round, got, v.have, v.maybe)
		} else if v.have = got; got != "" {
			if list, err := api.ListCredentials.Call(ctx, v.Client, api.Empty{}); err != nil || len(list.Items) != 1 {
				t.Fatalf("round %d: %d credentials, %v", round, len(list.Items), err)
			}
		}
		t.Logf("round %d: %d changes so far, %q in force", round, n, v.have)
		v.maybe = v.have
	}

	// Removed while a call has it: the call goes on, and nothing has it after that.
	if _, err := api.PutCredential.Call(ctx, v.Client, api.PutCredentialRequest{CredentialKey: deskKey, Secret: api.NewSecret("desk-ATATT3xFfGF0-last")}); err != nil {
		t.Fatal(err)
	}
	v.values = append(v.values, "desk-ATATT3xFfGF0-last")
	slow := func() <-chan struct{} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = api.CallTool.Call(ctx, v.Client, api.CallToolRequest{ID: "board:slow"}) // nized dies meanwhile
		}()
		<-began
		return over
	}
	over := slow()
	if _, err := api.DeleteCredential.Call(ctx, v.Client, api.DeleteCredentialRequest(deskKey)); err != nil {
		t.Fatal(err)
	}
	v.kill()
	<-over
	v.start()
	if got := v.used(); got != "" {
		t.Errorf("removed, and a call went with %q", got)
	}
	if _, err := api.PutCredential.Call(ctx, v.Client, api.PutCredentialRequest{CredentialKey: deskKey, Secret: api.NewSecret("desk-ATATT3xFfGF0-last")}); err != nil {
		t.Fatal(err)
	}
	if audit, err := api.CheckAudit(ctx, v.Client, api.VerifyAuditRequest{}, nil); err != nil || !audit.OK {
		t.Errorf("audit %+v, %v", audit, err)
	}

	// It crashes while a call has the value.
	over = slow()
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", v.cmd.Process.Pid)); err == nil && !regexp.MustCompile(`Max core file size +0 +0`).Match(limits) {
		t.Errorf("a crash may leave a core:\n%s", limits)
	}
	if err := v.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	<-over
	v.kill()
	if !strings.Contains(said.String(), "goroutine ") {
		t.Error("nized said nothing of its crash")
	}
	v.clean(said.Bytes())
}
