package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	Groups             Groups                  // optional: without it nobody is in one
	Channels           Channels                // optional: without it no channel has a language
	MayAsk             MayAskFunc              // optional: without it everybody may ask for every model
	RecordUnmetRequest func(user, text string) // optional: called with what no tool could do
	Log                *slog.Logger            // optional

	// Direct are the tools that an agent's model is offered by name, where the agent asks
	// for that. Optional: without it they are searched for.
	Direct func(ctx context.Context, by store.Caller, scope store.Scope) ([]DirectTool, error)
	// Domains names those that hold a tool which the caller may use; nil names none.
	Domains func(ctx context.Context, by store.Caller, scope store.Scope) ([]string, error)
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

	mu    sync.Mutex // guards locks
	locks map[string]*threadLock
}

// threadLock serializes the work on one thread.
type threadLock struct {
	token   chan struct{} // capacity 1: a successful send takes the lock
	waiting int           // workers that hold the lock or wait for it; guarded by Agent.mu
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
		old, err := a.replaced(ctx, turns, in)
		if err != nil {
			return store.Turn{}, err
		}
		if old != nil {
			t.Replaces = t.N - old.N + old.Replaces
			if len(t.Files) == 0 {
				t.Files = old.Files // its words are other ones, and no more
			}
			if old.Earlier != nil && len(old.Earlier.Views) > 0 {
				var e store.Earlier
				if t.Earlier != nil {
					e = *t.Earlier
				}
				e.Views, t.Earlier = old.Earlier.Views, &e
			}
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

// replaced is the message in whose place one comes: nil where it comes in the place of
// none, or too late: another message, an answer, or a call that ran or still may stands
// behind that. Nothing that happened is taken out of what the model reads.
func (a *Agent) replaced(ctx context.Context, turns []store.Turn, in store.Inbound) (*store.Turn, error) {
	if in.Instead == "" {
		return nil, nil
	}
	for _, t := range slices.Backward(turns) {
		switch {
		case t.Role == store.FromUser && t.Key == in.Instead && t.By.User == in.By.User:
			return &t, nil
		case t.Role == store.FromUser, t.Role == store.FromModel && !isStep(t) && !t.Final:
			return nil, nil
		}
		for _, asked := range t.Calls {
			if ran, err := a.mayHaveRun(ctx, asked.ID); ran || err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// mayHaveRun says whether a call, or one that was made in its place, began or still may.
func (a *Agent) mayHaveRun(ctx context.Context, id string) (bool, error) {
	for id != "" {
		c, err := a.Calls.GetCall(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil // it was never made
		}
		if err != nil {
			return false, fmt.Errorf("reading what a message led to: %w", err)
		}
		if !c.State.Final() || !c.Started.IsZero() {
			return true, nil
		}
		id = c.Successor
	}
	return false, nil
}

// lockThread locks a thread; leave unlocks it.
func (a *Agent) lockThread(ctx context.Context, thread string) (leave func(), err error) {
	a.mu.Lock()
	lock := a.locks[thread]
	if lock == nil {
		lock = &threadLock{token: make(chan struct{}, 1)}
		a.locks[thread] = lock
	}
	lock.waiting++
	a.mu.Unlock()
	out := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if lock.waiting--; lock.waiting == 0 {
			delete(a.locks, thread)
		}
	}
	select {
	case lock.token <- struct{}{}:
		return func() { <-lock.token; out() }, nil
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
