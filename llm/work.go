package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/store"
	"nize/store/outage"
)

const (
	// maxRounds limits how often one Work reads its thread: far more than the largest step
	// limit needs, so that a bug can't make it loop forever.
	maxRounds = 1000
	// maxStepCalls limits the calls that a model may propose in one round.
	maxStepCalls = 32
	// parallelCalls limits how many of them run at once.
	parallelCalls = 8
)

// work is one run of [Agent.Work].
type work struct {
	*Agent
	thread  store.Thread
	profile store.Agent
	in      string   // the call that called this agent; "" for the conversation itself
	callers []string // the agents that called it, outermost first
	task    *Task    // the task if a program called the first of them; nil in a conversation

	fitting Fitting

	mu     sync.Mutex // guards the fields below, which concurrent calls of a step share
	tell   func(store.Progress)
	direct map[string]string // tools, keyed by function name
}

func (a *Agent) fitting() Fitting {
	return Fitting{Models: a.Models, Config: a.Config, Window: a.Window, ContextTokens: a.ContextTokens, Log: a.Log}
}

// Work does the next things in a thread until it is answered or waits for calls, and
// reports progress through tell, which may be nil. See the package comment. If a provider
// fails, it returns nil, because the thread then has a notice that says so; it returns only
// errors of the store.
//
// A cancelled ctx is a person's stop: Work stores the text so far as the answer, cancels
// waiting calls of the step, and returns nil. To leave the thread open instead, cancel ctx
// with the cause [ErrShutdown]; Work then returns that cause.
func (a *Agent) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	leave, err := a.locks.Lock(ctx, thread)
	if err != nil {
		return err
	}
	defer leave()
	w := &work{Agent: a, tell: tell, fitting: a.fitting()}
	for range maxRounds {
		more, err := w.nextStep(ctx, thread)
		if err != nil {
			return fmt.Errorf("working on thread %s: %w", thread, err)
		}
		if !more {
			return nil
		}
	}
	return fmt.Errorf("working on thread %s: gave up after %d rounds", thread, maxRounds)
}

func (w *work) sendProgress(p store.Progress) {
	if w.tell == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(p)
}

// nextStep reads the thread and does one thing; more reports whether to read again.
func (w *work) nextStep(ctx context.Context, thread string) (more bool, err error) {
	// A stop must still be able to read the thread and write to it.
	read, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if w.thread, err = w.Threads.GetThread(read, thread); err != nil {
		return false, err
	}
	turns, err := w.Threads.Turns(read, thread)
	if err != nil {
		return false, err
	}
	s := readState(turns)
	if s.target != nil {
		if w.profile, err = w.Agent.profile(read, w.thread, s.target.By); err != nil {
			return false, fmt.Errorf("reading the agent: %w", err)
		}
	}
	switch {
	case s.target == nil:
		return w.appendRetried(read, s)
	case ctx.Err() != nil:
		return false, w.stopTurn(ctx, s, "")
	case s.step != nil:
		return w.settleStep(ctx, s)
	}
	return w.generate(ctx, s)
}

// stopTurn ends the turn after ctx was cancelled.
func (w *work) stopTurn(ctx context.Context, s state, text string) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrShutdown) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	all, err := w.Threads.Turns(ctx, w.thread.ID)
	if err != nil {
		return err
	}
	for _, tc := range openCalls(all, s.missing) {
		if c, err := w.Calls.GetCall(ctx, tc.ID); err == nil && c.Waiting() {
			w.cancelCall(ctx, s.target.By, c, store.Textf("the turn was stopped"))
		}
	}
	if strings.TrimSpace(text) != "" {
		_, err := w.storePartial(ctx, s, text)
		return err
	}
	return w.endTurn(ctx, s, store.Progress{Kind: "notice", Said: store.Textf("Stopped.")})
}

// endTurn closes the turn with a text of nize's own.
func (w *work) endTurn(ctx context.Context, s state, p store.Progress) error {
	p.Text = p.Said.String()
	at, err := w.appendTurn(ctx, s, store.Turn{Role: store.FromNize, Text: p.Text, Said: p.Said, Final: true, Re: s.target.N})
	if err != nil {
		return err
	}
	p.Stored = at
	w.sendProgress(s.markPrivate(p))
	return nil
}

// storePartial stores the text so far as the answer.
func (w *work) storePartial(ctx context.Context, s state, text string) (stored bool, err error) {
	at, err := w.appendTurn(ctx, s, store.Turn{Role: store.FromModel, Text: text, Finish: FinishCut, Final: true, Re: s.target.N})
	if at != "" {
		w.sendProgress(s.markPrivate(store.Progress{Kind: "turn", Turn: w.turnID(s), Stored: at, Text: text, Finish: FinishCut, Ends: true}))
	}
	return at != "", err
}

// appendTurn stores a turn after all others. It may follow messages that arrived meanwhile,
// because its Re shows that it hasn't read them. If anything else was appended, another
// writer was first: at is "" instead of the turn's id, and the thread must be read again.
func (w *work) appendTurn(ctx context.Context, s state, t store.Turn) (at string, err error) {
	t.Thread, t.At, t.N = w.thread.ID, w.Now(), s.next
	if s.private && t.Role != store.FromTool {
		t.For = s.target.By.User
	}
	open := isStep(t) || t.Role == store.FromTool || (t.Role == store.FromNize && !t.Final) || messageAfter(s.turns, t.Re) != nil
	if w.in != "" {
		t.Role, t.As, t.In, t.Final, open = store.FromAgent, t.Role, w.in, false, true
	}
	for {
		err = w.Threads.Append(ctx, s.target.By, t, open)
		switch {
		case err == nil:
			return store.TurnID(w.thread.ID, t.N), nil
		case !errors.Is(err, store.ErrExists):
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		fresh, err := w.Threads.Turns(ctx, w.thread.ID)
		if err != nil {
			return "", err
		}
		next := nextPlace(fresh)
		if next <= t.N || slices.ContainsFunc(fresh, func(o store.Turn) bool { return o.N >= s.next && o.In == w.in && o.Role != store.FromUser }) {
			return "", nil
		}
		if t.N = next; w.in == "" {
			open = open || messageAfter(turnsIn(fresh, ""), t.Re) != nil
		}
	}
}

// generate asks the model once more and stores its reply.
func (w *work) generate(ctx context.Context, s state) (more bool, err error) {
	limit, err := w.maxSteps(ctx, s)
	if err != nil {
		return false, err
	}
	atLimit := s.steps >= limit
	if atLimit && w.in == "" {
		if again, err := w.reportStepLimit(ctx, s, limit); err != nil || again {
			return again, err
		}
	}
	req, err := w.buildRequest(ctx, s, atLimit)
	if err != nil {
		return false, err
	}
	var unkept error
	reply, text, again, err := w.fitting.Ask(ctx, Prompt{
		Model: w.modelName(), Request: req, Target: s.target.N, Paid: w.paid,
		Keep: func(sum store.Turn, of []store.Turn) error {
			if holdsPrivate(of, s.target.By.User) {
				sum.For = s.target.By.User
			}
			_, unkept = w.appendTurn(ctx, s, sum)
			return unkept
		},
		Send: func(req Request) (Reply, string, error) {
			s.private = holdsPrivate(req.Turns, s.target.By.User)
			return w.askModel(ctx, s, req)
		},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return false, w.stopTurn(ctx, s, text)
	case unkept != nil || outage.Is(err): // the call could not be booked: ask again later
		return false, err
	case again:
		return true, nil
	case err != nil:
		return true, w.reportFailure(ctx, s, text, err)
	case atLimit:
		// Calls made despite NoCalls are dropped.
		if len(reply.Calls) > 0 {
			reply.Calls, reply.Opaque = nil, nil
		}
		if strings.TrimSpace(reply.Text) == "" {
			reply.Text, reply.Remark = "", store.Textf("[I could not finish this within %d steps.]", limit)
		}
	}
	first := w.in == "" && !s.private && !slices.ContainsFunc(s.turns, func(t store.Turn) bool { return t.Role == store.FromModel && !isStep(t) })
	turn := reply.Turn(func() string { return w.NewID(w.Now()) })
	turn.Re = s.target.N
	at, err := w.appendTurn(ctx, s, turn)
	if at != "" {
		w.sendProgress(s.markPrivate(store.Progress{Kind: "turn", Turn: w.turnID(s), Stored: at, Text: turn.Text, Said: turn.Said, Finish: turn.Finish, Ends: len(turn.Calls) == 0}))
		if first && !isStep(turn) && w.Titles != nil {
			w.Titles.add(w.thread.ID)
		}
		if text := unmetRequest(s, turn); text != "" && w.RecordUnmetRequest != nil && !s.private {
			w.RecordUnmetRequest(s.target.By.User, text)
		}
	}
	if err != nil && ctx.Err() != nil {
		return true, nil // the next iteration handles the stop
	}
	return true, err
}

// emptyFaults maps finish reasons to faults for replies with neither text nor calls.
var emptyFaults = map[string]Fault{FinishLength: FaultLength, FinishWithheld: FaultWithheld}

// CheckReply returns the reply with a remark if it is incomplete, and with no more calls
// than a step may have. If it has neither text nor calls, CheckReply returns a
// [*ProviderError], with [FaultAnswer] if asking again may help.
func CheckReply(reply Reply) (Reply, error) {
	if strings.TrimSpace(reply.Text) == "" && len(reply.Calls) == 0 {
		provider, _, _ := strings.Cut(reply.Model, "/")
		if fault := emptyFaults[reply.Finish]; fault != "" { // asking again would give the same
			return reply, &ProviderError{Provider: provider, Fault: fault}
		}
		return reply, &ProviderError{Provider: provider, Fault: FaultAnswer, Message: "the answer was empty"}
	}
	if reply.Text != "" && len(reply.Calls) == 0 {
		reply.Remark = store.FinishRemark(reply.Finish)
	}
	if len(reply.Calls) > maxStepCalls {
		reply.Calls, reply.Opaque = reply.Calls[:maxStepCalls], nil
	}
	return reply, nil
}

// Turn returns a checked reply as a model's turn, with new ids for its calls.
func (r Reply) Turn(newID func() string) store.Turn {
	t := store.Turn{Role: store.FromModel, Text: r.Text, Said: r.Remark, Finish: Partial(r.Finish), Calls: slices.Clone(r.Calls), Opaque: r.Opaque, Model: r.Model}
	ids := make([]string, len(t.Calls))
	for i := range ids {
		ids[i] = newID()
	}
	slices.Sort(ids) // surfaces sort calls by id, and ids of one millisecond are random
	for i, id := range ids {
		t.Calls[i].ID = id
	}
	return t
}

// Partial returns why a reply is incomplete, "" if it is complete.
func Partial(finish string) string {
	if store.FinishRemark(finish) == (store.Text{}) {
		return ""
	}
	return finish
}

// askModel calls the model, which books the cost. It asks once more if the reply has
// neither text nor calls. text is what was shown, even with an error.
func (w *work) askModel(ctx context.Context, s state, req Request) (reply Reply, text string, err error) {
	var shown strings.Builder
	delta := func(d Delta) {
		if d.Text == "" {
			return
		}
		shown.WriteString(d.Text)
		w.sendProgress(s.markPrivate(store.Progress{Kind: "text", Turn: w.turnID(s), Delta: d.Text}))
	}
	model, by := w.modelName(), s.target.By
	chosen := w.thread.Model != "" || w.profile.Model == "" // by the person instead of the agent's author
	if chosen && w.MayAsk != nil && w.task == nil {         // programs may use every model
		if err := w.MayAsk(ctx, by, w.groupsOf(ctx, by), model); err != nil {
			return reply, "", err
		}
	}
	for range 2 {
		reply, err = w.Models.Generate(ctx, model, req, delta)
		w.paid(reply)
		for _, b := range reply.Crossed {
			warning := budgetWarning(b, w.zone(), w.forAdmin(s))
			w.sendProgress(s.markPrivate(store.Progress{Kind: "notice", Text: warning.String(), Said: warning}))
		}
		if err != nil {
			return reply, shown.String(), err
		}
		reply, err = CheckReply(reply)
		var pe *ProviderError
		if !errors.As(err, &pe) || pe.Fault != FaultAnswer {
			break
		}
	}
	return reply, shown.String(), err
}

// paid passes a reply to the program whose task this is.
func (w *work) paid(reply Reply) {
	if w.task != nil {
		w.task.Counted(reply)
	}
}

// forAdmin reports whether only admins read the answer; in a channel, others do too.
func (w *work) forAdmin(s state) bool { return s.target.By.IsAdmin() && !w.thread.Address.Shared() }

// reportFailure tells the person in one sentence why there is no answer, stores the text
// shown so far, and logs the cause.
func (w *work) reportFailure(ctx context.Context, s state, text string, cause error) error {
	why := sentence(cause, w.forAdmin(s))
	var full *store.BudgetError
	if errors.As(cause, &full) {
		why = budgetRefusal(full, w.zone(), w.forAdmin(s))
		w.Log.Info("a budget refused a model call", "thread", w.thread.ID, "error", cause)
	} else {
		w.Log.Error("the model gave no answer", "thread", w.thread.ID, "error", cause)
	}
	if strings.TrimSpace(text) != "" && w.in == "" {
		stored, err := w.storePartial(ctx, s, text)
		if err != nil || !stored {
			return err
		}
		all, err := w.Threads.Turns(ctx, w.thread.ID)
		if err != nil {
			return err
		}
		s.turns, s.next = turnsIn(all, ""), nextPlace(all)
	}
	return w.endTurn(ctx, s, store.Progress{Kind: "error", Said: why})
}

// reportStepLimit reports once that the step limit is reached.
func (w *work) reportStepLimit(ctx context.Context, s state, limit int) (again bool, err error) {
	said := store.Textf("I stopped using tools after %d steps, the limit for one turn.", limit)
	for _, t := range s.turns {
		if t.Role == store.FromNize && t.N > s.target.N && t.Finish == store.FinishSteps {
			return false, nil
		}
	}
	at, err := w.appendTurn(ctx, s, store.Turn{Role: store.FromNize, Text: said.String(), Said: said, Finish: store.FinishSteps, Re: s.target.N})
	if at != "" {
		w.sendProgress(s.markPrivate(store.Progress{Kind: "limit", Text: said.String(), Said: said, Stored: at}))
	}
	return true, err
}

// maxSteps returns the person's step limit, which the configuration caps, or the agent's if
// that is lower.
func (w *work) maxSteps(ctx context.Context, s state) (int, error) {
	own, err := store.ReadConfig(ctx, w.Config, s.target.By.User)
	if err != nil {
		return 0, err
	}
	limit := store.GetInt(own, s.target.By.User, "agent.tools.maxSteps")
	if w.profile.MaxSteps > 0 {
		limit = min(limit, w.profile.MaxSteps)
	}
	return max(limit, 1), nil
}

// turnID returns the id of the model's turn in progress, which doesn't change while it is
// written.
func (w *work) turnID(s state) string { return store.TurnID(w.thread.ID, s.next) }

// scope returns the tools to which the thread and its agent are limited.
func (w *work) scope() store.Scope {
	return store.Scope{Agent: w.profile.ID, Servers: w.thread.Servers, Thread: w.thread.ID}
}

// functions returns what the model is offered in this turn.
func (w *work) functions(ctx context.Context, by store.Caller) ([]store.Function, error) {
	own, err := store.ReadConfig(ctx, w.Config, by.User)
	if err != nil {
		return nil, err
	}
	if !store.GetBool(own, by.User, "agent.tools.enabled") || !store.GetBool(w.Config, "", "agent.tools.enabled") {
		return nil, nil
	}
	f, err := w.Tools.Functions(ctx, by, w.scope())
	if err != nil {
		return nil, fmt.Errorf("listing functions: %w", err)
	}
	if f, err = w.addDirect(ctx, by, f); err != nil {
		return nil, err
	}
	return w.addAgents(ctx, by, f)
}

// zone returns the person's time zone, UTC if unknown.
func (w *work) zone() *time.Location {
	zone, err := time.LoadLocation(w.thread.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// localTime returns when the person wrote, in their time zone.
func (w *work) localTime(at time.Time) string {
	zone, err := time.LoadLocation(w.thread.Zone)
	if err != nil || w.thread.Zone == "" {
		return at.UTC().Format("Monday, 2 January 2006, 15:04") + " UTC (their time zone is not known)"
	}
	return at.In(zone).Format("Monday, 2 January 2006, 15:04 -07:00") + " (" + w.thread.Zone + ")"
}
