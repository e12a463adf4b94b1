package api

import (
	"time"

	storeplan "nize/store/plan"
)

// ListPlans lists the plans and who has them.
var ListPlans = Op[Empty, List[PlanView]]{"GET", "/v1/plans", true, "list plans and who has them"}

// PlanView is a plan and who has it.
type PlanView struct {
	storeplan.Plan
	Given []PlanGiven `json:"given"`
	Ends  time.Time   `json:"period_end"` // of the messages that were counted
}

// PlanGiven is one subject that has a plan.
type PlanGiven struct {
	Subject string `json:"subject"`
	Name    string `json:"name"`           // the subject, with a person's name in place of the id
	Used    *int64 `json:"used,omitempty"` // messages this month; none of user:*, who each have their own
}

// PutPlan makes a plan or changes it, and the budgets of those who have it.
var PutPlan = Op[PutPlanRequest, PlanView]{"PUT", "/v1/plans/{id}", true, "make or change a plan"}

// PutPlanRequest is a plan under its id.
type PutPlanRequest struct {
	ID string `path:"id" json:"-"`
	storeplan.Plan
}

// RemovePlan removes a plan that nobody has.
var RemovePlan = Op[RemovePlanRequest, Empty]{"DELETE", "/v1/plans/{id}", true, "remove a plan"}

// RemovePlanRequest names a plan.
type RemovePlanRequest struct {
	ID string `path:"id" json:"-"`
}

// AssignPlan gives a plan to a subject, in place of the one that it has.
var AssignPlan = Op[AssignPlanRequest, PlanGiven]{"PUT", "/v1/plan-assignments", true, "give somebody a plan, or take it"}

// AssignPlanRequest says to whom.
type AssignPlanRequest struct {
	Subject string `json:"subject"` // user:NAME, user:*, team:TEAM
	Plan    string `json:"plan"`    // "" takes the one that it has
}
