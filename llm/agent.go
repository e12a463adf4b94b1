package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// maxMessage bounds a person's message in bytes.
const maxMessage = 256 << 10

// DefaultContextTokens is the size of the history that a model is given, where
// [Deps.ContextTokens] is 0.
const DefaultContextTokens = 100_000

// Deps is what the agent works with.
type Deps struct {
	Threads            Threads
	Calls              Calls
	Agents             Agents
	Config             store.Config
	Tools              Tools
	Models             Models
	Groups             Groups            // optional: without it nobody is in one
	Channels           Channels          // optional: without it no channel has a language
	MayAsk             MayAskFunc        // optional: without it everybody may ask for every model
	RecordUnmetRequest func(text string) // optional: called with what no tool could do
	Log                *slog.Logger      // optional

	// Direct are the tools that an agent's model is offered by name, where the agent asks
	// for that. Optional: without it they are searched for.
	Direct func(ctx context.Context, by store.Caller, scope store.Scope) ([]DirectTool, error)
	// Titles names a conversation when it has its first answer. Optional: without it each
	// is called by its first words.
	Titles *Titles
	// AddEvent notes in the audit trail that an agent called another. Optional.
	AddEvent func(by store.Caller, e store.Event)
	// Window is how many tokens the model behind a name takes, 0 where it is not
	// known; [Router.Window] is it. Optional: without it no window is known.
	Window        func(ctx context.Context, name string) int
	ContextTokens int                    // estimated tokens of a prompt above which it is compacted, where the window is not known
	Now           func() time.Time       // optional
	NewID         func(time.Time) string // optional; [store.NewID]
}

// Agent is the engine behind every surface. Its methods are safe for
// concurrent use; rounds of one thread never overlap within one Agent.
type Agent struct {
	Deps

	mu    sync.Mutex // guards rooms
	locks map[string]*threadLock
}

// threadLock is the right to work on one thread; the token in busy is that right.
type threadLock struct {
	token   chan struct{} // holds 1: whoever can put something in may work
	waiting int           // who works or waits to; guarded by Agent.mu
}

// New builds an agent.
func New(d Deps) *Agent {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.NewID == nil {
		d.NewID = store.NewID
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.ContextTokens == 0 {
		d.ContextTokens = DefaultContextTokens
	}
	return &Agent{Deps: d, locks: make(map[string]*threadLock)}
}

// Say appends a person's message to its thread, which must exist. It is said
// once per in.Key: a second Say of the same key returns the turn of the first.
// What looks like a key or password is masked before it is stored.
// The turn will run with the rights of by. Waiting calls of by in that thread
// are cancelled by the next [Agent.Work].
//
// Errors wrap [store.ErrInvalid] for a message that is empty or over 256 KiB,
// and [store.ErrNotFound] for an unknown thread.
func (a *Agent) Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error) {
	in.Mask()
	text := strings.ToValidUTF8(in.Text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return store.Turn{}, fmt.Errorf("%w message: it is empty", store.ErrInvalid)
	}
	if len(text) > maxMessage {
		return store.Turn{}, fmt.Errorf("%w message: %d bytes, at most %d are read", store.ErrInvalid, len(text), maxMessage)
	}
	if _, err := a.Threads.GetThread(ctx, in.Thread); err != nil {
		return store.Turn{}, fmt.Errorf("opening thread %s: %w", in.Thread, err)
	}
	for {
		turns, err := a.Threads.Turns(ctx, in.Thread)
		if err != nil {
			return store.Turn{}, fmt.Errorf("reading thread %s: %w", in.Thread, err)
		}
		for _, t := range turns {
			if in.Key != "" && t.Key == in.Key {
				return t, nil
			}
		}
		t := store.Turn{
			Thread: in.Thread, N: nextPlace(turns), Role: store.FromUser, By: by,
			Text: store.RedactText(text), Files: in.Files, Earlier: in.Earlier, Key: in.Key, At: a.Now(),
		}
		err = a.Threads.Append(ctx, by, t, true)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, store.ErrExists) || ctx.Err() != nil {
			return store.Turn{}, fmt.Errorf("appending to thread %s: %w", in.Thread, err)
		}
	}
}

// lockThread waits for the right to work on a thread; leave gives it back.
func (a *Agent) lockThread(ctx context.Context, thread string) (leave func(), err error) {
	a.mu.Lock()
	r := a.locks[thread]
	if r == nil {
		r = &threadLock{token: make(chan struct{}, 1)}
		a.locks[thread] = r
	}
	r.waiting++
	a.mu.Unlock()
	out := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.waiting--; r.waiting == 0 {
			delete(a.locks, thread)
		}
	}
	select {
	case r.token <- struct{}{}:
		return func() { <-r.token; out() }, nil
	case <-ctx.Done():
		out()
		return nil, context.Cause(ctx)
	}
}

// groupsOf names the groups that the caller is in. Groups only ever allow: who
// can't be looked up is in none.
func (a *Agent) groupsOf(ctx context.Context, by store.Caller) []string {
	if a.Groups == nil {
		return nil
	}
	names, err := a.Groups.GroupsOf(ctx, by.User)
	if err != nil {
		a.Log.Warn("reading groups; the caller counts as in none", "err", err)
	}
	return names
}

// profile is the agent that a thread is with. One that was deleted, or is not
// for the author of the turn, is replaced by the default one, and that by an
// empty profile.
func (a *Agent) profile(ctx context.Context, th store.Thread, by store.Caller) (store.Agent, error) {
	groups := a.groupsOf(ctx, by)
	if th.Agent != "" {
		p, err := a.Agents.GetAgent(ctx, th.Agent)
		if err == nil && p.MayUse(by, groups) {
			return p, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return p, err
		}
	}
	all, err := a.Agents.ListAgents(ctx)
	if err != nil {
		return store.Agent{}, err
	}
	for _, p := range all {
		if p.Default && p.MayUse(by, groups) {
			return p, nil
		}
	}
	return store.Agent{}, nil
}
