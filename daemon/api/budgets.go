package api

import (
	"context"

	"nize/store"
)

// BudgetView is a budget and how far it is used.
type BudgetView struct {
	store.BudgetState
	Name    string `json:"name"`              // the subject, with a person's name in place of the id
	Default bool   `json:"default,omitempty"` // of the setting budgets.user.daily
	// PerUser is set where each person has it, so that there is no one use.
	PerUser bool `json:"per_user,omitempty"`
}

// SetBudget sets a budget.
type SetBudget struct {
	Subject string       `json:"subject"` // user:NAME, user:*, group:NAME, team:TEAM, model:PROVIDER/MODEL
	Period  store.Period `json:"period"`
	Amount  string       `json:"amount"` // 200000tokens, 5usd, unlimited
}

// RemoveBudget names the budgets to remove; an empty period is both.
type RemoveBudget struct {
	Subject string
	Period  store.Period
}

// Budgets lists what is set. With a user, those that hold for that person, the
// default included; members get theirs.
func (c *Client) Budgets(ctx context.Context, user string) ([]BudgetView, error) {
	return list[BudgetView](ctx, c, request{method: "GET", path: "/v1/budgets", query: query("user", user)})
}

// SetBudget sets a budget in place of the one of its subject, period and unit.
func (c *Client) SetBudget(ctx context.Context, b SetBudget) (BudgetView, error) {
	return do[BudgetView](ctx, c, request{method: "PUT", path: "/v1/budgets", body: b})
}

// RemoveBudget removes a subject's budgets. ErrNotFound if there is none.
func (c *Client) RemoveBudget(ctx context.Context, b RemoveBudget) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/budgets", query: query("subject", b.Subject, "period", string(b.Period))})
}
