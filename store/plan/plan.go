// Package plan defines plans: named monthly allowances of people and teams.
//
// Messages are counted against them when a message is accepted; tokens and credits are ordinary
// budgets ([Plan.Budgets]).
package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"nize/store"
)

// Plan is one plan. Amounts that are nil or 0 are unlimited.
type Plan struct {
	ID       string  `json:"id"` // with the form of a server's name
	Name     string  `json:"name"`
	Messages *int64  `json:"messages"`          // per month; null is unlimited
	Tokens   int64   `json:"tokens,omitempty"`  // of models, per month
	Credits  float64 `json:"credits,omitempty"` // of models, per month: US dollars, or the plan's own unit
	// CreditName is the name of the plan's unit ("AI credits") and CreditUSD its value in
	// US dollars; without them the unit is the dollar.
	CreditName string    `json:"credit_name,omitempty"`
	CreditUSD  float64   `json:"credit_usd,omitempty"`
	Created    time.Time `json:"created"`
}

// Check returns an error if the plan is invalid.
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

// creditUSD returns the value of one credit.
func (p Plan) creditUSD() float64 {
	if p.CreditUSD == 0 {
		return 1
	}
	return p.CreditUSD
}

// CreditsIn returns an amount of money, in millionths of a dollar, as credits.
func (p Plan) CreditsIn(microUSD int64) float64 {
	return math.Round(float64(microUSD)/1e6/p.creditUSD()*1e6) / 1e6
}

// CreditUnit returns the name of the credits.
func (p Plan) CreditUnit() string {
	if p.CreditName == "" {
		return "USD"
	}
	return p.CreditName
}

// Budgets returns the budgets of a plan for the subject that it is assigned to.
func (p Plan) Budgets(subject string) (list []store.Budget) {
	if p.Tokens > 0 {
		list = append(list, store.Budget{Subject: subject, Period: store.Monthly, Unit: store.InTokens, Limit: p.Tokens})
	}
	if p.Credits > 0 {
		list = append(list, store.Budget{Subject: subject, Period: store.Monthly, Unit: store.InUSD, Limit: int64(p.Credits*p.creditUSD()*1e6 + .5)})
	}
	return list
}

// Assignment assigns a plan to user:ID, to user:* for each person without one of their own,
// or to team:TEAM.
type Assignment struct {
	Subject string    `json:"subject"`
	Plan    string    `json:"plan"`
	Set     time.Time `json:"set"`
}

// Usage is the effective plan of a user and its use.
type Usage struct {
	Plan    Plan
	Subject string // of the assignment
	Used    int64  // messages in this period
	Ends    time.Time
}

// Context returns whose amounts they are: a team's members share the team's.
func (u Usage) Context() string {
	if strings.HasPrefix(u.Subject, "team:") {
		return "team"
	}
	return "user"
}

// Subjects returns the subjects whose plan may apply to a user in a team, in order of
// precedence.
func Subjects(user, team string) []string {
	list := []string{"user:" + user, store.Everybody}
	if team != "" {
		list = slices.Insert(list, 1, "team:"+team)
	}
	return list
}

// Counter returns the key under which a user's messages are counted for the plan.
func (u Usage) Counter(user string) string {
	if u.Subject == store.Everybody {
		return "user:" + user
	}
	return u.Subject
}

// UsedUpError is returned if no message of a plan is left in its period; it matches
// store.ErrRefused.
type UsedUpError struct{ Usage }

func (e *UsedUpError) Error() string { return e.In(time.UTC).Error() }
func (e *UsedUpError) Unwrap() error { return store.ErrRefused }

// In returns the error with its message for a person in that zone; it still matches e.
func (e *UsedUpError) In(zone *time.Location) error {
	resets := store.BudgetState{Resets: e.Ends}.ResetText(zone)
	return store.Mark(store.Errorf("this message was not taken: all %d messages a month of the plan %s are used up. %s", *e.Plan.Messages, e.Plan.Name, resets), e)
}
