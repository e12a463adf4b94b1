package views

import (
	"context"
	"slices"
	"strings"

	"nize/mcp/catalog"
	"nize/mcp/policy"
	"nize/store"
)

// Rights are those of a person at the place of a call, by the rules of the gateway.
type Rights struct {
	Policy *policy.Engine
	Tools  *catalog.Catalog
}

// Usable implements [Options.Rights].
func (r Rights) Usable(ctx context.Context, by store.Caller, c store.Call) error {
	v, err := r.Policy.View(ctx, by, store.Scope{Agent: c.Agent, Thread: c.Thread, View: c.View != ""})
	if err == nil {
		_, err = r.Policy.Find(v, c.ToolID())
	}
	return err
}

// Listed implements [Options.Rights].
func (r Rights) Listed(ctx context.Context, by store.Caller, c store.Call) (list []*policy.Tool, err error) {
	v, err := r.Policy.View(ctx, by, store.Scope{Agent: c.Agent, Thread: c.Thread, View: true})
	if err != nil {
		return nil, err
	}
	r.Tools.Each(func(t *policy.Tool) bool {
		if t.Server == c.Server && v.Usable(t) {
			list = append(list, t)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *policy.Tool) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
