package daemon

import (
	"context"
	"errors"
	"fmt"

	"nize/mcp/feature"
	"nize/mcp/index"
	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/store"
)

// newNative makes the registry of native tools. What it publishes reaches the
// gateway's rules, the index, and the lists of clients.
func newNative(d *Daemon, ix *index.Index, forgetNames func()) *native.Registry {
	return native.New(native.Options{
		TeamOf: func(ctx context.Context, by store.Caller, thread string) (string, error) {
			var at store.Address
			if thread != "" {
				th, err := d.db.GetThread(ctx, thread)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return "", fmt.Errorf("reading the conversation: %w", err)
				}
				at = th.Address
			}
			return store.TeamOf(by, at), nil
		},
		Publish: func(server *store.Server, tools []*policy.Tool) {
			d.gateway.SetOwn(server, tools)
			forgetNames()
			var usable []store.Tool
			for _, t := range tools {
				if t.State == store.ToolAccepted && feature.IsTool(t.Name) {
					usable = append(usable, t.Tool)
				}
			}
			if err := ix.Replace(d.closing, *server, usable); err != nil && d.closing.Err() == nil {
				d.log.Error("indexing native tools", "err", err)
			}
		},
	})
}
