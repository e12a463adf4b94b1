// Package mcp is the one door to the tools.
//
// Every call of every tool, from a chat, the command line or an MCP client,
// goes through [Gateway.Call]. It asks who may and what needs a yes, runs the
// hooks, writes the record, and runs the tool. Nothing else can run a tool, so
// nothing else needs to be trusted.
//
// The way of a call:
//
//	find the tool among those the caller may use
//	→ canonical arguments → the tool's schema
//	→ before-hooks → schema again if a hook changed them → digest
//	→ refused | pending (the card is shown, nothing runs) | running
//	→ the runner → after-hooks in reverse → the outcome is stored
//
// Waiting is a state, not an error: a call that needs a yes comes back as
// pending. A press ([Gateway.Decide]) only decides, in one transaction of the
// store. [Gateway.Run], the worker on the store's feed, executes what was
// approved, expires what nobody answered, and says "outcome unknown" of what a
// dead daemon left running. So it makes no difference where a decision came
// from, or whether the daemon was restarted in between.
//
// What is usable (access.go) and what asks (policy.go) are two ordered lists of
// named rules, which searches, calls and [Gateway.Why] walk alike. Who may press
// is a policy (approvers.go): it is looked up at each press, with live groups and
// channels, and what cannot be looked up is a no. How many different people a
// policy wants is counted by the store, in the transaction of each yes. A
// standing answer (grants.go) lifts what is asked only where its giver's yes
// alone would.
//
// [Server] serves the five meta-tools over Streamable HTTP.
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nize/mcp/index"
	"nize/mcp/schema"
	"nize/store"
)

// Runner runs one call and returns what came of it. An error is a
// *store.CallError with a [store.Code]. The upstream pool is the real
// one.
type Runner interface {
	Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error)
}

// Index answers what tools exist; mcp/index is the real one.
type Index interface {
	Search(ctx context.Context, q index.Query) (index.Answer, error)
	Domains(keep func(store.Tool) bool) []index.Domain
	Domain(id, after string, n int, keep func(store.Tool) bool) ([]store.Tool, string)
	Explain(q index.Query, toolID string) []index.Share
	FeedbackIndex
}

// Store is what the gateway needs kept.
type Store interface {
	store.Servers
	store.Tools
	store.Calls
	store.Grants
	store.Members
	store.Users
	store.Agents
	store.Credentials
	store.Feed
	store.RelevanceFeedback
	AddEvent(by store.Caller, e store.Event)
	RecordUnmetRequest(text string)
	GetThread(ctx context.Context, id string) (store.Thread, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
	ListChannels(ctx context.Context) ([]store.Channel, error)
	ListTokens(ctx context.Context, user string) ([]store.Token, error)
	// Healthy says why nothing can be recorded now, such as a full disk.
	Healthy() error
}

// Options are what a Gateway is made of. All fields but Hooks, Channels and Warn
// are required.
type Options struct {
	Store  Store
	Index  Index
	Runner Runner
	Config store.Config
	Hooks  []Hook // in the order in which they run before a call
	Groups Groups // who is in which group; those of the store where no platform has any
	// Channels tells who is in a channel of a chat; nil where there is none.
	Channels Channels
	// Warn says what a person should know of a text among arguments that they
	// are to approve, such as a host that looks like another.
	Warn  func(text string) []string
	Log   *slog.Logger
	Now   func() time.Time
	Owner string // names this daemon instance in running calls
}

// Gateway is the one door.
type Gateway struct {
	opt     Options
	tools   *catalog
	schemas schema.Cache
	learner learner

	ctx      context.Context // for the life of Run only: calls that the worker runs
	work     sync.WaitGroup  // those calls
	draining chan struct{}   // closed by Drain
	until    time.Time       // set by Drain: when calls that still run are cut
	again    chan struct{}   // holds one signal: somebody may not be able to approve any more

	joins sync.Mutex // held from looking for the same waiting call of a token to storing one
	waits sync.Mutex // held from counting what waits to storing one more; after joins

	mu      sync.Mutex
	waiters map[string][]chan struct{}    // by call id: who is told when it settles
	callers map[string]int                // by call id: how many callers stay on the line for it
	leaving map[string]bool               // by call id: its last caller left, and it is being cancelled
	hears   map[string]store.ProgressFunc // by call id: the waiting client's progress
	expiry  map[string]*time.Timer        // by call id: for the reminder, then the expiry
	stopped bool                          // Run is ending: no timer starts work any more
}

// New makes the gateway. Run must be running before a pending call can go on.
func New(opt Options) *Gateway {
	return &Gateway{
		opt:      opt,
		tools:    newCatalog(opt.Store),
		draining: make(chan struct{}),
		again:    make(chan struct{}, 1),
		waiters:  map[string][]chan struct{}{},
		callers:  map[string]int{},
		leaving:  map[string]bool{},
		hears:    map[string]store.ProgressFunc{},
		expiry:   map[string]*time.Timer{},
	}
}

// Refresh reads one server and its tools anew. Whoever changes them calls it
// before answering, so that the change holds from the next call on; Run
// follows the feed for all others.
func (g *Gateway) Refresh(ctx context.Context, server string) error {
	return g.tools.refresh(ctx, server)
}

// Drain lets callers go who wait for a person, since nobody may come before the
// daemon stops, and says until when calls that run may finish. It is called
// once, before Run's context ends.
func (g *Gateway) Drain(until time.Time) {
	g.until = until
	close(g.draining)
}

// Call asks for one call of one tool. The call comes back done, failed,
// refused, or pending if a person has to say yes. An error means that there is
// no such call: the tool is unknown, or its arguments don't fit
// (*store.CallError), or the store failed.
func (g *Gateway) Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	return g.call(ctx, by, req, nil)
}

// call is Call; l is nil where the caller does not stay on the line. One who does
// counts as on it for a call that waits.
func (g *Gateway) call(ctx context.Context, by store.Caller, req store.Request, l *line) (*store.Call, error) {
	if req.ID != "" { // an id that is chosen here cannot have been used before
		if old, err := g.opt.Store.GetCall(ctx, req.ID); err == nil {
			return g.repeated(by, old) // the step was repeated after a crash
		}
	}
	inv, tool, err := g.plan(ctx, by, req)
	if err != nil {
		return nil, err
	}
	c := inv.Call
	if rejected := g.before(ctx, inv); rejected != nil {
		return g.refuse(ctx, inv, rejected)
	}
	if err := g.settleArgs(inv, tool); err != nil {
		return g.refuse(ctx, inv, err)
	}
	c.Digest = c.ComputeDigest()
	verdict, err := g.judge(ctx, inv.view, inv, tool)
	if err != nil {
		return nil, err
	}
	if verdict.ask == "" {
		var progress store.ProgressFunc
		if l != nil {
			progress = l.progress
		}
		return g.runNow(ctx, inv, progress)
	}
	if by.Token != "" && req.ID == "" {
		g.joins.Lock() // of the same call twice at once the second finds the first
		defer g.joins.Unlock()
		if same, err := g.join(ctx, by, wanted{tool.ID(), c.Args}, l); same != nil || err != nil {
			return same, err
		}
	}
	if l == nil {
		return g.wait(ctx, inv, verdict)
	}
	g.pickUp(c.ID) // before anybody can join it, and leave
	c, err = g.wait(ctx, inv, verdict)
	if err != nil || c.State.Final() {
		g.hangUp(inv.Call.ID, false)
	}
	return c, err
}

// plan finds the tool, makes the arguments canonical and fits them to its
// schema. Nothing is stored yet.
func (g *Gateway) plan(ctx context.Context, by store.Caller, req store.Request) (*Invocation, *entry, error) {
	scope := store.Scope{Agent: req.Agent, Servers: req.Allowed, Thread: req.Thread}
	v, err := g.view(ctx, by, scope)
	if err != nil {
		return nil, nil, err
	}
	tool, err := g.findIn(v, req.Tool)
	if err != nil {
		return nil, nil, err
	}
	canonical, err := g.fitting(tool, argsOf(req))
	if err != nil {
		return nil, nil, err
	}
	as, err := g.credentials(ctx, by, tool)
	if err != nil {
		return nil, nil, err
	}
	now := g.opt.Now()
	c := &store.Call{
		ID: req.ID, Server: tool.server.Name, Tool: tool.Name, Args: canonical, Pin: tool.Accepted,
		Thread: req.Thread, Agent: req.Agent, Why: store.Clip(req.Why, 1000), Replaces: req.Replaces,
		By: by.User, ByName: by.Name, Surface: by.Surface, Token: by.Token,
		RunsAs: as.words, Policy: g.policy(tool, as.shared, v.room), Step: req.Step, ReadOnly: tool.readOnly(), Private: tool.private(as) || req.InPrivateTurn, InPrivateTurn: req.InPrivateTurn, Taints: tool.server.UntrustedOutput,
		State: store.Planned, Created: now,
	}
	if c.ID == "" {
		c.ID = store.NewID(now)
	}
	return &Invocation{Point: AroundCall, By: by, Scope: scope, Tool: tool.ID(), Args: canonical, Call: c, Approval: req.Approval,
		view: v, usable: func() *rule { return v.usable(tool) }}, tool, nil
}

// settleArgs takes over what the before-hooks made of the arguments.
func (g *Gateway) settleArgs(inv *Invocation, tool *entry) error {
	if string(inv.Args) == string(inv.Call.Args) {
		return nil
	}
	canonical, err := store.Canonical(inv.Args)
	if err != nil {
		return fmt.Errorf("a hook made the arguments unreadable: %w", err)
	}
	if err := g.fit(tool, canonical); err != nil {
		return err
	}
	inv.Args, inv.Call.Args = canonical, canonical
	return nil
}

// repeated answers a second request with the same id: the same call for the
// same person, an error for anybody else.
func (g *Gateway) repeated(by store.Caller, old store.Call) (*store.Call, error) {
	if old.By != by.User {
		return nil, fmt.Errorf("call %s: %w", old.ID, store.ErrExists)
	}
	return &old, nil
}

// refuse stores a call that policy or a hook said no to.
func (g *Gateway) refuse(ctx context.Context, inv *Invocation, why error) (*store.Call, error) {
	c := inv.Call
	c.Digest = c.ComputeDigest()
	failure := callError(why)
	c.State, c.Reason, c.Finished = store.Refused, failure.Message, g.opt.Now()
	c.Result = &store.Result{IsError: true, Error: failure}
	g.after(ctx, inv, c.Result)
	if err := g.opt.Store.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a refused call: %w", err)
	}
	return c, nil
}

// wait stores a call that needs a yes. One that can't wait is refused; where it
// would stand in the place of another one nothing is stored, so that a slip in an
// edit does not end what waits.
func (g *Gateway) wait(ctx context.Context, inv *Invocation, v verdict) (*store.Call, error) {
	c := inv.Call
	refuse := func(why error) (*store.Call, error) {
		if c.Replaces != "" {
			return nil, why
		}
		return g.refuse(ctx, inv, why)
	}
	if most := store.GetInt(g.opt.Config, "", "approvals.max_arguments"); len(c.Args) > most {
		return refuse(&store.CallError{Code: store.CodeRefused, Message: fmt.Sprintf("the arguments are %d bytes; a call that needs a yes may have %d (approvals.max_arguments)", len(c.Args), most)})
	}
	var err error
	if c.Policy, err = g.reached(ctx, c.Policy, c.By); err != nil {
		return nil, err
	}
	c.Reason, c.Warnings = v.ask, append(v.warnings, g.warnings(c.Args)...)
	if err := g.reachable(ctx, *c); err != nil {
		return refuse(err)
	}
	g.waits.Lock()
	defer g.waits.Unlock()
	if err := g.tooMany(ctx, *c); err != nil {
		return refuse(err)
	}
	c.State = store.Pending
	c.Expires = c.Created.Add(store.GetSpan(g.opt.Config, "", expiryKey(c.Policy)))
	if err := g.opt.Store.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a waiting call: %w", err)
	}
	return c, nil
}

// tooMany refuses a call beyond those that may wait for one requester. g.waits is
// held until it is stored.
func (g *Gateway) tooMany(ctx context.Context, c store.Call) error {
	if c.Replaces != "" {
		return nil
	}
	waiting, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Waiting: true, User: c.By, Limit: 1000})
	if err != nil {
		return fmt.Errorf("counting waiting calls: %w", err)
	}
	if most := store.GetInt(g.opt.Config, "", "approvals.max_pending"); len(waiting) >= most {
		return &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: fmt.Sprintf("%d calls of yours wait for a yes already; decide those first: nizectl approvals list", len(waiting))}
	}
	return nil
}

func expiryKey(p store.Policy) string {
	if p.Approvers().Alone() {
		return "approvals.expiry.requester"
	}
	return "approvals.expiry.others"
}

// runNow runs a call that needs no yes. One that may change something is on
// disk as running before it is sent; the record of a read-only one follows
// within 250 ms.
func (g *Gateway) runNow(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (*store.Call, error) {
	c := inv.Call
	c.State, c.Started, c.Owner = store.Running, g.opt.Now(), g.opt.Owner
	if c.ReadOnly && c.Replaces == "" && !g.taints(c) {
		if err := g.opt.Store.Healthy(); err != nil {
			return nil, err // no call without its record
		}
		o := g.run(ctx, inv, progress)
		c.State, c.Reason, c.Result, c.Finished = o.State, o.Reason, o.Result, g.opt.Now()
		c.Private = c.Private || o.Private
		g.opt.Store.Record(inv.By, *c)
		g.learn(c)
		return c, nil
	}
	if err := g.opt.Store.Begin(ctx, inv.By, *c); err != nil {
		return nil, fmt.Errorf("storing a call before it runs: %w", err)
	}
	return g.finish(ctx, inv, g.run(ctx, inv, progress))
}

// taints says whether what the call brings taints its conversation: then its
// record may not lag, since the next call is judged by it.
func (g *Gateway) taints(c *store.Call) bool {
	return c.Thread != "" && g.tools.untrusted(c.Server)
}

// finish stores how a running call ended, also when its caller has left.
func (g *Gateway) finish(ctx context.Context, inv *Invocation, o store.Outcome) (*store.Call, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	c, err := g.opt.Store.Finish(ctx, inv.By, inv.Call.ID, o)
	if err != nil {
		return nil, fmt.Errorf("storing the outcome of call %s: %w", inv.Call.ID, err)
	}
	g.learn(&c)
	return &c, nil
}

// run runs the tool and the after-hooks and says how it ended. It never
// panics and always returns a final state.
func (g *Gateway) run(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (o store.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			g.opt.Log.Error("a call panicked", "call", inv.Call.ID, "tool", inv.Tool, "panic", fmt.Sprint(p))
			o = outcome(nil, &store.CallError{Code: store.CodeInternal, Message: "internal error while running " + inv.Tool})
		}
	}()
	result, err := g.dispatch(ctx, inv, progress)
	o = outcome(result, err)
	if inv.Call.Private || g.tools.private(inv.Call.Server) { // it may have been marked while the call waited
		o = sealed(o)
	}
	g.after(ctx, inv, o.Result)
	return o
}

// dispatch sends the call to who runs it: nize's own tools here, all others
// in the pool.
func (g *Gateway) dispatch(ctx context.Context, inv *Invocation, progress store.ProgressFunc) (*store.Result, error) {
	if inv.Call.Server == ownServer {
		return g.runOwn(ctx, inv)
	}
	return g.opt.Runner.Run(ctx, inv.By, inv.Call, progress)
}
