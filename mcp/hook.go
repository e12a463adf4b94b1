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

// Point is where a hook stands.
type Point int

const (
	AroundMeta Point = iota // around the use of one of the five meta-tools
	AroundCall              // around the call of an upstream's tool
)

// String is the name of the point on the wire.
func (p Point) String() string { return [...]string{"meta", "call"}[p] }

// Invocation is what a hook inspects and may change.
type Invocation struct {
	Point    Point
	By       store.Caller
	Scope    store.Scope
	Tool     string          // a meta-tool's name, or server:tool
	Args     json.RawMessage // a before-hook may replace them
	Call     *store.Call     // nil around a meta-tool
	Approval store.Approval  // what the request wants
	// Unattended is [store.Request.Unattended].
	Unattended bool
	Started    time.Time
	Hooks      []store.HookRef // those that ran, in order, and what they did
	// MaxBytes and MaxItems are set by after-hooks that want less of the result
	// passed on than is by default; the outermost hook cuts it.
	MaxBytes, MaxItems int

	view *policy.View
	tool *policy.Tool // nil around a meta-tool

	budgeted bool              // its tool has a budget
	began    func(*store.Call) // told once its record is there and it is about to run; may be nil
}

// ToolID is what the pattern of a hook matches: a meta-tool is nize:NAME.
func (inv *Invocation) ToolID() string {
	if inv.Point == AroundMeta {
		return policy.BuiltinServer + ":" + inv.Tool
	}
	return inv.Tool
}

// Server is the server of the tool.
func (inv *Invocation) Server() string {
	server, _, _ := strings.Cut(inv.ToolID(), ":")
	return server
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

// Hook runs before and after. A Before that returns an error rejects the call,
// and the hooks behind it don't run; After runs in reverse order for every hook
// whose Before succeeded, also when the call failed, and may change the result.
// A *store.CallError of either is what the caller is told; any other error, a
// panic and the end of the hook's time are a failure of the hook: the call is
// refused, or its result withheld, so that what a hook takes out is never passed
// on because the hook broke. The implementations are in mcp/hook.
type Hook interface {
	Ref() store.HookRef
	Before(ctx context.Context, inv *Invocation) error
	After(ctx context.Context, inv *Invocation, r *store.Result) error
}

// A LimitedHook has another time limit than [HookTime], or none, which is 0: it
// waits for nothing.
type LimitedHook interface {
	Hook
	Limit() time.Duration
}

// LimitOf is the time limit of a hook.
func LimitOf(h Hook) time.Duration {
	if l, ok := h.(LimitedHook); ok {
		return l.Limit()
	}
	return HookTime
}

// An AccessHook is asked again about a call that waited: of its requester and of
// who says yes to it, when they do, and of its requester before it begins. So it
// holds for what waited when it was added.
type AccessHook interface {
	Hook
	// Access says whether inv.By may use the tool, as Before does.
	Access(ctx context.Context, inv *Invocation) error
}

// A ReviewHook judges or changes arguments. It runs once more when a hook that a
// person set changed them, so that an admin's hook has the first and the last word.
type ReviewHook interface {
	Hook
	// Review is Before for arguments that this hook saw in another form. Running it
	// on arguments that it made changes nothing.
	Review(ctx context.Context, inv *Invocation) error
}

// ConfiguredHooks are those that admins and people set; mcp/hook has the real ones.
type ConfiguredHooks interface {
	// For returns those for an invocation, in the order in which they run before.
	For(inv *Invocation) []Hook
	// At returns a hook as it was at a revision: its After runs as its Before did,
	// however long the call waited in between.
	At(ctx context.Context, ref store.HookRef) (Hook, error)
}

// HookTime bounds one hook; longer is an error of that call, not of the daemon.
const HookTime = 5 * time.Second

// hooks are the hooks of a gateway, in the order in which they run before: the
// built-in ones, then those of admins, then a person's own.
type hooks struct {
	list       []Hook
	configured ConfiguredHooks // may be nil
	log        *slog.Logger
	now        func() time.Time
}

// of lists the hooks for an invocation. The use of execute_tool is the record of
// its call, so that the built-in hooks stand around that alone.
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

// runBefore runs the before-hooks and notes each that ran.
func (s hooks) runBefore(ctx context.Context, inv *Invocation) error {
	inv.Started = s.now()
	list, first, changed := s.of(inv), len(inv.Hooks), false
	for _, h := range list {
		ref, was := h.Ref(), inv.Args
		ref.Meta = inv.Point == AroundMeta
		err := s.before(ctx, inv, h, &ref, h.Before)
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // the caller left meanwhile
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

// before runs what a hook does before a call, and notes in ref what that was. The
// error is what the caller is told.
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

// checkAccess asks the hooks that control access about somebody's part in a call
// that waited; those of execute_tool about who used it.
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

// judge says what an error of a hook is: its word, or its failure.
func (s hooks) judge(ref store.HookRef, inv *Invocation, err error, failed store.Text) (did string, told *store.CallError) {
	var said *store.CallError
	if errors.As(err, &said) {
		return "denied", said
	}
	s.log.Warn("a hook failed", "hook", hookName(ref), "revision", ref.Revision, "tool", inv.ToolID(), "err", store.ErrText(err))
	return "failed", &store.CallError{Code: store.CodeRefused, Message: failed}
}

func hookName(ref store.HookRef) string { return cmp.Or(ref.Name, ref.ID) }

// runAfter runs the after-hooks in reverse, for those whose before succeeded, and
// notes in inv.Hooks what they did. withheld says that one kept the result back:
// r is then what is said in its place, and the hooks further out see that.
func (s hooks) runAfter(ctx context.Context, inv *Invocation, r *store.Result) (withheld bool) {
	ctx = context.WithoutCancel(ctx)
	inv.Hooks = slices.Clone(inv.Hooks) // stored calls share them
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

// executeArgs are the arguments of execute_tool as its hooks see them.
type executeArgs struct {
	ToolID string          `json:"tool_id"`
	Params json.RawMessage `json:"params"`
}

// least is the smaller of two bounds, of which 0 is none.
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

// guard keeps a hook's panic inside the call, and its time within its limit.
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
