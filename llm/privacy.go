package llm

import (
	"slices"

	"nize/store"
)

// Private results: what was got for one person alone, and all that a
// model says after it has read that, is marked with whom it is for
// ([store.Turn.For]). Nobody else's prompt holds it. It stays so in that
// person's later turns, too, since their prompts hold it: until they share it,
// or it is too old for the prompt.

// visibleTurns is the state with the turns as the author of the message that is being
// answered may read them.
func (s state) visibleTurns() state {
	s.turns = slices.Clone(s.turns)
	for i, t := range s.turns {
		if t.For != "" && t.For != s.target.By.User {
			s.turns[i] = t.SeenBy(s.target.By.User)
			s.turns[i].Final = false // nothing of it is told, also not that it was cut
		}
		if t.By.User != s.target.By.User && holdsPrivateView(t) {
			e := *t.Earlier
			e.Views = slices.DeleteFunc(slices.Clone(e.Views), func(v store.ViewContext) bool { return v.Private })
			s.turns[i].Earlier = &e
		}
	}
	return s
}

// isHidden says whether a turn of the model's is only told to have been.
func isHidden(s state, t store.Turn) bool {
	return t.Role == store.FromModel && t.For != "" && t.For != s.target.By.User
}

// holdsPrivate says whether a prompt holds what is for that user alone.
func holdsPrivate(turns []store.Turn, user string) bool {
	return slices.ContainsFunc(turns, func(t store.Turn) bool {
		return t.For != "" && t.For == user || t.By.User == user && holdsPrivateView(t)
	})
}

// holdsPrivateView says whether a view told something with a message that is for its
// author alone.
func holdsPrivateView(t store.Turn) bool {
	return t.Earlier != nil && slices.ContainsFunc(t.Earlier.Views, func(v store.ViewContext) bool { return v.Private })
}

// markPrivate marks progress that tells what others must not read.
func (s state) markPrivate(p store.Progress) store.Progress {
	if s.private {
		p.For, p.Re = s.target.By.User, s.target.N
	}
	return p
}
