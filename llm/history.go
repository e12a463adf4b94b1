package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// defaultPrompt is the system prompt of a profile that has none.
const defaultPrompt = `You are nize, an assistant in a chat. Answer in the language of the person's message, in short and plain Markdown. Say so when you do not know something.`

// droppedNote tells a model that it does not see all of a conversation.
const droppedNote = "\nEarlier parts of this conversation were left out because it is long."

const toolsOff = `You have no tools in this conversation. If something needs one, say so.`

// buildRequest builds what the model is given for one round.
func (w *work) buildRequest(ctx context.Context, s state, noCalls bool) (Request, error) {
	by := s.target.By
	functions, err := w.functions(ctx, by)
	if err != nil {
		return Request{}, err
	}
	system := w.profile.SystemPrompt
	if system == "" {
		system = defaultPrompt
	}
	if len(functions) > 0 {
		system += "\n\n" + w.Config.Get(by.User, "agent.tools.systemPrompt")
	} else {
		system += "\n\n" + toolsOff
	}
	if system, err = w.fillPrompt(ctx, by, system); err != nil {
		return Request{}, err
	}
	return Request{
		System: system, Context: w.requestContext(s), Functions: functions, NoCalls: noCalls,
		Locale: w.requestLocale(ctx), Turns: history(s.visibleTurns()), MaxTokens: w.profile.MaxTokens, Temperature: w.profile.Temperature,
	}, nil
}

// fitRequest makes a request fit into its model and marks in it what is data. again
// says that a summary was stored instead: look at the thread again.
func (w *work) fitRequest(ctx context.Context, s state, req *Request) (again bool, err error) {
	budget := w.fitting.budget(ctx, w.modelName(), *req)
	whole := slices.Clone(req.Turns)
	if shortenResults(req, s.target.N, budget) {
		if again, err := w.summarize(ctx, s, *req, whole, budget); again || err != nil {
			return again, err
		}
		if dropExchanges(req, s.target.N, budget) {
			req.Context += droppedNote
		}
	}
	markData(req.Turns)
	return false, nil
}

// markData frames what is data: results, and summaries.
func markData(turns []store.Turn) {
	for i, t := range turns {
		switch t.Role {
		case store.FromTool:
			turns[i].Text = Frame(t.Text)
		case store.FromSummary:
			turns[i].Role, turns[i].Text = store.FromNize, summaryNote+Frame(t.Text)
		}
	}
}

// requestContext is what changes with every message. The time is the message's, so
// that all rounds of one turn have the same prefix.
func (w *work) requestContext(s state) string {
	lines := []string{"Local time of the person: " + w.localTime(s.target.At)}
	if w.thread.Locale != "" {
		lines = append(lines, "Locale: "+w.thread.Locale)
	}
	if s.target.By.Name != "" {
		lines = append(lines, "You answer "+brief(s.target.By.Name)+".")
	}
	return strings.Join(lines, "\n")
}

// requestLocale is the language in which nize speaks in the thread: the channel's where
// it has one, else that of who began the thread.
func (w *work) requestLocale(ctx context.Context) string {
	if w.Channels == nil || !w.thread.Address.Shared() {
		return w.thread.Locale
	}
	channel, err := w.Channels.GetChannel(ctx, w.thread.Address.Place())
	if err != nil { // as if it had none
		if ctx.Err() == nil {
			w.Log.Error("reading how a channel is set up", "thread", w.thread.ID, "error", err)
		}
		return w.thread.Locale
	}
	return channel.LocaleFor(w.thread)
}

// history is the thread in the order that models want: a message before the
// first turn that read it, results behind the step that called, one result per
// call id, the newest. Messages after the target are not in it: they queue. What
// a summary covers is not in it, but for steps of which a result came later; the
// summary stands first.
func history(s state) []store.Turn {
	var out []store.Turn
	shown := -1 // the last message that is in out
	if sum := s.summary(); sum != nil {
		out, shown = append(out, *sum), sum.Re
	}
	covered := shown
	users := func(upTo int) {
		for _, t := range s.turns {
			if t.Role == store.FromUser && t.N > shown && t.N <= upTo {
				out = append(out, t)
			}
		}
		shown = max(shown, upTo)
	}
	for _, t := range s.turns {
		if t.Role != store.FromModel || t.N <= covered && !s.resultAfter(t, covered) {
			continue
		}
		users(min(t.Re, s.target.N))
		if t.Final {
			t.Text += "\n[cut short]"
		}
		out = append(out, t)
		for _, c := range t.Calls {
			r := store.Turn{Thread: t.Thread, N: t.N, Role: store.FromTool, CallID: c.ID, Text: "There is no result: the turn was stopped.", At: t.At}
			if found := resultOf(s.turns, c.ID); found != nil {
				r = *found
			}
			out = append(out, r)
		}
	}
	users(s.target.N)
	out = slices.CompactFunc(out, func(a, b store.Turn) bool { return isHidden(s, a) && isHidden(s, b) })
	if s.late {
		out = append(out, store.Turn{
			Thread: s.target.Thread, N: s.next, Role: store.FromNize,
			Text: "A call was run again after your answer. Its result above is new; answer again with it.",
		})
	}
	return out
}

// summary is the newest summary that the author of the target may read and that
// does not reach to the target.
func (s state) summary() *store.Turn {
	for i := range s.turns {
		t := &s.turns[len(s.turns)-1-i]
		if t.Role == store.FromSummary && t.Re < s.target.N && (t.For == "" || t.For == s.target.By.User) {
			return t
		}
	}
	return nil
}

// resultAfter says whether a call of a step has a result behind that place.
func (s state) resultAfter(step store.Turn, n int) bool {
	return slices.ContainsFunc(step.Calls, func(c store.ToolCall) bool {
		r := resultOf(s.turns, c.ID)
		return r != nil && r.N > n
	})
}

// compactHistory shortens a history that is over the budget of estimated tokens: the
// oldest tool results and what came with old messages become a marker, then the
// oldest whole exchanges go.
// What belongs to the message being answered stays, but for old results of its
// own steps. The stored thread stays whole. dropped says that exchanges went.
func compactHistory(req *Request, target, budget int) (dropped bool) {
	return shortenResults(req, target, budget) && dropExchanges(req, target, budget)
}

// shortenResults makes markers of old results and of what came with old messages,
// and says whether the request is still over the budget.
func shortenResults(req *Request, target, budget int) (over bool) {
	size, limit := promptBytes(*req), bytesOf(budget)
	lastStep := len(req.Turns) // results behind it are what the model waits for
	for i, t := range req.Turns {
		if t.Role == store.FromModel && len(t.Calls) > 0 {
			lastStep = i
		}
	}
	for i := 0; i < len(req.Turns) && size > limit; i++ {
		t := &req.Turns[i]
		if t.Role == store.FromUser && t.N < target {
			size -= turnBytes(*t)
			*t = dropAttachments(*t)
			size += turnBytes(*t)
			continue
		}
		if i >= lastStep {
			continue
		}
		marker := fmt.Sprintf("[%d bytes of an older result are left out]", len(t.Text))
		if t.Role == store.FromTool && len(marker) < len(t.Text)+attachmentBytes(*t) {
			size -= turnBytes(*t)
			t.Text, t.Said, t.Ended, t.Files = marker, store.Text{}, "", nil
			size += turnBytes(*t)
		}
	}
	return size > limit
}

// dropExchanges leaves out the oldest exchanges, but for a summary before them,
// until the request is in the budget or what is being answered comes first.
func dropExchanges(req *Request, target, budget int) (dropped bool) {
	size, limit, head := promptBytes(*req), bytesOf(budget), headOf(req.Turns)
	start := head
	for _, end := range exchanges(req.Turns) {
		if size <= limit || slices.ContainsFunc(req.Turns[start:end], func(t store.Turn) bool { return t.Role == store.FromUser && t.N >= target }) {
			break
		}
		for _, t := range req.Turns[start:end] {
			size -= turnBytes(t)
		}
		start, dropped = end, true
	}
	req.Turns = slices.Delete(slices.Clone(req.Turns), head, start)
	return dropped
}

// headOf is where the exchanges begin: a summary stands before them.
func headOf(turns []store.Turn) int {
	if len(turns) > 0 && (turns[0].Role == store.FromSummary || turns[0].Role == store.FromNize) {
		return 1
	}
	return 0
}

// exchanges are the ends of the exchanges: messages and what was said to them, up
// to the next message. The last one has none.
func exchanges(turns []store.Turn) (ends []int) {
	answered := false
	for i := headOf(turns); i < len(turns); i++ {
		if turns[i].Role != store.FromUser {
			answered = true
		} else if answered {
			ends, answered = append(ends, i), false
		}
	}
	return ends
}
