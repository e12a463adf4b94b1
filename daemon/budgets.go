package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// listBudgets lists what admins set, or what holds for one person. Members see
// what holds for them.
func (d *Daemon) listBudgets(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	who := r.URL.Query().Get("user")
	var states []store.BudgetState
	var err error
	if who == "" && by.IsAdmin() {
		states, err = d.db.ListBudgets(ctx)
	} else {
		states, err = d.budgetsOf(ctx, by, who)
	}
	if err != nil {
		return nil, err
	}
	views := make([]api.BudgetView, 0, len(states)+1)
	var everybody bool
	for _, s := range states {
		v, err := d.budgetView(ctx, s)
		if err != nil {
			return nil, err
		}
		everybody = everybody || s.Subject == store.Everybody && s.Period == store.Daily && s.Unit == store.InTokens
		views = append(views, v)
	}
	if who == "" && by.IsAdmin() && !everybody {
		if limit := d.userDaily(); limit > 0 {
			b := store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: limit}
			_, resets := b.Period.Bounds(d.now())
			views = append(views, api.BudgetView{BudgetState: store.BudgetState{Budget: b, Resets: resets}, Name: b.Subject, Default: true, PerUser: true})
		}
	}
	return items(views), nil
}

func (d *Daemon) userDaily() int64 { return int64(store.GetInt(d.config, "", "budgets.user.daily")) }

// budgetsOf are those that a person's next model call would count for, but for
// models' own.
func (d *Daemon) budgetsOf(ctx context.Context, by store.Caller, who string) ([]store.BudgetState, error) {
	id, err := d.userOf(ctx, by, who)
	if err != nil {
		return nil, err
	}
	u, err := d.db.GetUser(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", id, err)
	}
	person := store.Caller{User: id, Role: u.Role}
	if len(u.Identities) > 0 {
		person.Identity = u.Identities[0]
	}
	states, err := d.db.BudgetsFor(ctx, store.Reservation{
		Spend:     store.Spend{User: id, Team: store.TeamOf(person, store.Address{})},
		UserDaily: d.userDaily(),
		Exempt:    u.Role == store.Admin && !store.GetBool(d.config, "", "budgets.admins"),
	})
	if err != nil {
		return nil, fmt.Errorf("reading budgets of %s: %w", u.Name, err)
	}
	return states, nil
}

func (d *Daemon) budgetView(ctx context.Context, s store.BudgetState) (api.BudgetView, error) {
	v := api.BudgetView{BudgetState: s, Name: s.Subject, PerUser: s.Subject == store.Everybody && s.User == ""}
	v.Default = s.Subject == store.Everybody && s.Set.IsZero()
	if id, ok := strings.CutPrefix(s.Subject, "user:"); ok && id != "*" {
		names, err := d.userNames(ctx)
		if err != nil {
			return v, err
		}
		if n := names[id]; n != "" {
			v.Name = "user:" + n
		}
	}
	return v, nil
}

// budgetSubject reads a subject as people write it: a person by name.
func (d *Daemon) budgetSubject(ctx context.Context, subject string) (string, error) {
	kind, name, _ := strings.Cut(subject, ":")
	switch {
	case name == "":
	case kind == "user" && name != "*" && name != store.System.User:
		u, err := d.findUser(ctx, name)
		if err != nil {
			return "", err
		}
		return "user:" + u.ID, nil
	case kind == "group":
		groups, err := d.db.ListGroups(ctx)
		if err != nil {
			return "", fmt.Errorf("listing groups: %w", err)
		}
		names := make([]string, len(groups))
		for i, g := range groups {
			names[i] = g.Name
		}
		if !slices.Contains(names, name) {
			return "", store.Unknown("group", name, names)
		}
	case kind == "model":
		if err := d.checkTarget(ctx, name); err != nil {
			return "", err
		}
	}
	return subject, nil
}

func (d *Daemon) setBudget(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.SetBudget](r)
	if err != nil {
		return nil, err
	}
	b := store.Budget{Period: req.Period}
	if b.Unit, b.Limit, err = store.ParseAmount(req.Amount); err != nil {
		return nil, err
	}
	if b.Subject, err = d.budgetSubject(ctx, req.Subject); err != nil {
		return nil, err
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := d.db.PutBudget(ctx, by, b); err != nil {
		return nil, fmt.Errorf("storing the budget: %w", err)
	}
	states, err := d.db.ListBudgets(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the budget: %w", err)
	}
	for _, s := range states {
		if s.Subject == b.Subject && s.Period == b.Period && s.Unit == b.Unit {
			return d.budgetView(ctx, s)
		}
	}
	return nil, fmt.Errorf("budget of %s: %w: somebody removed it", req.Subject, store.ErrConflict)
}

func (d *Daemon) removeBudget(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p := r.URL.Query()
	subject, err := d.budgetSubject(ctx, p.Get("subject"))
	if err != nil {
		return nil, err
	}
	removed := false
	for _, period := range []store.Period{store.Daily, store.Monthly} {
		if want := p.Get("period"); want != "" && want != string(period) {
			continue
		}
		for _, unit := range []store.Unit{store.InTokens, store.InUSD} {
			err := d.db.DeleteBudget(ctx, by, store.Budget{Subject: subject, Period: period, Unit: unit})
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, fmt.Errorf("removing the budget: %w", err)
			}
			removed = removed || err == nil
		}
	}
	if removed {
		return nil, nil
	}
	if subject == store.Everybody {
		return nil, fmt.Errorf("budget of %s: %w; the default is nizectl config set budgets.user.daily", subject, store.ErrNotFound)
	}
	return nil, fmt.Errorf("budget of %s: %w; see nizectl budgets list", p.Get("subject"), store.ErrNotFound)
}
