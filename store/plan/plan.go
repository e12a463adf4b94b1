// Package plan has the words of plans: named monthly amounts that people and teams
// are given. The messages are counted here, where a message is accepted; tokens and
// credits are budgets like others ([Plan.Budgets]).
package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"nize/store"
)

// Plan is one plan. What it does not bound is nil or 0.
type Plan struct {
	ID       string  `json:"id"` // of the form of a server's name
	Name     string  `json:"name"`
	Messages *int64  `json:"messages"`          // a month; null is unlimited
	Tokens   int64   `json:"tokens,omitempty"`  // of models, a month
	Credits  float64 `json:"credits,omitempty"` // of models, a month: US dollars, or the plan's own unit
	// CreditName is what the plan calls its unit ("AI credits") and CreditUSD what one
	// is worth in US dollars; without them it is the dollar.
	CreditName string    `json:"credit_name,omitempty"`
	CreditUSD  float64   `json:"credit_usd,omitempty"`
	Created    time.Time `json:"created"`
}

// Check says why the plan cannot be one.
func (p Plan) Check() error {
	if err := store.CheckSlug(p.ID); err != nil {
		return err
	}
	if p.Name = strings.TrimSpace(p.Name); p.Name == "" || len(p.Name) > 200 {
		return fmt.Errorf("%w name of a plan: use 1 to 200 bytes", store.ErrInvalid)
	}
	if p.Messages != nil && (*p.Messages < 1 || *p.Messages > 1e12) || p.Tokens < 0 || p.Tokens > 1e12 || !(p.Credits >= 0 && p.Credits <= 1e9) {
		return fmt.Errorf("%w plan %s: messages are at least 1, tokens and credits not negative", store.ErrInvalid, p.ID)
	}
	if len(p.CreditName) > 60 || strings.ContainsFunc(p.CreditName, unicode.IsControl) || !(p.CreditUSD >= 0 && p.CreditUSD <= 1e6) || (strings.TrimSpace(p.CreditName) == "") != (p.CreditUSD == 0) {
		return fmt.Errorf("%w credits of plan %s: a unit of its own needs a name of at most 60 bytes, and its worth in US dollars", store.ErrInvalid, p.ID)
	}
	if worth := p.Credits * p.creditUSD(); worth > 1e9 || p.Credits > 0 && worth < 1e-6 {
		return fmt.Errorf("%w credits of plan %s: they are worth less than a millionth of a dollar, or more than a billion dollars", store.ErrInvalid, p.ID)
	}
	return nil
}

// creditUSD is what one credit is worth.
func (p Plan) creditUSD() float64 {
	if p.CreditUSD == 0 {
		return 1
	}
	return p.CreditUSD
}

// CreditsIn returns how many credits an amount of money is, in millionths of a dollar.
func (p Plan) CreditsIn(microUSD int64) float64 {
	return math.Round(float64(microUSD)/1e6/p.creditUSD()*1e6) / 1e6
}

// CreditUnit is what the credits are called.
func (p Plan) CreditUnit() string {
	if p.CreditName == "" {
		return "USD"
	}
	return p.CreditName
}

// Budgets are the budgets of a plan for whom it is assigned to.
func (p Plan) Budgets(subject string) (list []store.Budget) {
	if p.Tokens > 0 {
		list = append(list, store.Budget{Subject: subject, Period: store.Monthly, Unit: store.InTokens, Limit: p.Tokens})
	}
	if p.Credits > 0 {
		list = append(list, store.Budget{Subject: subject, Period: store.Monthly, Unit: store.InUSD, Limit: int64(p.Credits*p.creditUSD()*1e6 + .5)})
	}
	return list
}

// Assignment says who has a plan: user:ID, user:* for each person who has none of
// their own, or team:TEAM.
type Assignment struct {
	Subject string    `json:"subject"`
	Plan    string    `json:"plan"`
	Set     time.Time `json:"set"`
}

// Usage is a plan in force for somebody and what is used of it.
type Usage struct {
	Plan    Plan
	Subject string // of the assignment
	Used    int64  // messages in this period
	Ends    time.Time
}

// Context is whose the amounts are: a team's are its members' together.
func (u Usage) Context() string {
	if strings.HasPrefix(u.Subject, "team:") {
		return "team"
	}
	return "user"
}

// Subjects are those whose plan may hold for somebody in a team, the first that has
// one first.
func Subjects(user, team string) []string {
	list := []string{"user:" + user, store.Everybody}
	if team != "" {
		list = slices.Insert(list, 1, "team:"+team)
	}
	return list
}

// Counter is the key under which the messages of somebody's plan are counted.
func (u Usage) Counter(user string) string {
	if u.Subject == store.Everybody {
		return "user:" + user
	}
	return u.Subject
}

// UsedUpError says that a plan has no message left in its period; it is a
// store.ErrRefused.
type UsedUpError struct{ Usage }

func (e *UsedUpError) Error() string { return e.In(time.UTC).Error() }
func (e *UsedUpError) Unwrap() error { return store.ErrRefused }

// In is the error as the person is told it in their zone, and still e.
func (e *UsedUpError) In(zone *time.Location) error {
	resets := store.BudgetState{Resets: e.Ends}.ResetText(zone)
	return store.Mark(store.Errorf("this message was not taken: all %d messages a month of the plan %s are used up. %s", *e.Plan.Messages, e.Plan.Name, resets), e)
}

// Store keeps plans.
type Store interface {
	// PutPlan makes a plan, or changes it.
	PutPlan(ctx context.Context, by store.Caller, p Plan) error
	ListPlans(ctx context.Context) ([]Plan, error)
	// DeletePlan removes a plan. ErrRefused while somebody has it.
	DeletePlan(ctx context.Context, by store.Caller, id string) error
	// AssignPlan gives a plan to a subject, in place of the one it has; "" takes it.
	AssignPlan(ctx context.Context, by store.Caller, subject, plan string) error
	ListAssignments(ctx context.Context) ([]Assignment, error)
	// FindPlan returns the plan of the first of the subjects that has one, with what
	// the user used of it. ErrNotFound where none has.
	FindPlan(ctx context.Context, user string, subjects []string) (Usage, error)
	// CountMessage counts a message in the plan that holds, once for each key. A
	// [*UsedUpError] where none is left.
	CountMessage(ctx context.Context, user string, subjects []string, key string) error
}
