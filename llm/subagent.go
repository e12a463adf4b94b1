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

// An agent called by another has its own turns in the same thread, marked with the call
// (store.Turn.In). They are processed like the conversation: read, do one thing, read
// again. So if one of its tool calls needs approval, it waits across restarts, its card is
// shown in the person's chat, and whoever settles it calls Work on the only thread. Rights,
// budgets and approvers are those of the person; model, prompt, tools, steps and approval
// mode are those of the called agent.

// maxTask limits the task given to an agent, in bytes.
const maxTask = 64 << 10

// Task is a task that a program gives to an agent. The program's model takes the part of
// the agent that calls another one.
type Task struct {
	Thread  string // the conversation of the call
	Call    string // the call's id: the same id continues the same task
	Agent   string
	Args    string // the call's arguments, JSON
	By      store.Caller
	Team    string      // see [Bill]
	Counted func(Reply) // gets each reply of a model; must be safe for concurrent use
}

// TaskEnd is the progress or the result of a task.
type TaskEnd struct {
	Done   bool
	Text   string // for the caller's model
	Failed bool
	Open   []store.Call // if not done: the calls that it waits for
}

// AgentFunction returns the function with which a model calls an agent.
func AgentFunction(name string, a store.Agent) store.Function {
	return store.Function{Name: name, Description: "Hands a task to the agent " + cmp.Or(a.Name, a.ID) + " and returns its answer.", Schema: agentSchema}
}

// RunTask continues a task until the agent has answered, or calls in it wait or run; then
// it must be called again after they have ended. If ctx is cancelled, the task stays as it
// is. Nothing else may work on that call at the same time.
func (a *Agent) RunTask(ctx context.Context, t Task) (end TaskEnd, err error) {
	whole, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(ErrShutdown) })() // not a person's stop: the task stays open
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
			continue // an agent's call, or one that needs no record
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

// request is a call of an agent as made by its caller.
type request struct {
	call  store.ToolCall
	agent string
	by    store.Caller
	only  string // the only reader of the turns, "" for everybody
	stale bool   // the requester has written another message since
}

// callAgent continues an agent that this one called, until it has answered or waits.
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
	f.thread.Model = "" // the person's choice only applies to the agent of their conversation
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

// withdrawOpen cancels the calls that a message of their requester cancels. It returns
// false if there were none, or if other people decide one of them, which then continues.
func (w *work) withdrawOpen(ctx context.Context, by store.Caller, open []store.ToolCall) (all bool, err error) {
	withdrawn, survives := false, false
	for _, tc := range open {
		c, err := w.Calls.GetCall(ctx, tc.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // an agent's call, or one that needs no record
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

// beginTask stores an agent's task.
func (w *work) beginTask(ctx context.Context, r request, task string, n int) error {
	t := store.Turn{Thread: w.thread.ID, N: n, Role: store.FromAgent, As: store.FromUser, In: r.call.ID, By: r.by, Text: task, For: r.only, At: w.Now()}
	if err := w.Threads.Append(ctx, r.by, t, true); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	} else if err != nil {
		return nil // another turn came first: read again
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

// agentAnswer returns the agent's answer for its caller.
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

// openCalls returns calls and, for calls of agents among them, the calls that they wait
// for.
func openCalls(all []store.Turn, calls []store.ToolCall) (open []store.ToolCall) {
	for _, tc := range calls {
		open = append(open, tc)
		if s := readStateIn(all, tc.ID); len(s.turns) > 0 {
			open = append(open, openCalls(all, s.missing)...)
		}
	}
	return open
}
