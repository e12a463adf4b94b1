package api

import "nize/store"

// ListBudgets lists the budgets that are set. If a user is given, it lists those that apply
// to that person, including the default; members get their own.
var ListBudgets = Op[ListBudgetsRequest, List[Budget]]{"GET", "/v1/budgets", false, "list budgets and their usage"}

// ListBudgetsRequest optionally names a person.
type ListBudgetsRequest struct {
	User string `query:"user" json:"-"`
}

// Budget is a budget and its current usage.
type Budget struct {
	store.BudgetState
	Name    string `json:"name"`              // the subject, with a person's name in place of the id
	Default bool   `json:"default,omitempty"` // from the setting budgets.user.daily
	// PerUser is true if each person has the budget separately, so that there is no single
	// usage figure.
	PerUser bool `json:"per_user,omitempty"`
	// State is warned from 80 % usage on, and exceeded when the budget is used up.
	State string `json:"state,omitempty"`
}

// SetBudget sets a budget. It replaces the one of the same subject, period, unit and tool.
var SetBudget = Op[SetBudgetRequest, Budget]{"PUT", "/v1/budgets", true, "set a budget"}

// SetBudgetRequest is a budget.
type SetBudgetRequest struct {
	Subject string       `json:"subject"` // user:NAME, user:*, group:NAME, team:TEAM, model:PROVIDER/MODEL
	Period  store.Period `json:"period"`
	Amount  string       `json:"amount"`         // 200000tokens, 5usd, 50calls, unlimited
	Tool    string       `json:"tool,omitempty"` // a pattern of tools, for a budget in calls
}

// RemoveBudget removes a subject's budgets. It returns ErrNotFound if there is none.
var RemoveBudget = Op[RemoveBudgetRequest, Empty]{"DELETE", "/v1/budgets", true, "remove a budget"}

// RemoveBudgetRequest names the budgets to remove. An empty period means both periods; an
// empty tool means the budgets of models and of all tools.
type RemoveBudgetRequest struct {
	Subject string       `query:"subject" json:"-"`
	Period  store.Period `query:"period" json:"-"`
	Tool    string       `query:"tool" json:"-"`
}
