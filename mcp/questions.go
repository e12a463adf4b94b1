package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"nize/mcp/question"
	"nize/mcp/taskwire"
	"nize/store"
)

// A server may ask the person behind a call something while it works. The question goes
// to the MCP client that made the call, if that can ask its person; nobody else sees or
// answers it. Where nobody can be asked it is declined. What a client is asked is kept
// in memory: the call that it belongs to doesn't survive this process either, unless
// its server has it as a task, which asks again.

// AskRequester puts a question of the server of a call that runs before its requester,
// and waits for the answer until ctx ends. The error is a [store.CallError] that says
// why nobody is asked at all.
func (g *Gateway) AskRequester(ctx context.Context, c *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	q, err := question.Read(e)
	if err != nil {
		g.log.Warn("a question of a server is refused", "call", c.ID, "tool", c.ToolID(), "err", err)
		g.calls.AddEvent(store.System, store.Event{Kind: "question.rejected", Subject: c.ID, Tool: c.ToolID(), Data: mustJSON(map[string]string{"why": err.Error()})})
		return taskwire.Answer{}, err
	}
	if err := g.executor.store(ctx, c); err != nil {
		return taskwire.Answer{}, err
	}
	if c.ClientAsks(e.Mode) {
		return g.questions.ask(ctx, c.ID, q, e), nil
	}
	g.calls.AddEvent(store.System, store.Event{Kind: "question.declined", Subject: c.ID, Tool: c.ToolID(), Data: mustJSON(map[string]string{"why": "nobody can be asked"})})
	return taskwire.Answer{Action: taskwire.Decline}, nil
}

// NoteRemote stores that the server of a call has a task for it.
func (g *Gateway) NoteRemote(ctx context.Context, c *store.Call, t store.RemoteTask) error {
	if err := g.executor.store(ctx, c); err != nil {
		return err
	}
	return g.calls.NoteRemote(ctx, c.ID, t)
}

// questions are those that wait for the client of their call.
type questions struct {
	mu     sync.Mutex
	number int
	open   map[string]map[string]*openQuestion // by call id and key
	asked  func(call string)                   // a call has a new one
}

// openQuestion is one of them.
type openQuestion struct {
	question.Question
	wire     taskwire.Elicit
	answered chan taskwire.Answer // 1: who answers never waits
}

// ask opens a question and waits for its answer until ctx ends.
func (qs *questions) ask(ctx context.Context, call string, q question.Question, e taskwire.Elicit) taskwire.Answer {
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
	select {
	case a := <-one.answered:
		return a
	case <-ctx.Done():
		return taskwire.Answer{Action: taskwire.Cancel}
	}
}

// close takes a question out; it may be out already.
func (qs *questions) close(call, key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.open[call], key)
	if len(qs.open[call]) == 0 {
		delete(qs.open, call)
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
		content := a.Content
		if len(content) == 0 || len(one.Schema) == 0 {
			content = json.RawMessage("{}")
		}
		canonical, err := store.Canonical(content)
		if err != nil {
			return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("the answer is not valid JSON: %v", jsonProblem(err))}
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
