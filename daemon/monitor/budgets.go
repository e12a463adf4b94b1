package monitor

import (
	"cmp"
	"context"
	"fmt"
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
	each, err := m.Store.NearlyUsedDefaults(ctx, int64(store.GetInt(m.Config, "", "budgets.user.daily")))
	if err != nil {
		return nil, err
	}
	var short []shortBudget
	for _, s := range append(all, each...) {
		id, isUser := strings.CutPrefix(s.Subject, "user:")
		if s.User != "" {
			id = s.User
		}
		_, known := exempt[id]
		if !s.Nearly() || exempt[id] || s.Subject == store.Everybody && !known { // not one person's, or that of a removed user
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
