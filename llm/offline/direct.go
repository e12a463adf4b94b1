package offline

import (
	"slices"

	"nize/llm"
	"nize/store"
)

// useOffered is the plan where the tools themselves are offered and there is
// nothing to search with, as in a round of a program: the one that fits the words
// best is called by its own name.
func (r round) useOffered(text string, step *store.Turn, results []store.Turn) llm.Reply {
	if step != nil {
		return sayReply(r.outcome(step.Calls[0].Name, results[0]))
	}
	if m, ok := r.askedMemo(); ok && r.hasFunction(m.Tool) {
		if reply, ok := r.addSupplied(text, m); ok {
			return reply
		}
	}
	if reply, ok := r.smallTalk(text); ok {
		return reply
	}
	tools := make([]found, len(r.req.Functions))
	for i, f := range r.req.Functions {
		tools[i] = found{ID: f.Name, Description: f.Description}
	}
	if _, list := listRequest(text); list || helpRE.MatchString(text) {
		return sayReply(r.toolList(shorten(text), tools[:min(len(tools), 20)]))
	}
	wanted, form := rephrase(text), formOf(text)
	var best *store.Function
	var filled arguments
	for i, f := range r.req.Functions {
		if !tools[i].fits(wanted, form) {
			continue
		}
		a := fillArguments(readParams(f.Schema), r.newRequest(text), f.Name+" "+f.Description)
		if best == nil || isBetter(a, filled) || asksRE.MatchString(text) && wantsNothing(a) && lacksAll(filled) {
			best, filled = &r.req.Functions[i], a
		}
	}
	if best == nil {
		return sayReply(r.notFound(text, nil))
	}
	return r.proposeCall(memo{Tool: best.Name, Schema: best.Schema}, filled)
}

// isOffered says whether a tool is called by its own name.
func (r round) isOffered(tool string) bool {
	return !r.hasFunction(llm.ExecuteTool) && slices.ContainsFunc(r.req.Functions, func(f store.Function) bool { return f.Name == tool })
}
