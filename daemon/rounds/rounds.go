// Package rounds runs model and tool loops for programs that call over HTTP, and never runs
// a call twice.
//
// A round keeps the model's conversation in the store like any other, with the project as
// its user, and its own state beside it. It waits in the store: for the approval of a call
// (requires_approval), or for the output of a function that the caller runs itself
// (requires_action). What the caller sends then is checked against what was proposed and
// takes effect once, however often it is sent and across restarts: the gateway accepts a
// call's id and a decision only once, and a result that is in the conversation is not
// written again.
//
//	the last step has calls
//	    ├─ a callable        ──► the gateway: runs at once, or needs approval
//	    ├─ an agent          ──► the assistant, in turns of its own (agent.go)
//	    ├─ a function        ──► waits for its output
//	    └─ unknown, no JSON  ──► an error as its result, for the model
//	every call has a result  ──► the model again, until max_steps
//	one waits                ──► the state is stored and returned
//
// If a conversation exceeds its model's window, it is compacted as in a chat: old results
// first, then a summary, which is a turn of the conversation and is made once. The
// summarized turns stay stored.
//
// Only one request at a time works on a conversation; another one waits, and then sees the
// result.
//
// A streamed round runs in the background, and its client follows the log of its events
// (stream.go). An event is stored with the state before it is sent, and its id is its
// position in the log. Text is sent as it arrives, and its id includes the number of bytes
// sent. A client that reconnects, even after a restart, therefore continues at exactly the
// same position. If no client is connected for http.resume_grace, the round stops where it
// is. A round that stopped because its caller disconnected or nized stopped can be
// continued by its id; a new message in its conversation ends it.
package rounds

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
	"nize/store/project"
)

// Gateway runs tools; mcp.Gateway implements it. There is no other way to a tool.
type Gateway interface {
	Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error)
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
	Wait(ctx context.Context, id string) (*store.Call, error)
}

// FindTool returns the tool of that id if the caller may use it, else ErrNotFound.
type FindTool func(ctx context.Context, by store.Caller, id string) (store.Tool, error)

// Servers lists the tools of an MCP server that a request brings. It returns a
// [*project.NoCredentialError] if a credential is missing; all other errors may be shown to
// the caller.
type Servers interface {
	Open(ctx context.Context, of project.Project, s project.Server) ([]store.Tool, error)
}

// Options are the engine's dependencies.
type Options struct {
	Threads interface {
		Turns(ctx context.Context, thread string) ([]store.Turn, error)
	}
	Calls    llm.Calls
	Rounds   project.Rounds
	Models   llm.Models
	Gateway  Gateway
	FindTool FindTool
	// FindAgent is FindTool for an agent.
	FindAgent func(ctx context.Context, by store.Caller, id string) (store.Agent, error)
	// RunAgent continues an agent's task; [llm.Agent.RunTask] implements it.
	RunAgent func(ctx context.Context, t llm.Task) (llm.TaskEnd, error)
	Servers  Servers
	// RunsUnattended reports whether a pending call would run if an admin let its caller
	// run the tool without approval. If it is nil, the answer is always no.
	RunsUnattended func(ctx context.Context, by store.Caller, c store.Call) bool
	// CheckModel returns an error if there is no usable model of that name.
	CheckModel func(ctx context.Context, name string) error
	// Window returns a model's context window in tokens, 0 if it is unknown.
	Window func(ctx context.Context, name string) int
	Config store.Config // agent.tools.maxSteps, agent.summary.model, http.resume_grace, limits.*rounds, results.max_model_bytes
	Now    func() time.Time
	Log    *slog.Logger
}

// Engine runs rounds. It is safe for concurrent use.
type Engine struct {
	Options

	life context.Context // of streamed rounds; ended by Run
	end  context.CancelFunc
	work sync.WaitGroup

	conversations llm.Locks

	mu     sync.Mutex       // guards the fields below
	live   map[string]*live // rounds in progress
	atWork map[string]int   // number of rounds in progress or waiting for their conversation, by project
	all    int              // the same for all projects
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{Options: o, live: map[string]*live{}, atWork: map[string]int{}}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Run blocks until ctx ends, then ends streamed rounds and returns when they have stopped.
func (e *Engine) Run(ctx context.Context) error {
	<-ctx.Done()
	e.end()
	e.work.Wait()
	return nil
}

// admit counts a project's round if no limit is reached; leave uncounts it.
func (e *Engine) admit(of project.Project) (leave func(), err error) {
	one, all := store.GetInt(e.Config, "", "limits.project.rounds"), store.GetInt(e.Config, "", "limits.rounds")
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.atWork[of.ID] >= one:
		return nil, tooMany("the project", one)
	case e.all >= all:
		return nil, tooMany("nize", all)
	}
	e.atWork[of.ID]++
	e.all++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all--
		if e.atWork[of.ID]--; e.atWork[of.ID] == 0 {
			delete(e.atWork, of.ID)
		}
	}, nil
}

// Answer starts or continues a round for a project and returns its result. The error is an
// [*api.Error] if the caller caused it, and any other error if nize did.
func (e *Engine) Answer(ctx context.Context, of project.Project, req Request) (Answer, error) {
	s, leave, err := e.prepare(ctx, of, req, false)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	if !s.open() {
		return s.answer(), nil
	}
	ctx, l := e.follow(ctx, s, false)
	defer e.forget(l)
	if err := e.workOn(ctx, of, s, l); err != nil {
		return Answer{}, err
	}
	return s.answer(), nil
}

// workOn advances a round, and finishes it if it was cancelled meanwhile. If it stops, the
// work so far is stored.
func (e *Engine) workOn(ctx context.Context, of project.Project, s *state, l *live) error {
	err := e.advance(ctx, of, s, l)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if !l.cancelled.Load() {
		return errors.Join(err, e.publish(ctx, s, l))
	}
	if s.open() {
		err = e.finish(ctx, of, s, cancelled())
	}
	l.stored(s)
	return err
}

// Stream is Answer in the background. The stream yields events from now on.
func (e *Engine) Stream(ctx context.Context, of project.Project, req Request) (*Stream, error) {
	s, leave, err := e.prepare(ctx, of, req, true)
	if err != nil {
		return nil, err
	}
	if !s.open() { // a repeated decision: the stream has only the end
		defer leave()
		return e.replay(s, Position{Entry: max(1, len(s.Log))}), nil
	}
	running, l := e.follow(e.life, s, true)
	st := e.attach(l, Position{Entry: s.sent + 1})
	e.work.Go(func() {
		defer leave()
		defer e.forget(l)
		if err := e.workOn(running, of, s, l); err != nil && running.Err() == nil {
			e.Log.Error("working on a round", "round", s.ID, "err", err)
			l.fail(InternalError())
		}
	})
	return st, nil
}

// prepare creates or reads the round of a request. It locks the conversation until leave is
// called.
func (e *Engine) prepare(ctx context.Context, of project.Project, req Request, streamed bool) (s *state, leave func(), err error) {
	out, err := e.admit(of)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			out()
		}
	}()
	var release func()
	if req.RoundID != "" {
		s, release, err = e.resume(ctx, of, req, streamed)
	} else {
		s, release, err = e.start(ctx, of, req, streamed)
	}
	return s, func() { release(); out() }, err
}

// start creates the round of a request.
func (e *Engine) start(ctx context.Context, of project.Project, req Request, streamed bool) (s *state, release func(), err error) {
	s, turns, err := e.begin(ctx, of, req)
	if err != nil {
		return nil, nil, err
	}
	if release, err = e.conversations.Lock(ctx, s.Conversation); err != nil {
		return nil, nil, err
	}
	err = e.startRound(ctx, of, s, req.ConversationID, turns)
	if err == nil && streamed { // its client gets the id at once
		err = e.save(ctx, s, true)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return s, release, nil
}

// Cancel ends a round: it interrupts running calls, cancels pending ones, and makes no
// further model calls. It does nothing if the round has ended.
func (e *Engine) Cancel(ctx context.Context, of project.Project, id string) error {
	s, err := e.load(ctx, of, id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		l.cancelled.Store(true)
		l.cancel()
	}
	leave, err := e.conversations.Lock(ctx, s.Conversation)
	if err != nil {
		return err
	}
	defer leave()
	if s, err = e.load(ctx, of, id); err != nil || !s.open() {
		return err
	}
	return e.finish(ctx, of, s, cancelled())
}

func cancelled() *api.Error { return conflict("", "the round was cancelled") }
