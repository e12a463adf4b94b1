package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// maxMessage limits a person's message, in bytes.
const maxMessage = 256 << 10

// DefaultContextTokens is the size of the history given to a model if [Deps.ContextTokens]
// is 0.
const DefaultContextTokens = 100_000

// Deps are the agent's dependencies.
type Deps struct {
	Threads            Threads
	Calls              Calls
	Agents             Agents
	Config             store.Config
	Tools              Tools
	Models             Models
	Groups             Groups                  // optional: without it, nobody is in a group
	Channels           Channels                // optional: without it, no channel has a language
	MayAsk             MayAskFunc              // optional: without it, everybody may use every model
	RecordUnmetRequest func(user, text string) // optional: called with requests that no tool could serve
	Log                *slog.Logger            // optional

	// Direct returns the tools that the model is offered by name, if the agent asks for
	// that. Optional: without it, the model has to search for tools.
	Direct func(ctx context.Context, by store.Caller, scope store.Scope) ([]DirectTool, error)
	// Domains returns the domains that contain a tool that the caller may use; nil returns
	// none.
	Domains func(ctx context.Context, by store.Caller, scope store.Scope) ([]string, error)
	// Titles names a conversation after its first answer. Optional: without it, a
	// conversation's title is its first words.
	Titles *Titles
	// AddEvent records in the audit trail that an agent called another. Optional.
	AddEvent func(by store.Caller, e store.Event)
	// Window returns the context window of the model with a name in tokens, 0 if unknown;
	// [Router.Window] implements it. Optional: without it, no window is known.
	Window        func(ctx context.Context, name string) int
	ContextTokens int                    // estimated size of a prompt, in tokens, above which it is compacted if the window is unknown
	Now           func() time.Time       // optional
	NewID         func(time.Time) string // optional; default [store.NewID]
}

// Agent answers messages for all surfaces. Its methods are safe for concurrent use; rounds
// of one thread never overlap within one Agent.
type Agent struct {
	Deps

	locks Locks
}

// New returns an agent.
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
	return &Agent{Deps: d}
}

// Say appends a person's message to its thread, which must exist. It does so once per
// in.Key: a second Say with the same key returns the turn of the first. Anything that looks
// like a key or password is masked before it is stored. The turn runs with the rights of
// by. The next [Agent.Work] cancels waiting calls of by in that thread.
//
// Errors wrap [store.ErrInvalid] for a message that is empty or over 256 KiB, and
// [store.ErrNotFound] for an unknown thread.
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
				t.Files = old.Files // only its text is replaced
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

// replaced returns the message that in replaces. It returns nil if in replaces none, or is
// too late: another message, an answer, or a call that ran or still may run follows it.
// Nothing that happened is removed from what the model reads.
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

// mayHaveRun reports whether a call, or one that replaced it, ran or may still run.
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

// groupsOf returns the caller's groups. Groups only ever allow something, so if they can't
// be read, the caller is in none.
func (a *Agent) groupsOf(ctx context.Context, by store.Caller) []string {
	if a.Groups == nil {
		return nil
	}
	names, err := a.Groups.GroupsOf(ctx, by.User)
	if err != nil {
		a.Log.Warn("reading groups; treating the caller as in none", "err", err)
	}
	return names
}

// profile returns the agent of a thread. If it was deleted, or is not available to the
// turn's author, the default agent is used, or else an empty profile.
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
