package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"nize/mcp/taskwire"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// What a server may want while a call runs: to ask the person behind it, and to be
// polled for a task that it made of the call. Both take the time that they take; the
// server's timeout stands still while a person is asked.

// Attendant is where the pool turns with that. *mcp.Gateway is the real one.
type Attendant interface {
	// AskRequester puts a question before the requester of a call and waits for the
	// answer. The error is a *store.CallError that says why nobody is asked.
	AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error)
	// NoteRemote stores that the server has a task for the call, so that it is polled
	// on after a restart.
	NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error
}

// callTime is the context of a call at its server: it ends after the server's timeout,
// without the time in which somebody was asked.
type callTime struct {
	context.Context
	cancel context.CancelCauseFunc
	over   atomic.Bool

	mu       sync.Mutex // guards what follows
	deadline time.Time
	timer    *time.Timer
	asking   int
	left     time.Duration // while asking
}

func newCallTime(ctx context.Context, limit time.Duration) *callTime {
	t := &callTime{deadline: time.Now().Add(limit)}
	t.Context, t.cancel = context.WithCancelCause(ctx)
	t.timer = time.AfterFunc(limit, t.end)
	return t
}

func (t *callTime) end() {
	t.over.Store(true)
	t.cancel(context.DeadlineExceeded)
}

// Err implements [context.Context].
func (t *callTime) Err() error {
	if t.over.Load() && t.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return t.Context.Err()
}

// Deadline implements [context.Context].
func (t *callTime) Deadline() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.deadline
	if t.asking > 0 {
		own = time.Now().Add(t.left)
	}
	if at, ok := t.Context.Deadline(); ok && at.Before(own) {
		return at, true
	}
	return own, true
}

// stop frees the timer.
func (t *callTime) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.cancel(nil)
}

// pause lets the time stand still until resume is called.
func (t *callTime) pause() (resume func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking++; t.asking == 1 {
		t.timer.Stop()
		t.left = max(time.Until(t.deadline), time.Second)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asking--; t.asking == 0 && t.Context.Err() == nil {
			t.deadline = time.Now().Add(t.left)
			t.timer.Reset(t.left)
		}
	}
}

// asker answers what the server of a call asks.
func (p *Pool) asker(c *store.Call, clock *callTime) wire.AskFunc {
	if p.opt.Attendant == nil {
		return nil
	}
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method != taskwire.MethodElicit {
			return nil, &wire.RPCError{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("nize does not offer %s to servers", store.Clip(method, 100))}
		}
		e, err := taskwire.ReadElicit(params)
		if err != nil {
			return nil, &wire.RPCError{Code: wire.CodeInvalidParams, Message: err.Error()}
		}
		defer clock.pause()()
		a, err := p.opt.Attendant.AskRequester(ctx, c, e)
		var refused *store.CallError
		switch {
		case errors.As(err, &refused):
			return nil, &wire.RPCError{Code: wire.CodeInvalidParams, Message: refused.Message.String()}
		case err != nil:
			p.opt.Log.Error("putting a question before a requester", "call", c.ID, "err", err)
			return nil, errors.New("internal error")
		}
		return a.JSON(), nil
	}
}

// answerInputs answers what a result wants, all of it at once.
func answerInputs(ctx context.Context, id string, ask wire.AskFunc, inputs map[string]taskwire.Input) (json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	var mu sync.Mutex // guards answers and failed
	var failed error
	var all sync.WaitGroup
	for _, input := range inputs {
		if ask == nil || input.Method != taskwire.MethodElicit {
			return nil, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s asks for more input while it runs (%s), which nize does not offer to servers", id, store.Clip(input.Method, 100))}
		}
	}
	for key, input := range inputs {
		all.Go(func() {
			a, err := ask(ctx, input.Method, input.Params)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = &store.CallError{Code: store.CodeTool, Message: store.Textf("%s asked something: %s", id, err.Error())}
			}
			answers[key] = a
		})
	}
	all.Wait()
	if failed != nil {
		return nil, failed
	}
	if ctx.Err() != nil {
		return nil, &wire.Fault{Reach: wire.Maybe, Err: ctx.Err()}
	}
	return json.Marshal(answers)
}

// busyPause is how long a server that wants to be asked again later is left alone.
const busyPause = time.Second

// Bounds of how often a task is polled.
const (
	minPoll     = 100 * time.Millisecond
	defaultPoll = time.Second
	maxPoll     = 30 * time.Second
)

// remoteTask is a task at a server that a call waits for.
type remoteTask struct {
	store.RemoteTask
	call *store.Call
	by   store.Caller
	r    *wire.Request // of the call, whose progress and questions go on
	tell store.ProgressFunc
}

// follow polls a task until its end and returns its result. A server that can't be
// reached is tried again until the call's time is over. The end of the call cancels
// the task, but for the end of nized, after which it is polled again.
func (s *server) follow(ctx context.Context, t remoteTask, poll time.Duration) (json.RawMessage, error) {
	id := t.call.ToolID()
	said := ""
	for wait := min(poll, defaultPoll); ; {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			s.leaveTask(ctx, t)
			if errors.Is(context.Cause(ctx), taskwire.ErrStopping) {
				return nil, taskwire.ErrStopping
			}
			return nil, &wire.Fault{Reach: wire.Maybe, Err: ctx.Err()}
		}
		raw, err := s.askTask(ctx, t, &wire.Request{Method: taskwire.MethodGet, Task: t.ID})
		if err != nil {
			if wire.AsFault(err).Reach == wire.Answered {
				return nil, &store.CallError{Code: store.CodeUnknown, Message: store.Plain(store.RedactText(fmt.Sprintf("%s: its server no longer tells how its task is (%v): the outcome is unknown; look before you run it again", id, err)))}
			}
			wait = min(max(2*wait, minPoll), maxPoll) // it is away, and may come back
			continue
		}
		state, err := taskwire.ReadState(raw)
		if err != nil {
			return nil, &store.CallError{Code: store.CodeUnknown, Message: store.Textf("%s: %s: the outcome is unknown; look before you run it again", id, err.Error())}
		}
		if wait = min(max(state.Poll, minPoll), maxPoll); state.Poll == 0 {
			wait = defaultPoll
		}
		if t.tell != nil && state.Message != "" && state.Message != said && !taskwire.Ended(state.Status) {
			said = state.Message
			t.tell(0, 0, store.Clip(state.Message, 1000))
		}
		switch {
		case state.Status == taskwire.Cancelled:
			return nil, &store.CallError{Code: store.CodeCancelled, Message: store.Textf("%s: its server cancelled the task", id)}
		case t.Legacy && state.Status != taskwire.Working: // it asks over the stream of its result
			raw, err := s.askTask(ctx, t, &wire.Request{Method: taskwire.MethodResult, Task: t.ID, Ask: t.r.Ask, Progress: t.r.Progress})
			if err != nil && wire.AsFault(err).Reach != wire.Answered && ctx.Err() == nil {
				continue
			}
			return raw, err
		case state.Status == taskwire.Completed && state.Result == nil:
			return nil, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s: its task was completed without a result", id)}
		case state.Status == taskwire.Completed:
			return state.Result, nil
		case state.Status == taskwire.Failed:
			return nil, &wire.Fault{Reach: wire.Answered, Err: &wire.RPCError{Code: state.Code, Message: store.Clip(state.Problem, maxFault)}}
		case state.Status == taskwire.InputRequired && len(state.Inputs) > 0:
			answers, err := answerInputs(ctx, id, t.r.Ask, state.Inputs)
			if err != nil {
				s.leaveTask(ctx, t)
				return nil, err
			}
			if _, err := s.askTask(ctx, t, &wire.Request{Method: taskwire.MethodUpdate, Task: t.ID, Answers: answers}); err != nil && wire.AsFault(err).Reach == wire.Answered {
				return nil, err
			}
			wait = minPoll
		}
	}
}

// askTask sends a request about a task over the session of its call's owner.
func (s *server) askTask(ctx context.Context, t remoteTask, r *wire.Request) (json.RawMessage, error) {
	owner, err := s.pool.sessionOwner(ctx, s.config(), t.by.User)
	if err != nil {
		return nil, &wire.Fault{Reach: wire.Never, Err: err}
	}
	sess, err := s.session(ctx, owner, false)
	if err != nil {
		return nil, err
	}
	r.Masked = t.r.Masked
	sess.inflight.Add(1)
	raw, err := sess.Call(ctx, r)
	sess.inflight.Add(-1)
	if err != nil && wire.AsFault(err).Drop {
		s.dropSession(sess, wire.AsFault(err).Err)
	}
	return raw, err
}

// leaveTask cancels a task that nobody waits for any more; one that is polled again
// after a restart goes on.
func (s *server) leaveTask(ctx context.Context, t remoteTask) {
	if errors.Is(context.Cause(ctx), taskwire.ErrStopping) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := s.askTask(ctx, t, &wire.Request{Method: taskwire.MethodCancel, Task: t.ID}); err != nil {
		s.pool.opt.Log.Warn("cancelling a task at its server", "call", t.call.ID, "err", err)
	}
}
