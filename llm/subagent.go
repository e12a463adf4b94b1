package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// An agent that another one calls has its own turns in the same thread, marked with
// the call (store.Turn.In). They are worked on as the conversation is: read, one
// thing done, read again. So a call of a tool in there that waits for a yes waits
// over restarts, the card stands in the person's chat, and whoever settles it calls
// Work on the one thread there is. Rights, budgets and who is asked are the person's
// own; model, prompt, tools, steps and approval mode are the called agent's.

// maxTask bounds what an agent is asked to do, in bytes.
const maxTask = 64 << 10

// Task is what a program has an agent do. The program's model is in the place of the
// agent that calls another one.
type Task struct {
	Thread  string // the conversation of the call
	Call    string // the call's id: the same one goes on with what it began
	Agent   string
	Args    string // of the call, JSON
	By      store.Caller
	Team    string      // of the [Bill]
	Counted func(Reply) // is told of each answer of a model's; safe for concurrent use
}

// TaskEnd is what a task came to so far.
type TaskEnd struct {
	Done   bool
	Text   string // what the caller's model is told
	Failed bool
	Open   []store.Call // where it is not done: the calls that it waits for
}

// AgentFunction is the function by which a model calls an agent.
func AgentFunction(name string, a store.Agent) store.Function {
	return store.Function{Name: name, Description: "Hands a task to the agent " + cmp.Or(a.Name, a.ID) + " and returns its answer.", Schema: agentSchema}
}

// RunTask goes on with a task until the agent has answered, or calls in it wait or
// run; then it is to be run again when they have ended. A cancelled ctx leaves the
// task where it is. Nothing else may work on that call at the same time.
func (a *Agent) RunTask(ctx context.Context, t Task) (end TaskEnd, err error) {
	whole, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(ErrShutdown) })() // it is no stop of a person's: the task stays open
	thread, err := a.Threads.GetThread(whole, t.Thread)
	if err != nil {
		return end, err
	}
	w := &work{Agent: a, thread: thread, task: &t, fitting: a.fitting(), profile: store.Agent{AllowedTools: []string{agentTool + t.Agent}}}
	tc := store.ToolCall{ID: t.Call, Name: agentFunction + t.Agent, Args: t.Args}
	got, err := w.callAgent(whole, request{call: tc, agent: t.Agent, by: t.By}, func(store.State, store.Text) {})
	if err != nil || got.settled {
		return TaskEnd{Done: true, Text: got.text, Failed: got.ended == store.Failed}, err
	}
	all, err := a.Threads.Turns(whole, t.Thread)
	if err != nil {
		return end, err
	}
	for _, open := range openCalls(all, []store.ToolCall{tc})[1:] {
		c, err := a.Calls.GetCall(whole, open.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // an agent's, or one that needs no record
		}
		if err == nil {
			c, err = LastReplacement(whole, a.Calls, c)
		}
		if err != nil {
			return end, err
		}
		if !c.State.Final() {
			end.Open = append(end.Open, c)
		}
	}
	return end, nil
}

// request is a call of an agent as its caller made it.
type request struct {
	call  store.ToolCall
	agent string
	by    store.Caller
	only  string // for whom the turns are, "" is everybody
	stale bool   // the requester wrote something else since
}

// callAgent goes on with an agent that a call of this one called, until it has
// answered or waits.
func (w *work) callAgent(ctx context.Context, r request, tell func(store.State, store.Text)) (answer, error) {
	tc, id, by := r.call, r.agent, r.by
	fail := func(a answer) (answer, error) {
		tell(store.Failed, a.said)
		return a.unmadeCall(), nil
	}
	var args struct {
		Task string `json:"task"`
	}
	if err := json.Unmarshal([]byte(tc.Args), &args); err != nil || strings.TrimSpace(args.Task) == "" || len(args.Task) > maxTask {
		return fail(correct(store.Textf("The arguments have no task of 1 to %d bytes", maxTask), "Send the call again with a task."))
	}
	profile, err := w.Agents.GetAgent(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !w.mayCall(profile, by, w.groupsOf(ctx, by)) {
		return fail(correct(store.Textf("The agent %s cannot be called any more", id), "Go on without it."))
	}
	if err != nil {
		return answer{}, err
	}
	f := &work{Agent: w.Agent, thread: w.thread, fitting: w.Agent.fitting(), profile: profile, in: tc.ID, task: w.task, callers: append(w.callers[:len(w.callers):len(w.callers)], w.profile.ID)}
	f.thread.Model = "" // what the person chose is for the agent that they talk with
	f.tell = func(p store.Progress) {
		if p.Kind == "tool" || p.Kind == "call" || p.Kind == "notice" && p.Stored == "" {
			w.sendProgress(p)
		}
	}
	for range maxRounds {
		all, err := w.Threads.Turns(ctx, w.thread.ID)
		if err != nil {
			return answer{}, err
		}
		fs := readStateIn(all, tc.ID)
		switch {
		case len(fs.turns) == 0:
			if err := f.beginTask(ctx, r, args.Task, nextPlace(all)); err != nil {
				return answer{}, err
			}
			continue
		case fs.target == nil:
			return agentAnswer(fs, w.maxResult(by), tell), nil
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		case r.stale:
			withdrawn, err := w.withdrawOpen(ctx, by, openCalls(all, fs.missing))
			if err != nil {
				return answer{}, err
			}
			if !withdrawn {
				break // the message waits until the agent has answered
			}
			return fail(answer{text: "The agent was stopped: the requester wrote something else.", said: store.Textf("the requester wrote something else")})
		}
		more := false
		if fs.step != nil {
			more, err = f.settleStep(ctx, fs)
		} else {
			more, err = f.generate(ctx, fs)
		}
		if err != nil {
			return answer{}, err
		}
		if !more {
			if all, err = w.Threads.Turns(ctx, w.thread.ID); err != nil {
				return answer{}, err
			}
			if fs = readStateIn(all, tc.ID); fs.target != nil && fs.step != nil {
				return answer{}, nil // whoever settles it calls Work again
			}
		}
	}
	return answer{}, fmt.Errorf("agent %s gave up after %d rounds", id, maxRounds)
}

// withdrawOpen cancels the calls that a message of their requester withdraws. It returns
// false if there were none, or others decide about another one, which goes on.
func (w *work) withdrawOpen(ctx context.Context, by store.Caller, open []store.ToolCall) (all bool, err error) {
	withdrawn, survives := false, false
	for _, tc := range open {
		c, err := w.Calls.GetCall(ctx, tc.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // an agent's, or one that needs no record
		}
		if err == nil {
			c, err = LastReplacement(ctx, w.Calls, c)
		}
		switch {
		case err != nil:
			return false, err
		case w.withdrawnBy(ctx, by, c):
			w.cancelCall(ctx, by, c, store.Textf("the requester wrote something else"))
			withdrawn = true
		case c.Waiting():
			survives = true
		}
	}
	return withdrawn && !survives, nil
}

// beginTask stores what an agent is asked to do.
func (w *work) beginTask(ctx context.Context, r request, task string, n int) error {
	t := store.Turn{Thread: w.thread.ID, N: n, Role: store.FromAgent, As: store.FromUser, In: r.call.ID, By: r.by, Text: task, For: r.only, At: w.Now()}
	if err := w.Threads.Append(ctx, r.by, t, true); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	} else if err != nil {
		return nil // another turn came first: look again
	}
	if w.AddEvent != nil {
		caller := w.callers[len(w.callers)-1]
		data, err := json.Marshal(map[string]string{"agent": w.profile.ID, "caller": caller, "call": r.call.ID})
		if err != nil {
			return err
		}
		w.AddEvent(r.by, store.Event{Kind: "agent.called", Subject: w.thread.ID, Data: data})
	}
	return nil
}

// agentAnswer is what an agent's caller is told of it.
func agentAnswer(fs state, limit int, tell func(store.State, store.Text)) answer {
	text := Truncate(fs.last.Text, limit)
	if fs.last.Role == store.FromModel {
		text = store.WithRemark(text, fs.last.Said.String())
	}
	a := answer{text: text, settled: true, private: fs.last.For != ""}
	if fs.last.Role == store.FromNize { // it has no answer
		a.text, a.said, a.ended = "The agent gave no answer: "+text, fs.last.Said, store.Failed
		tell(store.Failed, a.said)
		return a
	}
	tell(store.Done, store.Plain(brief(text)))
	return a
}

// openCalls are those calls and, of agents among them, what they wait for.
func openCalls(all []store.Turn, calls []store.ToolCall) (open []store.ToolCall) {
	for _, tc := range calls {
		open = append(open, tc)
		if s := readStateIn(all, tc.ID); len(s.turns) > 0 {
			open = append(open, openCalls(all, s.missing)...)
		}
	}
	return open
}
