package mcp_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// own connects a client without a token.
func (f *front) own(ctx context.Context, by store.Caller, version string, opt *sdk.ClientOptions) (s *sdk.ClientSession, leave func() error, ended chan error) {
	f.t.Helper()
	ours, theirs := net.Pipe()
	ended = make(chan error, 1) // buffered for the single result of ServeConn
	go func() { ended <- f.server.ServeConn(ctx, by, theirs) }()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opt)
	s, err := c.Connect(f.t.Context(), &sdk.IOTransport{Reader: ours, Writer: ours}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = ours.Close() })
	return s, ours.Close, ended
}

// TestOwnConnection: a client on its own connection has the five tools over both protocol
// versions, with exactly the rights of its person. Calls that need approval wait, and
// neither a repeated call nor an answer to a question runs one twice.
func TestOwnConnection(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			waits := make(chan string, 100) // TestOwnConnectionEnds: a connection ends with its client, with the rights of its person, and in a drain after the last running call.
			s, _, _ := f.own(t.Context(), f.root, version, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
				token, _ := n.Params.ProgressToken.(string)
				waits <- token
			}})
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Fatalf("%+v, %v", tools, err)
			}
			if f.server.Counts().Sessions != 1 {
				t.Errorf("%d sessions are counted", f.server.Counts().Sessions)
			}
			call := func(token string) *sdk.CallToolParams {
				p := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}
				p.SetProgressToken(token)
				return p
			}
			var both sync.WaitGroup
			for _, token := range []string{"first", "again"} {
				both.Go(func() {
					if r, err := s.CallTool(t.Context(), call(token)); err != nil || !r.IsError {
						t.Errorf("a call that an admin's program made and nobody approved: %+v, %v", r, err)
					}
				})
				for got := ""; got != token; {
					got = <-waits
				}
			}
			if list, err := f.db.ListCalls(t.Context(), store.CallQuery{Waiting: true, Limit: 10}); err != nil || len(list) != 1 {
				t.Errorf("%d calls wait, want the one that was sent twice (%v)", len(list), err)
			}
			done := make(chan struct{})
			go func() { both.Wait(); close(done) }()
			f.deny(done)
			if n := f.runner.runs.Load(); n != 0 {
				t.Errorf("%d runs", n)
			}
			f.config.set("approvals.elicitation", "true")
			asked, _, _ := f.own(t.Context(), f.root, version, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}, nil
			}})
			if r, err := asked.CallTool(t.Context(), call("asked")); err != nil || r.IsError || f.runner.runs.Load() != 1 {
				t.Errorf("its person said yes in the client: %+v, %v, %d runs", r, err, f.runner.runs.Load())
			}
		})
	}
}

// more than the expected notifications
func TestOwnConnectionEnds(t *testing.T) {
	f := newFront(t, nil)
	p := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}
	after := f.db.Last()
	waits := func(s *sdk.ClientSession) (string, chan error) {
		answered := make(chan error, 1) // buffered for the single answer of the call
		go func() {
			_, err := s.CallTool(t.Context(), p)
			answered <- err
		}()
		for change := range f.db.Watch(t.Context(), after) {
			if after = change.Seq; change.Kind == "call" && change.State == store.Pending {
				return change.ID, answered
			}
		}
		t.Fatal("no call came to wait")
		return "", nil
	}
	s, leave, ended := f.own(t.Context(), f.member, "2025-11-25", nil)
	c, _ := waits(s)
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if got := f.wait(c); got.State != store.Cancelled {
		t.Errorf("the call of a client that left is %s", got.State)
	}

	ctx, end := context.WithCancel(t.Context())
	s, _, ended = f.own(ctx, f.member, "2025-11-25", nil)
	c, _ = waits(s)
	end()
	<-ended
	if got := f.wait(c); got.State != store.Cancelled {
		t.Errorf("the call of somebody who may not go on is %s", got.State)
	}

	s, _, ended = f.own(t.Context(), f.member, "2025-11-25", nil)
	c, answered := waits(s)
	f.server.CloseStreams()
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if f.server.WaitConns(short); short.Err() == nil {
		t.Error("a drain does not wait for a call that is under way")
	}
	if _, err := f.gateway.Decide(t.Context(), f.member, c, store.Decision{Verb: store.Approve}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("a call that was under way in a drain: %v", err)
	}
	f.server.WaitConns(t.Context())
	<-ended
}
