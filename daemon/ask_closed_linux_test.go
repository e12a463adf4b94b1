package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"nize/daemon/api"
	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

// step is a hook event of Claude Code and Codex.
const step = `{"session_id":"s","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make deploy"},"tool_use_id":"t1"}`

// denied checks that an agent that gets this answer does not run its step, and why.
func denied(t *testing.T, answer, reason string) {
	t.Helper()
	var got struct {
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Errorf("%q: %v", answer, err)
		return
	}
	if s := got.Specific; s.Event != "PreToolUse" || s.Decision != "deny" || !strings.Contains(s.Reason, reason) {
		t.Errorf("%+v, want a denial because of %q", s, reason)
	}
}

// runHook runs nizectl hook as an agent does, which kills it if it takes too long. at is
// a socket or a URL.
func runHook(t *testing.T, client, at, event string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{"--socket", at, "hook", client, "--wait", "1s"}
	if strings.HasPrefix(at, "http://") {
		args = append(args[2:], "--url", at)
	}
	cmd := exec.CommandContext(ctx, nizectl.build(t), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "NIZE_TOKEN=nize_x"}
	cmd.Stdin = strings.NewReader(event)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, &said)
	}
	return string(out)
}

// postHook posts an event as Claude Code does, and returns the answer, which has to be a
// success: after another status the step may run.
func postHook(t *testing.T, url, token, event string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(event))
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s", resp.Status)
	}
	return text(t, resp)
}

// speaks is a program at the place of nized that reads a request and then writes answer.
// It goes on to hold the connection if hold says so.
func speaks(t *testing.T, network, address, answer string, hold bool) net.Addr {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				for head := make([]byte, 4096); ; {
					n, err := c.Read(head)
					if err != nil {
						return
					}
					if strings.HasPrefix(string(head[:n]), "HEAD /v1/probe") { // it lives
						_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					break
				}
				_, _ = io.WriteString(c, answer)
				if hold {
					<-ended
				}
			})
		}
	})
	t.Cleanup(func() {
		close(ended)
		_ = ln.Close()
		running.Wait()
	})
	return ln.Addr()
}

// TestHooksFailClosed: whatever is at the place of nized, the hook ends by itself, before
// the agent ends it, and denies the step with the reason.
func TestHooksFailClosed(t *testing.T) {
	t.Parallel()
	ok := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	}
	const approved = `{"id":"x","state":"approved","arguments":{"command":"make deploy"}}`
	for name, c := range map[string]struct {
		answer string
		hold   bool
		reason string
	}{
		"never answers":             {hold: true, reason: "did not respond within"},
		"closes":                    {reason: "can't decide"},
		"cut in the header":         {answer: "HTTP/1.1 200 OK\r\nContent-Le", reason: "can't decide"},
		"cut in the body":           {answer: ok(approved)[:len(ok(approved))-20], reason: "can't decide"},
		"cut before the end":        {answer: strings.Replace(ok(approved), "Length: ", "Length: 9", 1), reason: "can't decide"},
		"stops in the body":         {answer: ok(approved)[:len(ok(approved))-1], hold: true, reason: "did not respond within"},
		"no HTTP":                   {answer: "SSH-2.0-OpenSSH_9.2\r\n", reason: "can't decide"},
		"no JSON":                   {answer: ok("<html>approved</html>"), reason: "can't decide"},
		"empty":                     {answer: ok(""), reason: "can't decide"},
		"another program's":         {answer: ok(`{"ok":true}`), reason: "can't decide"},
		"a list":                    {answer: ok(`[` + approved + `]`), reason: "can't decide"},
		"an unknown state":          {answer: ok(strings.Replace(approved, "approved", "fine", 1)), reason: "can't decide"},
		"approved without a step":   {answer: ok(`{"id":"x","state":"approved"}`), reason: "can't decide"},
		"approved with null":        {answer: ok(`{"id":"x","state":"approved","arguments":null}`), reason: "can't decide"},
		"approved with a list":      {answer: ok(`{"id":"x","state":"approved","arguments":["make"]}`), reason: "can't decide"},
		"approved, but not with OK": {answer: strings.Replace(ok(approved), "200 OK", "500 Sorry", 1), reason: "can't decide"},
		"a redirect":                {answer: "HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", reason: "can't decide"},
		"waits, then nothing":       {answer: ok(`{"id":"x","state":"pending","arguments":{}}`), reason: "no decision was made in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, client := range []string{"claude-code", "codex"} {
				t.Run(client, func(t *testing.T) {
					t.Parallel()
					socket := filepath.Join(t.TempDir(), "s")
					speaks(t, "unix", socket, c.answer, c.hold)
					denied(t, runHook(t, client, socket, step), c.reason)
				})
			}
			t.Run("url", func(t *testing.T) {
				t.Parallel()
				at := speaks(t, "tcp", "127.0.0.1:0", c.answer, c.hold)
				denied(t, runHook(t, "codex", "http://"+at.String(), step), c.reason)
			})
		})
	}
	t.Run("what is right is allowed", func(t *testing.T) {
		t.Parallel()
		socket := filepath.Join(t.TempDir(), "s")
		speaks(t, "unix", socket, ok(approved), false)
		if out := runHook(t, "claude-code", socket, step); !strings.Contains(out, `"permissionDecision":"allow"`) {
			t.Error(out)
		}
	})
}

// TestHooksOfAStoppedDaemon: a nized that is stopped and one that is gone deny the step.
func TestHooksOfAStoppedDaemon(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	status, err := api.GetStatus.Call(t.Context(), k.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	second := exec.CommandContext(t.Context(), k.path, "--data-dir", k.dir, "--listen", "127.0.0.1:0", "--socket", filepath.Join(k.dir, "second"))
	if err := second.Run(); err == nil {
		t.Error("a second nized works on the same directory")
	}
	denied(t, runHook(t, "claude-code", filepath.Join(k.dir, "second"), step), "nized is not running at")

	if err := k.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	denied(t, runHook(t, "claude-code", filepath.Join(k.dir, "s"), step), "can't decide")
	denied(t, runHook(t, "codex", "http://"+status.Listen, step), "did not respond within")
	k.kill()
	denied(t, runHook(t, "codex", filepath.Join(k.dir, "s"), step), "nized is not running at")
	denied(t, runHook(t, "codex", "http://"+status.Listen, step), "nize can't be reached")
}

// TestHooksOnAFullDisk: what can't be recorded is denied, over all ways, also if a
// standing answer would allow it.
func TestHooksOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "8m")
	k := newKillable(t)
	k.kill()
	k.dir = dir
	k.start()
	ctx := t.Context()
	for _, name := range []string{"claude-code", "codex"} {
		if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: name, Transport: store.External, Visibility: []string{"all"}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := api.AddGrant.Call(ctx, k.Client, api.AddGrantRequest{Tool: name + ":Bash", Pattern: json.RawMessage(`{"command":"make *"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t", Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	status, err := api.GetStatus.Call(ctx, k.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	free := fill(t, dir)
	long := "make " + strings.Repeat("x", 40_000) // a short one may still find a free page of the database
	event := strings.ReplaceAll(step, "make deploy", long)
	k.until("nothing can be stored", func() bool {
		_, err := api.PostAsk.Call(ctx, k.Client, api.AskRequest{Source: "codex", Tool: "Bash", Arguments: json.RawMessage(`{"command":"` + long + `"}`)})
		return errors.Is(err, store.ErrDiskFull)
	})
	for _, client := range []string{"claude-code", "codex"} {
		denied(t, runHook(t, client, filepath.Join(dir, "s"), event), "the disk is full")
	}
	denied(t, postHook(t, "http://"+status.Listen+"/hooks/claude-code", made.Secret.Reveal(), event), "the disk is full")
	free()
	k.until("standing answers allow again", func() bool {
		return strings.Contains(postHook(t, "http://"+status.Listen+"/hooks/claude-code", made.Secret.Reveal(), event), `"permissionDecision":"allow"`)
	})
}

// TestOutageOfHooks: nized lives and has lost its database, or stands by while no
// other one works, and denies the step by an answer that is a success.
func TestOutageOfHooks(t *testing.T) {
	t.Parallel()
	w, database := newWire(t, postgrestest.New(t))
	r := newReplica(t, database, nil)
	r.works()
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External, Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "t", Audience: store.ForAPI})
	if err != nil {
		t.Fatal(err)
	}
	token, at := made.Secret.Reveal(), "http://"+r.addr
	for path, reason := range map[string]string{
		"/hooks/claude-code/": "can't decide", "//hooks/claude-code": "can't decide", "/hooks/claude-code?token=x": "a token in a URL",
	} {
		denied(t, postHook(t, at+path, token, step), reason)
	}
	standby := newReplica(t, database, r)

	waits := make(chan string, 1)
	go func() { waits <- postHook(t, at+"/hooks/claude-code", token, step) }()
	r.until("it waits", func() bool {
		list, err := api.ListApprovals.Call(ctx, r.Client, api.Empty{})
		return err == nil && len(list.Items) == 1
	})
	w.set(true)
	denied(t, <-waits, "can't decide")
	denied(t, postHook(t, at+"/hooks/claude-code", token, step), "can't decide")
	denied(t, runHook(t, "claude-code", filepath.Join(r.dir, "s"), step), "can't decide")
	r.kill()
	denied(t, postHook(t, "http://"+standby.addr+"/hooks/claude-code", token, step), "can't decide")
	denied(t, runHook(t, "claude-code", filepath.Join(standby.dir, "s"), step), "can't decide")
}
