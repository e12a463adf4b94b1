package mcp

import (
	"context"
	"fmt"
	"slices"

	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/store"
)

// The servers that a conversation has used last come a little further in front
// in its searches: most go on where they were.
const (
	maxUsedServers = 3  // as measured (mcp/index/eval: "server among three used")
	maxUsedCalls   = 20 // of the conversation, looked at for them
)

// prepareQuery is the query within the caller's view and conversation.
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

// usedServers lists the servers whose tools did what they were asked for in the
// conversation, the last one first.
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
