package mcp

import (
	"context"
	"fmt"
	"slices"

	"nize/mcp/index"
	"nize/store"
)

// The servers that a conversation has used last come a little further in front
// in its searches: most go on where they were.
const (
	usedServers = 3  // as measured (mcp/index/eval: "server among three used")
	usedCalls   = 20 // of the conversation, looked at for them
)

// prepared is the query within the caller's view and conversation.
func (g *Gateway) prepared(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Query, error) {
	v, err := g.view(ctx, by, scope)
	if err != nil {
		return q, err
	}
	q.Keep = g.keep(v)
	if q.Servers, err = g.used(ctx, scope.Thread); err != nil {
		return q, err
	}
	return q, nil
}

// used lists the servers whose tools did what they were asked for in the
// conversation, the last one first.
func (g *Gateway) used(ctx context.Context, thread string) ([]string, error) {
	if thread == "" {
		return nil, nil
	}
	calls, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Thread: thread, States: []store.State{store.Done}, Limit: usedCalls})
	if err != nil {
		return nil, fmt.Errorf("reading the calls of conversation %s: %w", thread, err)
	}
	var names []string
	for _, c := range calls {
		if c.Server != ownServer && !slices.Contains(names, c.Server) {
			if names = append(names, c.Server); len(names) == usedServers {
				break
			}
		}
	}
	return names, nil
}
