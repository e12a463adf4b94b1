package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/project"
)

// The kinds of a tool.
const (
	callable = "callable"
	function = "function"
	remote   = "mcp"
	agent    = "agent" // a special callable
)

// offered is a tool under the name that the model sees.
type offered struct {
	Kind     string         `json:"kind"`
	Callable string         `json:"callable,omitempty"` // the tool's id; empty for the caller's own functions
	Function store.Function `json:"function"`
	Label    string         `json:"label,omitempty"` // server that the request brought
	Approval store.Approval `json:"approval,omitempty"`
	Origin   string         `json:"origin,omitempty"` // server and tool, the key of its pin
	Pin      string         `json:"pin,omitempty"`    // hash of the definition
}

// runsHere reports whether nize runs tools of that kind.
func runsHere(kind string) bool { return kind == callable || kind == remote || kind == agent }

// proposal is a call of the last step, or a call of an agent in that step that needs
// approval.
type proposal struct {
	ID      string          `json:"id"`
	In      string          `json:"in,omitempty"` // for an agent's call: the call of that agent
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind"`
	Args    json.RawMessage `json:"args"`
	Digest  string          `json:"digest"`
	Approve *bool           `json:"approve,omitempty"` // the caller's decision
	Output  *string         `json:"output,omitempty"`  // the output of the caller's function
	Done    bool            `json:"done,omitempty"`    // its result is in the conversation
	Told    told            `json:"told,omitempty"`    // the last event sent about it
	Allow   string          `json:"allow,omitempty"`   // how an admin could let it run without approval

	unmade bool // its id is new, so no call has it yet
}

// told is the last event sent about a call.
type told int

const (
	toldNothing told = iota
	toldProposed
	toldStarted
)

// state is a round as stored.
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
	Finish       string      `json:"finish,omitempty"` // finish reason of a completed round's message
	Fault        *Error      `json:"fault,omitempty"`
	Proposals    []*proposal `json:"proposals,omitempty"` // of the last step
	Earlier      []*proposal `json:"earlier,omitempty"`   // decided ones of earlier steps
	Warnings     []string    `json:"warnings,omitempty"`
	// Pins are the definitions that the conversation has pinned, by origin.
	Pins map[string]string `json:"pins,omitempty"`
	Log  []event           `json:"log,omitempty"`

	sent int // length of the log before this request

	thread *store.Thread // its conversation, if that is not stored yet
	turns  []store.Turn  // the conversation's turns, once they are read
	stored int           // number of stored turns
}

// say appends a turn to the conversation. It is stored together with the state.
func (s *state) say(t store.Turn) {
	t.Thread, t.N = s.Conversation, len(s.turns)
	s.turns = append(s.turns, t)
}

// answered reports whether a call has a result in the conversation.
func (s *state) answered(call string) bool {
	return slices.ContainsFunc(s.turns, func(t store.Turn) bool { return t.Role == store.FromTool && t.CallID == call })
}

// open reports whether the round has not ended.
func (s *state) open() bool {
	return s.Status == "" || s.Status == RequiresApproval || s.Status == RequiresAction
}

// stopped returns the error of a round that has not ended but that no request is working
// on.
func stopped() *api.Error {
	return &api.Error{Code: "internal", Message: "the round was interrupted: continue it by its round_id"}
}

func (s *state) answer() Answer {
	a := Answer{ID: s.ID, ConversationID: s.Conversation, Status: s.Status, Message: s.Message, ProposedCalls: []Proposed{}, Usage: s.Usage, Steps: s.Steps, Error: s.Fault, Finish: s.Finish, Warnings: s.Warnings}
	if s.Status == "" {
		a.Status, a.Error = Failed, shown(stopped())
	}
	if s.Status == RequiresApproval || s.Status == RequiresAction {
		for _, p := range s.Proposals {
			if !p.Done && p.Kind != agent && (s.Status == RequiresAction || runsHere(p.Kind)) {
				a.ProposedCalls = append(a.ProposedCalls, s.proposed(p))
				if p.Allow != "" && !slices.Contains(a.Warnings, p.Allow) {
					a.Warnings = append(slices.Clip(a.Warnings), p.Allow)
				}
			}
		}
	}
	return a
}

func (s *state) proposed(p *proposal) Proposed {
	out := Proposed{ID: p.ID, Tool: p.Tool, Arguments: p.Args, Digest: p.Digest}
	if label := s.tool(p.Tool).Label; label != "" {
		out.ServerLabel = &label
	}
	return out
}

// tool returns the tool of that name in the model's list.
func (s *state) tool(name string) (none offered) {
	if i := slices.IndexFunc(s.Tools, func(t offered) bool { return t.Function.Name == name }); i >= 0 {
		return s.Tools[i]
	}
	return none
}

// Load returns the result of a round. It waits until no request is working on the round.
func (e *Engine) Load(ctx context.Context, of project.Project, id string) (Answer, error) {
	s, err := e.load(ctx, of, id)
	if err != nil {
		return Answer{}, err
	}
	leave, err := e.conversations.Lock(ctx, s.Conversation)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	if s, err = e.load(ctx, of, id); err != nil {
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
	s.sent = len(s.Log)
	return s, nil
}

// recordTime is the timeout of storing, which continues after the caller has disconnected.
const recordTime = 10 * time.Second

// save stores the state and the new turns in one transaction. If durable is false, they
// become durable with the next durable write: the next save, or the record of a call before
// it is sent.
func (e *Engine) save(ctx context.Context, s *state, durable bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	step := project.Step{Round: project.Round{ID: s.ID, Project: s.Project, Conversation: s.Conversation, State: raw}, Thread: s.thread, Turns: s.turns[s.stored:]}
	if err := e.Rounds.PutRound(ctx, step, durable); err != nil {
		return fmt.Errorf("storing a round: %w", err)
	}
	s.thread, s.stored = nil, len(s.turns)
	return nil
}

// readTurns reads the conversation, unless it is already read.
func (e *Engine) readTurns(ctx context.Context, s *state) (err error) {
	if s.turns != nil || s.thread != nil {
		return nil
	}
	if s.turns, err = e.Threads.Turns(ctx, s.Conversation); err != nil {
		return fmt.Errorf("reading the conversation: %w", err)
	}
	s.stored = len(s.turns)
	return nil
}
