// Package mcp is the gateway through which every tool call passes.
//
// Every call of every tool, from a chat, the command line or an MCP client, goes through
// [Gateway.Call]. It checks rights and approvals, runs the hooks, writes the record, and
// runs the tool. No other code can run a tool, so no other code needs to be trusted.
//
// The steps of a call:
//
//	find the tool among those the caller may use
//	→ canonical arguments → the tool's schema
//	→ before-hooks → schema again if a hook changed them → digest
//	→ refused | pending (the card is shown, nothing runs) | running
//	→ the runner → after-hooks in reverse → the outcome is stored
//
// Waiting is a state, not an error: a call that needs approval is returned as pending.
// [Gateway.Decide] only records a decision, in one transaction of the store. [Gateway.Run],
// the worker on the store's feed, executes approved calls, expires calls without an answer,
// and marks the calls that a dead daemon left running as "outcome unknown". So it doesn't
// matter where a decision was made, or whether the daemon was restarted in between.
//
// The rules of mcp/policy decide who may use a tool, whether a call needs approval and who
// may give it; the gateway enforces them. It consists of the catalog of tools
// (mcp/catalog), their [Discovery], the feedback from their use (mcp/feedback), the callers
// that wait (waiters.go), the worker on the feed (worker.go) and the executor of calls
// (executor.go).
//
// [Server] serves the five meta-tools over Streamable HTTP.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"nize/mcp/catalog"
	"nize/mcp/feature"
	"nize/mcp/feedback"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/project"
)

// CallStore stores calls and the audit events about them.
type CallStore interface {
	store.Calls
	AddEvent(by store.Caller, e store.Event)
	RecordUnmetRequest(user, text string)
	// Healthy returns an error if records can't be written, for example because the disk is
	// full.
	Healthy() error
	// Tight reports whether the disk is full or nearly full, so that no record may be
	// delayed.
	Tight() bool
	// Term returns a context that ends when nothing may be sent any more, because another
	// process may own the database and with it the calls.
	Term() context.Context
}

// Options configures a Gateway. All fields but Hooks, Configured, Budgets, Channels and
// Warn are required.
type Options struct {
	Calls   CallStore
	Tools   catalog.Store
	Policy  policy.Store
	Learned store.RelevanceFeedback
	Feed    store.Feed
	Index   Index
	Runner  Runner
	Config  store.Config
	Hooks   []Hook // the built-in hooks, in the order in which they run before a call
	// Configured holds the hooks of admins and people, which run inside of Hooks; may be
	// nil.
	Configured ConfiguredHooks
	Budgets    BudgetStore // may be nil
	Groups     policy.Groups
	Channels   policy.Channels // may be nil
	// Credentials lists declared credentials; may be nil.
	Credentials policy.Credentials
	// Warn returns warnings about a string among the arguments that a person is about to
	// approve, such as a host name that imitates another.
	Warn func(text string) []store.Text
	// Rejected, if set, is called for each call rejected before it was stored.
	Rejected func(by store.Caller, why store.Code)
	// View, if set, returns a renderer's view of a call's result, or nil if there is none.
	View  func(c *store.Call, r *store.Result) json.RawMessage
	Log   *slog.Logger
	Now   func() time.Time
	Owner string // identifies this daemon instance in running calls
}

// Gateway runs all tool calls.
type Gateway struct {
	Policy    *policy.Engine
	Catalog   *catalog.Catalog
	Discovery *Discovery
	Feedback  *feedback.Learner

	// CallerLeft is called for a waiting call whose caller lost the connection, so that its
	// cards show it. It must be set before Run; may be nil.
	CallerLeft func(call string)

	calls     CallStore
	config    store.Config
	warn      func(text string) []store.Text
	log       *slog.Logger
	now       func() time.Time
	hooks     hooks
	budgets   callBudgets
	validator validator
	executor  *executor
	waiters   *waiters
	questions *questions
	worker    *worker

	rejections *rejectionRecorder
	asks       askLimits

	joins keyLocks     // by caller: held from the search for the same waiting call until one is stored
	waits keyLocks     // by requester: held from counting the waiting calls until one more is stored; locked after joins
	early atomic.Int64 // calls of all users that were counted and may still be stored
}

// New returns a gateway. Pending calls continue only while Run is running.
func New(opt Options) *Gateway {
	tools := catalog.New(opt.Tools)
	tools.SetOwn(&builtinRecord, builtinTools)
	rules := policy.New(policy.Options{Store: opt.Policy, Tools: tools, Config: opt.Config, Groups: opt.Groups, Channels: opt.Channels, Credentials: opt.Credentials, Log: opt.Log, Now: opt.Now})
	background := &taskGroup{}
	learner := &feedback.Learner{Store: opt.Learned, Index: opt.Index, Config: opt.Config, Log: opt.Log, Now: opt.Now, Run: background.Run}
	hooks := hooks{opt.Hooks, opt.Configured, opt.Log, opt.Now}
	budgets := callBudgets{Store: opt.Budgets, Config: opt.Config}
	waiters := newWaiters()
	run := &executor{waiters: waiters, calls: opt.Calls, runner: opt.Runner, policy: rules, hooks: hooks, budgets: budgets, catalog: tools, feedback: learner, view: opt.View, owner: opt.Owner, log: opt.Log, now: opt.Now}
	run.stopping, run.cut = context.WithCancel(context.Background()) // for the lifetime of the gateway
	return &Gateway{
		Policy: rules, Catalog: tools, Feedback: learner,
		Discovery: &Discovery{rules, tools, opt.Index, learner, opt.Config, opt.Calls},
		calls:     opt.Calls, config: opt.Config, warn: opt.Warn, log: opt.Log, now: opt.Now,
		hooks: hooks, budgets: budgets, validator: validator{log: opt.Log}, executor: run, waiters: waiters, questions: &questions{open: map[string]map[string]*openQuestion{}, asked: waiters.asked},
		worker:     newWorker(opt, rules, tools, run, waiters, background),
		rejections: &rejectionRecorder{Events: opt.Calls, Now: opt.Now, Later: background.SetTimer, Counted: opt.Rejected},
	}
}

// Run executes approved calls, expires calls without an answer, notifies waiting callers,
// and keeps the catalog fresh. It returns when ctx has ended and the calls that it runs
// have finished.
func (g *Gateway) Run(ctx context.Context) error { return g.worker.run(ctx) }

// SetOwn replaces the tools of one of nize's own servers, and makes clients refresh their
// lists.
func (g *Gateway) SetOwn(server *store.Server, tools []*policy.Tool) {
	g.Catalog.SetOwn(server, tools)
	g.worker.relistClients()
}

// BuiltinHooks returns references to the built-in hooks, in the order in which they run
// before a call.
func (g *Gateway) BuiltinHooks() []store.HookRef {
	refs := make([]store.HookRef, len(g.hooks.list))
	for i, h := range g.hooks.list {
		refs[i] = h.Ref()
	}
	return refs
}

// Drain releases the callers that wait for a person, because the person may not answer
// before the daemon stops. Running calls may finish until the given time. It is called
// once, before Run's context ends.
func (g *Gateway) Drain(until time.Time) { g.worker.drain(until) }

// Call requests one call of one tool. It returns the call done, failed, refused, or pending
// if a person has to approve it. It returns an error if no call was made: the tool is
// unknown, its arguments are invalid (*store.CallError), or the store failed.
func (g *Gateway) Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	if !feature.IsToolID(req.Tool) {
		return nil, notATool(req.Tool)
	}
	return g.call(ctx, by, request{Request: req}, nil)
}

// call is Call; w is nil if the caller doesn't stay. A caller that stays is attached to a
// call that waits.
func (g *Gateway) call(ctx context.Context, by store.Caller, req request, w *waiter) (*store.Call, error) {
	if req.ID != "" && !req.New { // a generated id cannot have been used before
		if old, err := g.calls.GetCall(ctx, req.ID); err == nil {
			return g.repeated(by, old) // the step was repeated after a crash
		}
	}
	asked := req.Tool
	var c *store.Call
	var err error
	if !req.canonical {
		err = g.placeArgs(ctx, by, &req.Request)
	}
	if err == nil {
		c, err = g.callAround(ctx, by, req, w)
	}
	if err != nil && ctx.Err() == nil {
		g.turnAway(by, asked, err)
	}
	return c, err
}

// turnAway records the event of a request that never became a call.
func (g *Gateway) turnAway(by store.Caller, tool string, why error) {
	g.rejections.Note(by, cmp.Or(tool, policy.BuiltinServer+":"+Execute), callError(why))
}

// callAround is call, within the hooks of execute_tool if the request was made through it.
func (g *Gateway) callAround(ctx context.Context, by store.Caller, req request, w *waiter) (*store.Call, error) {
	if !req.ByMeta {
		return g.callTool(ctx, by, req, w, nil)
	}
	was := req.Args
	outer, err := g.aroundExecute(ctx, by, &req.Request)
	req.canonical = req.canonical && bytes.Equal(was, req.Args)
	var c *store.Call
	if err == nil {
		c, err = g.callTool(ctx, by, req, w, outer.Hooks)
	}
	if err != nil && len(outer.Hooks) > 0 { // no call exists whose end these hooks would see
		r := &store.Result{IsError: true, Error: callError(err)}
		if g.hooks.runAfter(ctx, outer, r) {
			err = r.Error
		}
	}
	return c, err
}

// callTool is call after the hooks of execute_tool in outer have run.
func (g *Gateway) callTool(ctx context.Context, by store.Caller, req request, w *waiter, outer []store.HookRef) (*store.Call, error) {
	inv, tool, err := g.plan(ctx, by, req)
	if err != nil {
		return nil, err
	}
	c := inv.Call
	inv.Hooks = slices.Clone(outer)
	if rejected := g.hooks.runBefore(ctx, inv); rejected != nil {
		if failure := callError(rejected); failure.Code == store.CodeInvalid || failure.Code == store.CodeRateLimited {
			return nil, g.unmade(ctx, inv, failure) // like an invalid argument or a full queue
		}
		return g.refuse(ctx, inv, rejected)
	}
	if err := g.applyHookArgs(inv, tool); err != nil {
		return g.refuse(ctx, inv, err)
	}
	c.Digest, c.Hooks = c.CanonicalDigest(), inv.Hooks
	verdict, err := g.Policy.Judge(ctx, inv.view, tool, policy.Proposal{Approval: inv.Approval, Unattended: inv.Unattended, Call: c})
	if err != nil {
		return nil, err
	}
	if !verdict.Asks() {
		var progress store.ProgressFunc
		if w != nil {
			progress = w.progress
		}
		if inv.budgeted {
			if err := g.budgets.Count(ctx, by, c); err != nil {
				return nil, g.unmade(ctx, inv, callError(err))
			}
		}
		if w != nil {
			inv.began = w.began
		}
		return g.executor.runNow(ctx, inv, progress)
	}
	if mayRepeat(by) && req.ID == "" {
		defer g.joins.lock(by.User)() // if the same call arrives twice concurrently, the second finds the first
		if same, err := g.join(ctx, by, invoked{tool.ID(), c.Args}, w); same != nil || err != nil {
			return same, err
		}
	}
	if w == nil {
		return g.storeWaiting(ctx, inv, verdict)
	}
	g.waiters.attach(c.ID) // before another caller can join it and leave
	c, err = g.storeWaiting(ctx, inv, verdict)
	if err != nil || c.State.Final() {
		g.waiters.detach(inv.Call.ID, false)
	}
	return c, err
}

// plan finds the tool, makes the arguments canonical and validates them against its schema.
// It stores nothing.
func (g *Gateway) plan(ctx context.Context, by store.Caller, req request) (*Invocation, *policy.Tool, error) {
	scope := store.Scope{Agent: req.Agent, Servers: req.Allowed, Thread: req.Thread, Tools: req.Named, View: req.View != "", Ask: req.Ask != nil}
	if scope.Ask {
		scope.Session = req.Step
	}
	v, err := g.Policy.View(ctx, by, scope)
	if err != nil {
		return nil, nil, err
	}
	tool, err := g.Policy.Find(v, req.Tool)
	if err != nil {
		return nil, nil, err
	}
	canonical, err := g.validator.canonicalArgs(tool, req)
	if err != nil {
		return nil, nil, err
	}
	as, err := g.Policy.RunsAs(ctx, by, tool)
	if err != nil {
		return nil, nil, err
	}
	approvers := g.Policy.ApproverPolicy(v, tool, as)
	if _, isProject := project.IDOf(by.User); req.Ask != nil && isProject && approvers == store.ByRequester {
		approvers = store.ByAdmins // the ask was made with a project's key, which must not approve it itself
	}
	now := g.now()
	c := &store.Call{
		ID: req.ID, Server: tool.Record.Name, Tool: tool.Name, Args: canonical, Pin: tool.Accepted,
		Thread: req.Thread, Agent: req.Agent, Why: store.Clip(req.Why, 1000), Replaces: req.Replaces,
		By: by.User, ByName: by.Name, Surface: by.Surface, Token: by.Token,
		RunsAs: as.Words, Policy: approvers, Step: req.Step, ReadOnly: tool.ReadOnly(), Private: tool.Private(as) || req.InPrivateTurn, Asked: req.Asked, Ask: req.Ask, Taints: tool.Record.UntrustedOutput,
		State: store.Planned, Created: now,
	}
	budgeted := false
	if c.Ask == nil { // an ask is not an execution
		var usedUp *store.BudgetState
		usedUp, budgeted, err = g.budgets.Check(ctx, by, c)
		switch {
		case err != nil:
			return nil, nil, err
		case usedUp != nil:
			return nil, nil, g.budgets.Refusal(by, *usedUp)
		}
	}
	if c.ID == "" {
		c.ID = store.NewID(now)
	}
	return &Invocation{Point: AroundCall, By: by, Scope: scope, Tool: tool.ID(), Args: canonical, Call: c, Approval: req.Approval, Unattended: req.Unattended,
		view: v, tool: tool, budgeted: budgeted}, tool, nil
}

// applyHookArgs adopts the arguments as the before-hooks changed them.
func (g *Gateway) applyHookArgs(inv *Invocation, tool *policy.Tool) error {
	if string(inv.Args) == string(inv.Call.Args) {
		return nil
	}
	canonical, err := g.validator.canonical(inv.Args)
	if err != nil {
		return fmt.Errorf("a hook made the arguments unreadable: %w", err)
	}
	if err := g.validator.checkSchema(tool.Tool, canonical); err != nil {
		return err
	}
	inv.Args, inv.Call.Args = canonical, canonical
	return nil
}

// repeated answers a second request with the same id: it returns the same call to the same
// user, and an error to any other.
func (g *Gateway) repeated(by store.Caller, old store.Call) (*store.Call, error) {
	if old.By != by.User {
		return nil, fmt.Errorf("call %s: %w", old.ID, store.ErrExists)
	}
	return &old, nil
}

// unmade returns the error of a call that was never created, after the hooks that had
// already run have seen it.
func (g *Gateway) unmade(ctx context.Context, inv *Invocation, why *store.CallError) error {
	r := &store.Result{IsError: true, Error: why}
	g.hooks.runAfter(ctx, inv, r)
	return r.Error
}

// refuse stores a call that the policy or a hook refused.
func (g *Gateway) refuse(ctx context.Context, inv *Invocation, why error) (*store.Call, error) {
	c := inv.Call
	c.Digest = c.ComputeDigest()
	failure := callError(why)
	c.State, c.Reason, c.Finished = store.Refused, failure.Message, g.now()
	c.Result = &store.Result{IsError: true, Error: failure}
	if g.hooks.runAfter(ctx, inv, c.Result) {
		c.Reason = c.Result.Error.Message
	}
	c.Hooks = inv.Hooks
	if err := g.calls.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a refused call: %w", err)
	}
	return c, nil
}

// storeWaiting stores a call that needs approval. A call that can't wait is refused. If it
// would replace another call, nothing is stored, so that a mistake in an edit doesn't end
// the waiting call.
func (g *Gateway) storeWaiting(ctx context.Context, inv *Invocation, v policy.Verdict) (*store.Call, error) {
	c := inv.Call
	refuse := func(why error) (*store.Call, error) {
		if c.Replaces != "" || c.Ask != nil && callError(why).Code == store.CodeRateLimited { // the asker retries with the same key
			return nil, why
		}
		return g.refuse(ctx, inv, why)
	}
	if most := store.GetInt(g.config, "", "approvals.max_arguments"); len(c.Args) > most {
		return refuse(&store.CallError{Code: store.CodeRefused, Message: store.Textf("the arguments are %d bytes, and those of a call that needs approval may be at most %d (the setting approvals.max_arguments); shorten them", len(c.Args), most)})
	}
	var err error
	if c.Policy, err = g.Policy.Reachable(ctx, c.Policy, c.By); err != nil {
		return nil, err
	}
	c.Reason, c.Warnings = v.Reason, append(v.Warnings, g.warnings(c.Args)...)
	if err := g.Policy.CheckReachable(ctx, *c); err != nil {
		return refuse(err)
	}
	defer g.waits.lock(c.By)()
	counted, err := g.checkWaiting(ctx, *c)
	if err != nil {
		return refuse(err)
	}
	defer counted()
	c.State = store.Pending
	if c.Expires.IsZero() {
		c.Expires = c.Created.Add(store.GetSpan(g.config, "", expiryKey(c.Policy)))
	}
	if err := g.calls.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a waiting call: %w", err)
	}
	return c, nil
}

// checkWaiting returns an error if too many calls already wait, for the requester or in
// total. The caller holds the requester's lock in g.waits until the call is stored or
// abandoned, and then calls stored.
func (g *Gateway) checkWaiting(ctx context.Context, c store.Call) (stored func(), err error) {
	if c.Replaces != "" {
		return func() {}, nil
	}
	// Concurrent requests are counted before their calls are visible in the store.
	early := int(g.early.Add(1)) - 1
	stored = func() { g.early.Add(-1) }
	own, all, err := g.calls.CountWaiting(ctx, c.By)
	if err != nil {
		stored()
		return nil, fmt.Errorf("counting waiting calls: %w", err)
	}
	if most := store.GetInt(g.config, "", "approvals.max_pending"); own >= most {
		stored()
		return nil, &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("%d of your calls are waiting for approval, the most allowed (the setting %s); decide those first: nizectl approvals list", own, "approvals.max_pending")}
	}
	if most := store.GetInt(g.config, "", "approvals.max_waiting"); all+early >= most {
		stored()
		return nil, &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("%d calls of all people are waiting for approval, the most allowed (the setting %s); try again later", all, "approvals.max_waiting")}
	}
	return stored, nil
}

func expiryKey(p store.Policy) string {
	if p.Approvers().Alone() {
		return "approvals.expiry.requester"
	}
	return "approvals.expiry.others"
}

// aroundExecute runs the before-hooks of execute_tool, through which req was made, and
// applies their changes to req.
func (g *Gateway) aroundExecute(ctx context.Context, by store.Caller, req *store.Request) (*Invocation, error) {
	inv := &Invocation{Point: AroundMeta, By: by, Scope: store.Scope{Agent: req.Agent, Servers: req.Allowed, Thread: req.Thread}, Tool: Execute}
	if len(g.hooks.of(inv)) == 0 {
		return inv, nil
	}
	inv.Args = mustJSON(executeArgs{req.Tool, argsOf(*req)})
	was := inv.Args
	if err := g.hooks.runBefore(ctx, inv); err != nil || bytes.Equal(was, inv.Args) {
		return inv, err
	}
	args, err := parseExecute(inv.Args)
	if err == nil {
		req.Tool, req.Args, req.Beside = args.Tool, args.Params, args.Beside
		err = g.placeArgs(ctx, by, req)
	}
	return inv, err
}
