package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// maxAskTime is the longest time that an ask may wait.
const maxAskTime = 24 * time.Hour

// Ask submits a step that another program runs to the policy and, if the policy requires
// it, to a person. The call is returned approved, refused or pending; nize never runs it.
// If the same caller already used the key, Ask returns that earlier ask. It returns an
// error if no ask was made: the caller doesn't know the source, the request is invalid
// (*store.CallError), or the store failed.
func (g *Gateway) Ask(ctx context.Context, by store.Caller, req store.AskRequest) (*store.Call, error) {
	c, err := g.ask(ctx, by, req)
	if err != nil && ctx.Err() == nil {
		g.turnAway(by, req.Source+":"+req.Tool, err)
	}
	return c, err
}

func (g *Gateway) ask(ctx context.Context, by store.Caller, req store.AskRequest) (*store.Call, error) {
	if err := checkAsk(req); err != nil {
		return nil, err
	}
	id := req.Source + ":" + req.Tool
	want, err := g.validator.canonical(argsOf(store.Request{Args: req.Args}))
	if err != nil || want[0] != '{' {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object, such as {\"name\": \"value\"}", id)}
	}
	if req.Key != "" {
		defer g.joins.lock(by.User)() // if the same ask arrives twice concurrently, the second finds the first
		if c, err := g.askedBefore(ctx, by, req, want); c != nil || err != nil {
			return c, err
		}
	}
	ask := req.Ask
	ask.Grant = ""
	asked := store.Request{Tool: id, Args: want, Why: req.Why, Step: askStep(by, req), Ask: &ask}
	inv, tool, err := g.plan(ctx, by, request{asked, true})
	if failure := callError(err); err != nil && failure.Code == store.CodeNotFound { // the caller looks for a source, not for a tool
		return nil, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("source %q not found, or not shared with you; an admin adds one by nizectl servers add NAME --external", req.Source)}
	}
	if err != nil {
		return g.refuseAsk(ctx, by, asked, err)
	}
	if !tool.Asked() {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("%s is a server that nize runs itself; asks are about sources: nizectl servers add NAME --external", req.Source)}
	}
	if err := g.asks.allow(tool.Record, g.now()); err != nil {
		return nil, err
	}
	c := inv.Call
	if rejected := g.hooks.runBefore(ctx, inv); rejected != nil {
		if failure := callError(rejected); failure.Code == store.CodeInvalid || failure.Code == store.CodeRateLimited {
			return nil, g.unmade(ctx, inv, failure)
		}
		return g.refuse(ctx, inv, rejected)
	}
	if err := g.applyHookArgs(inv, tool); err != nil {
		return g.refuse(ctx, inv, err)
	}
	c.Digest, c.Hooks = c.CanonicalDigest(), inv.Hooks
	verdict, err := g.Policy.Judge(ctx, inv.view, tool, policy.Proposal{Call: c})
	if err != nil {
		return nil, err
	}
	if verdict.Asks() {
		if req.Expires > 0 {
			c.Expires = c.Created.Add(min(req.Expires, maxAskTime))
		}
		return g.storeWaiting(ctx, inv, verdict)
	}
	c.State, c.Approved, c.Finished, c.Ask.Grant = store.Approved, c.Created, c.Created, verdict.Grant()
	if c.Reason = store.Textf("the rules require no approval"); verdict.Grant() != "" {
		c.Reason = store.Textf("a standing answer allows it")
	}
	if err := g.calls.Begin(ctx, by, *c); err != nil { // durable, because the program runs the step as soon as it gets the answer
		return nil, fmt.Errorf("storing an approved ask: %w", err)
	}
	return c, nil
}

// askLimits counts the asks of sources that have a rate limit.
type askLimits struct {
	mu  sync.Mutex
	all map[string]askLimit // by source
}

type askLimit struct {
	rate store.Rate
	*rate.Limiter
}

// allow counts an ask. It returns a [store.CallError] with [store.CodeRateLimited] if the
// source is over its rate limit.
func (l *askLimits) allow(source *store.Server, now time.Time) error {
	want := source.RateLimit
	if want.Calls <= 0 || want.Per <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.all[source.Name]
	if !ok || at.rate != want {
		at = askLimit{want, rate.NewLimiter(rate.Limit(float64(want.Calls)/time.Duration(want.Per).Seconds()), want.Calls)}
		if l.all == nil {
			l.all = map[string]askLimit{}
		}
		l.all[source.Name] = at
	}
	if !at.AllowN(now, 1) {
		return &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("%s may be asked about %s (its rate limit); try again later", source.Name, want)}
	}
	return nil
}

// checkAsk returns an error if the request's claims can't be displayed.
func checkAsk(req store.AskRequest) error {
	invalid := func(t store.Text) error { return &store.CallError{Code: store.CodeInvalid, Message: t} }
	if req.Source == "" || req.Tool == "" {
		return invalid(store.Textf("source and tool are required"))
	}
	if !feature.IsTool(req.Tool) {
		return notATool(req.Source + ":" + req.Tool)
	}
	for _, one := range []struct {
		name, text string
		most       int
	}{
		{"title", req.Title, store.MaxAskText}, {"cwd", req.Cwd, store.MaxAskText}, {"host", req.Host, store.MaxAskText},
		{"session", req.Session, store.MaxAskText}, {"repository", req.Repository, store.MaxAskText}, {"key", req.Key, store.MaxAskKey},
	} {
		if len(one.text) > one.most {
			return invalid(store.Textf("%s has %d bytes, and may have %d", one.name, len(one.text), one.most))
		}
	}
	if req.Expires < 0 {
		return invalid(store.Textf("expires must not be negative"))
	}
	return nil
}

// askedBefore returns the ask that the caller made with this key, or nil. It returns
// ErrConflict if the key was used for a different ask.
func (g *Gateway) askedBefore(ctx context.Context, by store.Caller, req store.AskRequest, args []byte) (*store.Call, error) {
	old, err := g.calls.ListCalls(ctx, store.CallQuery{User: by.User, AskKey: req.Key, Limit: 20})
	if err != nil {
		return nil, fmt.Errorf("looking for an ask by its key: %w", err)
	}
	for _, c := range old {
		if c.Ask == nil || c.Token != by.Token || c.Server != req.Source || c.Replaces != "" {
			continue
		}
		changed := false // by a hook
		for _, h := range c.Hooks {
			changed = changed || h.Before == "changed"
		}
		if c.Tool != req.Tool || !changed && string(c.Args) != string(args) {
			return nil, store.Mark(store.Errorf("the key %q was used for another ask", req.Key), store.ErrConflict)
		}
		return &c, nil
	}
	return nil, nil
}

// refuseAsk records an ask that a rule, such as a standing denial, refuses before the call
// is created, if its caller may know the source. It returns any other error unchanged.
func (g *Gateway) refuseAsk(ctx context.Context, by store.Caller, req store.Request, why error) (*store.Call, error) {
	server, tool, _ := store.SplitToolID(req.Tool)
	s, ok := g.Catalog.FindServer(server)
	var refused *store.CallError
	if !ok || s.Transport != store.External || !errors.As(why, &refused) || refused.Code != store.CodeRefused {
		return nil, why
	}
	now := g.now()
	c := &store.Call{
		ID: store.NewID(now), Server: server, Tool: tool, Args: req.Args, By: by.User, ByName: by.Name, Surface: by.Surface, Token: by.Token,
		Why: store.Clip(req.Why, 1000), Step: req.Step, Ask: req.Ask, State: store.Planned, Created: now,
	}
	return g.refuse(ctx, &Invocation{Point: AroundCall, By: by, Tool: req.Tool, Args: req.Args, Call: c}, why)
}

// askStep returns the step id that the asks of one session share, or "" without a session.
func askStep(by store.Caller, req store.AskRequest) string {
	if req.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(by.User + "\x00" + by.Token + "\x00" + req.Source + "\x00" + req.Session))
	return "ask-" + hex.EncodeToString(sum[:12])
}

// askAnew returns the ask for a call that replaces the one of a, without its grant.
func askAnew(a *store.Ask) *store.Ask {
	if a == nil {
		return nil
	}
	next := *a
	next.Grant = ""
	return &next
}

// askClaims formats the asker's claims about itself, one per line.
func askClaims(a *store.Ask) string {
	var lines []string
	for _, one := range [][2]string{{"directory", a.Cwd}, {"machine", a.Host}, {"repository", a.Repository}, {"session", a.Session}} {
		if one[1] != "" {
			lines = append(lines, one[0]+": "+one[1])
		}
	}
	return strings.Join(lines, "\n")
}

// FindAsk returns the current state of the caller's ask with this id; if it was edited, it
// returns its replacement. It waits for a decision until wait has passed or ctx ends, and
// returns immediately if nized is stopping.
func (g *Gateway) FindAsk(ctx context.Context, by store.Caller, id string, wait time.Duration) (*store.Call, error) {
	first := id
	told := g.waiters.subscribe(id, nil)
	defer func() { g.waiters.unsubscribe(id, told) }()
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		c, err := g.calls.GetCall(ctx, id)
		if err == nil && (c.Ask == nil || c.By != by.User) {
			err = store.ErrNotFound
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil, store.Errorf("ask %q %w", first, store.ErrNotFound)
		}
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", id, err)
		}
		if c.Successor != "" {
			g.waiters.unsubscribe(id, told)
			id = c.Successor
			told = g.waiters.subscribe(id, nil)
			continue
		}
		if c.State.Final() || wait <= 0 {
			return &c, nil
		}
		select {
		case <-told:
		case <-late.C:
			wait = 0
		case <-g.worker.draining:
			wait = 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// CancelAsk cancels the caller's ask.
func (g *Gateway) CancelAsk(ctx context.Context, by store.Caller, id string) (*store.Call, error) {
	c, err := g.FindAsk(ctx, by, id, 0)
	if err != nil || c.State.Final() {
		return c, err
	}
	settled, err := g.Decide(ctx, by, c.ID, store.Decision{Verb: store.Cancel})
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		return g.FindAsk(ctx, by, id, 0)
	}
	return settled, err
}
