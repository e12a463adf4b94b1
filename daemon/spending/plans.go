// Package spending implements plans, budgets, prices and the usage of models and tools.
//
// Plans are monthly allowances of people and teams: messages are counted when they are accepted,
// and tokens and credits are budgets, which are set with the plan. The records of plans are in
// planstore.go. The cost of each call and the check of budgets are in store/record/spending, since
// they are in the transactions of calls.
package spending

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/mcp/native"
	"nize/store"
	"nize/store/kv"
	"nize/store/plan"
)

// Plans implements the operations on plans.
type Plans struct {
	DB      kv.DB // opened with the module's buckets
	Budgets *Budgets
	Config  store.Config
	Now     func() time.Time
}

// Module returns the module.
func (p *Plans) Module() module.Module {
	return module.Module{Name: "plans", Buckets: planBuckets, Operations: p.mount}
}

func (p *Plans) store() planStore { return planStore{p.DB} }

func (p *Plans) mount(m *mux.Mux) {
	mux.Handle(m, api.ListPlans, p.List)
	mux.Handle(m, api.RemovePlan, p.Remove)
	mux.Handle(m, api.PutPlan, p.Put)
	mux.Handle(m, api.AssignPlan, p.Assign)
}

// List returns the plans.
func (p *Plans) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[api.PlanView], err error) {
	all, err := p.store().list(ctx)
	if err != nil {
		return none, err
	}
	given, err := p.store().assignments(ctx)
	if err != nil {
		return none, err
	}
	views := make([]api.PlanView, len(all))
	for i, one := range all {
		_, ends := store.Monthly.Bounds(p.Now())
		views[i] = api.PlanView{Plan: one, Given: []api.PlanGiven{}, Ends: ends}
		for _, g := range given {
			if g.Plan != one.ID {
				continue
			}
			view, err := p.given(ctx, g.Subject)
			if err != nil {
				return none, err
			}
			views[i].Given = append(views[i].Given, view)
		}
	}
	return api.Items(views), nil
}

// given returns a subject's plan and usage.
func (p *Plans) given(ctx context.Context, subject string) (api.PlanGiven, error) {
	named, err := p.Budgets.View(ctx, store.BudgetState{Budget: store.Budget{Subject: subject}})
	view := api.PlanGiven{Subject: subject, Name: named.Name}
	if err != nil || subject == store.Everybody {
		return view, err
	}
	u, err := p.store().find(ctx, "", []string{subject})
	view.Used = &u.Used
	return view, err
}

// find returns the plan of that id.
func (p *Plans) find(ctx context.Context, id string) (api.PlanView, error) {
	all, err := p.List(ctx, store.System, api.Empty{})
	if err != nil {
		return api.PlanView{}, err
	}
	var ids []string
	for _, one := range all.Items {
		if one.ID == id {
			return one, nil
		}
		ids = append(ids, one.ID)
	}
	return api.PlanView{}, store.Unknown("plan", id, ids)
}

// Put creates or changes a plan, and updates its subjects' budgets.
func (p *Plans) Put(ctx context.Context, by store.Caller, req api.PutPlanRequest) (none api.PlanView, err error) {
	set := req.Plan
	set.ID = req.ID
	old, err := p.find(ctx, set.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, err
	}
	if err := p.store().put(ctx, by, set); err != nil {
		return none, err
	}
	for _, g := range old.Given {
		if err := p.setBudgets(ctx, by, g.Subject, old.Plan, set); err != nil {
			return none, err
		}
	}
	return p.find(ctx, set.ID)
}

// Remove removes a plan that has no subjects.
func (p *Plans) Remove(ctx context.Context, by store.Caller, req api.RemovePlanRequest) (none api.Empty, err error) {
	one, err := p.find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	if len(one.Given) > 0 {
		return none, store.Mark(fmt.Errorf("%s has the plan %s; take it first: nizectl plans assign none %s", one.Given[0].Name, one.ID, one.Given[0].Name), store.ErrRefused)
	}
	return none, p.store().delete(ctx, by, one.ID)
}

// Assign gives a subject a plan, or removes the current one.
func (p *Plans) Assign(ctx context.Context, by store.Caller, req api.AssignPlanRequest) (none api.PlanGiven, err error) {
	kind, name, _ := strings.Cut(req.Subject, ":")
	if kind != "user" && kind != "team" || name == "" {
		return none, fmt.Errorf("%w subject %q: write user:NAME, user:* or team:TEAM", store.ErrInvalid, req.Subject)
	}
	subject, err := p.Budgets.Subject(ctx, req.Subject)
	if err != nil {
		return none, err
	}
	all, err := p.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	var old, set api.PlanView
	for _, one := range all.Items {
		if slices.ContainsFunc(one.Given, func(g api.PlanGiven) bool { return g.Subject == subject }) {
			old = one
		}
	}
	if req.Plan != "" {
		if set, err = p.find(ctx, req.Plan); err != nil {
			return none, err
		}
	} else if old.ID == "" {
		return none, fmt.Errorf("plan of %s: %w", req.Subject, store.ErrNotFound)
	}
	if err := p.store().assign(ctx, by, subject, set.ID); err != nil {
		return none, err
	}
	if err := p.setBudgets(ctx, by, subject, old.Plan, set.Plan); err != nil {
		return none, err
	}
	if set.ID == "" {
		return api.PlanGiven{Subject: subject, Name: req.Subject}, nil
	}
	return p.given(ctx, subject)
}

// setBudgets removes the budgets of a subject's old plan, except those that were changed
// since, and sets those of the new one.
func (p *Plans) setBudgets(ctx context.Context, by store.Caller, subject string, old, now plan.Plan) error {
	states, err := p.Budgets.Store.ListBudgets(ctx)
	if err != nil {
		return err
	}
	set := now.Budgets(subject)
	for _, b := range old.Budgets(subject) {
		if slices.Contains(set, b) {
			continue
		}
		for _, s := range states {
			if s.Subject == b.Subject && s.Period == b.Period && s.Unit == b.Unit && s.Tool == "" && s.Limit == b.Limit {
				if err := p.Budgets.Store.DeleteBudget(ctx, by, s.Budget); err != nil && !errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("taking a budget of the plan %s: %w", old.ID, err)
				}
			}
		}
	}
	for _, b := range set {
		if err := p.Budgets.Store.PutBudget(ctx, by, b); err != nil {
			return fmt.Errorf("setting a budget of the plan %s: %w", now.ID, err)
		}
	}
	return nil
}

// CountMessage counts a message before it is accepted. If the person's plan has no messages
// left, it returns ErrRefused, with the time of the next in the person's time zone.
func (p *Plans) CountMessage(ctx context.Context, by store.Caller, at store.Address, key string) error {
	err := p.store().count(ctx, by.User, plan.Subjects(by.User, store.TeamOf(by, at)), key)
	var used *plan.UsedUpError
	if !errors.As(err, &used) {
		return err
	}
	zone, zoneErr := time.LoadLocation(store.TimeZone(p.Config, by.User, ""))
	if zoneErr != nil {
		zone = time.UTC
	}
	return used.In(zone)
}

// PlanUsage returns a person's usage, for the tool get-plan-usage.
func (p *Plans) PlanUsage(ctx context.Context, of native.Context) (out PlanUsage, err error) {
	all, err := p.store().list(ctx)
	if err != nil {
		return out, err
	}
	out.Enabled = len(all) > 0
	if of.User == "" {
		return out, nil
	}
	states, err := p.Budgets.Of(ctx, store.Caller{User: of.User}, "")
	if err != nil {
		return out, err
	}
	out.Budgets, out.Names = states, map[string]string{}
	for _, s := range states {
		named, err := p.Budgets.View(ctx, s)
		if err != nil {
			return out, err
		}
		out.Names[s.Subject] = named.Name
		if s.Subject != store.Everybody {
			out.Names[s.Subject] = strings.TrimPrefix(named.Name, "user:")
		}
	}
	u, err := p.store().find(ctx, of.User, plan.Subjects(of.User, of.Team))
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Plan = &u
	for _, b := range u.Plan.Budgets(u.Subject) {
		for _, s := range states {
			if s.Subject == b.Subject && s.Period == b.Period && s.Unit == store.InUSD && b.Unit == s.Unit {
				left := u.Plan.CreditsIn(max(0, s.Limit-s.Used-s.Reserved))
				out.Credits = &left
			}
		}
	}
	return out, nil
}
