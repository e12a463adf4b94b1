package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	hooksAsked  = 60  // each a process
	eventsAsked = 300 // each a request
)

// asks measures the cost of a coding agent's step that a standing answer allows: the hook
// as a whole process, and the event over HTTP. Each is a new ask, and is stored.
func (b *bench) asks(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "asks")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if _, err := api.AddServer.Call(ctx, d.api, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External}}); err != nil {
		return fmt.Errorf("adding the source: %w", err)
	}
	if _, err := api.AddGrant.Call(ctx, d.api, api.AddGrantRequest{Tool: "claude-code:Bash", Pattern: json.RawMessage(`{"command":"git status*"}`)}); err != nil {
		return fmt.Errorf("adding the standing answer: %w", err)
	}
	made, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "agent", Audience: store.ForAPI})
	if err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	event := func(kind string, n int) []byte {
		return fmt.Appendf(nil, `{"session_id":"s","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git status --short"},"tool_use_id":"%s-%d"}`, kind, n)
	}
	allowed := func(out []byte) error {
		if !bytes.Contains(out, []byte(`"permissionDecision":"allow"`)) {
			return fmt.Errorf("the step was not allowed: %s", out)
		}
		return nil
	}
	measure := func(what string, n int, aim float64, do func(n int) ([]byte, error)) error {
		var took []time.Duration
		for i := range n {
			begin := time.Now()
			out, err := do(i)
			took = append(took, time.Since(begin))
			if err == nil {
				err = allowed(out)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		b.table.add(row{what: "a step that a standing answer allows: " + what, value: millis(median(took)), unit: "ms", reference: fmt.Sprintf("median of %d", n), floor: aim})
		return nil
	}
	hook := func(args ...string) func(n int) ([]byte, error) {
		return func(n int) ([]byte, error) {
			cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "nizectl"), args...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
			cmd.Stdin = bytes.NewReader(event("hook", n))
			return cmd.Output()
		}
	}
	if err := measure("the hook, as a whole process", hooksAsked, 30, hook("--socket", api.SocketIn(d.dir), "hook", "claude-code")); err != nil {
		return err
	}
	return measure("the event over HTTP", eventsAsked, 5, func(n int) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/hooks/claude-code", bytes.NewReader(event("http", n)))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		resp, err := d.http.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return io.ReadAll(resp.Body)
	})
}
