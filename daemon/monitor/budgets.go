package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nize/daemon/alert"
	"nize/daemon/doctor"
	"nize/store"
)

// shortBudget is a budget that is used up, or nearly.
type shortBudget struct {
	store.BudgetState
	whose string // the person's name, else the subject
	id    string // the person's id
}

// what describes the budget.
func (s shortBudget) what() string {
	if s.Tool != "" {
		return fmt.Sprintf("%s budget of %s (calls of %s)", s.Period, s.whose, s.Tool)
	}
	return fmt.Sprintf("%s budget of %s", s.Period, s.whose)
}

// shortBudgets finds them from the current usage, as nizectl budgets list and the check
// before a model call do. Alerts and doctor therefore always agree with these, in whatever
// order budgets were set, used, raised and lowered.
func (m *Monitor) shortBudgets(ctx context.Context) ([]shortBudget, error) {
	all, err := m.Store.ListBudgets(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading budgets: %w", err)
	}
	users, err := m.Directory.Store.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	exempt, names := map[string]bool{}, map[string]string{}
	for _, u := range users {
		exempt[u.ID] = u.Role == store.Admin && !store.GetBool(m.Config, "", "budgets.admins")
		names[u.ID] = u.Name
	}
	byTool := slices.ContainsFunc(all, func(s store.BudgetState) bool { return s.Subject == store.Everybody && s.Tool != "" })
	each, err := m.budgetsOfEach(ctx, names, byTool)
	if err != nil {
		return nil, err
	}
	var short []shortBudget
	for _, s := range append(all, each...) {
		id, isUser := strings.CutPrefix(s.Subject, "user:")
		if s.User != "" {
			id = s.User
		}
		if !s.Nearly() || exempt[id] || s.Subject == store.Everybody && s.User == "" {
			continue
		}
		b := shortBudget{BudgetState: s, whose: s.Subject}
		if isUser && strings.Contains(id, ":") { // a project, which can't be notified
			b.whose = id
		} else if isUser {
			b.whose, b.id = cmp.Or(names[id], id), id
		}
		short = append(short, b)
	}
	return short, nil
}

// budgetsOfEach returns the default budgets of people who have none of their own and spent
// anything in the longest period. For budgets of calls, which have no cost, it returns
// those of all people.
func (m *Monitor) budgetsOfEach(ctx context.Context, names map[string]string, byTool bool) (each []store.BudgetState, err error) {
	since, _ := store.Monthly.Bounds(m.Now())
	used, err := m.Store.Usage(ctx, store.UsageQuery{By: "user", Since: since})
	if err != nil {
		return nil, fmt.Errorf("reading the usage: %w", err)
	}
	daily, seen := int64(store.GetInt(m.Config, "", "budgets.user.daily")), map[string]bool{}
	var ids []string
	for _, row := range used.Rows {
		ids = append(ids, row.Key)
	}
	if byTool {
		ids = append(ids, slices.Sorted(maps.Keys(names))...)
	}
	for _, id := range ids {
		if names[id] == "" { // merged with another user, or removed
			u, err := m.Store.GetUser(ctx, id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading user %s: %w", id, err)
			}
			id = u.ID
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		list, err := m.Store.BudgetsFor(ctx, store.Reservation{Spend: store.Spend{User: id}, UserDaily: daily, Tool: store.OfAnything})
		if err != nil {
			return nil, fmt.Errorf("reading the budgets of user %s: %w", id, err)
		}
		each = append(each, slices.DeleteFunc(list, func(s store.BudgetState) bool { return s.Subject != store.Everybody })...)
	}
	return each, nil
}

// budgets reports short budgets.
func (m *Monitor) budgets(ctx context.Context, r *alert.Result) error {
	short, err := m.shortBudgets(ctx)
	for _, s := range short {
		subject := s.Subject
		if s.id != "" {
			subject = "user:" + s.id
		}
		a := alert.Symptom{Key: alert.Key{Kind: alert.BudgetLow, Subject: strings.TrimSuffix(fmt.Sprintf("%s %s %s %s", subject, s.Period, s.Unit, s.Tool), " ")}, Cure: "nizectl budgets list"}
		if s.id != "" {
			a.Users = []string{s.id}
		}
		resets := s.Resets.UTC().Format("2006-01-02 15:04 MST")
		switch {
		case s.Spent() && s.Unit == store.InCalls:
			a.Kind, a.Title, a.Text = alert.BudgetOut, store.Textf("The %s is used up", s.what()), store.Textf("Such calls are refused until %s.", resets)
		case s.Unit == store.InCalls:
			a.Title, a.Text = store.Textf("The %s is nearly used up", s.what()), store.Textf("Such calls are refused once it is; it starts anew at %s.", resets)
		case s.Spent():
			a.Kind, a.Title, a.Text = alert.BudgetOut, store.Textf("The %s is used up", s.what()), store.Textf("Model calls on it are refused until %s.", resets)
		default:
			a.Title, a.Text = store.Textf("The %s is nearly used up", s.what()), store.Textf("Model calls on it are refused once it is; it starts anew at %s.", resets)
		}
		r.Wrong = append(r.Wrong, a)
	}
	return err
}

// budgets adds doctor's facts about budgets.
func (d *Doctor) budgets(ctx context.Context, f *doctor.Facts) error {
	short, err := d.Monitor.shortBudgets(ctx)
	for _, s := range short {
		f.Budgets = append(f.Budgets, doctor.Budget{Name: s.what(), Spent: s.Spent()})
	}
	return err
}
