package spending

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/daemon/programs"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/project"
)

// Budgets implements the operations on budgets, which limit the spending of people, groups,
// teams and models, and the calls of tools.
type Budgets struct {
	Store     store.Budgets
	Users     store.Users
	Directory *people.Directory
	Projects  *programs.Projects
	Config    store.Config
	Providers *control.Providers
	Servers   interface {
		ListServers(ctx context.Context) ([]store.Server, error)
	}
	Now func() time.Time
}

// Mount registers the operations.
func (b *Budgets) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListBudgets, b.List)
	mux.Handle(m, api.RemoveBudget, b.Remove)
	mux.Handle(m, api.SetBudget, b.Set)
}

// List returns the budgets that admins set, or those that apply to one person. Members get
// those that apply to them.
func (b *Budgets) List(ctx context.Context, by store.Caller, req api.ListBudgetsRequest) (none api.List[api.Budget], err error) {
	who := req.User
	var states []store.BudgetState
	if who == "" && by.IsAdmin() {
		states, err = b.Store.ListBudgets(ctx)
	} else {
		states, err = b.Of(ctx, by, who)
	}
	if err != nil {
		return none, err
	}
	views := make([]api.Budget, 0, len(states)+1)
	var everybody bool
	for _, s := range states {
		v, err := b.View(ctx, s)
		if err != nil {
			return none, err
		}
		everybody = everybody || s.Subject == store.Everybody && s.Period == store.Daily && s.Unit == store.InTokens
		views = append(views, v)
	}
	if who == "" && by.IsAdmin() && !everybody {
		if limit := b.userDaily(); limit > 0 {
			set := store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: limit}
			_, resets := set.Period.Bounds(b.Now())
			views = append(views, api.Budget{BudgetState: store.BudgetState{Budget: set, Resets: resets}, Name: set.Subject, Default: true, PerUser: true})
		}
	}
	return api.Items(views), nil
}

func (b *Budgets) userDaily() int64 { return int64(store.GetInt(b.Config, "", "budgets.user.daily")) }

// Of returns the budgets to which a person's next call of a model or a tool may count,
// except those of the models themselves.
func (b *Budgets) Of(ctx context.Context, by store.Caller, who string) ([]store.BudgetState, error) {
	if name, ok := project.IDOf(who); ok {
		of, err := b.Projects.Find(ctx, by, name)
		if err != nil {
			return nil, err
		}
		id := of.Caller().User
		return b.Store.BudgetsFor(ctx, store.Reservation{Spend: store.Spend{User: id, Team: id}, UserDaily: b.userDaily(), Tool: store.OfAnything})
	}
	id, err := b.Directory.Owner(ctx, by, who)
	if err != nil {
		return nil, err
	}
	return b.ofTool(ctx, id, store.OfAnything)
}

// OfTool returns the budgets to which a person's call of a tool would count.
func (b *Budgets) OfTool(ctx context.Context, id, tool string) ([]api.Budget, error) {
	states, err := b.ofTool(ctx, id, tool)
	if err != nil {
		return nil, err
	}
	var views []api.Budget
	for _, s := range states {
		v, err := b.View(ctx, s)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

func (b *Budgets) ofTool(ctx context.Context, id, tool string) ([]store.BudgetState, error) {
	u, err := b.Users.GetUser(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", id, err)
	}
	person := store.Caller{User: id, Role: u.Role}
	if len(u.Identities) > 0 {
		person.Identity = u.Identities[0]
	}
	states, err := b.Store.BudgetsFor(ctx, store.Reservation{
		Spend:     store.Spend{User: id, Team: store.TeamOf(person, store.Address{})},
		UserDaily: b.userDaily(), Tool: tool,
		Exempt: u.Role == store.Admin && !store.GetBool(b.Config, "", "budgets.admins"),
	})
	if err != nil {
		return nil, fmt.Errorf("reading budgets of %s: %w", u.Name, err)
	}
	return states, nil
}

func (b *Budgets) View(ctx context.Context, s store.BudgetState) (api.Budget, error) {
	v := api.Budget{BudgetState: s, Name: s.Subject, PerUser: s.Subject == store.Everybody && s.User == ""}
	v.Default = s.Subject == store.Everybody && s.Set.IsZero()
	switch {
	case s.Spent():
		v.State = "exceeded"
	case s.Nearly():
		v.State = "warned"
	}
	id, isUser := strings.CutPrefix(s.Subject, "user:")
	if of, ok := project.IDOf(id); ok {
		one, err := b.Projects.Store.GetProject(ctx, of)
		if err != nil {
			return v, err
		}
		v.Subject, v.Name = id, project.Actor(one.Name)
	} else if isUser && id != "*" {
		names, err := b.Directory.Names(ctx)
		if err != nil {
			return v, err
		}
		if n := names[id]; n != "" {
			v.Name = "user:" + n
		}
	}
	return v, nil
}

// Subject parses a subject that may name a person.
func (b *Budgets) Subject(ctx context.Context, subject string) (string, error) {
	kind, name, _ := strings.Cut(subject, ":")
	switch {
	case name == "":
	case kind == "user" && name != "*" && name != store.System.User:
		u, err := b.Directory.Find(ctx, name)
		if err != nil {
			return "", err
		}
		return "user:" + u.ID, nil
	case kind == "project":
		of, err := b.Projects.Find(ctx, store.System, name)
		return "user:" + project.Actor(of.ID), err
	case kind == "group":
		groups, err := b.Directory.Store.ListGroups(ctx)
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
		if err := b.Providers.CheckTarget(ctx, name); err != nil {
			return "", err
		}
	}
	return subject, nil
}

// Set sets a budget. It replaces the one of the same subject, period, unit and tool.
func (b *Budgets) Set(ctx context.Context, by store.Caller, req api.SetBudgetRequest) (none api.Budget, err error) {
	set := store.Budget{Period: req.Period, Tool: req.Tool}
	if set.Unit, set.Limit, err = store.ParseAmount(req.Amount); err != nil {
		return none, err
	}
	if set.Tool != "" && set.Limit == 0 {
		set.Unit = store.InCalls // unlimited
	}
	if set.Subject, err = b.Subject(ctx, req.Subject); err != nil {
		return none, err
	}
	if err := b.checkServer(ctx, set.Tool); err != nil {
		return none, err
	}
	if err := set.Check(); err != nil {
		return none, err
	}
	if err := b.Store.PutBudget(ctx, by, set); err != nil {
		return none, fmt.Errorf("storing the budget: %w", err)
	}
	states, err := b.Store.ListBudgets(ctx)
	if err != nil {
		return none, fmt.Errorf("reading the budget: %w", err)
	}
	for _, s := range states {
		if s.Subject == set.Subject && s.Period == set.Period && s.Unit == set.Unit && s.Tool == set.Tool {
			return b.View(ctx, s)
		}
	}
	return none, fmt.Errorf("budget of %s: %w: somebody removed it", req.Subject, store.ErrConflict)
}

// Remove removes a subject's budgets.
func (b *Budgets) Remove(ctx context.Context, by store.Caller, req api.RemoveBudgetRequest) (none api.Empty, err error) {
	subject, err := b.Subject(ctx, req.Subject)
	if err != nil {
		return none, err
	}
	all, err := b.Store.ListBudgets(ctx)
	if err != nil {
		return none, fmt.Errorf("listing budgets: %w", err)
	}
	removed := false
	for _, s := range all {
		if s.Subject != subject || req.Period != "" && req.Period != s.Period || req.Tool != "" && req.Tool != s.Tool {
			continue
		}
		err := b.Store.DeleteBudget(ctx, by, s.Budget)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return none, fmt.Errorf("removing the budget: %w", err)
		}
		removed = removed || err == nil
	}
	if removed {
		return none, nil
	}
	if subject == store.Everybody && req.Tool == "" {
		return none, fmt.Errorf("budget of %s: %w; the default is nizectl config set budgets.user.daily", subject, store.ErrNotFound)
	}
	return none, fmt.Errorf("budget of %s: %w; see nizectl budgets list", req.Subject, store.ErrNotFound)
}

// checkServer returns an error if a pattern is of a server that does not exist, since it
// would limit nothing.
func (b *Budgets) checkServer(ctx context.Context, tool string) error {
	name, _, whole := strings.Cut(tool, ":")
	if !whole || strings.Contains(name, "*") || name == policy.NativeServer {
		return nil
	}
	servers, err := b.Servers.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	if !slices.Contains(names, name) {
		return store.Unknown("server", name, names)
	}
	return nil
}
