package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nize/mcp/catalog"
	"nize/mcp/feedback"
	"nize/mcp/policy"
	"nize/mcp/taskwire"
	"nize/store"
	"nize/store/outage"
)

// Runner runs one call and returns its result. It returns errors as *store.CallError with a
// [store.Code]. The upstream pool is the real implementation.
type Runner interface {
	Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error)
}

// executor runs calls that are allowed to run, and their after-hooks, and records their
// outcomes.
type executor struct {
	calls    CallStore
	runner   Runner
	policy   *policy.Engine
	hooks    hooks
	budgets  callBudgets
	catalog  *catalog.Catalog
	feedback *feedback.Learner
	waiters  *waiters
	view     func(c *store.Call, r *store.Result) json.RawMessage // may be nil
	owner    string
	log      *slog.Logger
	now      func() time.Time
	stored   sync.Map // the ids of running calls that [executor.store] stored

	stopping context.Context // ends when calls that still run are cancelled
	cut      context.CancelFunc
}

// runNow runs a call that needs no approval. A call that may change something is on disk as
// running before it is sent. The record of a read-only call follows within 250 ms, unless
// the disk may be full by then, in which case it is also written first.
func (x *executor) runNow(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (*store.Call, error) {
	c := inv.Call
	c.State, c.Started, c.Owner = store.Running, x.now(), x.owner
	if c.ReadOnly && c.Replaces == "" && !x.taints(c) && !c.Task && !x.calls.Tight() {
		if err := x.calls.Healthy(); err != nil {
			return nil, err // never run a call that can't be recorded
		}
		if inv.began != nil {
			inv.began(c)
		}
		o := x.runReporting(ctx, inv, progress)
		if _, stored := x.stored.LoadAndDelete(c.ID); stored {
			return x.finish(ctx, inv, o)
		}
		c.State, c.Reason, c.Result, c.Finished = o.State, o.Reason, o.Result, x.now()
		c.Private = c.Private || o.Private
		x.calls.Record(inv.By, *c)
		x.feedback.LearnFrom(c)
		return c, nil
	}
	if err := x.calls.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a call before it runs: %w", err)
	}
	if inv.began != nil {
		inv.began(c)
	}
	return x.finish(ctx, inv, x.runReporting(ctx, inv, progress))
}

// runReporting is run for a call whose caller stays. Without a progress function the
// server is not asked for progress, except for a task, whose client polls.
func (x *executor) runReporting(ctx context.Context, inv *Invocation, progress store.ProgressFunc) store.Outcome {
	if progress != nil || inv.Call.Task {
		tell, end := x.waiters.relay(inv.Call.ID, progress, x.now)
		defer end()
		progress = tell
	}
	return x.run(ctx, inv, progress)
}

// store stores a running call that has no record yet, because a part of it must be durable
// now.
func (x *executor) store(ctx context.Context, c *store.Call) error {
	if _, err := x.calls.GetCall(ctx, c.ID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	by := store.Caller{User: c.By, Name: c.ByName, Surface: c.Surface, Token: c.Token}
	if err := x.calls.Begin(ctx, by, *c); err != nil {
		return fmt.Errorf("storing a call that runs: %w", err)
	}
	x.stored.Store(c.ID, true)
	return nil
}

// stale returns the reason why an approved call may no longer run, if any. It checks the
// current rules and the current access hooks, whenever they were added. by is the call's
// requester. It returns an error only if the database is unavailable.
func (x *executor) stale(ctx context.Context, c store.Call) (why store.Text, by store.Caller, err error) {
	if why, err = x.policy.Stale(ctx, c); err != nil || why != (store.Text{}) {
		return why, by, err
	}
	if by, err = x.policy.Requester(ctx, c); outage.Is(err) {
		return why, by, err
	}
	if err != nil {
		return store.Textf("its requester or their token no longer exists"), by, nil
	}
	if denied := x.hooks.checkAccess(ctx, by, c); denied != nil {
		why = denied.Message
	}
	return why, by, nil
}

// taints reports whether the call's result taints its conversation. The record of such a
// call may not lag, because the next call is checked against it.
func (x *executor) taints(c *store.Call) bool {
	return c.Thread != "" && (c.Taints || x.catalog.Untrusted(c.Server))
}

// finish stores the outcome of a running call, even if its caller has left, and retries for
// as long as the database is unavailable. Otherwise the call would be reported as lost.
func (x *executor) finish(ctx context.Context, inv *Invocation, o store.Outcome) (*store.Call, error) {
	var c store.Call
	if !o.State.Final() {
		c, err := x.calls.GetCall(context.WithoutCancel(ctx), inv.Call.ID)
		return &c, err
	}
	err := outage.Await(x.stopping, func() (err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		c, err = x.calls.Finish(ctx, inv.By, inv.Call.ID, o)
		return err
	})
	if err != nil && !(errors.Is(err, store.ErrDiskFull) && c.State.Final()) {
		return nil, fmt.Errorf("storing the outcome of call %s: %w", inv.Call.ID, err)
	}
	if c.Result != nil && c.Result.Late {
		x.log.Warn("the disk is full: the record of a finished call is delayed", "call", c.ID, "tool", c.ToolID(), "state", c.State, "kept", err == nil)
	}
	x.feedback.LearnFrom(&c)
	return &c, nil
}

// run runs the tool and the after-hooks and returns the outcome. It never panics. The
// outcome's state is final, except for a task on its server that the next instance of nized
// resumes.
func (x *executor) run(ctx context.Context, inv *Invocation, progress store.ProgressFunc) store.Outcome {
	o := x.runTool(ctx, inv, progress)
	if !o.State.Final() {
		return o
	}
	return x.runAfter(ctx, inv, o)
}

func (x *executor) runTool(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (o store.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			x.log.Error("a call panicked", "call", inv.Call.ID, "tool", inv.Tool, "panic", fmt.Sprint(p))
			o = outcome(nil, &store.CallError{Code: store.CodeInternal, Message: store.Textf("internal error while running %s", inv.Tool)})
		}
	}()
	result, err := x.dispatch(ctx, inv, progress)
	if errors.Is(err, taskwire.ErrStopping) {
		return store.Outcome{State: store.Running}
	}
	return outcome(result, err)
}

// runAfter runs the after-hooks on the outcome of a call. If a hook withholds the result,
// the call becomes failed, unless its outcome is unknown or it never ran: the record keeps
// that state.
func (x *executor) runAfter(ctx context.Context, inv *Invocation, o store.Outcome) store.Outcome {
	inv.Hooks = inv.Call.Hooks
	raw := o.Result.Raw
	switch withheld := x.hooks.runAfter(ctx, inv, o.Result); {
	case withheld:
		if o.Reason = o.Result.Error.Message; o.State == store.Done {
			o.State = store.Failed
		}
	case !bytes.Equal(raw, o.Result.Raw) && o.Result.Error == nil:
		o = outcome(o.Result, nil)
	}
	o.Hooks, inv.Call.Hooks = inv.Hooks, inv.Hooks
	if x.view != nil && o.Result.Error == nil { // built from the result that the hooks returned
		o.Result.View = x.view(inv.Call, o.Result)
	}
	if inv.Call.Private || x.catalog.Private(inv.Call.Server) { // the server may have been marked private while the call waited
		o = withoutPrivate(o)
	}
	return o
}

// dispatch sends the call to its runner: nize's own tools run here, all others in the pool.
func (x *executor) dispatch(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (*store.Result, error) {
	if inv.Call.Server == policy.BuiltinServer {
		return x.runBuiltin(ctx, inv)
	}
	if x.calls.Term().Err() != nil {
		return nil, fmt.Errorf("the call was not sent: %w", store.ErrNoDatabase)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.stopping, func() { cancel(taskwire.ErrStopping) })()
	result, err := x.runner.Run(ctx, inv.By, inv.Call, progress)
	var failed *store.CallError
	if x.stopping.Err() != nil && errors.As(err, &failed) { // the caller is still connected and gets the reason
		told := *failed
		told.Message = store.Textf("nized is stopping, and the call was cut off: %s", failed.Message)
		return result, &told
	}
	return result, err
}
