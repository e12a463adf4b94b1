package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"nize/mcp/policy"
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

	view *policy.View
	tool *policy.Tool // nil around a meta-tool
}

// Allowed says whether the caller may use the tool that is called, by the
// gateway's own rules. The meta-tools ask for each tool they name.
func (inv *Invocation) Allowed() error {
	if inv.tool == nil {
		return nil
	}
	if why := inv.view.Denial(inv.tool); why != (store.Text{}) {
		return &store.CallError{Code: store.CodeRefused, Message: store.Textf("%s can't be used: %s", inv.Tool, why)}
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

// hooks are the hooks of a gateway, in the order in which they run before.
type hooks struct {
	list []Hook
	log  *slog.Logger
	now  func() time.Time
}

// runBefore runs the before-hooks and notes each that ran.
func (s hooks) runBefore(ctx context.Context, inv *Invocation) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	inv.Started = s.now()
	for _, h := range s.list {
		if inv.Call != nil {
			inv.Call.Hooks = append(inv.Call.Hooks, h.Ref())
		}
		if err := recoverHook(h, func(h Hook) error { return h.Before(ctx, inv) }); err != nil {
			return err
		}
	}
	return nil
}

// runAfter runs the after-hooks in reverse, for those whose before ran.
func (s hooks) runAfter(ctx context.Context, inv *Invocation, r *store.Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	for i := len(s.list) - 1; i >= 0; i-- {
		h := s.list[i]
		if inv.Call != nil && !hasRun(inv.Call.Hooks, h.Ref()) {
			continue
		}
		if err := recoverHook(h, func(h Hook) error { return h.After(ctx, inv, r) }); err != nil {
			s.log.Error("after-hook", "hook", h.Ref().ID, "tool", inv.Tool, "err", err)
		}
	}
}

func hasRun(refs []store.HookRef, ref store.HookRef) bool {
	for _, r := range refs {
		if r.ID == ref.ID {
			return true
		}
	}
	return false
}

// recoverHook keeps a hook's panic inside the call.
func recoverHook(h Hook, f func(Hook) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hook %s panicked: %v", h.Ref().ID, p)
		}
	}()
	return f(h)
}
