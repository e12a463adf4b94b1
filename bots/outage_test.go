package bots_test

import (
	"context"
	"testing"

	"nize/bots/botstest"
	"nize/store"
	"nize/store/database/databasetest"
)

// interrupted is an agent during whose first work the database is unavailable, for as long
// as a message is retried.
type interrupted struct {
	*botstest.Agent
	database *databasetest.Away
	in       string // "say" or "work"
	tries    int    // number of failing attempts
}

func (a *interrupted) during(in string, do func() error) error {
	if a.in != in || a.tries == 0 {
		return do()
	}
	a.tries--
	a.database.Set(true)
	err := do()
	if a.tries == 0 {
		a.database.Set(false)
	}
	return err
}

func (a *interrupted) Say(ctx context.Context, by store.Caller, in store.Inbound) (turn store.Turn, err error) {
	err = a.during("say", func() (err error) {
		turn, err = a.Agent.Say(ctx, by, in)
		return err
	})
	return turn, err
}

func (a *interrupted) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	return a.during("work", func() error { return a.Agent.Work(ctx, thread, tell) })
}

// TestOutage: acknowledged messages are answered when the database is back, and no failure
// is reported.
func TestOutage(t *testing.T) {
	for in, tries := range map[string]int{"say": 4, "work": 1} {
		t.Run(in, func(t *testing.T) {
			a := &interrupted{in: in, tries: tries}
			o := newOfficeOver(t, limits("0", "0"), a)
			o.say(o.thread(), "1", "say fine here")
			o.see(store.TextMessage, "fine here")
			shown, err := o.memory.See(o.ctx, func([]store.Message) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range shown {
				if m.Kind == store.ErrorMessage {
					t.Errorf("somebody was told %q", m.Text)
				}
			}
			if n := a.Said("say fine here"); n != 1 {
				t.Errorf("it was said %d times", n)
			}
		})
	}
}
