package api

import "nize/store"

// ListBudgets lists what is set. With a user, those that hold for that person,
// the default included; members get theirs.
var ListBudgets = Op[ListBudgetsRequest, List[Budget]]{"GET", "/v1/budgets", false, "list budgets and how far they are used"}

// ListBudgetsRequest says for whom.
type ListBudgetsRequest struct {
	User string `query:"user" json:"-"`
}

// Budget is a budget and how far it is used.
type Budget struct {
	store.BudgetState
	Name    string `json:"name"`              // the subject, with a person's name in place of the id
	Default bool   `json:"default,omitempty"` // of the setting budgets.user.daily
	// PerUser is set where each person has it, so that there is no one use.
	PerUser bool `json:"per_user,omitempty"`
	// State is warned where 80 % are used, and exceeded where all is.
	State string `json:"state,omitempty"`
}

// SetBudget sets a budget in place of the one of its subject, period, unit and tool.
var SetBudget = Op[SetBudgetRequest, Budget]{"PUT", "/v1/budgets", true, "set a budget"}

// SetBudgetRequest is a budget.
type SetBudgetRequest struct {
	Subject string       `json:"subject"` // user:NAME, user:*, group:NAME, team:TEAM, model:PROVIDER/MODEL
	Period  store.Period `json:"period"`
	Amount  string       `json:"amount"`         // 200000tokens, 5usd, 50calls, unlimited
	Tool    string       `json:"tool,omitempty"` // a pattern of tools, for a budget in calls
}

// RemoveBudget removes a subject's budgets. ErrNotFound if there is none.
var RemoveBudget = Op[RemoveBudgetRequest, Empty]{"DELETE", "/v1/budgets", true, "remove a budget"}

// RemoveBudgetRequest names the budgets to remove; an empty period is both, and
// without a tool they are those of models and all tools.
type RemoveBudgetRequest struct {
	Subject string       `query:"subject" json:"-"`
	Period  store.Period `query:"period" json:"-"`
	Tool    string       `query:"tool" json:"-"`
}
