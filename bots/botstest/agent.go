package botstest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// Agent is a scripted bots.Agent. Like the real one, it reads its whole state from the
// store. A message says what it does:
//
//	say WORDS        streams WORDS, word by word, as its answer
//	call TOOL JSON   proposes one call that waits, then answers "TOOL is STATE"
//	cut WORDS | MORE streams WORDS and hangs without storing anything; with
//	                 Again it answers MORE, or nothing if MORE is -
//	slow WORDS       streams WORDS and hangs until it is stopped
//	fail             reports that it can't continue
//	break            returns an error
//	panic            panics
type Agent struct {
	Threads store.Threads
	Calls   store.Calls
	Now     func() time.Time
	Again   bool // see cut
	// Hung gets the words of a slow answer after they were sent; it may be nil, and must be
	// buffered.
	Hung chan string

	mu   sync.Mutex // guards said
	said map[string]int
}

// Said returns how often a message with that text was answered.
func (a *Agent) Said(text string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said[text]
}

// Say implements bots.Agent.
func (a *Agent) Say(ctx context.Context, by store.Caller, in store.Inbound) (store.Turn, error) {
	for {
		turns, err := a.Threads.Turns(ctx, in.Thread)
		if err != nil {
			return store.Turn{}, err
		}
		for _, t := range turns {
			if t.Key == in.Key && t.Role == store.FromUser {
				return t, nil
			}
		}
		t := store.Turn{Thread: in.Thread, N: len(turns), Role: store.FromUser, By: by, Text: in.Text, Key: in.Key, At: a.Now()}
		if err = a.Threads.Append(ctx, by, t, true); !errors.Is(err, store.ErrExists) {
			return t, err
		}
	}
}

// Work implements bots.Agent.
func (a *Agent) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	for {
		turns, err := a.Threads.Turns(ctx, thread)
		if err != nil {
			return err
		}
		w := &work{a: a, thread: thread, turns: turns, tell: tell}
		more, err := w.step(ctx)
		if !more || err != nil {
			return err
		}
	}
}

// work is one step's view of a thread.
type work struct {
	a      *Agent
	thread string
	turns  []store.Turn
	tell   func(store.Progress)
}

// step answers the first unanswered message, or continues with its call.
func (w *work) step(ctx context.Context) (more bool, err error) {
	answered := -1
	var called *store.ToolCall
	var result bool
	for i := range w.turns {
		t := &w.turns[i]
		switch {
		case t.Role == store.FromModel && len(t.Calls) > 0:
			called, result = &t.Calls[0], false
		case t.Role == store.FromTool:
			result = true
		case t.Final || t.Role == store.FromModel:
			answered, called = max(answered, t.Re), nil
		}
	}
	for _, t := range w.turns {
		if t.Role != store.FromUser || t.N <= answered {
			continue
		}
		if called != nil && !result {
			return w.settle(ctx, t, *called)
		}
		return w.answer(ctx, t)
	}
	return false, nil
}

func (w *work) id() string { return w.thread + "/" + strconv.Itoa(len(w.turns)) }

func (w *work) append(ctx context.Context, t store.Turn, open bool) error {
	t.Thread, t.N, t.At = w.thread, len(w.turns), w.a.Now()
	return w.a.Threads.Append(ctx, store.System, t, open)
}

func (w *work) stream(words string) {
	for word := range strings.SplitAfterSeq(words, " ") {
		w.tell(store.Progress{Kind: "text", Turn: w.id(), Delta: word})
	}
}

// open reports whether another message waits after t.
func (w *work) open(t store.Turn) bool {
	for _, other := range w.turns {
		if other.Role == store.FromUser && other.N > t.N {
			return true
		}
	}
	return false
}

func (w *work) reply(ctx context.Context, t store.Turn, text string) (bool, error) {
	open := w.open(t)
	text, finish := partial(text)
	w.stream(text)
	if err := w.finish(ctx, t, text, open); err != nil {
		return false, err
	}
	w.tell(store.Progress{Kind: "turn", Turn: w.id(), Stored: w.id(), Text: text, Said: store.FinishRemark(finish), Finish: finish, Ends: true})
	return open, nil
}

// partial splits the finish reason from the end of a scripted text that is incomplete.
func partial(text string) (words, finish string) {
	if words, ok := strings.CutSuffix(text, "\n\n"+store.FinishRemark(store.FinishLength).String()); ok {
		return words, store.FinishLength
	}
	return text, ""
}

// finish stores an answer and counts it in one step, so that a reader who sees the answer
// also sees the count.
func (w *work) finish(ctx context.Context, t store.Turn, text string, open bool) error {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	text, finish := partial(text)
	if err := w.append(ctx, store.Turn{Role: store.FromModel, Text: text, Said: store.FinishRemark(finish), Finish: finish, Re: t.N}, open); err != nil {
		return err
	}
	if w.a.said == nil {
		w.a.said = map[string]int{}
	}
	w.a.said[t.Text]++
	return nil
}

func (w *work) answer(ctx context.Context, t store.Turn) (more bool, err error) {
	verb, rest, _ := strings.Cut(t.Text, " ")
	switch verb {
	case "call":
		tool, args, _ := strings.Cut(rest, " ")
		return w.propose(ctx, t, tool, args)
	case "slow":
		w.stream(rest)
		if w.a.Hung != nil {
			w.a.Hung <- rest
		}
		<-ctx.Done()
		return false, w.append(context.WithoutCancel(ctx), store.Turn{Role: store.FromModel, Text: rest, Final: true, Re: t.N}, false)
	case "cut":
		half, more, _ := strings.Cut(rest, " | ")
		if w.a.Again && more == "-" {
			return false, w.append(ctx, store.Turn{Role: store.FromModel, Re: t.N}, false)
		}
		if w.a.Again {
			return w.reply(ctx, t, more)
		}
		w.stream(half)
		<-ctx.Done()
		return false, context.Cause(ctx)
	case "fail":
		open, id := w.open(t), w.id()
		if err := w.append(ctx, store.Turn{Role: store.FromNize, Text: "The provider is out.", Said: store.Plain("The provider is out."), Final: true, Re: t.N}, open); err != nil {
			return false, err
		}
		w.tell(store.Progress{Kind: "error", Text: "The provider is out.", Said: store.Plain("The provider is out."), Stored: id})
		return open, nil
	case "break":
		return false, errors.New("broken on request")
	case "panic":
		panic("on request")
	}
	return w.reply(ctx, t, rest)
}

// propose stores a model's turn with one call, and the call as pending.
func (w *work) propose(ctx context.Context, t store.Turn, tool, args string) (bool, error) {
	id := store.NewID(w.a.Now())
	turn := store.Turn{Role: store.FromModel, Re: t.N, Calls: []store.ToolCall{{ID: id, Name: tool, Args: args}}}
	if err := w.append(ctx, turn, true); err != nil {
		return false, err
	}
	return false, w.begin(ctx, t, turn.Calls[0])
}

// begin stores a proposed call as pending.
func (w *work) begin(ctx context.Context, t store.Turn, tc store.ToolCall) error {
	canonical, err := store.Canonical([]byte(tc.Args))
	if err != nil {
		return err
	}
	server, name, _ := store.SplitToolID(tc.Name)
	call := store.Call{
		ID: tc.ID, Server: server, Tool: name, Args: canonical, Pin: "pin", Thread: w.thread, By: t.By.User, ByName: t.By.Name,
		Surface: t.By.Surface, RunsAs: store.Plain(t.By.Name), Why: "because you asked", State: store.Pending,
		Created: w.a.Now(), Expires: w.a.Now().Add(15 * time.Minute), Policy: store.ByRequester,
	}
	call.Digest = call.ComputeDigest()
	w.tell(store.Progress{Kind: "tool", ID: tc.ID, Tool: &store.ToolLine{Name: tc.Name, State: store.Running}})
	if err := w.a.Calls.Begin(ctx, t.By, call); err != nil {
		return err
	}
	w.tell(store.Progress{Kind: "call", ID: tc.ID, Call: &call})
	return nil
}

// settle turns a settled call into its result.
func (w *work) settle(ctx context.Context, t store.Turn, tc store.ToolCall) (bool, error) {
	call, err := w.a.Calls.GetCall(ctx, tc.ID)
	if errors.Is(err, store.ErrNotFound) { // the process died in between
		return false, w.begin(ctx, t, tc)
	}
	if err != nil {
		return false, err
	}
	calls, err := w.a.Calls.ListCalls(ctx, store.CallQuery{Thread: w.thread})
	if err != nil {
		return false, err
	}
	for _, later := range calls { // the last of a chain of edits
		if later.Replaces == call.ID {
			call = later
		}
	}
	if !call.State.Final() {
		return false, nil
	}
	text := fmt.Sprintf("%s is %s", tc.Name, call.State.Word())
	w.tell(store.Progress{Kind: "tool", ID: tc.ID, Tool: &store.ToolLine{Name: tc.Name, State: call.State}})
	w.tell(store.Progress{Kind: "call", ID: tc.ID, Call: &call})
	if err := w.append(ctx, store.Turn{Role: store.FromTool, CallID: tc.ID, Text: text}, true); err != nil {
		return false, err
	}
	w.turns = append(w.turns, store.Turn{N: len(w.turns), Role: store.FromTool, CallID: tc.ID})
	return w.reply(ctx, t, text)
}

// Chart is a one-pixel image in Base64.
const Chart = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="

// Report is a file that is not an image.
var Report = []byte("%PDF-1.4\n%%EOF\n")

// Gateway is a bots.Approver that decides in the store and runs approved calls like
// mcp.Gateway, in goroutines that Close waits for. A tool called fail fails until the call
// is repeated, one called chart returns [Chart], and one called report returns [Report] and
// a file that is too large.
type Gateway struct {
	Calls store.Calls
	Now   func() time.Time

	wg   sync.WaitGroup
	mu   sync.Mutex // guards runs
	runs map[string]int
}

// Runs returns how often a call was run.
func (g *Gateway) Runs(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[call]
}

// Close waits for running calls.
func (g *Gateway) Close() { g.wg.Wait() }

// Decide implements bots.Approver.
func (g *Gateway) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error) {
	call, err := g.Calls.GetCall(ctx, id)
	if err != nil {
		return nil, err
	}
	if by.User != call.By && !by.IsAdmin() {
		return &call, store.Mark(store.Errorf("only %s can decide this", "its requester"), store.ErrRefused)
	}
	d.By, d.Name, d.Surface, d.At = by.User, by.Name, by.Surface, g.Now()
	switch d.Verb {
	case store.Edit:
		return g.anew(ctx, by, call, d.Args)
	case store.Retry, store.Again:
		if g.redo(call) != d.Verb {
			return &call, store.ErrDecided
		}
		return g.anew(ctx, by, call, call.Args)
	}
	call, err = g.Calls.Decide(ctx, by, id, d)
	if err != nil {
		return &call, err
	}
	if d.Verb == store.Approve {
		g.run(by, call)
	}
	return &call, nil
}

// redo returns the verb that repeats a call, "" if it can't be repeated.
func (g *Gateway) redo(c store.Call) store.Verb {
	if c.Successor != "" {
		return ""
	}
	return map[store.State]store.Verb{store.Failed: store.Retry, store.Expired: store.Again}[c.State]
}

// anew creates a call that replaces old, and approves it.
func (g *Gateway) anew(ctx context.Context, by store.Caller, old store.Call, args json.RawMessage) (*store.Call, error) {
	next := old
	next.ID, next.Replaces, next.Args, next.Decisions = store.NewID(g.Now()), old.ID, args, nil
	next.State, next.Reason, next.Result, next.Approved = store.Pending, store.Text{}, nil, time.Time{}
	next.Created, next.Expires, next.Started, next.Finished = g.Now(), g.Now().Add(15*time.Minute), time.Time{}, time.Time{}
	next.Digest = next.ComputeDigest()
	if err := g.Calls.Begin(ctx, by, next); err != nil {
		return &old, err
	}
	return g.Decide(ctx, by, next.ID, store.Decision{Verb: store.Approve})
}

func (g *Gateway) run(by store.Caller, call store.Call) {
	id := call.ID
	g.wg.Go(func() {
		ctx := context.Background()
		if _, err := g.Calls.Start(ctx, id, "test"); err != nil {
			return // another goroutine runs it
		}
		g.mu.Lock()
		if g.runs == nil {
			g.runs = map[string]int{}
		}
		g.runs[id]++
		g.mu.Unlock()
		if call.Tool == "fail" && call.Replaces == "" { // the first time
			failed := store.Outcome{State: store.Failed, Reason: store.Plain("on request")}
			if _, err := g.Calls.Finish(ctx, by, id, failed); err != nil {
				panic(fmt.Sprintf("finishing call %s: %v", id, err))
			}
			return
		}
		text, err := json.Marshal("ran with " + string(call.Args))
		if err != nil {
			panic(err) // encoding a string can't fail
		}
		raw := json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`)
		if call.Tool == "chart" {
			raw = json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"` + Chart + `"},{"type":"image","mimeType":"image/png","data":"PHN2Zy8+"}]}`)
		}
		if call.Tool == "report" {
			raw = json.RawMessage(`{"content":[{"type":"resource","resource":{"uri":"file:///srv/..%2FQ3%20report%E2%80%AE.pdf","mimeType":"application/pdf","blob":"` + base64.StdEncoding.EncodeToString(Report) + `"}},` +
				`{"type":"resource","resource":{"uri":"file:///srv/huge.bin","blob":"` + base64.StdEncoding.EncodeToString(make([]byte, 9<<20)) + `"}}]}`)
		}
		if _, err := g.Calls.Finish(ctx, by, id, store.Outcome{State: store.Done, Result: &store.Result{Raw: raw}}); err != nil {
			panic(fmt.Sprintf("finishing call %s: %v", id, err))
		}
	})
}

// Card implements bots.Approver.
func (g *Gateway) Card(ctx context.Context, id string) (store.Card, error) {
	c, err := g.Calls.GetCall(ctx, id)
	if err != nil {
		return store.Card{}, err
	}
	card := store.Card{
		Call: c.ID, Tool: c.ToolID(), Description: "A tool of the tests.", Server: c.Server, Where: "/usr/bin/" + c.Server,
		By: c.ByName, RunsAs: c.RunsAs, Why: c.Why, Args: c.Args, Warnings: c.Warnings, Digest: c.Digest, Policy: c.Policy,
		Expires: c.Expires, State: c.State, Approved: !c.Approved.IsZero(), Outcome: c.Reason, Always: true,
		RepeatVerb: g.redo(c), Successor: c.Successor,
	}
	for _, d := range c.Decisions {
		card.DecidedBy = d.Name
	}
	if c.Result != nil {
		card.Outcome = store.Plain(c.Result.Text())
	}
	return card, nil
}
