// Package callbudget holds calls of tools to the budgets of their requesters.
package callbudget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/mcp/policy"
	"nize/store"
)

// Store keeps how often tools may be called; [store.Budgets] and
// [store.Meter] say how.
type Store interface {
	BudgetsFor(ctx context.Context, r store.Reservation) ([]store.BudgetState, error)
	Reserve(ctx context.Context, by store.Caller, r store.Reservation) error
}

// Budgets hold calls to the budgets of their requesters. A call is looked at
// when it is asked for and when somebody says yes to it, so that nobody decides on
// what can't run, and it is counted, in one transaction with the look, when it is
// about to run: of calls at once no more begin than the budget has.
type Budgets struct {
	Store  Store // nil: there are none
	Config store.Config
}

func (b Budgets) reservation(by store.Caller, c *store.Call) store.Reservation {
	return store.Reservation{
		Tool: c.ToolID(), Spend: store.Spend{ID: c.ID, User: by.User},
		Exempt: by.IsAdmin() && !store.GetBool(b.Config, "", "budgets.admins"),
	}
}

// Check returns the budget that is used up, or nil, and whether there is any.
func (b Budgets) Check(ctx context.Context, by store.Caller, c *store.Call) (usedUp *store.BudgetState, any bool, err error) {
	if b.Store == nil || c.Server == policy.BuiltinServer {
		return nil, false, nil
	}
	states, err := b.Store.BudgetsFor(ctx, b.reservation(by, c))
	if err != nil {
		return nil, false, fmt.Errorf("reading the budgets of %s: %w", c.ToolID(), err)
	}
	for i := range states {
		if states[i].Spent() {
			return &states[i], true, nil
		}
	}
	return nil, len(states) > 0, nil
}

// Count counts a call that is about to run. A *store.CallError refuses it.
func (b Budgets) Count(ctx context.Context, by store.Caller, c *store.Call) error {
	usedUp, any, err := b.Check(ctx, by, c)
	if err != nil || !any {
		return err
	}
	if usedUp != nil {
		return b.Refusal(by, *usedUp)
	}
	var full *store.BudgetError
	if err = b.Store.Reserve(ctx, by, b.reservation(by, c)); errors.As(err, &full) {
		return b.Refusal(by, full.BudgetState)
	}
	return err
}

// Refusal is what who asked is told, in their zone.
func (b Budgets) Refusal(by store.Caller, s store.BudgetState) *store.CallError {
	zone, err := time.LoadLocation(store.TimeZone(b.Config, by.User, ""))
	if err != nil {
		zone = time.UTC
	}
	return &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: s.UsedUp(by.IsAdmin(), zone)}
}

// CheckPress keeps somebody from saying yes to a call that its requester's budgets
// don't cover. It goes on waiting.
func (b Budgets) CheckPress(ctx context.Context, by, requester store.Caller, c *store.Call) error {
	usedUp, _, err := b.Check(ctx, requester, c)
	switch {
	case err != nil || usedUp == nil:
		return err
	case by.User == c.By:
		return store.Mark(store.Errorf("call %s can't run now: %s", c.ID, b.Refusal(by, *usedUp).Message), store.ErrRefused)
	}
	return store.Mark(store.Errorf("call %s can't run now: a budget of the person who asked for it is used up. %s", c.ID, usedUp.ResetText(time.UTC)), store.ErrRefused)
}
