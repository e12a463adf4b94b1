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
	req := Request{
		System: system, Context: w.requestContext(s), Functions: functions, NoCalls: noCalls,
		Locale: w.requestLocale(ctx), Turns: history(s.visibleTurns()), MaxTokens: w.profile.MaxTokens, Temperature: w.profile.Temperature,
	}
	if compactHistory(&req, s.target.N, w.ContextTokens) {
		req.Context += "\nEarlier parts of this conversation were left out because it is long."
	}
	for i, t := range req.Turns {
		if t.Role == store.FromTool {
			req.Turns[i].Text = Frame(t.Text)
		}
	}
	return req, nil
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
	threadLock, err := w.Channels.GetChannel(ctx, w.thread.Address.Place())
	if err != nil { // as if it had none
		if ctx.Err() == nil {
			w.Log.Error("reading how a channel is set up", "thread", w.thread.ID, "error", err)
		}
		return w.thread.Locale
	}
	return threadLock.LocaleFor(w.thread)
}

// history is the thread in the order that models want: a message before the
// first turn that read it, results behind the step that called, one result per
// call id, the newest. Messages after the target are not in it: they queue.
func history(s state) []store.Turn {
	var out []store.Turn
	shown := -1 // the last message that is in out
	users := func(upTo int) {
		for _, t := range s.turns {
			if t.Role == store.FromUser && t.N > shown && t.N <= upTo {
				out = append(out, t)
			}
		}
		shown = max(shown, upTo)
	}
	for _, t := range s.turns {
		if t.Role != store.FromModel {
			continue
		}
		users(min(t.Re, s.target.N))
		if t.Final {
			t.Text += "\n[cut short]"
		}
		out = append(out, t)
		for _, c := range t.Calls {
			r := store.Turn{Thread: t.Thread, N: t.N, Role: store.FromTool, CallID: c.ID, Text: "There is no result: the turn was stopped.", At: t.At}
			if foundNames := resultOf(s.turns, c.ID); foundNames != nil {
				r = *foundNames
			}
			out = append(out, r)
		}
	}
	users(s.target.N)
	out = slices.CompactFunc(out, func(a, b store.Turn) bool { return isHidden(s, a) && isHidden(s, b) })
	if s.late {
		out = append(out, store.Turn{
			Thread: s.target.Thread, N: nextPlace(s.turns), Role: store.FromNize,
			Text: "A call was run again after your answer. Its result above is new; answer again with it.",
		})
	}
	return out
}

// compactHistory shortens a history that is over the budget of estimated tokens: the
// oldest tool results and what came with old messages become a marker, then the
// oldest whole exchanges go.
// What belongs to the message being answered stays, but for old results of its
// own steps. The stored thread stays whole. dropped says that exchanges went.
func compactHistory(req *Request, findTarget, budget int) (dropped bool) {
	size := int64(0)
	for _, f := range req.Functions {
		size += EstimateTokens(len(f.Name) + len(f.Description) + len(f.Schema))
	}
	size += EstimateTokens(len(req.System) + len(req.Context))
	for _, t := range req.Turns {
		size += EstimateTokens(turnBytes(t))
	}
	over := func() bool { return size > int64(budget) }
	lastStep := len(req.Turns) // results behind it are what the model waits for
	for i, t := range req.Turns {
		if t.Role == store.FromModel && len(t.Calls) > 0 {
			lastStep = i
		}
	}
	for i := 0; i < len(req.Turns) && over(); i++ {
		t := &req.Turns[i]
		if t.Role == store.FromUser && t.N < findTarget {
			size -= EstimateTokens(turnBytes(*t))
			*t = dropAttachments(*t)
			size += EstimateTokens(turnBytes(*t))
			continue
		}
		if i >= lastStep {
			continue
		}
		marker := fmt.Sprintf("[%d bytes of an older result are left out]", len(t.Text))
		if t.Role == store.FromTool && len(marker) < len(t.Text) {
			size -= EstimateTokens(len(t.Text)) - EstimateTokens(len(marker))
			t.Text, t.Said, t.Ended = marker, store.Text{}, ""
		}
	}
	for over() {
		end := firstExchange(req.Turns)
		if end == 0 || slices.ContainsFunc(req.Turns[:end], func(t store.Turn) bool { return t.Role == store.FromUser && t.N >= findTarget }) {
			break
		}
		for _, t := range req.Turns[:end] {
			size -= EstimateTokens(turnBytes(t))
		}
		req.Turns, dropped = req.Turns[end:], true
	}
	return dropped
}

// firstExchange is the end of the first exchange: messages and what was said to
// them, up to the next message. 0 if there is no next one.
func firstExchange(turns []store.Turn) int {
	answered := false
	for i, t := range turns {
		if t.Role == store.FromUser && answered {
			return i
		}
		answered = answered || t.Role != store.FromUser
	}
	return 0
}

// turnBytes is what a turn weighs in a request.
func turnBytes(t store.Turn) int {
	n := len(t.Text) + len(t.Opaque) + attachmentBytes(t)
	for _, c := range t.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}
