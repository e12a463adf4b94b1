package rounds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/store"
	"nize/store/project"
)

// resume accepts the caller's decisions and outputs for a waiting round.
func (e *Engine) resume(ctx context.Context, of project.Project, req Request, streamed bool) (_ *state, _ func(), err error) {
	if req.Model != "" || req.Messages != nil || req.Tools != nil || req.ConversationID != "" {
		return nil, nil, Invalid("round_id", "round_id goes with approvals and tool_outputs alone")
	}
	s, err := e.load(ctx, of, req.RoundID)
	if err != nil {
		return nil, nil, err
	}
	release, err := e.conversations.Lock(ctx, s.Conversation)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if s, err = e.load(ctx, of, req.RoundID); err != nil { // reload it under the lock
		return nil, nil, err
	}
	decide, err := s.take(req)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range decide {
		if err := e.decide(ctx, of, p); err != nil {
			return nil, nil, err
		}
	}
	if s.open() {
		if s.Status == "" { // partial text that a client may have received is not continued
			s.log("error", FailureOf(stopped()))
		}
		s.Status = ""
		err = e.save(ctx, s, streamed)
	}
	return s, release, err
}

// take validates all decisions and outputs of a request before it records any. It returns
// the calls whose decision is new.
func (s *state) take(req Request) (decide []*proposal, _ error) {
	find := func(id string, here bool, param string) (*proposal, error) {
		for _, p := range slices.Concat(s.Proposals, s.Earlier) {
			if p.ID == id && p.Kind != "" && p.Kind != agent && runsHere(p.Kind) == here {
				return p, nil
			}
		}
		return nil, missing("call", id, param)
	}
	approve, output := map[*proposal]*bool{}, map[*proposal]*string{} // from this request
	for i, a := range req.Approvals {
		param := fmt.Sprintf("approvals[%d]", i)
		p, err := find(a.ID, true, param+".id")
		switch {
		case err != nil:
			return nil, err
		case a.Approve == nil:
			return nil, Invalid(param+".approve", "%s.approve is required", param)
		case a.Digest != p.Digest:
			return nil, conflict(param+".digest", "%s.digest is not that of call %s: look at the call again", param, p.ID)
		case differs(cmp.Or(p.Approve, approve[p]), a.Approve):
			return nil, conflict(param+".approve", "call %s has a different decision", p.ID)
		case p.Approve == nil && p.Done:
			return nil, conflict(param+".id", "call %s no longer needs a decision", p.ID)
		case approve[p] != nil: // a duplicate in this request
		case p.Approve == nil:
			approve[p] = a.Approve
			decide = append(decide, p)
		case !p.Done: // repeated: a restart may have prevented the first from taking effect
			decide = append(decide, p)
		}
	}
	for i, o := range req.ToolOutputs {
		param := fmt.Sprintf("tool_outputs[%d]", i)
		p, err := find(o.ID, false, param+".id")
		switch {
		case err != nil:
			return nil, err
		case o.Output == nil:
			return nil, Invalid(param+".output", "%s.output is required", param)
		}
		if differs(cmp.Or(p.Output, output[p]), o.Output) {
			return nil, conflict(param+".output", "call %s has another output already", p.ID)
		}
		output[p] = o.Output
	}
	for p, said := range approve {
		p.Approve = said
	}
	for p, said := range output {
		p.Output = said
	}
	return decide, nil
}

// differs reports whether there is an earlier value and it is different.
func differs[T comparable](before, now *T) bool { return before != nil && *before != *now }

// decide passes a decision to the gateway.
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
		return nil // decided before a restart
	case errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrConflict):
		return conflict("approvals", "%s", err)
	case errors.Is(err, store.ErrRefused):
		return &api.Error{Code: "refused", Message: err.Error(), Param: "approvals"}
	}
	return err
}
