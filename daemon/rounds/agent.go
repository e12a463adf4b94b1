package rounds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/llm"
	"nize/store"
	"nize/store/project"
)

// An agent is called as in a conversation (llm.Agent.RunTask). Its turns are stored in the
// round's conversation, marked with the call, and its own calls go through the gateway on
// behalf of the project. If these need approval, they become proposed calls of the round
// beside its own, under the tool's id. Once they are decided, the agent is run again and
// continues from its turns.

// agentCallable is the prefix of an agent's id.
const agentCallable = "agent:"

// readAgent validates a callable that is an agent.
func (e *Engine) readAgent(ctx context.Context, of project.Project, id, param string) (one offered, _ error) {
	a, err := e.FindAgent(ctx, of.Caller(), id)
	if errors.Is(err, store.ErrNotFound) {
		return one, missing("callable", agentCallable+id, param+".callable_id")
	}
	if err != nil {
		return one, err
	}
	return offered{Kind: agent, Callable: agentCallable + a.ID, Function: llm.AgentFunction(a.ID, a)}, nil
}

// callAgent runs an agent until it has answered, or until all its open calls need approval.
func (e *Engine) callAgent(ctx context.Context, of project.Project, s *state, p *proposal) (out end, _ error) {
	by, began := of.Caller(), e.Now()
	var mu sync.Mutex // nested agents may call models concurrently
	task := llm.Task{Thread: s.Conversation, Call: p.ID, Agent: strings.TrimPrefix(s.tool(p.Tool).Callable, agentCallable), Args: string(p.Args), By: by, Team: by.User,
		Counted: func(r llm.Reply) {
			mu.Lock()
			defer mu.Unlock()
			out.replies = append(out.replies, r)
		}}
	for {
		got, err := e.RunAgent(ctx, task)
		if err != nil {
			return out, err
		}
		if got.Done {
			out.known, out.started, out.text, out.took, out.outcome = true, true, got.Text, max(e.Now().Sub(began), time.Millisecond), store.Done
			if got.Failed {
				out.outcome = store.Failed
			}
			return out, nil
		}
		// If none is open, one ended after the agent had checked.
		if len(got.Open) > 0 && !slices.ContainsFunc(got.Open, func(c store.Call) bool { return !c.Waiting() }) {
			out.open = got.Open
			return out, nil
		}
		for _, c := range got.Open {
			if !c.Waiting() {
				if _, err := e.Gateway.Wait(ctx, c.ID); err != nil {
					return out, err
				}
			}
		}
	}
}

// propose adds the calls that an agent is waiting for.
func (s *state) propose(of *proposal, waiting []store.Call) {
	for _, c := range waiting {
		if slices.ContainsFunc(s.Proposals, func(p *proposal) bool { return p.ID == c.ID }) {
			continue
		}
		p := &proposal{ID: c.ID, In: of.ID, Tool: c.ToolID(), Kind: callable, Args: c.Args, Digest: c.Digest, Told: toldProposed}
		s.Proposals = append(s.Proposals, p)
		s.log(toolProposed, s.proposed(p))
	}
}

// settleNested records the outcome of the calls that agents wait for. Their results belong
// to the agents.
func (e *Engine) settleNested(ctx context.Context, s *state) error {
	limit := store.GetInt(e.Config, "", "results.max_model_bytes")
	for _, p := range s.Proposals {
		if p.Done || p.In == "" {
			continue
		}
		c, err := e.Calls.GetCall(ctx, p.ID)
		if err != nil {
			return err
		}
		if c.State.Final() {
			p.Done = true
			s.logEnd(p, endOf(c, limit))
		}
	}
	return nil
}
