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
//	    ├─ a function        ──► waits for its output
//	    └─ unknown, no JSON  ──► the model is told so
//	every call has a result  ──► the model again, until max_steps
//	one waits                ──► the state is stored and answered
//
// Work on one conversation is done by one request at a time; another waits for
// it, and sees what it did.
package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
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

// Options is what the engine works with.
type Options struct {
	Threads interface {
		llm.Threads
		PutThread(ctx context.Context, by store.Caller, t store.Thread) error
	}
	Calls interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
	}
	Rounds   project.Rounds
	Models   llm.Models
	Gateway  Gateway
	FindTool FindTool
	// CheckModel says whether a model can be asked by that name.
	CheckModel func(ctx context.Context, name string) error
	Config     store.Config // agent.tools.maxSteps, results.max_model_bytes
	Now        func() time.Time
	Log        *slog.Logger
}

// Engine runs rounds. It is safe for concurrent use.
type Engine struct {
	Options

	mu   sync.Mutex // guards busy
	busy map[string]*lock
}

// New returns an engine.
func New(o Options) *Engine { return &Engine{Options: o, busy: map[string]*lock{}} }

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

// The kinds of a tool.
const (
	callable = "callable"
	function = "function"
)

// offered is a tool under the name by which the model knows it.
type offered struct {
	Kind     string         `json:"kind"`
	Callable string         `json:"callable,omitempty"` // the tool's id
	Function store.Function `json:"function"`
}

// proposal is a call of the last step.
type proposal struct {
	ID      string          `json:"id"`
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind"`
	Args    json.RawMessage `json:"args"`
	Digest  string          `json:"digest"`
	Approve *bool           `json:"approve,omitempty"` // what the caller decided
	Output  *string         `json:"output,omitempty"`  // what the caller's function came to
	Done    bool            `json:"done,omitempty"`    // its result stands in the conversation
}

// state is a round as it is stored.
type state struct {
	ID           string      `json:"id"`
	Project      string      `json:"project"`
	Conversation string      `json:"conversation"`
	Model        string      `json:"model"`
	System       string      `json:"system,omitempty"`
	Temperature  *float64    `json:"temperature,omitempty"`
	MaxTokens    int         `json:"max_tokens,omitempty"`
	MaxSteps     int         `json:"max_steps"`
	Tools        []offered   `json:"tools"`
	Status       string      `json:"status"`
	Steps        int         `json:"steps"`
	Usage        Usage       `json:"usage"`
	Unpriced     bool        `json:"unpriced,omitempty"`
	Message      *Said       `json:"message,omitempty"`
	Fault        *Error      `json:"fault,omitempty"`
	Proposals    []*proposal `json:"proposals,omitempty"` // of the last step
	Earlier      []*proposal `json:"earlier,omitempty"`   // decided ones of the steps before
}

func (s *state) answer() Answer {
	a := Answer{ID: s.ID, ConversationID: s.Conversation, Status: s.Status, Message: s.Message, ProposedCalls: []Proposed{}, Usage: s.Usage, Steps: s.Steps, Error: s.Fault}
	if s.Status == RequiresApproval || s.Status == RequiresAction {
		for _, p := range s.Proposals {
			if !p.Done && (s.Status == RequiresAction || p.Kind == callable) {
				a.ProposedCalls = append(a.ProposedCalls, Proposed{ID: p.ID, Tool: p.Tool, Arguments: p.Args, Digest: p.Digest})
			}
		}
	}
	return a
}

// Run begins a round, or goes on with one, for a project. The error is an [*Error]
// for what the caller did, and another one for what is nize's own.
func (e *Engine) Run(ctx context.Context, of project.Project, req Request) (Answer, error) {
	if req.RoundID != "" {
		return e.resume(ctx, of, req)
	}
	s, turns, err := e.begin(ctx, of, req)
	if err != nil {
		return Answer{}, err
	}
	leave, err := e.enter(ctx, s.Conversation)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	if err := e.open(ctx, of, s, req.ConversationID, turns); err != nil {
		return Answer{}, err
	}
	return e.work(ctx, of, s)
}

// Load returns what a round came to so far.
func (e *Engine) Load(ctx context.Context, of project.Project, id string) (Answer, error) {
	s, err := e.load(ctx, of, id)
	if err != nil {
		return Answer{}, err
	}
	return s.answer(), nil
}

func (e *Engine) load(ctx context.Context, of project.Project, id string) (*state, error) {
	r, err := e.Rounds.GetRound(ctx, of.ID, id)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return nil, missing("round", id, "round_id")
	}
	if err != nil {
		return nil, err
	}
	s := new(state)
	if err := json.Unmarshal(r.State, s); err != nil {
		return nil, fmt.Errorf("reading round %s: %w", id, err)
	}
	return s, nil
}

// recordTime is how long storing may take when the caller has left.
const recordTime = 10 * time.Second

func (e *Engine) save(ctx context.Context, s *state) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return e.Rounds.PutRound(ctx, project.Round{ID: s.ID, Project: s.Project, Conversation: s.Conversation, State: raw})
}

// open makes the conversation or looks at the one that is continued, and appends
// the messages.
func (e *Engine) open(ctx context.Context, of project.Project, s *state, continued string, turns []store.Turn) error {
	by := of.Caller()
	if continued == "" {
		th := store.Thread{ID: s.Conversation, User: by.User, Model: s.Model, Address: store.Address{Surface: store.OnHTTP, Team: by.User, Channel: s.Conversation}}
		if err := e.Threads.PutThread(ctx, by, th); err != nil {
			return fmt.Errorf("storing the conversation: %w", err)
		}
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
		if before.Status == RequiresApproval || before.Status == RequiresAction || before.Status == "" {
			return conflict("conversation_id", "round %s of this conversation has not ended: go on with it first", last)
		}
		if s.System == "" {
			s.System = before.System
		}
	}
	old, err := e.Threads.Turns(ctx, s.Conversation)
	if err != nil {
		return err
	}
	for i, t := range turns {
		t.Thread, t.N, t.By = s.Conversation, len(old)+i, by
		if err := e.Threads.Append(ctx, by, t, false); err != nil {
			return fmt.Errorf("storing a message: %w", err)
		}
	}
	return e.save(ctx, s)
}

// work does the next thing until the model has answered or somebody must be waited
// for.
func (e *Engine) work(ctx context.Context, of project.Project, s *state) (Answer, error) {
	for {
		waits, err := e.settle(ctx, of, s)
		if err != nil {
			return Answer{}, err
		}
		switch {
		case waits != "":
			s.Status, s.Message = waits, nil
		case s.Steps >= s.MaxSteps:
			s.Status = MaxSteps
		default:
			if err := e.step(ctx, of, s); err != nil {
				return Answer{}, err
			}
			if s.Status == "" {
				continue
			}
		}
		return s.answer(), e.save(ctx, s)
	}
}

// step asks the model once.
func (e *Engine) step(ctx context.Context, of project.Project, s *state) error {
	by := of.Caller()
	turns, err := e.Threads.Turns(ctx, s.Conversation)
	if err != nil {
		return fmt.Errorf("reading the conversation: %w", err)
	}
	functions := make([]store.Function, len(s.Tools))
	for i, t := range s.Tools {
		functions[i] = t.Function
	}
	req := llm.Request{System: s.System, Turns: forModel(turns), Functions: functions, MaxTokens: s.MaxTokens, Temperature: s.Temperature,
		Bill: &llm.Bill{By: by, Team: by.User, Thread: s.Conversation}}
	reply, err := e.Models.Generate(ctx, s.Model, req, nil)
	s.count(reply)
	if err == nil {
		reply, err = llm.CheckReply(reply)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // the caller has left; what was done stands in the conversation
		}
		s.Status, s.Fault = Failed, e.fault(err)
		return nil
	}
	s.Steps++
	s.Earlier = append(s.Earlier, s.Proposals...)
	s.Proposals = nil
	for i := range reply.Calls {
		reply.Calls[i].ID = store.NewID(e.Now())
	}
	t := store.Turn{Thread: s.Conversation, N: len(turns), Role: store.FromModel, Text: reply.Text, Calls: reply.Calls, Opaque: reply.Opaque, Model: reply.Model}
	if err := e.Threads.Append(ctx, by, t, false); err != nil {
		return fmt.Errorf("storing the model's answer: %w", err)
	}
	s.Message = &Said{"assistant", reply.Text}
	if len(reply.Calls) == 0 {
		s.Status = Completed
		return nil
	}
	for _, c := range reply.Calls {
		s.Proposals = append(s.Proposals, s.proposalOf(c))
	}
	return e.save(ctx, s) // before any of them runs
}

// forModel frames what came from tools, since it is data.
func forModel(turns []store.Turn) []store.Turn {
	out := slices.Clone(turns)
	for i := range out {
		if out[i].Role == store.FromTool {
			out[i].Text = llm.Frame(out[i].Text)
		}
	}
	return out
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
func (e *Engine) fault(err error) *Error {
	var full *store.BudgetError
	if errors.As(err, &full) {
		return &Error{Type: Budget, Message: full.Error(), status: http.StatusTooManyRequests}
	}
	e.Log.Warn("a round failed", "err", err)
	return &Error{Type: Upstream, Message: llm.Sentence(err).String(), status: http.StatusBadGateway}
}

// proposalOf reads a call of the model's. One that can't be made has no kind, and
// its result says why.
func (s *state) proposalOf(c store.ToolCall) *proposal {
	p := &proposal{ID: c.ID, Tool: c.Name}
	i := slices.IndexFunc(s.Tools, func(t offered) bool { return t.Function.Name == c.Name })
	if i < 0 {
		var names []string
		for _, t := range s.Tools {
			names = append(names, t.Function.Name)
		}
		return p.refused("There is no tool of that name. There are: " + strings.Join(names, ", ") + ".")
	}
	args := c.Args
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	canonical, err := store.Canonical([]byte(args))
	if err != nil || len(canonical) == 0 || canonical[0] != '{' {
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
func (e *Engine) settle(ctx context.Context, of project.Project, s *state) (waits string, err error) {
	results := make([]*string, len(s.Proposals))
	errs := make([]error, len(s.Proposals))
	var running sync.WaitGroup
	for i, p := range s.Proposals {
		if p.Done {
			continue
		}
		if p.Kind != callable {
			results[i] = p.Output
			continue
		}
		running.Go(func() { results[i], errs[i] = e.call(ctx, of, s, p) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	turns, err := e.Threads.Turns(ctx, s.Conversation)
	if err != nil {
		return "", err
	}
	n := len(turns)
	for i, p := range s.Proposals {
		if p.Done {
			continue
		}
		if results[i] == nil {
			if p.Kind == callable {
				waits = RequiresApproval
			} else if waits == "" {
				waits = RequiresAction
			}
			continue
		}
		p.Done = true
		if slices.ContainsFunc(turns, func(t store.Turn) bool { return t.Role == store.FromTool && t.CallID == p.ID }) {
			continue // it was written before a restart
		}
		t := store.Turn{Thread: s.Conversation, N: n, Role: store.FromTool, CallID: p.ID, Text: *results[i]}
		if err := e.Threads.Append(ctx, of.Caller(), t, false); err != nil {
			return "", fmt.Errorf("storing a result: %w", err)
		}
		n++
	}
	return waits, nil
}

// call makes a call, or looks at what became of it. Without a result it waits for
// a yes.
func (e *Engine) call(ctx context.Context, of project.Project, s *state, p *proposal) (*string, error) {
	limit := store.GetInt(e.Config, "", "results.max_model_bytes")
	c, err := e.Calls.GetCall(ctx, p.ID)
	if errors.Is(err, store.ErrNotFound) {
		i := slices.IndexFunc(s.Tools, func(t offered) bool { return t.Function.Name == p.Tool })
		var made *store.Call
		made, err = e.Gateway.Call(ctx, of.Caller(), store.Request{ID: p.ID, Tool: s.Tools[i].Callable, Args: p.Args, Thread: s.Conversation})
		var refused *store.CallError
		if errors.As(err, &refused) {
			text := "The call was not made: " + refused.Message.String()
			return &text, nil
		}
		if made != nil {
			c = *made
		}
	}
	if err != nil {
		return nil, err
	}
	if c.Waiting() {
		p.Digest, p.Args = c.Digest, c.Args
		return nil, nil
	}
	if !c.State.Final() {
		ended, err := e.Gateway.Wait(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		c = *ended
	}
	text := llm.OutcomeText(c, limit)
	return &text, nil
}

// resume goes on with a round that waits.
func (e *Engine) resume(ctx context.Context, of project.Project, req Request) (Answer, error) {
	if req.Model != "" || req.Messages != nil || req.Tools != nil || req.ConversationID != "" {
		return Answer{}, Invalid("round_id", "round_id goes with approvals and tool_outputs alone")
	}
	s, err := e.load(ctx, of, req.RoundID)
	if err != nil {
		return Answer{}, err
	}
	leave, err := e.enter(ctx, s.Conversation)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	if s, err = e.load(ctx, of, req.RoundID); err != nil { // as it is now
		return Answer{}, err
	}
	decide, err := s.take(req)
	if err != nil {
		return Answer{}, err
	}
	for _, p := range decide {
		if err := e.decide(ctx, of, p); err != nil {
			return Answer{}, err
		}
	}
	switch s.Status {
	case RequiresApproval, RequiresAction, "": // "" died with the process
		s.Status = ""
		if err := e.save(ctx, s); err != nil {
			return Answer{}, err
		}
		return e.work(ctx, of, s)
	}
	return s.answer(), nil
}

// take checks what the caller sends, all of it before any counts, and notes it.
// It returns the calls whose decision is new.
func (s *state) take(req Request) (decide []*proposal, _ error) {
	find := func(id, kind, param string) (*proposal, error) {
		for _, p := range slices.Concat(s.Proposals, s.Earlier) {
			if p.ID == id && p.Kind == kind {
				return p, nil
			}
		}
		return nil, missing("call", id, param)
	}
	var note []func()
	for i, a := range req.Approvals {
		param := fmt.Sprintf("approvals[%d]", i)
		p, err := find(a.ID, callable, param+".id")
		switch {
		case err != nil:
			return nil, err
		case a.Approve == nil:
			return nil, Invalid(param+".approve", "%s.approve is required", param)
		case a.Digest != p.Digest:
			return nil, conflict(param+".digest", "%s.digest is not that of call %s: look at the call again", param, p.ID)
		case p.Approve != nil && *p.Approve != *a.Approve:
			return nil, conflict(param+".approve", "call %s was decided otherwise", p.ID)
		case p.Approve == nil && p.Done:
			return nil, conflict(param+".id", "call %s needs no decision any more", p.ID)
		case p.Approve == nil:
			note = append(note, func() { p.Approve = a.Approve })
			decide = append(decide, p)
		case !p.Done: // a repeated one that a restart may have come between
			decide = append(decide, p)
		}
	}
	for i, o := range req.ToolOutputs {
		param := fmt.Sprintf("tool_outputs[%d]", i)
		p, err := find(o.ID, function, param+".id")
		switch {
		case err != nil:
			return nil, err
		case o.Output == nil:
			return nil, Invalid(param+".output", "%s.output is required", param)
		case p.Output != nil && *p.Output != *o.Output:
			return nil, conflict(param+".output", "call %s has another output already", p.ID)
		}
		note = append(note, func() { p.Output = o.Output })
	}
	for _, do := range note {
		do()
	}
	return decide, nil
}

// decide carries a decision to the gateway.
func (e *Engine) decide(ctx context.Context, of project.Project, p *proposal) error {
	verb := store.Deny
	if *p.Approve {
		verb = store.Approve
	}
	by := of.Caller()
	c, err := e.Gateway.Decide(ctx, by, p.ID, store.Decision{Verb: verb, Digest: p.Digest})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrDecided) && c != nil && slices.ContainsFunc(c.Decisions, func(d store.Decision) bool { return d.By == by.User && d.Verb == verb }):
		return nil // before a restart
	case errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrConflict):
		return conflict("approvals", "%s", err)
	case errors.Is(err, store.ErrRefused):
		return &Error{Type: InvalidRequest, Message: err.Error(), Param: "approvals", status: http.StatusForbidden}
	}
	return err
}
