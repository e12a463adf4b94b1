package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestElicitationOfOthers: where it is on, no client is asked about a call that
// others than its requester, or more than one, decide on.
func TestElicitationOfOthers(t *testing.T) {
	for _, policy := range []string{"user:%", "user:%,requester", "2 of requester,user:%"} {
		f := newFront(t, nil)
		f.config.set("approvals.elicitation", "true")
		policy = strings.ReplaceAll(policy, "%", f.person("ann").User)
		f.approvers(policy)
		s := f.client(f.token("client", time.Hour), "2026-07-28", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			t.Errorf("%s: the client was asked", policy)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}, nil
		}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}); err != nil || !r.IsError {
				t.Errorf("%s: %+v, %v", policy, r, err)
			}
		}()
		f.deny(done)
		if n := f.runner.runs.Load(); n != 0 {
			t.Errorf("%s: %d runs", policy, n)
		}
	}
}
