package policy

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
)

// Tainted reports whether the conversation contains output of a server that an admin marked
// as untrusted, or text of a person outside the team. If the server was untrusted when the
// output arrived, the conversation stays tainted even if the server changes or is removed;
// a server marked later counts as well.
func (p *Engine) Tainted(ctx context.Context, thread string) (bool, error) {
	if thread == "" {
		return false, nil
	}
	if p.taints != nil {
		return p.taints(ctx, thread)
	}
	th, err := p.store.GetThread(ctx, thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading the conversation: %w", err)
	}
	if th.Tainted {
		return true, nil
	}
	marked, err := p.store.ListCalls(ctx, store.CallQuery{Thread: thread, Tainted: true, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("reading what tainted the conversation: %w", err)
	}
	if len(marked) > 0 || !p.tools.AnyUntrusted() {
		return len(marked) > 0, nil
	}
	calls, err := p.store.ListCalls(ctx, store.CallQuery{Thread: thread, States: []store.State{store.Done, store.Failed}, Limit: 1000})
	if err != nil {
		return false, fmt.Errorf("reading the conversation's calls: %w", err)
	}
	for _, c := range calls {
		if p.tools.Untrusted(c.Server) {
			return true, nil
		}
	}
	return false, nil
}
