package mcp

import (
	"context"
	"fmt"
	"slices"

	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/store"
)

// Searches in a conversation rank the servers that it used last slightly higher, because
// most conversations continue with the same server.
const (
	maxUsedServers = 3  // as measured (mcp/index/eval: "server among three used")
	maxUsedCalls   = 20 // the conversation's latest calls that are examined
)

// prepareQuery completes a query with the caller's view and conversation.
func (d *Discovery) prepareQuery(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Query, error) {
	v, err := d.policy.View(ctx, by, scope)
	if err != nil {
		return q, err
	}
	q.Keep = d.keep(v)
	if q.Servers, err = d.usedServers(ctx, scope.Thread); err != nil {
		return q, err
	}
	return q, nil
}

// usedServers returns the servers whose tools succeeded in the conversation, the latest
// first.
func (d *Discovery) usedServers(ctx context.Context, thread string) ([]string, error) {
	if thread == "" {
		return nil, nil
	}
	calls, err := d.store.ListCalls(ctx, store.CallQuery{Thread: thread, States: []store.State{store.Done}, Limit: maxUsedCalls})
	if err != nil {
		return nil, fmt.Errorf("reading the calls of conversation %s: %w", thread, err)
	}
	var names []string
	for _, c := range calls {
		if c.Server != policy.BuiltinServer && !slices.Contains(names, c.Server) {
			if names = append(names, c.Server); len(names) == maxUsedServers {
				break
			}
		}
	}
	return names, nil
}
