package rounds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
	"nize/store/outage"
	"nize/store/project"
)

// startRound creates the conversation, or checks the one that is continued, and appends the
// messages. It stores nothing yet.
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
		case before.Status == "": // its caller disconnected, or nized stopped
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

// advance runs steps until the model has answered or the round must wait for the caller.
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
			if l.streamed && l.isBehind(s) { // the next event's id follows the logged ones, so they must be stored
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

// publish stores the state, and then sends new log entries, so that clients see only
// durable events.
func (e *Engine) publish(ctx context.Context, s *state, l *live) error {
	if err := e.save(ctx, s, l.streamed || s.Status != ""); err != nil {
		return err
	}
	l.stored(s)
	return nil
}

// finish ends a round that no request is working on, with an error. It cancels pending
// calls and gives each call a result, so that the conversation can be continued.
func (e *Engine) finish(ctx context.Context, of project.Project, s *state, why *api.Error) error {
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
				e.Log.Debug("cancelling a call of a round", "call", p.ID, "err", err) // the call has ended, or was never made
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
	s.Status, s.Fault, s.Message = Failed, shown(why), nil
	s.log(roundFinished, s.answer())
	return e.save(ctx, s, true)
}

// step calls the model once.
func (e *Engine) step(ctx context.Context, of project.Project, s *state, l *live) error {
	by := of.Caller()
	if err := e.readTurns(ctx, s); err != nil {
		return err
	}
	functions := make([]store.Function, len(s.Tools))
	for i, t := range s.Tools {
		functions[i] = t.Function
	}
	req := llm.Request{System: s.System, Functions: functions, MaxTokens: s.MaxTokens, Temperature: s.Temperature,
		Bill: &llm.Bill{By: by, Team: by.User, Thread: s.Conversation}}
	fitting := llm.Fitting{Models: e.Models, Config: e.Config, Window: e.Window, ContextTokens: llm.DefaultContextTokens, Log: e.Log}
	prompt := llm.Prompt{Model: s.Model, Request: req, Keep: s.keep, Paid: s.count, Send: func(req llm.Request) (llm.Reply, string, error) {
		var shown strings.Builder
		reply, err := e.Models.Generate(ctx, s.Model, req, func(d llm.Delta) {
			shown.WriteString(d.Text)
			l.addText(d.Text)
		})
		return reply, cmp.Or(shown.String(), reply.Text), err
	}}
	var reply llm.Reply
	var err error
	for again := true; again; {
		prompt.Turns, prompt.Target = promptTurns(s.turns)
		reply, _, again, err = fitting.Ask(ctx, prompt)
	}
	s.count(reply)
	if ctx.Err() != nil {
		return ctx.Err() // the caller has disconnected; the work so far is in the conversation
	}
	if err == nil {
		reply, err = llm.CheckReply(reply)
	}
	if text := cmp.Or(l.textSoFar(), reply.Text); text != "" { // even of a reply that failed, since it was sent
		s.Log = append(s.Log, event{Name: textDelta, Text: text})
	}
	if reply.Usage != (llm.Usage{}) {
		s.log(usageEvent, s.Usage)
	}
	if outage.Is(err) {
		return err
	}
	if err != nil {
		s.Status, s.Fault = Failed, shown(e.fault(of, err))
		return nil
	}
	s.Steps++
	s.Earlier = append(s.Earlier, s.Proposals...)
	s.Proposals = nil
	turn := reply.Turn(func() string { return store.NewID(e.Now()) })
	s.say(turn)
	s.Message = &Said{"assistant", reply.Text}
	if len(turn.Calls) == 0 {
		s.Status, s.Finish = Completed, cmp.Or(turn.Finish, store.FinishStop)
		if reply.Remark != (store.Text{}) {
			s.Warnings = append(s.Warnings, strings.Trim(reply.Remark.String(), "[]"))
		}
		return nil
	}
	for _, c := range turn.Calls {
		s.Proposals = append(s.Proposals, s.proposalOf(c))
	}
	return e.publish(ctx, s, l) // before any of them runs
}

// promptTurns returns the turns for the model, and the position of the last message among
// them. It leaves out those of agents, and the newest summary replaces what it covers.
func promptTurns(turns []store.Turn) (out []store.Turn, last int) {
	covered := -1
	for _, t := range slices.Backward(turns) {
		if t.Role == store.FromSummary {
			out, covered = append(out, t), t.Re
			break
		}
	}
	for _, t := range turns {
		if t.Role == store.FromSummary || t.N <= covered || t.In != "" {
			continue
		}
		if out = append(out, t); t.Role == store.FromUser {
			last = t.N
		}
	}
	return out, last
}

// keep appends a summary. It also covers the results in of, but not what is between the
// turns of an earlier summary and that summary, which is stored after them.
func (s *state) keep(sum store.Turn, of []store.Turn) error {
	for _, t := range of {
		if t.Role != store.FromSummary {
			sum.Re = max(sum.Re, t.N)
		}
	}
	s.say(sum)
	return nil
}

func (s *state) count(reply llm.Reply) {
	u := reply.Usage
	if u == (llm.Usage{}) && reply.MicroUSD == nil {
		return // no model was called, or it reports no tokens
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

// fault returns the error for the caller, without internal details.
func (e *Engine) fault(of project.Project, err error) *api.Error {
	var full *store.BudgetError
	if errors.As(err, &full) {
		return &api.Error{Code: "budget", Message: strings.ReplaceAll(full.Error(), "user:"+of.Caller().User, "this project")}
	}
	e.Log.Warn("a round failed", "err", err)
	return &api.Error{Code: "unavailable", Message: llm.Sentence(err).String()}
}

// proposalOf converts a model's call. If the call can't be made, the proposal has no kind
// and its result is the reason.
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

// settle gives each call of the last step its result, if there is one. waits is the status
// if the round must wait for the caller, else "".
func (e *Engine) settle(ctx context.Context, of project.Project, s *state, l *live) (waits string, err error) {
	ends := make([]end, len(s.Proposals))
	errs := make([]error, len(s.Proposals))
	ended, running := make(chan struct{}, len(s.Proposals)), 0 // one slot for each
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
			s.turns, s.stored = nil, 0 // reread later: the agent appends to them
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
		if !s.answered(p.ID) { // an earlier version stored the result separately, before a restart
			s.say(store.Turn{Role: store.FromTool, CallID: p.ID, Text: ends[i].text, Files: ends[i].files})
		}
	}
	return waits, nil
}

// startedTime is how long a call may run before clients get a "started" event. Most calls
// end earlier, and then both events are sent at the end.
const startedTime = 200 * time.Millisecond

// await waits for calls, and logs a started event for those that take longer.
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

// logStart and logEnd log the start and end of a call that runs here.
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

// end is the result of a call.
type end struct {
	known   bool
	text    string
	files   []store.File // images in its result
	outcome store.State
	started bool
	took    time.Duration

	digest string // of a pending call, and of exactly what would run
	allow  string // how an admin could let it run without approval
	args   json.RawMessage

	open    []store.Call // calls that an agent is waiting for
	replies []llm.Reply  // from an agent's models
}

// call makes a call, or reads its outcome if it was already made. If the returned end is
// not known, the call needs approval.
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
		c, err = llm.LastReplacement(ctx, e.Calls, c) // an approver may have edited it
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

// unattended reports whether an admin lets the project run the tool without approval. For a
// server that the request brings, the request must also ask for that; for a registered
// server it can't.
func (t offered) unattended(of project.Project) bool {
	switch t.Kind {
	case callable:
		return of.Unattends(t.Callable)
	case remote:
		return t.Approval == store.ApproveNever && slices.ContainsFunc(t.patterns(), of.Unattends)
	}
	return false
}

// patterns returns the names of a tool that an admin may allow, the shortest first.
func (t offered) patterns() []string {
	_, name, _ := strings.Cut(t.Callable, ":")
	if t.Kind == remote {
		return []string{slugOf(t.Label) + ":" + name, t.Label + ":" + name}
	}
	return []string{t.Callable}
}

// howAllowed returns how an admin could let a pending call run without approval, if the
// request wanted that. It returns "" if it did not, or if an admin could not allow it
// either.
func (e *Engine) howAllowed(ctx context.Context, of project.Project, t offered, c store.Call) string {
	if t.Kind != remote || t.Approval != store.ApproveNever || t.unattended(of) || e.RunsUnattended == nil || !e.RunsUnattended(ctx, of.Caller(), c) {
		return ""
	}
	pattern := t.patterns()[0]
	return fmt.Sprintf("tool %s of MCP server %s needs approval although require_approval is never: an admin can let it run without it (nizectl projects unattended %s --add %s)",
		strings.TrimPrefix(pattern, slugOf(t.Label)+":"), t.Label, of.Name, pattern)
}

// endOf returns the result of a call that has ended.
func endOf(c store.Call, limit int) end {
	out := end{known: true, text: llm.OutcomeText(c, limit), files: llm.ResultPictures(c), outcome: c.State, started: !c.Started.IsZero()}
	if out.started && c.Finished.After(c.Started) {
		out.took = c.Finished.Sub(c.Started)
	}
	return out
}
