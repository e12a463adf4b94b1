// Package rounds is the loop that answers programs over HTTP: a model, the tools
// that the program names, and nothing that runs twice.
//
// A round has the model's conversation in the store as every other one, under the
// project as its user, and a state of its own beside it. It waits in the store:
// for a yes to a call (requires_approval), or for the output of a function that
// the caller runs itself (requires_action). What the caller sends then is checked
// against what was proposed and is carried out once, however often it comes and
// whatever restarts lie between: the gateway takes a call's id and a decision
// once, and a result that stands in the conversation is not written again.
//
//	the last step has calls
//	    ├─ a callable        ──► the gateway: runs at once, or waits for a yes
//	    ├─ an agent          ──► the assistant, in turns of its own (agent.go)
//	    ├─ a function        ──► waits for its output
//	    └─ unknown, no JSON  ──► the model is told so
//	every call has a result  ──► the model again, until max_steps
//	one waits                ──► the state is stored and answered
//
// A conversation that is longer than its model's window is compacted as in a chat: old
// results first, then a summary, which is a turn of the conversation and is made once.
// What it covers stays stored.
//
// Work on one conversation is done by one request at a time; another waits for
// it, and sees what it did.
//
// A round that is streamed is worked on in the background, and its client follows
// the log of its events (stream.go). An event is stored with the state before it is
// sent, and its id says where in the log it stands; text goes out as it comes, and
// its id says how far. So a client that comes back, also after a restart, goes on
// at the very place. It is awaited for a while (http.resume_grace), then the round
// stops where it is. Where one stops, because its caller left or nized did, it can
// be gone on with by its id, and a new message in its conversation ends it.
package rounds

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"nize/llm"
	"nize/store"
	"nize/store/project"
)

// Gateway is the one door to the tools; mcp.Gateway is it.
type Gateway interface {
	Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error)
	Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error)
	Wait(ctx context.Context, id string) (*store.Call, error)
}

// FindTool returns the tool of that id as the caller may use it. ErrNotFound where
// they may not.
type FindTool func(ctx context.Context, by store.Caller, id string) (store.Tool, error)

// Servers lists the tools of an MCP server that a request brings. A
// [*project.NoCredentialError] says that a credential lacks; all other errors may
// be shown to the caller.
type Servers interface {
	Open(ctx context.Context, of project.Project, s project.Server) ([]store.Tool, error)
}

// Options is what the engine works with.
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
	// RunAgent goes on with what an agent is to do; [llm.Agent.RunTask] is it.
	RunAgent func(ctx context.Context, t llm.Task) (llm.TaskEnd, error)
	Servers  Servers
	// RunsUnattended says whether a call that waits would run if an admin let its
	// caller run the tool without a person; nil never says so.
	RunsUnattended func(ctx context.Context, by store.Caller, c store.Call) bool
	// CheckModel says whether a model can be asked by that name.
	CheckModel func(ctx context.Context, name string) error
	// Window is how many tokens a model has room for, 0 where that is not known.
	Window func(ctx context.Context, name string) int
	Config store.Config // agent.tools.maxSteps, agent.summary.model, http.resume_grace, limits.*rounds, results.max_model_bytes
	Now    func() time.Time
	Log    *slog.Logger
}

// Engine runs rounds. It is safe for concurrent use.
type Engine struct {
	Options

	life context.Context // of rounds that are streamed; ended by Run
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex // guards what follows
	busy   map[string]*lock
	live   map[string]*live // rounds that are worked on
	atWork map[string]int   // how many rounds of a project are worked on, or wait to be
	all    int              // of all projects
}

// New returns an engine.
func New(o Options) *Engine {
	e := &Engine{Options: o, busy: map[string]*lock{}, live: map[string]*live{}, atWork: map[string]int{}}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Run ends what is streamed when ctx ends, and returns when it has stopped.
func (e *Engine) Run(ctx context.Context) error {
	<-ctx.Done()
	e.end()
	e.work.Wait()
	return nil
}

// lock is the right to work on one conversation.
type lock struct {
	token chan struct{} // holds 1: whoever can put something in may work
	users int           // who works or waits to; guarded by Engine.mu
}

func (e *Engine) enter(ctx context.Context, conversation string) (leave func(), err error) {
	e.mu.Lock()
	l := e.busy[conversation]
	if l == nil {
		l = &lock{token: make(chan struct{}, 1)}
		e.busy[conversation] = l
	}
	l.users++
	e.mu.Unlock()
	forget := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(e.busy, conversation)
		}
	}
	select {
	case l.token <- struct{}{}:
		return func() { <-l.token; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// admit counts a round of a project in, if no limit is reached; leave counts it out.
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

// Answer begins a round, or goes on with one, for a project, and returns what it
// came to. The error is an [*Error] for what the caller did, and another one for
// what is nize's own.
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

// workOn advances a round, and ends one that was cancelled meanwhile. What was done
// of one that stops is stored.
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

// Stream is Answer in the background. The stream has what happens from now on.
func (e *Engine) Stream(ctx context.Context, of project.Project, req Request) (*Stream, error) {
	s, leave, err := e.prepare(ctx, of, req, true)
	if err != nil {
		return nil, err
	}
	if !s.open() { // a decision that was sent again: the stream has its end
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

// prepare makes or reads the round of a request. Until leave is called, nobody else
// works on its conversation.
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

// start makes the round of a request.
func (e *Engine) start(ctx context.Context, of project.Project, req Request, streamed bool) (s *state, release func(), err error) {
	s, turns, err := e.begin(ctx, of, req)
	if err != nil {
		return nil, nil, err
	}
	if release, err = e.enter(ctx, s.Conversation); err != nil {
		return nil, nil, err
	}
	err = e.startRound(ctx, of, s, req.ConversationID, turns)
	if err == nil && streamed { // its client is told of it at once
		err = e.save(ctx, s, true)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return s, release, nil
}

// Cancel ends a round: what runs is cut off, what waits is cancelled, and the model
// is asked no more. One that has ended stays as it is.
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
	leave, err := e.enter(ctx, s.Conversation)
	if err != nil {
		return err
	}
	defer leave()
	if s, err = e.load(ctx, of, id); err != nil || !s.open() {
		return err
	}
	return e.finish(ctx, of, s, cancelled())
}

func cancelled() *Error { return conflict("", "the round was cancelled") }
