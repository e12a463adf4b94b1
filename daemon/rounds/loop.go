package rounds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/llm"
	"nize/store"
	"nize/store/outage"
	"nize/store/project"
)

// startRound begins the conversation or looks at the one that is continued, and
// adds the messages. Nothing of that is stored yet.
func (e *Engine) startRound(ctx context.Context, of project.Project, s *state, continued string, turns []store.Turn) error {
	by := of.Caller()
	if continued == "" {
		s.thread = &store.Thread{ID: s.Conversation, User: by.User, Model: s.Model, Address: store.Address{Surface: store.OnHTTP, Team: by.User, Thread: s.Conversation}}
	} else {
		last, err := e.Rounds.LastRound(ctx, of.ID, continued)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
			return missing("conversation", continued, "conversation_id")
		}
		if err != nil {
			return err
		}
		before, err := e.load(ctx, of, last)
		if err != nil {
			return err
		}
		switch {
		case before.Status == "": // its caller left, or nized stopped
			if err := e.finish(ctx, of, before, stopped()); err != nil {
				return err
			}
		case before.open():
			return conflict("conversation_id", "round %s of this conversation has not ended: go on with it first", last)
		}
		if s.System == "" {
			s.System = before.System
		}
		s.Pins = before.Pins
	}
	s.pinTools()
	if err := e.readTurns(ctx, s); err != nil {
		return err
	}
	for _, t := range turns {
		t.By = by
		s.say(t)
	}
	return nil
}

// advance does the next thing until the model has answered or somebody must be
// waited for.
func (e *Engine) advance(ctx context.Context, of project.Project, s *state, l *live) error {
	for {
		waits, err := e.settle(ctx, of, s, l)
		if err != nil {
			return err
		}
		switch {
		case waits != "":
			s.Status, s.Message = waits, nil
		case s.Steps >= s.MaxSteps:
			s.Status = MaxSteps
		default:
			if l.streamed && l.isBehind(s) { // what comes next has its place behind that
				if err := e.publish(ctx, s, l); err != nil {
					return err
				}
			}
			if err := e.step(ctx, of, s, l); err != nil {
				return err
			}
			if s.Status == "" {
				continue
			}
		}
		s.log(roundFinished, s.answer())
		return e.publish(ctx, s, l)
	}
}

// publish stores the state, and sends what is new in its log. What a client gets to
// see is durable.
func (e *Engine) publish(ctx context.Context, s *state, l *live) error {
	if err := e.save(ctx, s, l.streamed || s.Status != ""); err != nil {
		return err
	}
	l.stored(s)
	return nil
}

// finish ends a round that nobody works on, for a reason. Calls that wait are
// cancelled, and each call gets a result, so that the conversation can go on.
func (e *Engine) finish(ctx context.Context, of project.Project, s *state, why *Error) error {
	if err := e.readTurns(ctx, s); err != nil {
		return err
	}
	limit := store.GetInt(e.Config, "", "results.max_model_bytes")
	for _, p := range s.Proposals {
		if p.Done || s.answered(p.ID) {
			continue
		}
		text := "The round was cancelled before this call had a result."
		if runsHere(p.Kind) && p.Kind != agent {
			if _, err := e.Gateway.Decide(ctx, of.Caller(), p.ID, store.Decision{Verb: store.Cancel, Auto: true}); err != nil {
				e.Log.Debug("cancelling a call of a round", "call", p.ID, "err", err) // it has ended, or was never made
			}
			if c, err := e.Calls.GetCall(ctx, p.ID); err == nil && c.State.Final() {
				text = llm.OutcomeText(c, limit)
			}
		}
		if p.In == "" {
			s.say(store.Turn{Role: store.FromTool, CallID: p.ID, Text: text})
		}
		p.Done = true
	}
	s.Status, s.Fault, s.Message = Failed, why, nil
	s.log(roundFinished, s.answer())
	return e.save(ctx, s, true)
}

// step asks the model once.
func (e *Engine) step(ctx context.Context, of project.Project, s *state, l *live) error {
	by := of.Caller()
	if err := e.readTurns(ctx, s); err != nil {
		return err
	}
	functions := make([]store.Function, len(s.Tools))
	for i, t := range s.Tools {
		functions[i] = t.Function
	}
	req := llm.Request{System: s.System, Turns: ownTurns(s.turns), Functions: functions, MaxTokens: s.MaxTokens, Temperature: s.Temperature,
		Bill: &llm.Bill{By: by, Team: by.User, Thread: s.Conversation}}
	fitting := llm.Fitting{Models: e.Models, Config: e.Config, Window: e.Window, ContextTokens: llm.DefaultContextTokens, Log: e.Log}
	reply, err := fitting.Ask(ctx, s.Model, req, s.say, s.count, func(d llm.Delta) { l.addText(d.Text) })
	s.count(reply)
	if ctx.Err() != nil {
		return ctx.Err() // the caller has left; what was done stands in the conversation
	}
	if err == nil {
		reply, err = llm.CheckReply(reply)
	}
	if text := cmp.Or(l.textSoFar(), reply.Text); text != "" { // of a reply that failed, too: it was sent
		s.Log = append(s.Log, event{Name: textDelta, Text: text})
	}
	if reply.Usage != (llm.Usage{}) {
		s.log(usageEvent, s.Usage)
	}
	if outage.Is(err) {
		return err
	}
	if err != nil {
		s.Status, s.Fault = Failed, e.fault(of, err)
		return nil
	}
	s.Steps++
	s.Earlier = append(s.Earlier, s.Proposals...)
	s.Proposals = nil
	for i := range reply.Calls {
		reply.Calls[i].ID = store.NewID(e.Now())
	}
	s.say(store.Turn{Role: store.FromModel, Text: reply.Text, Said: reply.Remark, Finish: llm.Partial(reply.Finish), Calls: reply.Calls, Opaque: reply.Opaque, Model: reply.Model})
	s.Message = &Said{"assistant", reply.Text}
	if len(reply.Calls) == 0 {
		s.Status, s.Finish = Completed, cmp.Or(llm.Partial(reply.Finish), store.FinishStop)
		if reply.Remark != (store.Text{}) {
			s.Warnings = append(s.Warnings, strings.Trim(reply.Remark.String(), "[]"))
		}
		return nil
	}
	for _, c := range reply.Calls {
		s.Proposals = append(s.Proposals, s.proposalOf(c))
	}
	return e.publish(ctx, s, l) // before any of them runs
}

// ownTurns leaves out what agents did for their own answers.
func ownTurns(turns []store.Turn) []store.Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t store.Turn) bool { return t.In != "" })
}

func (s *state) count(reply llm.Reply) {
	u := reply.Usage
	if u == (llm.Usage{}) && reply.MicroUSD == nil {
		return // nobody was asked, or it has no tokens
	}
	s.Usage.PromptTokens += u.Prompt
	s.Usage.CompletionTokens += u.Completion
	s.Usage.TotalTokens += u.Prompt + u.Completion
	s.Usage.CachedTokens += u.Cached
	s.Usage.Estimated = s.Usage.Estimated || u.Estimated
	switch {
	case reply.MicroUSD == nil:
		s.Unpriced, s.Usage.CostUSD = true, nil
	case !s.Unpriced:
		cost := float64(*reply.MicroUSD) / 1e6
		if s.Usage.CostUSD != nil {
			cost += *s.Usage.CostUSD
		}
		s.Usage.CostUSD = &cost
	}
}

// fault is why there is no answer, as the caller may know it.
func (e *Engine) fault(of project.Project, err error) *Error {
	var full *store.BudgetError
	if errors.As(err, &full) {
		return &Error{Type: Budget, Message: strings.ReplaceAll(full.Error(), "user:"+of.Caller().User, "this project"), status: http.StatusTooManyRequests}
	}
	e.Log.Warn("a round failed", "err", err)
	return &Error{Type: Upstream, Message: llm.Sentence(err).String(), status: http.StatusBadGateway}
}

// proposalOf reads a call of the model's. One that can't be made has no kind, and
// its result says why.
func (s *state) proposalOf(c store.ToolCall) *proposal {
	p := &proposal{ID: c.ID, Tool: c.Name, unmade: true}
	i := slices.IndexFunc(s.Tools, func(t offered) bool { return t.Function.Name == c.Name })
	if i < 0 {
		var names []string
		for _, t := range s.Tools {
			names = append(names, t.Function.Name)
		}
		return p.refused("There is no tool of that name. There are: " + strings.Join(names, ", ") + ".")
	}
	canonical, ok := store.ObjectOf([]byte(c.Args))
	if !ok {
		return p.refused("The arguments are not a JSON object. Send them again.")
	}
	p.Kind, p.Args = s.Tools[i].Kind, canonical
	if p.Kind == function {
		p.Digest = store.Call{ID: p.ID, By: project.Actor(s.Project), Thread: s.Conversation, Args: canonical}.ComputeDigest()
	}
	return p
}

func (p *proposal) refused(why string) *proposal {
	p.Output = &why
	return p
}

// settle gives each call of the last step its result, as far as there is one, and
// says for what is waited.
func (e *Engine) settle(ctx context.Context, of project.Project, s *state, l *live) (waits string, err error) {
	ends := make([]end, len(s.Proposals))
	errs := make([]error, len(s.Proposals))
	ended, running := make(chan struct{}, len(s.Proposals)), 0 // one for each
	run := func(do func()) {
		running++
		go func() {
			defer func() { ended <- struct{}{} }()
			do()
		}()
	}
	for i, p := range s.Proposals {
		switch {
		case p.Done, p.In != "":
		case p.Kind == agent:
			s.turns, s.stored = nil, 0 // the agent adds to them
			run(func() { ends[i], errs[i] = e.callAgent(ctx, of, s, p) })
		case runsHere(p.Kind):
			run(func() { ends[i], errs[i] = e.call(ctx, of, s, p) })
		case p.Output != nil:
			ends[i] = end{text: *p.Output, known: true}
		}
	}
	if err := e.await(ctx, s, l, ended, running); err != nil {
		return "", err
	}
	for _, end := range ends {
		for _, reply := range end.replies {
			s.count(reply)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if err := e.readTurns(ctx, s); err != nil {
		return "", err
	}
	if err := e.settleNested(ctx, s); err != nil {
		return "", err
	}
	for i, p := range s.Proposals[:len(ends)] {
		if p.Done || p.In != "" {
			continue
		}
		if !ends[i].known {
			if p.Kind == agent {
				waits = RequiresApproval
				s.propose(p, ends[i].open)
				continue
			}
			if runsHere(p.Kind) {
				waits, p.Digest, p.Args, p.Allow = RequiresApproval, ends[i].digest, ends[i].args, ends[i].allow
			} else if waits == "" {
				waits = RequiresAction
			}
			if p.Told == toldNothing {
				p.Told = toldProposed
				s.log(toolProposed, s.proposed(p))
			}
			continue
		}
		p.Done = true
		if runsHere(p.Kind) {
			s.logEnd(p, ends[i])
		}
		if !s.answered(p.ID) { // or it was written by itself before a restart, as it once was
			s.say(store.Turn{Role: store.FromTool, CallID: p.ID, Text: ends[i].text, Files: ends[i].files})
		}
	}
	return waits, nil
}

// startedTime is how long a call may take before clients are told that it has
// started. Most have ended by then, and are told of with their end.
const startedTime = 200 * time.Millisecond

// await waits for calls, and tells of those that take a while.
func (e *Engine) await(ctx context.Context, s *state, l *live, ended <-chan struct{}, running int) (err error) {
	if running == 0 {
		return nil
	}
	timer := time.NewTimer(startedTime)
	defer timer.Stop()
	for running > 0 {
		select {
		case <-ended:
			running--
		case <-timer.C:
			err = e.tellStarted(ctx, s, l)
		}
	}
	return err
}

func (e *Engine) tellStarted(ctx context.Context, s *state, l *live) error {
	known := len(s.Log)
	for _, p := range s.Proposals {
		if p.Done || p.In != "" || !runsHere(p.Kind) || p.Told == toldStarted {
			continue
		}
		if p.Kind == agent {
			s.logStart(p)
		} else if c, err := e.Calls.GetCall(ctx, p.ID); err == nil && !c.Waiting() {
			s.logStart(p)
		}
	}
	if len(s.Log) == known {
		return nil
	}
	return e.publish(ctx, s, l)
}

// logStart and logEnd note what became of a call that runs here.
func (s *state) logStart(p *proposal) {
	p.Told = toldStarted
	s.log(toolStarted, startedData{p.ID, p.Tool, p.Args})
}

func (s *state) logEnd(p *proposal, by end) {
	if p.Told != toldStarted && by.started {
		s.logStart(p)
	}
	s.log(toolFinished, finishedData{p.ID, string(by.outcome), by.took.Milliseconds(), by.text})
}

// end is what a call came to.
type end struct {
	known   bool
	text    string
	files   []store.File // the pictures in its result
	outcome store.State
	started bool
	took    time.Duration

	digest string // of one that waits, with what would run
	allow  string // how it could run without a person
	args   json.RawMessage

	open    []store.Call // for which an agent waits
	replies []llm.Reply  // of an agent's models
}

// call makes a call, or looks at what became of it. Without a known end it waits
// for a yes.
func (e *Engine) call(ctx context.Context, of project.Project, s *state, p *proposal) (none end, _ error) {
	limit := store.GetInt(e.Config, "", "results.max_model_bytes")
	var c store.Call
	unmade, err := p.unmade, store.ErrNotFound
	if p.unmade = false; !unmade {
		c, err = e.Calls.GetCall(ctx, p.ID)
	}
	if errors.Is(err, store.ErrNotFound) {
		tool := s.tool(p.Tool)
		var made *store.Call
		req := store.Request{ID: p.ID, New: unmade, Tool: tool.Callable, Args: p.Args, Thread: s.Conversation, Approval: tool.Approval, Named: []string{tool.Callable}}
		if tool.unattended(of) {
			req.Approval, req.Unattended = store.ApproveNever, true
		}
		made, err = e.Gateway.Call(ctx, of.Caller(), req)
		var refused *store.CallError
		if errors.As(err, &refused) {
			return end{known: true, text: "The call was not made: " + refused.Message.String(), outcome: store.Refused}, nil
		}
		if made != nil {
			c = *made
		}
	} else if err == nil {
		c, err = llm.LastReplacement(ctx, e.Calls, c) // somebody who approves it may have edited it
	}
	if err != nil {
		return none, err
	}
	if c.Waiting() {
		return end{digest: c.Digest, args: c.Args, allow: e.howAllowed(ctx, of, s.tool(p.Tool), c)}, nil
	}
	if !c.State.Final() {
		ended, err := e.Gateway.Wait(ctx, c.ID)
		if err != nil {
			return none, err
		}
		c = *ended
	}
	return endOf(c, limit), nil
}

// unattended says whether an admin lets the project run the tool without a person. A
// request that brings a server must ask for that; of a registered one it can't say.
func (t offered) unattended(of project.Project) bool {
	switch t.Kind {
	case callable:
		return of.Unattends(t.Callable)
	case remote:
		return t.Approval == store.ApproveNever && slices.ContainsFunc(t.patterns(), of.Unattends)
	}
	return false
}

// patterns are the names of a tool that an admin may give, the shortest first.
func (t offered) patterns() []string {
	_, name, _ := strings.Cut(t.Callable, ":")
	if t.Kind == remote {
		return []string{slugOf(t.Label) + ":" + name, t.Label + ":" + name}
	}
	return []string{t.Callable}
}

// howAllowed says how a call that waits could run without a person although the
// request wanted that; "" if it didn't, or no admin's word would be enough.
func (e *Engine) howAllowed(ctx context.Context, of project.Project, t offered, c store.Call) string {
	if t.Kind != remote || t.Approval != store.ApproveNever || t.unattended(of) || e.RunsUnattended == nil || !e.RunsUnattended(ctx, of.Caller(), c) {
		return ""
	}
	pattern := t.patterns()[0]
	return fmt.Sprintf("tool %s of MCP server %s waits for a yes although require_approval is never: an admin can let it run without one (nizectl projects unattended %s --add %s)",
		strings.TrimPrefix(pattern, slugOf(t.Label)+":"), t.Label, of.Name, pattern)
}

// endOf is what a call came to that has ended.
func endOf(c store.Call, limit int) end {
	out := end{known: true, text: llm.OutcomeText(c, limit), files: llm.ResultPictures(c), outcome: c.State, started: !c.Started.IsZero()}
	if out.started && c.Finished.After(c.Started) {
		out.took = c.Finished.Sub(c.Started)
	}
	return out
}
