package store

import (
	"errors"
	"testing"
	"time"
)

// TestBudgetShort: a budget of which nothing was used is not short, however small
// it is; 80 % are nearly all.
func TestBudgetShort(t *testing.T) {
	for _, c := range []struct {
		limit, used   int64
		nearly, spent bool
	}{
		{0, 5, false, false}, {1, 0, false, false}, {1, 1, true, true}, {2, 1, false, false}, {5, 3, false, false}, {5, 4, true, false}, {5, 5, true, true},
		{5, 9, true, true}, {50, 39, false, false}, {50, 40, true, false}, {maxAmount, maxAmount/5*4 + 5, true, false}, {maxAmount, maxAmount, true, true},
	} {
		s := BudgetState{Budget: Budget{Limit: c.limit}, Used: c.used}
		if s.Nearly() != c.nearly || s.Spent() != c.spent {
			t.Errorf("%d of %d: nearly %v, spent %v", c.used, c.limit, s.Nearly(), s.Spent())
		}
	}
}

// TestToolBudgetWords: what is written becomes a budget, and reads as one.
func TestToolBudgetWords(t *testing.T) {
	for _, c := range []struct {
		subject, tool, amount, says string
	}{
		{"user:mia", "box:*", "50calls", "Your daily budget of 50 calls of box:*"},
		{"user:*", "*", "1calls", "Your daily budget of 1 call of *"},
		{"group:ops", "box:x", "1000calls", "The daily budget of group ops (1,000 calls of box:x)"},
		{"user:mia", "", "50calls", ""}, {"user:mia", "box:*", "50tokens", ""}, {"user:mia", "box:*", "5usd", ""}, {"team:t", "box:*", "5calls", ""},
		{"model:p/m", "*", "5calls", ""}, {"user:mia", "box", "5calls", ""}, {"user:mia", "b*x:*", "5calls", ""}, {"user:mia", "**", "5calls", ""},
		{"user:mia", "box:*", "0calls", ""}, {"user:mia", "box:*", "-1calls", ""}, {"user:mia", "box:*", "1.5calls", ""}, {"user:mia", "box:*", "calls", ""},
	} {
		b := Budget{Subject: c.subject, Tool: c.tool, Period: Daily}
		var err error
		if b.Unit, b.Limit, err = ParseAmount(c.amount); err == nil {
			err = b.Check()
		}
		if c.says == "" {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %s %s: %v", c.subject, c.tool, c.amount, err)
			}
			continue
		}
		s := BudgetState{Budget: b, Resets: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
		if want := c.says + " is used up. It resets on Tuesday, 24 November, 00:00 (UTC). An admin can raise it."; err != nil || s.UsedUp(false, time.UTC).String() != want {
			t.Errorf("got %q, %v; want %q", s.UsedUp(false, time.UTC), err, want)
		}
	}
}
