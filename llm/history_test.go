package llm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nize/store"
)

// randomThread returns a thread as people, a model and its tools may have written it:
// messages arrive while others are answered, steps have results, none yet or a later one,
// and turns are cut, private or summarized.
func randomThread(r *rand.Rand) []store.Turn {
	var turns []store.Turn
	add := func(t store.Turn) {
		t.N = len(turns)
		turns = append(turns, t)
	}
	users := []string{"ann", "bob"}
	text := func() string { return strings.Repeat("w ", r.IntN(300)) }
	var calls []string
	for range 3 + r.IntN(60) {
		switch by := users[r.IntN(2)]; r.IntN(9) {
		case 0, 1, 2:
			add(store.Turn{Role: store.FromUser, By: store.Caller{User: by}, Text: "message " + text()})
		case 3, 4, 5:
			s := readState(turns)
			if s.target == nil || s.step != nil {
				continue
			}
			t := store.Turn{Role: store.FromModel, Text: text(), Re: s.target.N, Final: r.IntN(8) == 0}
			if r.IntN(6) == 0 {
				t.For, t.Text = s.target.By.User, "secret of "+s.target.By.User
			}
			for range r.IntN(4) {
				calls = append(calls, fmt.Sprintf("c%d", len(calls)))
				t.Calls = append(t.Calls, store.ToolCall{ID: calls[len(calls)-1], Name: "f", Args: "{}"})
			}
			add(t)
			for _, c := range t.Calls {
				if r.IntN(10) > 0 {
					add(store.Turn{Role: store.FromTool, CallID: c.ID, Text: "result " + text(), For: t.For})
				}
			}
		case 6:
			if len(calls) > 0 && r.IntN(3) == 0 { // repeated by a press
				add(store.Turn{Role: store.FromTool, CallID: calls[r.IntN(len(calls))], Text: "late " + text()})
			}
		case 8: // a called agent writes in between
			if len(calls) > 0 {
				in := calls[r.IntN(len(calls))]
				as := []store.TurnRole{store.FromUser, store.FromModel, store.FromTool, store.FromNize}[r.IntN(4)]
				add(store.Turn{Role: store.FromAgent, As: as, In: in, Text: "inner " + text()})
			}
		case 7:
			if s := readState(turns); s.target != nil && s.step == nil {
				req := Request{Turns: history(s.visibleTurns())}
				if cut := summaryCut(req, s.target.N, r.IntN(3000)); cut > 0 {
					checkCut(req.Turns, cut, s)
					t := store.Turn{Role: store.FromSummary, Text: "summary", Re: -1}
					for _, u := range req.Turns[:cut] {
						if u.Role == store.FromUser || u.Role == store.FromModel {
							t.Re = max(t.Re, u.N)
						}
					}
					if holdsPrivate(req.Turns[:cut], s.target.By.User) {
						t.For = s.target.By.User
					}
					add(t)
				}
			}
		}
	}
	return turns
}

// checkCut panics if a cut would lose turns that it doesn't summarize.
func checkCut(turns []store.Turn, cut int, s state) {
	for _, a := range turns[:cut] {
		for _, b := range turns[cut:] {
			said := func(t store.Turn) bool { return t.Role == store.FromUser || t.Role == store.FromModel }
			if said(a) && said(b) && a.N >= b.N || a.Role == store.FromUser && a.N >= s.target.N {
				panic(fmt.Sprintf("cut at %d: %d is summed up, %d is not, for the message %d", cut, a.N, b.N, s.target.N))
			}
		}
	}
}

// Whatever a thread contains and however small the budget is, a prompt has exactly one
// result for each call, directly after it, the message being answered, and no private
// results of others. It is within the budget if anything could be dropped.
func TestCompactedHistories(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7))
		turns := randomThread(r)
		s := readState(turns)
		if s.target == nil {
			continue
		}
		budget := 1 + r.IntN(4000)
		req := Request{Turns: history(s.visibleTurns())}
		whole := slices.Clone(req.Turns)
		compactHistory(&req, s.target.N, budget)
		for _, list := range [][]store.Turn{whole, req.Turns} {
			if problem := checkPrompt(list, s); problem != "" {
				t.Fatalf("seed %d: %s", seed, problem)
			}
		}
		if ends := exchanges(req.Turns); requestTokens(req) > int64(budget) && len(ends) > 0 {
			if first := req.Turns[headOf(req.Turns):ends[0]]; !slices.ContainsFunc(first, func(u store.Turn) bool { return u.Role == store.FromUser && u.N >= s.target.N }) {
				t.Fatalf("seed %d: %d tokens in a budget of %d, and an exchange could go", seed, requestTokens(req), budget)
			}
		}
	}
}

func checkPrompt(turns []store.Turn, s state) string {
	open, seen, targets := map[string]bool{}, map[string]bool{}, 0
	for i, u := range turns {
		switch {
		case u.Role == store.FromAgent || strings.HasPrefix(u.Text, "inner"):
			return "what an agent said that was called"
		case u.Role == store.FromSummary && i > 0:
			return "a summary in the middle"
		case u.For != "" && u.For != s.target.By.User && u.Text != store.Withheld || strings.Contains(u.Text, "secret of") && !strings.Contains(u.Text, "secret of "+s.target.By.User):
			return "something private of others: " + u.Text
		case u.Role == store.FromTool && !open[u.CallID]:
			return "a result of " + u.CallID + " that is not behind its call"
		case u.Role == store.FromTool:
			delete(open, u.CallID)
			continue
		case len(open) > 0:
			return "a call without a result"
		case u.Role == store.FromUser && u.N == s.target.N:
			targets++
		}
		for _, c := range u.Calls {
			if seen[c.ID] {
				return "the call " + c.ID + " is there twice"
			}
			open[c.ID], seen[c.ID] = true, true
		}
	}
	if len(open) > 0 || targets != 1 {
		return fmt.Sprintf("%d calls without a result, the message is there %d times", len(open), targets)
	}
	return ""
}
