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

// maxAskTime bounds how long an ask may wait.
const maxAskTime = 24 * time.Hour

// Ask puts a step that somebody else runs before the rules and, if they say so, before
// a person. The call comes back approved, refused or pending; it never runs here. With
// a key that the same caller used before, it is the ask of that time. An error means
// that there is no such ask: the source is unknown to the caller, or the request isn't
// one (*store.CallError), or the store failed.
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
	want, err := store.Canonical(argsOf(store.Request{Args: req.Args}))
	if err != nil || want[0] != '{' {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments of %s must be a JSON object, such as {\"name\": \"value\"}", id)}
	}
	if req.Key != "" {
		defer g.joins.lock(by.User)() // of the same ask twice at once the second finds the first
		if c, err := g.askedBefore(ctx, by, req, want); c != nil || err != nil {
			return c, err
		}
	}
	ask := req.Ask
	ask.Grant = ""
	asked := store.Request{Tool: id, Args: want, Why: req.Why, Step: askStep(by, req), Ask: &ask}
	inv, tool, err := g.plan(ctx, by, asked)
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
	c.Digest, c.Hooks = c.ComputeDigest(), inv.Hooks
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
	if c.Reason = store.Textf("the rules do not ask"); verdict.Grant() != "" {
		c.Reason = store.Textf("a standing answer allows it")
	}
	if err := g.calls.Begin(ctx, by, *c); err != nil { // durable: it runs as soon as this is answered
		return nil, fmt.Errorf("storing an approved ask: %w", err)
	}
	return c, nil
}

// askLimits count the asks of sources that have a rate limit.
type askLimits struct {
	mu  sync.Mutex
	all map[string]askLimit // by source
}

type askLimit struct {
	rate store.Rate
	*rate.Limiter
}

// allow counts an ask, or returns a [store.CallError] with [store.CodeRateLimited].
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

// checkAsk refuses a request whose claims can't be shown.
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

// askedBefore finds the ask that the caller made with this key.
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

// refuseAsk records an ask that a rule refuses before it is made, such as a standing
// no, if its caller may know the source. Any other error is returned as it is.
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

// askStep is what the asks of one session have in common, "" without one.
func askStep(by store.Caller, req store.AskRequest) string {
	if req.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(by.User + "\x00" + by.Token + "\x00" + req.Source + "\x00" + req.Session))
	return "ask-" + hex.EncodeToString(sum[:12])
}

// askAnew is what an ask brings to the one that replaces it.
func askAnew(a *store.Ask) *store.Ask {
	if a == nil {
		return nil
	}
	next := *a
	next.Grant = ""
	return &next
}

// askClaims are what the asker says of itself, a line each.
func askClaims(a *store.Ask) string {
	var lines []string
	for _, one := range [][2]string{{"directory", a.Cwd}, {"machine", a.Host}, {"repository", a.Repository}, {"session", a.Session}} {
		if one[1] != "" {
			lines = append(lines, one[0]+": "+one[1])
		}
	}
	return strings.Join(lines, "\n")
}

// FindAsk returns the caller's ask of that id as it is now: of one that was edited the
// ask that took its place. It waits for a decision until ctx ends, and returns at once
// if nized is stopping.
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

// CancelAsk withdraws the caller's ask.
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
