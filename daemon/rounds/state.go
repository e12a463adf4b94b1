package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"nize/store"
	"nize/store/project"
)

// The kinds of a tool.
const (
	callable = "callable"
	function = "function"
	remote   = "mcp"
	agent    = "agent" // a callable of its own kind
)

// offered is a tool under the name by which the model knows it.
type offered struct {
	Kind     string         `json:"kind"`
	Callable string         `json:"callable,omitempty"` // the tool's id; of the caller's own functions none
	Function store.Function `json:"function"`
	Label    string         `json:"label,omitempty"` // of a server that the request brought
	Approval store.Approval `json:"approval,omitempty"`
	Origin   string         `json:"origin,omitempty"` // server and tool, as the conversation pins them
	Pin      string         `json:"pin,omitempty"`    // hash of the definition
}

// runsHere says whether nize runs a tool of that kind.
func runsHere(kind string) bool { return kind == callable || kind == remote || kind == agent }

// proposal is a call of the last step, or one that an agent which it calls wants to
// make and that waits for a yes.
type proposal struct {
	ID      string          `json:"id"`
	In      string          `json:"in,omitempty"` // of an agent's: the call of that agent
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind"`
	Args    json.RawMessage `json:"args"`
	Digest  string          `json:"digest"`
	Approve *bool           `json:"approve,omitempty"` // what the caller decided
	Output  *string         `json:"output,omitempty"`  // what the caller's function came to
	Done    bool            `json:"done,omitempty"`    // its result stands in the conversation
	Told    told            `json:"told,omitempty"`    // the last event about it
	Allow   string          `json:"allow,omitempty"`   // how it could run without a person

	unmade bool // its id was made now, and no call has it
}

// told is the last event about a call.
type told int

const (
	toldNothing told = iota
	toldProposed
	toldStarted
)

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
	Finish       string      `json:"finish,omitempty"` // of the message of a round that is completed
	Fault        *Error      `json:"fault,omitempty"`
	Proposals    []*proposal `json:"proposals,omitempty"` // of the last step
	Earlier      []*proposal `json:"earlier,omitempty"`   // decided ones of the steps before
	Warnings     []string    `json:"warnings,omitempty"`
	// Pins are the definitions that the conversation has met, by their origin.
	Pins map[string]string `json:"pins,omitempty"`
	Log  []event           `json:"log,omitempty"`

	sent int // of the log before this request

	thread *store.Thread // its conversation, where that is not stored yet
	turns  []store.Turn  // the conversation's, once they were read
	stored int           // how many of them are stored
}

// say appends a turn to the conversation. It is stored with the state.
func (s *state) say(t store.Turn) {
	t.Thread, t.N = s.Conversation, len(s.turns)
	s.turns = append(s.turns, t)
}

// answered says whether a call has a result in the conversation.
func (s *state) answered(call string) bool {
	return slices.ContainsFunc(s.turns, func(t store.Turn) bool { return t.Role == store.FromTool && t.CallID == call })
}

// open says whether there is something to do or to wait for.
func (s *state) open() bool {
	return s.Status == "" || s.Status == RequiresApproval || s.Status == RequiresAction
}

// stopped is what is said of a round that nobody works on, although it has not
// ended.
func stopped() *Error {
	return &Error{Type: Internal, Message: "the round was cut off: go on with it by its round_id", status: http.StatusInternalServerError}
}

func (s *state) answer() Answer {
	a := Answer{ID: s.ID, ConversationID: s.Conversation, Status: s.Status, Message: s.Message, ProposedCalls: []Proposed{}, Usage: s.Usage, Steps: s.Steps, Error: s.Fault, Finish: s.Finish, Warnings: s.Warnings}
	if s.Status == "" {
		a.Status, a.Error = Failed, stopped()
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

// tool is the one that the model knows by that name.
func (s *state) tool(name string) (none offered) {
	if i := slices.IndexFunc(s.Tools, func(t offered) bool { return t.Function.Name == name }); i >= 0 {
		return s.Tools[i]
	}
	return none
}

// Load returns what a round came to, when nobody works on it any more.
func (e *Engine) Load(ctx context.Context, of project.Project, id string) (Answer, error) {
	s, err := e.load(ctx, of, id)
	if err != nil {
		return Answer{}, err
	}
	leave, err := e.enter(ctx, s.Conversation)
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

// recordTime is how long storing may take when the caller has left.
const recordTime = 10 * time.Second

// save stores the state and what was said since it was last stored, in one
// transaction. If that need not be durable by itself, it is with what comes after
// it: the next save, and the record of a call before it is sent.
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

// readTurns reads the conversation, if it was not read yet.
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
