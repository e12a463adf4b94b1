package spending

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/daemon/programs"
	"nize/store"
	"nize/store/project"
)

// Usage implements the operation that sums the cost of model and tool calls.
type Usage struct {
	Store interface {
		Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error)
		ListModels(ctx context.Context) ([]store.ModelName, error)
	}
	Directory *people.Directory
	Projects  *programs.Projects
}

// Mount registers the operations.
func (u *Usage) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetUsage, u.Get)
}

// Get returns what was spent. Members get their own spending, whatever they group by.
func (u *Usage) Get(ctx context.Context, by store.Caller, req api.GetUsageRequest) (none store.UsageReport, err error) {
	q := store.UsageQuery{By: cmp.Or(req.By, "day"), Since: req.Since, Top: req.Top}
	if !slices.Contains(store.UsageGroupings, q.By) {
		return none, fmt.Errorf("%w grouping %q: use %s", store.ErrInvalid, q.By, strings.Join(store.UsageGroupings, ", "))
	}
	if req.Zone != "" {
		if q.Zone, err = time.LoadLocation(req.Zone); err != nil {
			return none, fmt.Errorf("%w time zone %q: use a name such as Europe/Berlin", store.ErrInvalid, req.Zone)
		}
	}
	if req.Top < 0 {
		return none, fmt.Errorf("%w top %d: use a whole number", store.ErrInvalid, req.Top)
	}
	if name, ok := project.IDOf(req.User); ok {
		of, err := u.Projects.Find(ctx, by, name)
		if err != nil {
			return none, err
		}
		q.User = of.Caller().User
	} else if req.User != "" || !by.IsAdmin() {
		if q.User, err = u.Directory.Owner(ctx, by, req.User); err != nil {
			return none, err
		}
	}
	if q.By == "provider" && !by.IsAdmin() {
		return none, store.Mark(fmt.Errorf("only admins see providers; use --by model"), store.ErrRefused)
	}
	report, err := u.Store.Usage(ctx, q)
	if err != nil {
		return none, fmt.Errorf("summing usage: %w", err)
	}
	if !by.IsAdmin() {
		if err := u.hideModels(ctx, by, &report); err != nil {
			return none, err
		}
	}
	if q.By == "user" {
		names, err := u.Directory.Names(ctx)
		if err != nil {
			return none, err
		}
		for i := range report.Rows {
			key := &report.Rows[i].Key
			if n := names[*key]; n != "" {
				*key = n
			} else if of, ok := project.IDOf(*key); ok {
				if one, err := u.Projects.Store.GetProject(ctx, of); err == nil { // otherwise it was removed
					*key = project.Actor(one.Name)
				}
			}
		}
	}
	return report, nil
}

// hideModels replaces models with the names that a member may see; only admins may see the
// targets.
func (u *Usage) hideModels(ctx context.Context, by store.Caller, r *store.UsageReport) error {
	names, err := u.Store.ListModels(ctx)
	if err != nil {
		return fmt.Errorf("listing models: %w", err)
	}
	groups := u.Directory.GroupsOf(ctx, by)
	known := func(model string) string {
		for _, m := range names {
			if m.MayUse(by, groups) && (m.Target == model || slices.Contains(m.Fallbacks, model)) {
				return m.Name
			}
		}
		return "other"
	}
	for i := range r.Unpriced {
		r.Unpriced[i] = known(r.Unpriced[i])
	}
	slices.Sort(r.Unpriced)
	r.Unpriced = slices.Compact(r.Unpriced)
	if r.By != "model" {
		return nil
	}
	var rows []store.UsageRow
	for _, row := range r.Rows {
		row.Key = known(row.Key)
		at := slices.IndexFunc(rows, func(o store.UsageRow) bool { return o.Key == row.Key })
		if at < 0 {
			rows = append(rows, row)
			continue
		}
		rows[at] = rows[at].Plus(row)
	}
	r.Rows = rows
	return nil
}
