package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/store"
	"nize/store/outage"
)

// answer is the outcome of one call of a step.
type answer struct {
	text    string       // for the model
	said    store.Text   // for a person, if there is no result
	ended   store.State  // see [store.Turn]
	unmade  bool         // see [store.Turn]
	files   []store.File // pictures in the result
	settled bool
	// recorded reports that a [store.Call] contains the outcome.
	recorded bool
	private  bool // for the requester alone
}

// unmadeCall settles a call that was never made.
func (a answer) unmadeCall() answer {
	a.settled, a.ended, a.unmade = true, store.Failed, true
	return a
}

// settleStep proposes, or looks up, every call of the step concurrently. When all are
// settled, it appends their results in the order of the calls. While some wait, it appends
// only the results of calls without a record, such as lookups and calls that were never
// made: nothing else would record their outcome.
func (w *work) settleStep(ctx context.Context, s state) (more bool, err error) {
	by := messageAt(s.turns, s.step.Re).By
	functions, err := w.functions(ctx, by)
	if err != nil {
		return false, err
	}
	answers := make([]answer, len(s.missing))
	errs := make([]error, len(s.missing))
	slots := make(chan struct{}, parallelCalls) // maximum number running at once
	var wg sync.WaitGroup
	for i, tc := range s.missing {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i], errs[i] = w.answerCall(ctx, s, tc, functions)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return true, nil // the next iteration handles the stop
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	waits := slices.ContainsFunc(answers, func(a answer) bool { return !a.settled })
	open := len(s.missing)
	for i, tc := range s.missing {
		if waits && !answers[i].settled || waits && answers[i].recorded {
			continue // whoever settles it calls Work again; until then a recorded call may be retried
		}
		t := store.Turn{Role: store.FromTool, CallID: tc.ID, Text: answers[i].text, Said: answers[i].said, Ended: answers[i].ended, Unmade: answers[i].unmade, Files: answers[i].files, For: s.step.For}
		if answers[i].private {
			t.For = by.User
		}
		at, err := w.appendTurn(ctx, s, t)
		if err != nil || at == "" {
			return true, err
		}
		all, err := w.Threads.Turns(ctx, w.thread.ID)
		if err != nil {
			return false, err
		}
		s.turns, s.next = turnsIn(all, w.in), nextPlace(all)
		if open--; len(unansweredCalls(*s.step, s.turns)) != open {
			return true, nil // another writer appends too
		}
	}
	return !waits, nil
}

// answerCall serves one call. It returns only errors of the store; all other failures
// become the model's answer.
func (w *work) answerCall(ctx context.Context, s state, tc store.ToolCall, functions []store.Function) (_ answer, err error) {
	known := make([]string, len(functions))
	for i, f := range functions {
		known[i] = f.Name
	}
	line := store.ToolLine{Name: brief(tc.Name), State: store.Running, Brief: store.Plain(askedText(tc)), Private: s.step.For != ""}
	tell := func(state store.State, said store.Text) {
		line.State = state
		if state.Final() {
			line.Brief = store.BriefText(said)
		}
		shown := line
		w.sendProgress(store.Progress{Kind: "tool", ID: tc.ID, Tool: &shown})
	}
	failLine := func(a answer) (answer, error) {
		line.Unmade = true
		tell(store.Failed, a.said)
		return a.unmadeCall(), nil
	}
	if !slices.Contains(known, tc.Name) {
		if _, err := w.Calls.GetCall(ctx, tc.ID); !errors.Is(err, store.ErrNotFound) { // it was made before the function was removed
			return w.executeCall(ctx, s, tc, line)
		}
		return failLine(unknownFunction(tc.Name, known))
	}
	if tc.Name == ExecuteTool {
		return w.executeCall(ctx, s, tc, line)
	}
	if problem := checkArgs(tc.Args); problem.text != "" {
		w.reportUnfit(ctx, s, tc)
		return failLine(problem)
	}
	if tool := w.directTool(tc.Name); tool != "" {
		object, _ := store.ObjectOf([]byte(tc.Args)) // checked above
		if tc.Args, err = executeArgs(tool, string(object)); err != nil {
			return answer{}, err
		}
		return w.executeCall(ctx, s, tc, line)
	}
	if id, ok := strings.CutPrefix(tc.Name, agentFunction); ok {
		line.Name = agentTool + id
		tell(store.Running, store.Text{})
		return w.callAgent(ctx, request{call: tc, agent: id, by: messageAt(s.turns, s.step.Re).By, only: s.step.For, stale: s.target.N > s.step.Re}, tell)
	}
	tell(store.Running, store.Text{})
	by := messageAt(s.turns, s.step.Re).By
	result, err := w.Tools.Meta(ctx, by, w.scope(), tc)
	if err != nil {
		if ctx.Err() != nil || outage.Is(err) {
			return answer{}, err
		}
		return failLine(w.refusal(err, tc.Name))
	}
	text := resultText(result, w.maxResult(by))
	if result.IsError || result.Error != nil {
		said := store.Plain(text)
		if result.Error != nil {
			said = result.Error.Message
		}
		return failLine(answer{text: text, said: said})
	}
	tell(store.Done, foundNames(text))
	return answer{text: text, settled: true}, nil
}

// executeCall makes a tool call, or finds the one that was made.
func (w *work) executeCall(ctx context.Context, s state, tc store.ToolCall, line store.ToolLine) (answer, error) {
	by := messageAt(s.turns, s.step.Re).By
	c, err := w.Calls.GetCall(ctx, tc.ID)
	if errors.Is(err, store.ErrNotFound) {
		c, err = w.proposeCall(ctx, s, tc, &line)
		var problem *modelError
		if errors.As(err, &problem) {
			line.State, line.Brief, line.Unmade = store.Failed, store.BriefText(problem.said), true
			w.sendProgress(store.Progress{Kind: "tool", ID: tc.ID, Tool: &line})
			return problem.unmadeCall(), nil
		}
	}
	if err != nil {
		return answer{}, fmt.Errorf("call %s: %w", tc.ID, err)
	}
	if c, err = LastReplacement(ctx, w.Calls, c); err != nil {
		return answer{}, err
	}
	if s.target.N > s.step.Re && w.withdrawnBy(ctx, by, c) {
		c = w.cancelCall(ctx, by, c, store.Textf("the requester wrote something else"))
	}
	line.Name, line.State = c.ToolID(), c.State
	if !c.State.Final() {
		w.sendProgress(store.Progress{Kind: "tool", ID: tc.ID, Tool: &line})
		w.sendProgress(store.Progress{Kind: "call", ID: tc.ID, Call: &c})
		return answer{}, nil
	}
	a := outcome(c, w.maxResult(by))
	a.files = ResultPictures(c)
	a.settled, a.recorded, a.private = true, true, c.Private
	line.Private = line.Private || c.Private
	switch c.State {
	case store.Done:
		line.Brief = store.Plain(brief(a.text))
	case store.Failed:
		line.Brief = store.BriefText(a.said)
	default: // the line shows the outcome; the text is only for the model
		line.Brief = store.BriefText(c.Reason)
	}
	w.sendProgress(store.Progress{Kind: "tool", ID: tc.ID, Tool: &line})
	w.sendProgress(store.Progress{Kind: "call", ID: tc.ID, Call: &c})
	return a, nil
}

// modelError is returned if no call was made because the model must correct its request.
type modelError struct{ answer }

func (e *modelError) Error() string { return e.text }

// proposeCall makes the call at the gateway. It returns a *modelError if the model must correct it.
func (w *work) proposeCall(ctx context.Context, s state, tc store.ToolCall, line *store.ToolLine) (store.Call, error) {
	req, problem := parseExecute(tc.Args)
	if problem.text != "" {
		w.reportUnfit(ctx, s, tc)
		return store.Call{}, &modelError{problem}
	}
	line.Name, line.Brief = req.Tool, store.Plain(brief(string(req.Args)))
	if len(req.Beside) > 0 {
		line.Brief = store.Plain(askedText(tc))
	}
	w.sendProgress(store.Progress{Kind: "tool", ID: tc.ID, Tool: &store.ToolLine{Name: line.Name, State: line.State, Brief: line.Brief, Private: line.Private}})
	req.ID, req.Thread, req.Agent, req.ByMeta = tc.ID, w.thread.ID, w.profile.ID, true
	req.Why, req.Allowed, req.InPrivateTurn = s.step.Text, w.thread.Servers, s.step.For != ""
	if req.InPrivateTurn { // others read the card too
		req.Why = ""
	}
	req.Step = w.thread.ID + "/" + strconv.Itoa(s.step.N)
	c, err := w.Tools.Call(ctx, messageAt(s.turns, s.step.Re).By, req)
	switch {
	case err == nil:
		return *c, nil
	case ctx.Err() != nil:
		return store.Call{}, err
	case errors.Is(err, store.ErrExists):
		return w.Calls.GetCall(ctx, tc.ID)
	case outage.Is(err): // the model can't do anything about it
		return store.Call{}, err
	}
	return store.Call{}, &modelError{w.refusal(err, req.Tool)}
}

// reportUnfit passes a function call with invalid arguments to the gateway, which rejects
// it and records an event. The model gets our own error message.
func (w *work) reportUnfit(ctx context.Context, s state, tc store.ToolCall) {
	if _, err := w.Tools.Meta(ctx, messageAt(s.turns, s.step.Re).By, w.scope(), tc); err != nil && ctx.Err() == nil {
		w.Log.Error("reporting a function's unfit arguments", "function", tc.Name, "err", err)
	}
}

// parseExecute decodes the arguments of execute_tool. problem is the answer for the model.
func parseExecute(args string) (req store.Request, problem answer) {
	if problem := checkArgs(args); problem.text != "" {
		return req, problem
	}
	const send = `. Send {"tool_id":"server:tool","params":{…}}.`
	in, err := store.ReadExecute([]byte(args))
	if err != nil {
		return req, forModel("The arguments of execute_tool do not fit: " + err.Error() + send)
	}
	if in.Tool == "" {
		return req, forModel("The arguments of execute_tool lack tool_id" + send)
	}
	return store.Request{Tool: in.Tool, Args: in.Params, Beside: in.Beside}, answer{}
}

// forModel returns an answer that only makes sense to a model; people see it unchanged.
func forModel(text string) answer { return answer{text: text, said: store.Plain(text)} }

// correct returns an answer that says what is wrong; the model's version also says that the
// call had no effect and what to do.
func correct(said store.Text, do string) answer {
	return answer{text: said.String() + ", so nothing was done. " + do, said: said}
}

// checkArgs returns what is wrong with a function's arguments, if anything.
func checkArgs(args string) answer {
	const again = "Send the call again with one JSON object."
	if _, err := store.Canonical([]byte(args)); err != nil && strings.TrimSpace(args) != "" {
		return correct(store.Textf("The arguments were not valid JSON (%s)", err), again)
	}
	if _, ok := store.ObjectOf([]byte(args)); !ok {
		return correct(store.Textf("The arguments were not a JSON object"), again)
	}
	return answer{}
}

func unknownFunction(name string, known []string) answer {
	if len(known) == 0 {
		return forModel("There are no functions to call in this conversation. Answer without them.")
	}
	do := "The functions are " + strings.Join(known, ", ") + "."
	if slices.Contains(known, ExecuteTool) {
		do += " To run a tool, call execute_tool with its tool_id."
		if strings.Contains(name, ":") {
			do += fmt.Sprintf(" For this one: {\"tool_id\":%q,\"params\":{…}}.", brief(name))
		}
	}
	return correct(store.Textf("There is no function %q", brief(name)), do)
}

// refusal returns the answer if the gateway made no call.
func (w *work) refusal(err error, what string) answer {
	var ce *store.CallError
	if errors.As(err, &ce) {
		said := withoutStop(ce.Message)
		return answer{text: "Nothing was done: " + said.String() + " (" + string(ce.Code) + ").", said: said}
	}
	w.Log.Error("a call could not be made", "thread", w.thread.ID, "tool", what, "error", err)
	said := store.Textf("nize had an internal error")
	return answer{text: "Nothing was done: " + said.String() + ".", said: said}
}

// withoutStop returns a text without its final period, as a part of a sentence.
func withoutStop(t store.Text) store.Text {
	text := strings.TrimSpace(t.String())
	if cut := strings.TrimSuffix(text, "."); cut != t.String() {
		return store.Plain(cut)
	}
	return t
}

// LastReplacement follows the replacements of a call (edit, retry, ask again): the model
// gets only the result of the last one.
func LastReplacement(ctx context.Context, calls Calls, c store.Call) (store.Call, error) {
	if !c.State.Final() || c.State == store.Done {
		return c, nil
	}
	all, err := calls.ListCalls(ctx, store.CallQuery{Thread: c.Thread, Limit: 1000})
	if err != nil {
		return c, fmt.Errorf("listing calls: %w", err)
	}
	by := make(map[string]store.Call) // replacements, keyed by the replaced call; lists are newest first
	for _, o := range all {
		if _, ok := by[o.Replaces]; !ok && o.Replaces != "" {
			by[o.Replaces] = o
		}
	}
	for range all {
		o, ok := by[c.ID]
		if !ok {
			break
		}
		c = o
	}
	return c, nil
}

// withdrawnBy reports whether a later message of the requester cancels the call. If other
// people decide the call, it stays, and the message is answered after it.
func (w *work) withdrawnBy(ctx context.Context, by store.Caller, c store.Call) bool {
	if !c.Waiting() {
		return false
	}
	if own, ok := w.Tools.(OwnDecisions); ok {
		return own.DecidesAlone(ctx, by, c)
	}
	return c.Policy == "" || c.Policy.Approvers().Alone()
}

// cancelCall cancels a waiting call for its requester and returns it in its resulting
// state.
func (w *work) cancelCall(ctx context.Context, by store.Caller, c store.Call, why store.Text) store.Call {
	d := store.Decision{Verb: store.Cancel, By: by.User, Name: by.Name, Surface: by.Surface, At: w.Now(), Digest: c.Digest, Reason: why, Auto: true}
	done, err := w.Tools.Decide(ctx, by, c.ID, d)
	if err == nil && done != nil {
		return *done
	}
	// Another decision was first, or the call expired: the stored state counts.
	now, getErr := w.Calls.GetCall(ctx, c.ID)
	if getErr != nil {
		w.Log.Error("a waiting call could not be cancelled", "call", c.ID, "error", errors.Join(err, getErr))
		return c
	}
	return now
}

// maxRetriedLookups is how many of a conversation's newest calls are checked for retries.
const maxRetriedLookups = 50

// appendRetried looks, after the answer, for calls of any turn that were retried or asked
// for again, and reopens the last turn with their results.
func (w *work) appendRetried(ctx context.Context, s state) (more bool, err error) {
	if s.last == nil {
		return false, nil
	}
	message, looked := messageAt(s.turns, s.last.Re), 0
	if message == nil {
		return false, nil
	}
	for _, t := range slices.Backward(s.turns) {
		if !isStep(t) {
			continue
		}
		for _, tc := range t.Calls {
			result := resultOf(s.turns, tc.ID)
			if result == nil || tc.Name == discoverTools || tc.Name == describeTool {
				continue
			}
			if looked++; looked > maxRetriedLookups {
				return false, nil
			}
			c, fresh, err := w.finishedReplacement(ctx, tc.ID, result.At)
			if err != nil {
				return false, err
			}
			if !fresh {
				continue
			}
			s.target = message
			a := outcome(c, w.maxResult(message.By))
			late := store.Turn{Role: store.FromTool, CallID: tc.ID, Text: a.text, Said: a.said, Ended: a.ended, Files: ResultPictures(c), For: t.For}
			if c.Private {
				late.For = c.By
			}
			w.sendProgress(store.Progress{Kind: "call", ID: tc.ID, Call: &c}) // its images are shown with the answer
			_, err = w.appendTurn(ctx, s, late)
			return true, err
		}
	}
	return false, nil
}

// finishedReplacement returns the last replacement of a call, and whether it ended after
// the model got the result.
func (w *work) finishedReplacement(ctx context.Context, id string, told time.Time) (c store.Call, fresh bool, err error) {
	c, err = w.Calls.GetCall(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return c, false, nil // refused before it existed, or deleted by retention
	}
	if err != nil {
		return c, false, err
	}
	if c, err = LastReplacement(ctx, w.Calls, c); err != nil {
		return c, false, err
	}
	return c, c.ID != id && c.State.Final() && c.Finished.After(told), nil
}

// resultOf returns the newest result of a call.
func resultOf(turns []store.Turn, call string) (t *store.Turn) {
	for i := range turns {
		if turns[i].Role == store.FromTool && turns[i].CallID == call {
			t = &turns[i]
		}
	}
	return t
}

// outcome returns the answer for a call that ended.
func outcome(c store.Call, limit int) answer {
	said, reason := withoutStop(c.Reason), ""
	if said != (store.Text{}) {
		reason = ": " + said.String()
	}
	switch c.State {
	case store.Done:
		text := resultText(c.Result, limit)
		if c.Result != nil && c.Result.IsError {
			return answer{text: "The tool reported an error: " + text, said: store.Plain(text), ended: store.Done}
		}
		return answer{text: text}
	case store.Failed:
		text := resultText(c.Result, limit)
		switch {
		case text == "" || text == noOutput:
			return answer{text: "The call failed" + reason + ".", said: said, ended: store.Failed}
		case text == c.Reason.String():
			return answer{text: "The call failed: " + text, said: c.Reason, ended: store.Failed}
		}
		return answer{text: "The call failed: " + text, said: store.Plain(text), ended: store.Failed}
	case store.Refused:
		for _, d := range c.Decisions {
			if d.Verb == store.Deny && d.By != store.System.User {
				return answer{text: "A person refused the call, so it was not run" + reason + ". Do not propose it again unless asked.", ended: store.Refused}
			}
		}
		return answer{text: "The call was refused and not run" + reason + ".", said: said, ended: store.Refused}
	case store.Expired:
		return answer{text: "Nobody approved the call in time, so it was not run.", ended: store.Expired}
	case store.Cancelled:
		return answer{text: "The call was cancelled before it ran" + reason + ".", ended: store.Cancelled}
	}
	if said != (store.Text{}) {
		return answer{text: "The call ended without a result" + reason + ". It may have taken effect: tell the person, and do not repeat it by yourself.", said: said, ended: store.Lost}
	}
	return answer{text: "nize stopped while the call ran, so it is unknown whether it took effect. Tell the person; do not repeat it by yourself.", ended: store.Lost}
}

func (w *work) maxResult(by store.Caller) int {
	return store.GetInt(w.Config, by.User, "results.max_model_bytes")
}

const noOutput = "(no output)"

// OutcomeText returns what a model is told about a call that ended, with its result cut to
// a limit.
func OutcomeText(c store.Call, limit int) string { return outcome(c, limit).text }

// resultText returns a result as the model reads it, cut to a limit.
func resultText(r *store.Result, limit int) string {
	text := strings.ToValidUTF8(r.Text(), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return noOutput
	}
	return Truncate(text, limit)
}
