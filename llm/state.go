package llm

import (
	"encoding/json"

	"nize/store"
)

// state is the state of a thread, derived from its turns: see the package comment.
type state struct {
	turns   []store.Turn     // the conversation's, or those of an agent that was called in it
	next    int              // the first free position in the thread
	step    *store.Turn      // the model's turn with calls that have no result yet
	missing []store.ToolCall // those calls
	target  *store.Turn      // the last message to be answered now; nil if there is none
	steps   int              // rounds with calls made for target
	last    *store.Turn      // the model's last turn, or the notice that ended a turn
	late    bool             // a result arrived after the answer
	private bool             // the model reads private results of the target's author, so its reply is private
}

// turnsIn returns the turns of the conversation itself (in is ""), or those of the agent
// called by the call in, as if they were a conversation.
func turnsIn(all []store.Turn, in string) []store.Turn {
	var out []store.Turn
	for _, t := range store.InForce(all) {
		if t.In != in {
			continue
		}
		if in != "" {
			t.Role, t.Final = t.As, t.As == store.FromNize
		}
		out = append(out, t)
	}
	return out
}

// readState returns the state of the conversation itself.
func readState(all []store.Turn) state { return readStateIn(all, "") }

// readStateIn returns the state of the turns selected by [turnsIn].
func readStateIn(all []store.Turn, in string) state {
	turns := turnsIn(all, in)
	s := state{turns: turns, next: nextPlace(all)}
	at := -1 // index of s.last
	for i := range turns {
		if isAnswer(turns[i]) {
			s.last, at = &turns[i], i
		}
	}
	switch {
	case s.last == nil:
		s.target = messageAfter(turns, -1)
	case isStep(*s.last):
		s.missing = unansweredCalls(*s.last, turns[at:])
		if len(s.missing) > 0 {
			s.step = s.last
		}
		s.target = messageAt(turns, s.last.Re)
	default:
		for _, t := range turns[at:] {
			s.late = s.late || t.Role == store.FromTool
		}
		if s.late {
			s.target = messageAt(turns, s.last.Re)
		} else {
			s.target = messageAfter(turns, s.last.Re)
		}
	}
	s.target = joinMessages(turns, s.target)
	for _, t := range turns {
		if s.target != nil && isStep(t) && t.Re == s.target.N {
			s.steps++
		}
	}
	return s
}

// isAnswer reports whether a turn answers a message or continues towards an answer.
func isAnswer(t store.Turn) bool {
	return t.Role == store.FromModel || (t.Role == store.FromNize && t.Final)
}

// isStep reports whether the turn is a step that needs results.
func isStep(t store.Turn) bool {
	return t.Role == store.FromModel && len(t.Calls) > 0 && !t.Final
}

// unmetRequest returns what the turn that ends with answer searched first, if no tool was
// found for it: the model searched, and then neither read about a tool nor ran one.
// Otherwise it returns "".
func unmetRequest(s state, answer store.Turn) string {
	if isStep(answer) {
		return ""
	}
	query := ""
	for _, t := range s.turns {
		if !isStep(t) || t.Re != s.target.N {
			continue
		}
		for _, c := range t.Calls {
			switch c.Name {
			case ExecuteTool, describeTool:
				return ""
			case discoverTools:
				if query == "" {
					query = searchQuery(c)
				}
			}
		}
	}
	return query
}

// searchQuery returns the query of a search.
func searchQuery(c store.ToolCall) string {
	var args struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return "" // the model was told what is wrong with it
	}
	return args.Query
}

// unansweredCalls returns the calls of a step that no tool turn answers.
func unansweredCalls(step store.Turn, turns []store.Turn) []store.ToolCall {
	answered := make(map[string]bool)
	for _, t := range turns {
		if t.Role == store.FromTool {
			answered[t.CallID] = true
		}
	}
	var out []store.ToolCall
	for _, c := range step.Calls {
		if !answered[c.ID] {
			out = append(out, c)
		}
	}
	return out
}

// joinMessages adds the directly following messages of the same person: they are answered
// together.
func joinMessages(turns []store.Turn, message *store.Turn) *store.Turn {
	if message == nil {
		return nil
	}
	for {
		n := messageAfter(turns, message.N)
		if n == nil || n.By.User != message.By.User {
			return message
		}
		message = n
	}
}

// messageAfter returns the first message after position n.
func messageAfter(turns []store.Turn, n int) *store.Turn {
	for i := range turns {
		if turns[i].Role == store.FromUser && turns[i].N > n {
			return &turns[i]
		}
	}
	return nil
}

// messageAt returns the message at position n.
func messageAt(turns []store.Turn, n int) *store.Turn {
	for i := range turns {
		if turns[i].Role == store.FromUser && turns[i].N == n {
			return &turns[i]
		}
	}
	return nil
}

// nextPlace returns the first free position.
func nextPlace(turns []store.Turn) int {
	if len(turns) == 0 {
		return 0
	}
	return turns[len(turns)-1].N + 1
}
