package api

import (
	"time"

	storeplan "nize/store/plan"
)

// ListPlans lists the plans and their subjects.
var ListPlans = Op[Empty, List[PlanView]]{"GET", "/v1/plans", true, "list plans and their subjects"}

// PlanView is a plan and its subjects.
type PlanView struct {
	storeplan.Plan
	Given []PlanGiven `json:"given"`
	Ends  time.Time   `json:"period_end"` // of the period in which messages are counted
}

// PlanGiven is one subject that has a plan.
type PlanGiven struct {
	Subject string `json:"subject"`
	Name    string `json:"name"`           // the subject, with a person's name in place of the id
	Used    *int64 `json:"used,omitempty"` // messages this month; nil for user:*, where each person has their own count
}

// PutPlan creates or changes a plan, and updates its subjects' budgets.
var PutPlan = Op[PutPlanRequest, PlanView]{"PUT", "/v1/plans/{id}", true, "create or change a plan"}

// PutPlanRequest is a plan under its id.
type PutPlanRequest struct {
	ID string `path:"id" json:"-"`
	storeplan.Plan
}

// RemovePlan removes a plan that has no subjects.
var RemovePlan = Op[RemovePlanRequest, Empty]{"DELETE", "/v1/plans/{id}", true, "remove a plan"}

// RemovePlanRequest names a plan.
type RemovePlanRequest struct {
	ID string `path:"id" json:"-"`
}

// AssignPlan gives a subject a plan, replacing the one it has.
var AssignPlan = Op[AssignPlanRequest, PlanGiven]{"PUT", "/v1/plan-assignments", true, "assign a plan, or remove it"}

// AssignPlanRequest names the subject and the plan.
type AssignPlanRequest struct {
	Subject string `json:"subject"` // user:NAME, user:*, team:TEAM
	Plan    string `json:"plan"`    // "" removes the current one
}
