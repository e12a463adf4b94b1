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

// droppedNote tells a model that it doesn't see the whole conversation.
const droppedNote = "\nEarlier parts of this conversation were left out because it is long."

const toolsOff = `You have no tools in this conversation. If something needs one, say so.`

// buildRequest builds the model request for one round.
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
	bill := &Bill{By: by, Team: store.TeamOf(by, w.thread.Address), Thread: w.thread.ID, Agent: w.profile.ID}
	if w.task != nil {
		bill.Team = w.task.Team
	}
	return Request{
		Bill: bill, System: system, Context: w.requestContext(s), Functions: functions, NoCalls: noCalls,
		Locale: w.requestLocale(ctx), Turns: history(s.visibleTurns()), MaxTokens: w.profile.MaxTokens, Temperature: w.profile.Temperature,
	}, nil
}

// markData frames data: results and summaries.
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

// requestContext returns what changes with every message. Its time is the message's, so
// that all rounds of a turn have the same prefix.
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

// requestLocale returns the thread's locale: the channel's if it has one, otherwise that of
// the thread's owner.
func (w *work) requestLocale(ctx context.Context) string {
	if w.Channels == nil || !w.thread.Address.Shared() {
		return w.thread.Locale
	}
	channel, err := w.Channels.GetChannel(ctx, w.thread.Address.Place())
	if err != nil { // use the owner's
		if ctx.Err() == nil {
			w.Log.Error("reading how a channel is set up", "thread", w.thread.ID, "error", err)
		}
		return w.thread.Locale
	}
	return channel.LocaleFor(w.thread)
}

// history returns the thread in the order that models need: a message before the first turn
// that read it, results after the step that called, and one result per call id, the newest.
// Messages after the target are left out, because they are queued. Turns covered by a
// summary are left out, except for steps with a later result; the summary comes first.
func history(s state) []store.Turn {
	var out []store.Turn
	shown := -1 // the last message included in out
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

// summary returns the newest summary that the target's author may read and that ends before
// the target.
func (s state) summary() *store.Turn {
	for i := range s.turns {
		t := &s.turns[len(s.turns)-1-i]
		if t.Role == store.FromSummary && t.Re < s.target.N && (t.For == "" || t.For == s.target.By.User) {
			return t
		}
	}
	return nil
}

// resultAfter reports whether a call of a step has a result after position n.
func (s state) resultAfter(step store.Turn, n int) bool {
	return slices.ContainsFunc(step.Calls, func(c store.ToolCall) bool {
		r := resultOf(s.turns, c.ID)
		return r != nil && r.N > n
	})
}

// compactHistory shortens a history that exceeds the budget, in estimated tokens. First it
// replaces the oldest tool results and the attachments of old messages by markers, then it
// drops the oldest exchanges. It keeps what belongs to the message being answered, except
// for old results of its own steps. The stored thread is not changed. dropped reports
// whether exchanges were dropped.
func compactHistory(req *Request, target, budget int) (dropped bool) {
	return shortenResults(req, target, budget) && dropExchanges(req, target, budget)
}

// shortenResults replaces old results and the attachments of old messages by markers, and
// reports whether the request is still over the budget.
func shortenResults(req *Request, target, budget int) (over bool) {
	size, limit := promptBytes(*req), bytesOf(budget)
	lastStep := len(req.Turns) // the model needs the results after it
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
		marker := Frame(fmt.Sprintf("[%d bytes of an older result are left out]", len(Unframe(t.Text))))
		if t.Role == store.FromTool && len(marker) < len(t.Text)+attachmentBytes(*t) {
			size -= turnBytes(*t)
			t.Text, t.Said, t.Ended, t.Files = marker, store.Text{}, "", nil
			size += turnBytes(*t)
		}
	}
	return size > limit
}

// dropExchanges drops the oldest exchanges, but keeps a summary before them, until the
// request is within the budget or begins with the message being answered.
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

// headOf returns where the exchanges begin, which is after a summary.
func headOf(turns []store.Turn) int {
	if len(turns) > 0 && (turns[0].Role == store.FromSummary || turns[0].Role == store.FromNize) {
		return 1
	}
	return 0
}

// exchanges returns the ends of the exchanges, each of which is messages and the answer, up
// to the next message. The last exchange has no end.
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
