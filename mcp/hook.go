package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
)

// Point is where a hook stands.
type Point int

const (
	AroundMeta Point = iota // around the use of one of the five meta-tools
	AroundCall              // around the call of an upstream's tool
)

// Invocation is what a hook inspects and may change.
type Invocation struct {
	Point    Point
	By       store.Caller
	Scope    store.Scope
	Tool     string          // a meta-tool's name, or server:tool
	Args     json.RawMessage // a before-hook may replace them
	Call     *store.Call     // nil around a meta-tool
	Approval store.Approval  // what the request wants
	Started  time.Time

	view   *view
	usable func() *rule // the one that denies, or nil; nil itself around a meta-tool
}

// Allowed says whether the caller may use the tool that is called, by the
// gateway's own rules. The meta-tools ask for each tool they name.
func (inv *Invocation) Allowed() error {
	if inv.usable == nil {
		return nil
	}
	if r := inv.usable(); r != nil {
		return &store.CallError{Code: store.CodeRefused, Message: inv.Tool + ": " + r.no}
	}
	return nil
}

// Hook runs before and after. The first Before that returns an error
// rejects the call; After runs in reverse order for every hook whose Before
// ran, also when the call failed, and may change the result. The built-in ones
// are in mcp/hook.
type Hook interface {
	Ref() store.HookRef
	Before(ctx context.Context, inv *Invocation) error
	After(ctx context.Context, inv *Invocation, r *store.Result) error
}

// hookTime bounds one hook; longer is an error of that call, not of the daemon.
const hookTime = 5 * time.Second

// before runs the before-hooks and notes each that ran.
func (g *Gateway) before(ctx context.Context, inv *Invocation) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	inv.Started = g.opt.Now()
	for _, h := range g.opt.Hooks {
		if inv.Call != nil {
			inv.Call.Hooks = append(inv.Call.Hooks, h.Ref())
		}
		if err := guarded(h, func(h Hook) error { return h.Before(ctx, inv) }); err != nil {
			return err
		}
	}
	return nil
}

// after runs the after-hooks in reverse, for those whose before ran.
func (g *Gateway) after(ctx context.Context, inv *Invocation, r *store.Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	for i := len(g.opt.Hooks) - 1; i >= 0; i-- {
		h := g.opt.Hooks[i]
		if inv.Call != nil && !ran(inv.Call.Hooks, h.Ref()) {
			continue
		}
		if err := guarded(h, func(h Hook) error { return h.After(ctx, inv, r) }); err != nil {
			g.opt.Log.Error("after-hook", "hook", h.Ref().ID, "tool", inv.Tool, "err", err)
		}
	}
}

func ran(refs []store.HookRef, ref store.HookRef) bool {
	for _, r := range refs {
		if r.ID == ref.ID {
			return true
		}
	}
	return false
}

// guarded keeps a hook's panic inside the call.
func guarded(h Hook, f func(Hook) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hook %s panicked: %v", h.Ref().ID, p)
		}
	}()
	return f(h)
}
