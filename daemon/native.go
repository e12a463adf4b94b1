package daemon

import (
	"context"
	"errors"
	"fmt"

	"nize/daemon/documents"
	"nize/mcp/feature"
	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/credential"
)

// nativeTools are the tools that run within nized.
type nativeTools struct {
	*native.Registry
	renderers *view.Renderers
	documents *documents.Documents
}

// showResults sets the renderers of nize's own tools.
func (n nativeTools) showResults(own []native.Tool) {
	for _, t := range own {
		if t.Renderer == "" {
			continue
		}
		r, err := view.ParseRenderer([]byte(t.Renderer))
		if err != nil {
			panic(fmt.Sprintf("the renderer of %s: %v", t.Name, err)) // a programming error
		}
		n.renderers.Put(policy.NativeServer+":"+t.Name, r)
	}
}

// nativeParts are the dependencies of native tools.
type nativeParts struct {
	threads interface {
		GetThread(ctx context.Context, id string) (store.Thread, error)
	}
	// show passes a server's current tools to the gateway's rules and to clients' lists;
	// index makes them searchable.
	show  func(server *store.Server, tools []*policy.Tool)
	index func(server store.Server, usable []store.Tool)
	tools []native.Tool // nize's own

	credential func(ctx context.Context, user, id string) (credential.Declaration, credential.Value, error)
}

// newRegistry returns the registry of native tools.
func (p nativeParts) newRegistry() *native.Registry {
	return native.New(native.Options{
		Tools: p.tools, Credential: p.credential,
		TeamOf: func(ctx context.Context, by store.Caller, thread string) (string, error) {
			var at store.Address
			if thread != "" {
				th, err := p.threads.GetThread(ctx, thread)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return "", fmt.Errorf("reading the conversation: %w", err)
				}
				at = th.Address
			}
			return store.TeamOf(by, at), nil
		},
		Publish: func(server *store.Server, tools []*policy.Tool) {
			p.show(server, tools)
			var usable []store.Tool
			for _, t := range tools {
				if t.State == store.ToolAccepted && feature.IsTool(t.Name) {
					usable = append(usable, t.Tool)
				}
			}
			p.index(*server, usable)
		},
	})
}
