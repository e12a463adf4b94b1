package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nize/mcp/policy"
	"nize/store"
)

// Point is the place at which a hook runs.
type Point int

const (
	AroundMeta Point = iota // around the use of one of the five meta-tools
	AroundCall              // around the call of an upstream's tool
)

// String returns the point's name on the wire.
func (p Point) String() string { return [...]string{"meta", "call"}[p] }

// Invocation is the use of a tool that a hook inspects and may change.
type Invocation struct {
	Point    Point
	By       store.Caller
	Scope    store.Scope
	Tool     string          // a meta-tool's name, or server:tool
	Args     json.RawMessage // a before-hook may replace them
	Call     *store.Call     // nil around a meta-tool
	Approval store.Approval  // the approval that the request asks for
	// Unattended is [store.Request.Unattended].
	Unattended bool
	Started    time.Time
	Hooks      []store.HookRef // the hooks that ran, in order, and their effects
	// MaxBytes and MaxItems are set by after-hooks that want to pass on less of the result
	// than the default; the outermost hook truncates it.
	MaxBytes, MaxItems int

	view *policy.View
	tool *policy.Tool // nil around a meta-tool

	budgeted bool              // the tool has a budget
	began    func(*store.Call) // called when the call is recorded and about to run; may be nil
}

// ToolID returns the id that the pattern of a hook matches: nize:NAME for a meta-tool.
func (inv *Invocation) ToolID() string {
	if inv.Point == AroundMeta {
		return policy.BuiltinServer + ":" + inv.Tool
	}
	return inv.Tool
}

// Server returns the server of the tool.
func (inv *Invocation) Server() string {
	server, _, _ := strings.Cut(inv.ToolID(), ":")
	return server
}

// Allowed returns an error if the gateway's own rules don't allow the caller to use the
// tool. The meta-tools check each tool that they name.
func (inv *Invocation) Allowed() error {
	if inv.tool == nil {
		return nil
	}
	if why := inv.view.Denial(inv.tool); why != (store.Text{}) {
		return &store.CallError{Code: store.CodeRefused, Message: store.Textf("%s can't be used: %s", inv.Tool, why)}
	}
	return nil
}

// Hook runs before and after a use of a tool. If Before returns an error, the call is
// rejected and the hooks behind it don't run. After runs in reverse order for every hook
// whose Before succeeded, even if the call failed, and may change the result. A
// *store.CallError of either is passed to the caller. Any other error, a panic or a timeout
// is a failure of the hook: the call is refused or its result withheld, so that data which
// a hook removes is never passed on because the hook broke. The implementations are in
// daemon/hooks.
type Hook interface {
	Ref() store.HookRef
	Before(ctx context.Context, inv *Invocation) error
	After(ctx context.Context, inv *Invocation, r *store.Result) error
}

// A LimitedHook has a timeout other than [HookTime]. 0 means none, for hooks that never
// block.
type LimitedHook interface {
	Hook
	Limit() time.Duration
}

// LimitOf returns the timeout of a hook.
func LimitOf(h Hook) time.Duration {
	if l, ok := h.(LimitedHook); ok {
		return l.Limit()
	}
	return HookTime
}

// An AccessHook is checked again for a call that waited: for its requester and its
// approvers when they approve it, and for its requester before it runs. So it also applies
// to calls that were already waiting when it was added.
type AccessHook interface {
	Hook
	// Access returns an error if inv.By may not use the tool, like Before.
	Access(ctx context.Context, inv *Invocation) error
}

// A ReviewHook checks or changes arguments. It runs once more if a person's own hook
// changed them, so that an admin's hook runs both first and last.
type ReviewHook interface {
	Hook
	// Review is Before for arguments that this hook has already seen in another form. It
	// must be idempotent: it changes nothing in arguments that it has itself produced.
	Review(ctx context.Context, inv *Invocation) error
}

// ConfiguredHooks provides the hooks that admins and people configure; daemon/hooks has the
// real implementation.
type ConfiguredHooks interface {
	// For returns the hooks for an invocation, in the order in which they run before it.
	For(inv *Invocation) []Hook
	// At returns a hook at a revision, so that its After runs in the same version as its
	// Before, however long the call waited in between.
	At(ctx context.Context, ref store.HookRef) (Hook, error)
}

// HookTime is the timeout of one hook. Exceeding it fails that call only.
const HookTime = 5 * time.Second

// hooks holds the hooks of a gateway in the order in which they run before a call: the
// built-in ones, then those of admins, then a person's own.
type hooks struct {
	list       []Hook
	configured ConfiguredHooks // may be nil
	log        *slog.Logger
	now        func() time.Time
}

// of returns the hooks for an invocation. A use of execute_tool has no record other than
// its call's, so the built-in hooks run only around that call.
func (s hooks) of(inv *Invocation) []Hook {
	var list []Hook
	if inv.Point != AroundMeta || inv.Tool != Execute {
		list = s.list
	}
	if s.configured == nil {
		return list
	}
	return append(list[:len(list):len(list)], s.configured.For(inv)...)
}

// runBefore runs the before-hooks and records each one that ran.
func (s hooks) runBefore(ctx context.Context, inv *Invocation) error {
	inv.Started = s.now()
	list, first, changed := s.of(inv), len(inv.Hooks), false
	for _, h := range list {
		ref, was := h.Ref(), inv.Args
		ref.Meta = inv.Point == AroundMeta
		err := s.before(ctx, inv, h, &ref, h.Before)
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // the caller left in the meantime
		}
		inv.Hooks = append(inv.Hooks, ref)
		if err != nil {
			return err
		}
		changed = changed || ref.Personal && !bytes.Equal(was, inv.Args)
	}
	if !changed {
		return nil
	}
	for i, h := range list {
		ref := &inv.Hooks[first+i]
		if r, ok := h.(ReviewHook); ok && !ref.Personal {
			if err := s.before(ctx, inv, h, ref, r.Review); err != nil {
				return err
			}
		}
	}
	return nil
}

// before runs one hook before a call, and records its effect in ref. It returns the error
// for the caller.
func (s hooks) before(ctx context.Context, inv *Invocation, h Hook, ref *store.HookRef, run func(context.Context, *Invocation) error) error {
	was := inv.Args
	err := s.guard(ctx, h, func(ctx context.Context) error { return run(ctx, inv) })
	if err == nil {
		if !bytes.Equal(was, inv.Args) {
			ref.Before = "changed"
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	did, told := s.judge(*ref, inv, err, store.Textf("hook %s failed", hookName(*ref)))
	ref.Before = did
	return told
}

// checkAccess runs the access hooks for a user who takes part in a call that waited. For
// the user of execute_tool it also runs the access hooks of that tool.
func (s hooks) checkAccess(ctx context.Context, by store.Caller, c store.Call) *store.CallError {
	if c.ByMeta && by.User == c.By {
		scope := store.Scope{Agent: c.Agent, Thread: c.Thread}
		if denied := s.askAccess(ctx, &Invocation{Point: AroundMeta, By: by, Scope: scope, Tool: Execute, Args: mustJSON(executeArgs{c.ToolID(), c.Args}), Started: s.now()}); denied != nil {
			return denied
		}
	}
	return s.askAccess(ctx, &Invocation{Point: AroundCall, By: by, Tool: c.ToolID(), Args: c.Args, Call: &c, Started: s.now()})
}

func (s hooks) askAccess(ctx context.Context, inv *Invocation) *store.CallError {
	for _, h := range s.of(inv) {
		a, ok := h.(AccessHook)
		if !ok {
			continue
		}
		if err := s.guard(ctx, h, func(ctx context.Context) error { return a.Access(ctx, inv) }); err != nil {
			_, told := s.judge(h.Ref(), inv, err, store.Textf("hook %s failed", hookName(h.Ref())))
			return told
		}
	}
	return nil
}

// judge classifies an error of a hook as a denial or as a failure of the hook, and returns
// the error for the caller.
func (s hooks) judge(ref store.HookRef, inv *Invocation, err error, failed store.Text) (did string, told *store.CallError) {
	var said *store.CallError
	if errors.As(err, &said) {
		return "denied", said
	}
	s.log.Warn("a hook failed", "hook", hookName(ref), "revision", ref.Revision, "tool", inv.ToolID(), "err", store.ErrText(err))
	return "failed", &store.CallError{Code: store.CodeRefused, Message: failed}
}

func hookName(ref store.HookRef) string { return cmp.Or(ref.Name, ref.ID) }

// runAfter runs the after-hooks in reverse, for the hooks whose before succeeded, and
// records their effects in inv.Hooks. It returns true if a hook withheld the result: r then
// holds the error that replaces it, which is what the outer hooks see.
func (s hooks) runAfter(ctx context.Context, inv *Invocation, r *store.Result) (withheld bool) {
	ctx = context.WithoutCancel(ctx)
	inv.Hooks = slices.Clone(inv.Hooks) // shared with stored calls
	outer := *inv
	outer.Point, outer.Tool = AroundMeta, Execute
	for i := len(inv.Hooks) - 1; i >= 0; i-- {
		ref, at := &inv.Hooks[i], inv
		if ref.Before != "" && ref.Before != "changed" {
			continue
		}
		if ref.Meta && inv.Point == AroundCall {
			if at = &outer; outer.Call != nil {
				outer.Args = mustJSON(executeArgs{inv.Tool, inv.Args})
				outer.Call = nil
			}
		}
		raw, shown := r.Raw, r.Shown
		h, err := s.find(ctx, *ref)
		if err == nil {
			err = s.guard(ctx, h, func(ctx context.Context) error { return h.After(ctx, at, r) })
		}
		switch {
		case err != nil:
			why := store.Textf("hook %s failed", hookName(*ref))
			if r.Raw != nil {
				why = store.Textf("hook %s failed: the tool ran, and its result is withheld", hookName(*ref))
			}
			var told *store.CallError
			ref.After, told = s.judge(*ref, at, err, why)
			*r, withheld = store.Result{IsError: true, Error: told}, true
		case !bytes.Equal(raw, r.Raw) || !bytes.Equal(shown, r.Shown):
			ref.After = "changed"
		}
		inv.MaxBytes, inv.MaxItems = least(inv.MaxBytes, at.MaxBytes), least(inv.MaxItems, at.MaxItems)
	}
	return withheld
}

// executeArgs holds the arguments of execute_tool as its hooks see them.
type executeArgs struct {
	ToolID string          `json:"tool_id"`
	Params json.RawMessage `json:"params"`
}

// least returns the smaller of two limits; 0 means unlimited.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// find returns the hook that ran, at the revision that ran.
func (s hooks) find(ctx context.Context, ref store.HookRef) (Hook, error) {
	for _, h := range s.list {
		if h.Ref().ID == ref.ID {
			return h, nil
		}
	}
	if s.configured == nil {
		return nil, fmt.Errorf("hook %s: %w", ref.ID, store.ErrNotFound)
	}
	return s.configured.At(ctx, ref)
}

// guard runs a hook with its timeout and turns its panic into an error.
func (s hooks) guard(ctx context.Context, h Hook, run func(context.Context) error) (err error) {
	if limit := LimitOf(h); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	if err := run(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
