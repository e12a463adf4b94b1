package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/mcp/catalog"
	"nize/mcp/upstream"
	"nize/store"
)

// The servers' health, and the operations that restart, test and read logs.

// States returns the state of each server in the pool, by name.
func (s *Servers) States() map[string]upstream.ServerStatus {
	out := map[string]upstream.ServerStatus{}
	for _, st := range s.Pool.Status() {
		out[st.Name] = st
	}
	return out
}

// stateWord maps the pool's states to their names on the wire.
var stateWord = map[upstream.State]string{upstream.Connected: "ready", upstream.Connecting: "connecting", upstream.Down: "unreachable", upstream.Idle: "idle", upstream.Open: "open", upstream.Disabled: "disabled", upstream.LoginNeeded: "login needed"}

// HealthOf returns a server's health, from the states of all servers and the count of its
// tools.
func HealthOf(server store.Server, states map[string]upstream.ServerStatus, tools catalog.ToolCounts) api.Health {
	h := api.Health{Name: server.Name, State: "connecting", ToolCount: tools.Tools, Held: tools.Held, Refused: tools.Refused}
	if st, ok := states[server.Name]; ok {
		h.State, h.LatencyMS, h.LastError, h.Restarts, h.Since = stateWord[st.State], float64(st.Latency)/float64(time.Millisecond), st.LastError, st.Restarts, st.Since
	}
	if server.Transport == store.External {
		h.State = "external"
	}
	if server.Disabled {
		h.State = "disabled"
	}
	return h
}

// Test tests a server with a connection separate from its live session.
func (s *Servers) Test(ctx context.Context, by store.Caller, req api.ServerRequest) (none api.Probe, err error) {
	server, err := s.Find(ctx, by, req.Name)
	if err != nil {
		return none, err
	}
	if server.Transport == store.External {
		return none, fmt.Errorf("%w request: %s is a source of asks, and nize connects to nothing there", store.ErrInvalid, server.Name)
	}
	p, err := s.Pool.Probe(ctx, server)
	if p == nil {
		return none, err
	}
	out := api.Probe{OK: err == nil, Tools: len(p.Tools), Stderr: string(p.Stderr)}
	for _, step := range p.Steps {
		out.Steps = append(out.Steps, api.ProbeStep{Name: step.Name, TookMS: float64(step.Took) / float64(time.Millisecond), Error: step.Err, Hint: step.Hint})
	}
	return out, nil
}

// Restart closes the server's sessions and opens new ones.
func (s *Servers) Restart(ctx context.Context, by store.Caller, req api.ServerRequest) (none api.ServerView, err error) {
	if _, err := s.Find(ctx, by, req.Name); err != nil {
		return none, err
	}
	s.Store.AddEvent(by, store.Event{Kind: "server.restart", Subject: req.Name})
	if err := s.Pool.Restart(ctx, req.Name); err != nil {
		if errors.Is(err, store.ErrRefused) {
			return none, err
		}
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("restarting %s: %v", req.Name, err)}
	}
	if err := s.Gateway.Catalog.Refresh(ctx, req.Name); err != nil {
		return none, err
	}
	return s.reread(ctx, req.Name)
}

// Logs sends the lines that a stdio server wrote to standard error, also while the server
// is being added.
func (s *Servers) Logs(ctx context.Context, by store.Caller, req api.ServerLogsRequest, send func(api.LogLine) error) error {
	server, err := s.Find(ctx, by, req.Name)
	follow := func() iter.Seq[[]byte] { return s.Pool.FollowLogs(ctx, req.Name) }
	if errors.Is(err, store.ErrNotFound) && req.Follow {
		if lines, ok := s.Pool.FollowProbe(ctx, req.Name); ok {
			server, err, follow = store.Server{Transport: store.Stdio}, nil, func() iter.Seq[[]byte] { return lines }
		}
	}
	if err != nil {
		return err
	}
	if server.Transport != store.Stdio {
		return fmt.Errorf("server %s has no log: %w: only stdio servers write one", req.Name, store.ErrInvalid)
	}
	var rest []byte
	sendLines := func(chunk []byte) error {
		rest = append(rest, chunk...)
		for {
			line, after, ok := strings.Cut(string(rest), "\n")
			if !ok {
				return nil
			}
			rest = []byte(after)
			if err := send(api.LogLine{Text: strings.TrimSuffix(line, "\r")}); err != nil {
				return err
			}
		}
	}
	if req.Follow {
		for chunk := range follow() {
			if err := sendLines(chunk); err != nil {
				return err
			}
		}
		return nil
	}
	if err := sendLines(s.Pool.Logs(req.Name)); err != nil {
		return err
	}
	if len(rest) > 0 {
		return send(api.LogLine{Text: string(rest)})
	}
	return nil
}
