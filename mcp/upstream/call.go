package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nize/mcp/feature"
	"nize/mcp/taskwire"
	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// Run sends one call to its server and returns the result; it is the mcp.Runner for
// upstream servers. It returns errors as *store.CallError. It checks the accepted
// definition once more, against the list of this very session, because the definition may
// have changed after the card was shown.
func (p *Pool) Run(ctx context.Context, by store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	r, err := requestOf(c)
	if err != nil {
		return nil, err
	}
	masked := false
	r.Progress, r.Masked = progressTo(progress), &masked
	return p.send(ctx, by, c, r, sending{reads: !feature.IsTool(c.Tool), attended: true, progress: progress})
}

// sending holds the options for sending a request.
type sending struct {
	reads    bool // safe to send twice
	attended bool // the server may ask questions and make a task of it
	progress store.ProgressFunc
}

// ReadView reads a resource of a tool's server with the credential of by: the tool's view,
// or a resource that the view requests. c names the tool, with the accepted pin.
func (p *Pool) ReadView(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error) {
	if s, ok := p.findServer(c.Server); ok && s.isSpoilt(uri) {
		return nil, fmt.Errorf("reading %s ended a session", uri)
	}
	masked := false
	res, err := p.send(ctx, by, &c, &wire.Request{Method: wire.MethodRead, URI: uri, Masked: &masked}, sending{reads: true})
	if err != nil {
		return nil, err
	}
	if s, ok := p.findServer(c.Server); ok {
		if err := learnView(ctx, s, by, c.Tool, uri, res.Raw); err != nil {
			p.opt.Log.Error("storing the declarations of a view", "server", c.Server, "view", uri, "err", err)
		}
	}
	return res.Raw, nil
}

// send sends one request for a call's tool. It waits for a task that the server makes of
// the request, or that it made before nized restarted.
func (p *Pool) send(ctx context.Context, by store.Caller, c *store.Call, r *wire.Request, how sending) (*store.Result, error) {
	s, err := p.enabledServer(ctx, c.Server)
	if err != nil {
		return nil, entryError(c, err)
	}
	s.mu.Lock()
	cfg, tool := s.cfg, s.tools.byName[c.Tool]
	err = s.admitCallLocked(time.Now())
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	clock := newCallTime(ctx, time.Duration(cfg.Timeout))
	defer clock.stop()
	ctx = clock
	if how.attended && r.Method == wire.MethodCall {
		r.Ask = p.asker(c, clock)
	}
	again := cfg.TrustAnnotations && tool.repeatable || how.reads
	if err := s.slots.acquire(ctx, by.User); err != nil {
		most, _, _ := s.slots.count()
		err = fmt.Errorf("all %d of its concurrent calls were in use: %w", most, err)
		return nil, callError(ctx, cfg, c.Tool, again, &wire.Fault{Reach: wire.Never, Err: err})
	}
	defer s.slots.release()

	if p.opt.Traceparent != nil {
		r.Traceparent = p.opt.Traceparent(ctx)
	}
	if c.Remote != nil {
		raw, err := s.follow(ctx, remoteTask{*c.Remote, c, by, r, how.progress}, 0)
		if err != nil {
			return nil, followError(ctx, cfg, c, again, err)
		}
		return newResult(cfg, c.Tool, raw, *r.Masked)
	}
	for try := 0; ; try++ {
		raw, sess, err := s.sendCall(ctx, by, c, r)
		if err == nil {
			var more bool
			if raw, more, err = s.attend(ctx, by, c, r, raw, how); err != nil {
				return nil, followError(ctx, cfg, c, again, err)
			}
			if more { // repeat the call with the answers
				try = -1
				continue
			}
			return newResult(cfg, c.Tool, raw, *r.Masked)
		}
		f := wire.AsFault(err)
		switch {
		case sess == nil:
		case f.Drop:
			s.dropSession(sess, f.Err)
		case errors.As(err, new(*oauth.LoginError)): // the session is unusable until someone signs in
			s.dropSession(sess, err)
		}
		// Retry only if the first attempt cannot have reached the tool or is safe to
		// repeat; never because the server is down or refused the request.
		if try > 0 || ctx.Err() != nil || sess == nil || !f.Drop || f.Code != "" || f.Reach == wire.Answered || (f.Reach == wire.Maybe && !again) {
			if sess != nil && s.wantsLogin(ctx, cfg, sess.owner, err) {
				err = &oauth.LoginError{Call: store.LoginNeeded(cfg.Name, cfg.Auth)}
			}
			return nil, callError(ctx, cfg, c.Tool, again, err)
		}
	}
}

// followError returns the error of a call that its server had already started.
func followError(ctx context.Context, cfg store.Server, c *store.Call, again bool, err error) error {
	if errors.Is(err, taskwire.ErrStopping) {
		return err
	}
	return callError(ctx, cfg, c.Tool, again, err)
}

// attend handles a server's response that is not the result of the call. It answers the
// server's questions, in which case the call must be sent again with the answers (more),
// and waits for the server's task.
func (s *server) attend(ctx context.Context, by store.Caller, c *store.Call, r *wire.Request, raw json.RawMessage, how sending) (result json.RawMessage, more bool, err error) {
	if !how.attended || r.Method != wire.MethodCall {
		return raw, false, nil
	}
	res, err := taskwire.ReadResult(raw)
	switch {
	case err != nil:
		return nil, false, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s: the server's result is %s", c.ToolID(), err.Error())}
	case res.Task != "" && s.pool.opt.Attendant != nil:
		t := remoteTask{store.RemoteTask{ID: res.Task, Legacy: res.Legacy}, c, by, r, how.progress}
		if err := s.pool.opt.Attendant.NoteRemote(ctx, c, t.RemoteTask); err != nil {
			s.leaveTask(ctx, t)
			return nil, false, &wire.Fault{Reach: wire.Maybe, Err: err}
		}
		raw, err = s.follow(ctx, t, res.Poll)
		return raw, false, err
	case res.Inputs != nil || res.State != "":
		if r.Answers, err = answerInputs(ctx, c.ToolID(), r.Ask, res.Inputs); err != nil {
			return nil, false, err
		}
		if len(res.Inputs) == 0 { // the server is busy
			r.Answers = nil
			select {
			case <-time.After(busyPause):
			case <-ctx.Done():
				return nil, false, &wire.Fault{Reach: wire.Maybe, Err: ctx.Err()}
			}
		}
		r.State = res.State
		return nil, true, nil
	}
	return raw, false, nil
}

func entryError(c *store.Call, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &store.CallError{Code: store.CodeNotFound, Message: store.Textf("tool %s not found: there is no server %s", c.ToolID(), c.Server)}
	case errors.Is(err, store.ErrRefused):
		return &store.CallError{Code: store.CodeUnavailable, Message: store.TextOf(err)}
	}
	return &store.CallError{Code: store.CodeUnavailable, Message: store.Plain(store.RedactText(err.Error())), Retryable: true}
}

// sendCall finds the caller's session, checks the tool and sends the call. It returns a nil
// session if there was none to send the call over.
func (s *server) sendCall(ctx context.Context, by store.Caller, c *store.Call, r *wire.Request) (json.RawMessage, *session, error) {
	owner, err := s.pool.sessionOwner(ctx, s.config(), by.User)
	if err != nil {
		return nil, nil, &wire.Fault{Reach: wire.Never, Err: err}
	}
	sess, err := s.session(ctx, owner, false)
	if err != nil {
		return nil, nil, err
	}
	if sess.isOutdated() {
		if err := sess.relist(ctx); err != nil {
			return nil, sess, err
		}
	}
	if err := s.syncTools(ctx, sess); err != nil {
		return nil, nil, &wire.Fault{Reach: wire.Never, Err: err}
	}
	o, err := s.checkDefinition(ctx, sess, c)
	if err != nil {
		return nil, nil, err
	}
	r.Bindings, r.Definition, r.AsTask = o.bindings, o.definition, o.asTask && r.Ask != nil
	sess.inflight.Add(1)
	raw, err := sess.Call(ctx, r)
	sess.inflight.Add(-1)
	s.noteCallEnd(sess, err)
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*wire.QuietError)) {
		sess.askForCheck()
	}
	return raw, sess, err
}

// checkDefinition compares the pin for which the call was decided with the accepted pin and
// with the pin in the session's own list. The pool writes the stored tools itself, so it
// has them in memory; only acceptances are written elsewhere, so it reads the store if the
// pin is not accepted in memory.
func (s *server) checkDefinition(ctx context.Context, sess *session, c *store.Call) (offer, error) {
	o, ok := sess.tools.Load().byName[c.Tool]
	if !ok {
		return o, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("tool %s not found: its server no longer lists it", c.ToolID())}
	}
	if o.pin != c.Pin || c.Pin == "" {
		return o, &store.CallError{Code: store.CodeRefused, Message: store.Textf("the definition of %s differs from the one that the call was made for; an admin can look at it with nizectl servers trust %s", c.ToolID(), c.Server)}
	}
	s.mu.Lock()
	known := s.tools.byName[c.Tool]
	s.mu.Unlock()
	if known.state == store.ToolAccepted && known.accepted == c.Pin {
		return o, nil
	}
	t, err := s.pool.opt.Tools.GetTool(ctx, c.ToolID())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return o, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("tool %s not found", c.ToolID())}
	case err != nil:
		return o, &wire.Fault{Reach: wire.Never, Err: fmt.Errorf("reading %s: %w", c.ToolID(), err)}
	case t.State != store.ToolAccepted || t.Accepted != c.Pin || o.refused != nil:
		return o, &store.CallError{Code: store.CodeRefused, Message: store.Textf("%s is held until an admin accepts it: nizectl servers trust %s", c.ToolID(), c.Server)}
	}
	s.mu.Lock()
	s.tools.set(t)
	s.mu.Unlock()
	return o, nil
}

// progressTo returns a handler that passes progress notifications to f. The numbers are
// only displayed.
func progressTo(f store.ProgressFunc) func(json.RawMessage) {
	if f == nil {
		return nil
	}
	return func(raw json.RawMessage) {
		var p struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(raw, &p) == nil {
			f(p.Progress, p.Total, store.Clip(p.Message, 1000))
		}
	}
}

// newResult builds the result. It reads isError and leaves everything else unchanged.
func newResult(cfg store.Server, tool string, raw json.RawMessage, masked bool) (*store.Result, error) {
	res := &store.Result{Raw: raw, Masked: masked}
	asks := false
	err := wire.Members(raw, func(key, value []byte) error {
		switch string(key) {
		case "isError":
			res.IsError = string(value) == "true"
		case "resultType":
			asks = string(value) == `"input_required"`
		}
		return nil
	})
	id := cfg.Name + ":" + tool
	if err != nil {
		return nil, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s: the server's result is %v", id, err)}
	}
	if asks {
		return nil, &store.CallError{Code: store.CodeTool, Message: store.Textf("%s asks for more input while it runs, which nize does not offer to servers", id)}
	}
	return res, nil
}
