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

// While a call runs, its server may ask the user behind it a question, or make a task of
// the call and require polling. Both may take long; the server's timeout is paused while a
// user is asked.

// Attendant handles such requests for the pool. *mcp.Gateway is the real implementation.
type Attendant interface {
	// AskRequester asks the requester of a call a question and waits for the answer. If no
	// user can be asked, it returns a *store.CallError with the reason.
	AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error)
	// NoteRemote stores the server's task for the call, so that polling resumes after a
	// restart.
	NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error
}

// callTime is the context of a call at its server: it ends after the server's timeout,
// which excludes the time during which a user is asked.
type callTime struct {
	context.Context
	cancel context.CancelCauseFunc
	over   atomic.Bool

	mu       sync.Mutex // guards the fields below
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

// stop releases the timer.
func (t *callTime) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.cancel(nil)
}

// pause stops the clock until resume is called.
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

// asker returns the function that answers the questions of a call's server.
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

// answerInputs answers all the inputs that a result requires, concurrently.
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

// busyPause is the wait before a retry if a server asks to be called again later.
const busyPause = time.Second

// Limits of the polling interval of a task.
const (
	minPoll     = 100 * time.Millisecond
	defaultPoll = time.Second
	maxPoll     = 30 * time.Second
)

// remoteTask is a server's task that a call waits for.
type remoteTask struct {
	store.RemoteTask
	call *store.Call
	by   store.Caller
	r    *wire.Request // the call's request, for its progress and questions
	tell store.ProgressFunc
}

// follow polls a task until its end and returns its result. While the server is unreachable
// it retries until the call's time is over. If the call ends, the task is cancelled, unless
// nized is stopping: then the next instance polls it.
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
				return nil, &store.CallError{Code: store.CodeUnknown, Message: store.Plain(store.RedactText(fmt.Sprintf("%s: its server no longer reports the state of its task (%v): the outcome is unknown; check before you run it again", id, err)))}
			}
			wait = min(max(2*wait, minPoll), maxPoll) // unreachable, maybe temporarily
			continue
		}
		state, err := taskwire.ReadState(raw)
		if err != nil {
			return nil, &store.CallError{Code: store.CodeUnknown, Message: store.Textf("%s: %s: the outcome is unknown; check before you run it again", id, err.Error())}
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
		case t.Legacy && state.Status != taskwire.Working: // legacy servers ask over the stream of the result
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

// leaveTask cancels a task that no caller waits for any more. It leaves the task running if
// nized is stopping, because polling resumes after the restart.
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
