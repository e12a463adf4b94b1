package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/question"
	"nize/mcp/taskwire"
	"nize/store"
	"nize/store/project"
)

// A server may ask the person behind a call something while the call runs. Only the
// requester of the call is asked: their MCP client if it can ask its person, and
// otherwise a card on the surface on which they made the call. If neither is possible,
// the question is declined.
//
// A question on a card is a call of its own that nize only decides on
// ([store.Question]), so it is stored, delivered and settled once like any other card.
// Questions to clients are kept in memory: the call that they belong to doesn't survive
// this process either, unless its server has a task for it, which asks again.

// AskRequester puts a question of a running call's server to the requester and waits
// for the answer until ctx ends. It returns a [store.CallError] if the question is
// refused.
func (g *Gateway) AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	q, defaults, err := question.Read(e)
	if err != nil {
		g.log.Warn("a question of a server is refused", "call", c.ID, "tool", c.ToolID(), "err", err)
		g.questionEvent(c, "question.rejected", err.Error())
		return taskwire.Answer{}, err
	}
	q.Of = c.ID
	if err := g.executor.store(ctx, c); err != nil {
		return taskwire.Answer{}, err
	}
	session := g.waiters.sessionOf(c.ID)
	if c.ClientAsks(e.Mode) && (session != nil || !c.ClientAsks(onlySession)) {
		if a, err := g.questions.ask(ctx, c, q, e, session); err == nil {
			return a, nil
		}
		// Its session can't be asked now.
	}
	can, err := g.canAsk(ctx, c)
	if err != nil {
		return taskwire.Answer{}, err
	}
	if !can {
		g.questionEvent(c, "question.declined", "nobody can be asked")
		return taskwire.Answer{Action: taskwire.Decline}, nil
	}
	return g.askByCard(ctx, c, q, defaults)
}

func (g *Gateway) questionEvent(c *store.Call, kind, why string) {
	g.calls.AddEvent(store.System, store.Event{Kind: kind, Subject: c.ID, Tool: c.ToolID(), Data: mustJSON(map[string]string{"why": why})})
}

// canAsk reports whether the requester of a call has a place where a card reaches them.
// Programs and schedules have none, whoever started them.
func (g *Gateway) canAsk(ctx context.Context, c *store.Call) (bool, error) {
	if _, isProject := project.IDOf(c.By); isProject || c.Surface == store.OnHTTP || c.Surface == store.OnSystem {
		return false, nil
	}
	return g.Policy.HasPlace(ctx, c.By)
}

// askByCard stores a question as a call that waits for its requester and returns what
// they did. If ctx ends first, it withdraws the question.
func (g *Gateway) askByCard(ctx context.Context, of *store.Call, q store.Question, defaults json.RawMessage) (taskwire.Answer, error) {
	now := g.now()
	c := store.Call{
		ID: store.NewID(now), Server: of.Server, Tool: of.Tool, Args: defaults, Pin: of.Pin, Thread: of.Thread, Agent: of.Agent,
		By: of.By, ByName: of.ByName, Surface: of.Surface, Token: of.Token, RunsAs: of.RunsAs, Policy: store.ByRequester,
		Private: true, Asked: store.Asked{InPrivateTurn: true}, Question: &q, State: store.Pending, Owner: g.executor.owner,
		Created: now, Expires: now.Add(store.GetSpan(g.config, "", expiryKey(store.ByRequester))),
	}
	c.Digest = c.ComputeDigest()
	if err := g.storeQuestion(ctx, c); err != nil {
		return taskwire.Answer{}, err
	}
	if progress := g.waiters.progressOf(of.ID); progress != nil {
		progress(0, 0, fmt.Sprintf("%s asks you something: nizectl approvals answer %s", of.ToolID(), c.ID))
	}
	answered, err := g.Wait(ctx, c.ID)
	switch {
	case err != nil && ctx.Err() != nil:
		g.withdrawQuestion(ctx, c.ID, store.Textf("the call that asked has ended"))
		return taskwire.Answer{Action: taskwire.Cancel}, nil
	case err != nil:
		g.withdrawQuestion(ctx, c.ID, store.Textf("the call that asked has ended"))
		return taskwire.Answer{}, err
	case answered.State == store.Approved && len(q.Schema) > 0:
		return taskwire.Answer{Action: taskwire.Accept, Content: answered.Args}, nil
	case answered.State == store.Approved:
		return taskwire.Answer{Action: taskwire.Accept}, nil
	case answered.State == store.Refused:
		return taskwire.Answer{Action: taskwire.Decline}, nil
	}
	return taskwire.Answer{Action: taskwire.Cancel}, nil
}

// storeQuestion stores a question within the limits on waiting calls.
func (g *Gateway) storeQuestion(ctx context.Context, c store.Call) error {
	defer g.waits.lock(c.By)()
	counted, err := g.checkWaiting(ctx, c)
	if err != nil {
		return err
	}
	defer counted()
	if err := g.calls.Begin(ctx, store.System, c); err != nil {
		return fmt.Errorf("storing a question: %w", err)
	}
	return nil
}

// withdrawQuestion cancels a question whose answer nothing waits for any more.
func (g *Gateway) withdrawQuestion(ctx context.Context, id string, why store.Text) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := withdraw(ctx, g.calls, id, why, g.now()); err != nil {
		g.log.Error("withdrawing a question", "call", id, "err", err)
	}
}

// withdraw cancels a waiting call in nize's own name. It returns nil if the call was
// settled before.
func withdraw(ctx context.Context, calls CallStore, id string, why store.Text, now time.Time) error {
	d := store.Decision{Verb: store.Cancel, By: store.System.User, Name: store.System.Name, Surface: store.OnSystem, At: now, Reason: why, Auto: true}
	_, err := calls.Decide(ctx, store.System, id, d)
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		return nil
	}
	return err
}

// answerQuestion takes a decision on a question. Edit answers with the given values,
// Approve with the defaults of the form, Deny declines and Cancel dismisses.
func (g *Gateway) answerQuestion(ctx context.Context, by store.Caller, c store.Call, d store.Decision) (*store.Call, error) {
	switch d.Verb {
	case store.Edit, store.Approve:
		args := c.Args
		if d.Verb == store.Edit {
			var err error
			if args, err = canonicalAnswer(d.Args); err != nil {
				return nil, err
			}
		}
		if !c.Waiting() {
			return &c, tooLate(c.ID, c, store.ErrDecided)
		}
		if err := question.Check(*c.Question, args); err != nil {
			return &c, err
		}
		d.Verb, d.Args = store.Approve, args
	case store.Deny, store.Cancel:
		d.Args = nil
	default:
		return &c, store.Mark(store.Errorf("a question can only be answered, declined or cancelled"), store.ErrRefused)
	}
	if d.Always {
		return &c, store.Mark(store.Errorf("a question can only be answered, declined or cancelled"), store.ErrRefused)
	}
	settled, err := g.calls.Decide(ctx, by, c.ID, d)
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		return &settled, tooLate(c.ID, settled, err)
	}
	if err != nil {
		return nil, fmt.Errorf("answering question %s: %w", c.ID, err)
	}
	return &settled, nil
}

// NoteRemote stores that the server of a call has a task for it.
func (g *Gateway) NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error {
	if err := g.executor.store(ctx, c); err != nil {
		return err
	}
	return g.calls.NoteRemote(ctx, c.ID, t)
}

// canonicalAnswer returns the canonical form of the values of an answer; none are an
// empty object.
func canonicalAnswer(values json.RawMessage) (json.RawMessage, error) {
	canonical, err := store.Canonical(argsOf(store.Request{Args: values}))
	if err != nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("the answer is not valid JSON: %v", jsonProblem(err))}
	}
	return canonical, nil
}

// questions are those that wait for the client of their call.
type questions struct {
	mu     sync.Mutex
	number int
	open   map[string]map[string]*openQuestion // by call id and key
	asked  func(call string)                   // the questions of a call changed
}

// openQuestion is one of them.
type openQuestion struct {
	store.Question
	wire     taskwire.Elicit
	answered chan taskwire.Answer // 1: who answers never waits
}

// params are the question as its client gets it.
func (q *openQuestion) params(c *store.Call) *sdk.ElicitParams {
	p := &sdk.ElicitParams{Mode: q.wire.Mode, Message: clientMessage(c, q), URL: q.wire.URL, ElicitationID: q.wire.ID}
	if len(q.wire.Schema) > 0 && q.wire.Mode == "form" {
		p.RequestedSchema = q.wire.Schema
	}
	return p
}

// ask opens a question and waits for its answer until ctx ends. Without a session the client
// reads the question and answers it in requests. It returns an error if the session's client
// gave no answer.
func (qs *questions) ask(ctx context.Context, c *store.Call, q store.Question, e taskwire.Elicit, session sessionAsker) (taskwire.Answer, error) {
	call := c.ID
	one := &openQuestion{q, e, make(chan taskwire.Answer, 1)}
	qs.mu.Lock()
	qs.number++
	key := fmt.Sprintf("q%d-%s", qs.number, call)
	if qs.open[call] == nil {
		qs.open[call] = map[string]*openQuestion{}
	}
	qs.open[call][key] = one
	qs.mu.Unlock()
	defer qs.close(call, key)
	qs.asked(call)
	if session != nil {
		r, err := session(ctx, one.params(c))
		switch {
		case ctx.Err() != nil:
			return taskwire.Answer{Action: taskwire.Cancel}, nil
		case err != nil:
			return taskwire.Answer{}, err
		}
		if err := qs.answer(call, key, answerFrom(r)); err != nil {
			return taskwire.Answer{}, err
		}
	}
	select {
	case a := <-one.answered:
		return a, nil
	case <-ctx.Done():
		return taskwire.Answer{Action: taskwire.Cancel}, nil
	}
}

// answerFrom is what a client answered for its person.
func answerFrom(r *sdk.ElicitResult) taskwire.Answer {
	a := taskwire.Answer{Action: r.Action}
	if r.Action == taskwire.Accept && r.Content != nil {
		a.Content = mustJSON(r.Content)
	}
	return a
}

// close takes a question out; it may be out already.
func (qs *questions) close(call, key string) {
	qs.mu.Lock()
	was := qs.open[call][key] != nil
	delete(qs.open[call], key)
	if len(qs.open[call]) == 0 {
		delete(qs.open, call)
	}
	qs.mu.Unlock()
	if was {
		qs.asked(call)
	}
}

// of returns the open questions of a call by key; nil for none.
func (qs *questions) of(call string) map[string]*openQuestion {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return maps.Clone(qs.open[call])
}

// answer takes the answer of a client to one question. Keys that are not open, or no
// longer, are ignored. The error is a [store.CallError]: the question stays open.
func (qs *questions) answer(call, key string, a taskwire.Answer) error {
	one := qs.of(call)[key]
	if one == nil {
		return nil
	}
	if a.Action == taskwire.Accept {
		if len(one.Schema) == 0 {
			a.Content = nil
		}
		canonical, err := canonicalAnswer(a.Content)
		if err != nil {
			return err
		}
		if err := question.Check(one.Question, canonical); err != nil {
			return err
		}
		if a.Content = canonical; len(one.Schema) == 0 {
			a.Content = nil
		}
	}
	qs.close(call, key)
	select {
	case one.answered <- a:
	default: // two answers at once: the first counts
	}
	return nil
}

// inputs are the open questions of a call as requests for its client.
func (g *Gateway) inputs(c *store.Call) map[string]taskwire.Input {
	open := g.questions.of(c.ID)
	if len(open) == 0 {
		return nil
	}
	inputs := map[string]taskwire.Input{}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		e := open[key].wire
		e.Message = clientMessage(c, open[key])
		inputs[key] = taskwire.Input{Method: taskwire.MethodElicit, Params: mustJSON(e)}
	}
	return inputs
}

// clientMessage says who asks: to its person a client shows nize's name alone.
func clientMessage(c *store.Call, q *openQuestion) string {
	return strings.TrimSpace(fmt.Sprintf("%s asks: %s", c.ToolID(), q.Message))
}
