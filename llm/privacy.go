package llm

import (
	"slices"

	"nize/store"
)

// Private results: results obtained for one person only, and everything that a model says
// after reading them, are marked with that person ([store.Turn.For]). No other person's
// prompt contains them. Later turns of that person stay private too, because their prompts
// contain them, until they are shared or too old for the prompt.

// visibleTurns returns the state with only the turns that the author of the message being
// answered may read.
func (s state) visibleTurns() state {
	s.turns = slices.Clone(s.turns)
	for i, t := range s.turns {
		if t.For != "" && t.For != s.target.By.User {
			s.turns[i] = t.SeenBy(s.target.By.User)
			s.turns[i].Final = false // reveal nothing about it, not even that it was stopped
		}
		if t.By.User != s.target.By.User && holdsPrivateView(t) {
			e := *t.Earlier
			e.Views = slices.DeleteFunc(slices.Clone(e.Views), func(v store.ViewContext) bool { return v.Private })
			s.turns[i].Earlier = &e
		}
	}
	return s
}

// isHidden reports whether a model's turn is represented only by a note that it exists.
func isHidden(s state, t store.Turn) bool {
	return t.Role == store.FromModel && t.For != "" && t.For != s.target.By.User
}

// holdsPrivate reports whether a prompt contains something private to that user.
func holdsPrivate(turns []store.Turn, user string) bool {
	return slices.ContainsFunc(turns, func(t store.Turn) bool {
		return t.For != "" && t.For == user || t.By.User == user && holdsPrivateView(t)
	})
}

// holdsPrivateView reports whether a message contains a view's report that is private to
// its author.
func holdsPrivateView(t store.Turn) bool {
	return t.Earlier != nil && slices.ContainsFunc(t.Earlier.Views, func(v store.ViewContext) bool { return v.Private })
}

// markPrivate marks progress that other people must not read.
func (s state) markPrivate(p store.Progress) store.Progress {
	if s.private {
		p.For, p.Re = s.target.By.User, s.target.N
	}
	return p
}
