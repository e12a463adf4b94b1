package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/mcp/policy"
	"nize/store"
)

// BudgetStore stores the budgets and counts calls; see [store.Budgets] and [store.Meter].
type BudgetStore interface {
	BudgetsFor(ctx context.Context, r store.Reservation) ([]store.BudgetState, error)
	Reserve(ctx context.Context, by store.Caller, r store.Reservation) error
}

// callBudgets enforces the budgets of requesters. A call is checked when it is requested and
// when it is approved, so that no one decides on a call that can't run. It is counted, in
// one transaction with the check, when it is about to run: of concurrent calls, no more
// start than the budget allows.
type callBudgets struct {
	Store  BudgetStore // nil if there are no budgets
	Config store.Config
}

func (b callBudgets) reservation(by store.Caller, c *store.Call) store.Reservation {
	return store.Reservation{
		Tool: c.ToolID(), Spend: store.Spend{ID: c.ID, User: by.User},
		Exempt: by.IsAdmin() && !store.GetBool(b.Config, "", "budgets.admins"),
	}
}

// Check returns the budget that is used up, or nil, and whether there is any budget.
func (b callBudgets) Check(ctx context.Context, by store.Caller, c *store.Call) (usedUp *store.BudgetState, any bool, err error) {
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

// Count counts a call that is about to run. It returns a *store.CallError if the call must
// not run.
func (b callBudgets) Count(ctx context.Context, by store.Caller, c *store.Call) error {
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

// Refusal returns the error for the requester, in their time zone.
func (b callBudgets) Refusal(by store.Caller, s store.BudgetState) *store.CallError {
	zone, err := time.LoadLocation(store.TimeZone(b.Config, by.User, ""))
	if err != nil {
		zone = time.UTC
	}
	return &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: s.UsedUp(by.IsAdmin(), zone)}
}

// CheckPress returns an error if a user approves a call that its requester's budgets don't
// cover. The call keeps waiting.
func (b callBudgets) CheckPress(ctx context.Context, by, requester store.Caller, c *store.Call) error {
	usedUp, _, err := b.Check(ctx, requester, c)
	switch {
	case err != nil || usedUp == nil:
		return err
	case by.User == c.By:
		return store.Mark(store.Errorf("call %s can't run now: %s", c.ID, b.Refusal(by, *usedUp).Message), store.ErrRefused)
	}
	return store.Mark(store.Errorf("call %s can't run now: a budget of the person who asked for it is used up. %s", c.ID, usedUp.ResetText(time.UTC)), store.ErrRefused)
}
