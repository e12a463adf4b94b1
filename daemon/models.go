package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
)

func (d *Daemon) listProviders(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	list, err := d.allProviders(ctx)
	if err != nil {
		return nil, err
	}
	return items(list), nil
}

// allProviders are the stored ones and those of the environment.
func (d *Daemon) allProviders(ctx context.Context) ([]store.Provider, error) {
	list, err := d.db.ListProviders(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing providers: %w", err)
	}
	for _, p := range d.extra {
		if !slices.ContainsFunc(list, func(o store.Provider) bool { return o.Name == p.Name }) {
			list = append(list, p)
		}
	}
	return list, nil
}

func (d *Daemon) provider(ctx context.Context, name string) (store.Provider, error) {
	list, err := d.db.ListProviders(ctx)
	if err != nil {
		return store.Provider{}, fmt.Errorf("listing providers: %w", err)
	}
	var names []string
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	for _, p := range d.extra {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return store.Provider{}, store.Unknown("provider", name, names)
}

func (d *Daemon) addProvider(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.AddProvider](r)
	if err != nil {
		return nil, err
	}
	if err := store.CheckSlug(req.Name); err != nil {
		return nil, err
	}
	if req.Name == llm.Offline {
		return nil, fmt.Errorf("provider %s is built in: %w", llm.Offline, store.ErrExists)
	}
	p := store.Provider{Name: req.Name, Kind: req.Kind, BaseURL: req.BaseURL, Key: req.Key.Secret, HasKey: !req.Key.IsZero(), Enabled: true, Created: d.now()}
	if p.Kind == "" {
		p.Kind = p.Name
	}
	if err := checkProvider(p); err != nil {
		return nil, err
	}
	if err := d.db.PutProvider(ctx, by, p); err != nil {
		return nil, fmt.Errorf("storing provider %s: %w", p.Name, err)
	}
	return p, nil
}

func (d *Daemon) removeProvider(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p, err := d.provider(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := d.db.DeleteProvider(ctx, by, p.Name); errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("provider %s comes from the environment of nized: %w: unset its variable and start nized again", p.Name, store.ErrConflict)
	} else if err != nil {
		return nil, fmt.Errorf("removing provider %s: %w", p.Name, err)
	}
	return nil, nil
}

func (d *Daemon) enableProvider(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.switchProvider(ctx, by, r.PathValue("name"), true)
}

func (d *Daemon) disableProvider(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.switchProvider(ctx, by, r.PathValue("name"), false)
}

func (d *Daemon) switchProvider(ctx context.Context, by store.Caller, name string, on bool) (any, error) {
	p, err := d.provider(ctx, name)
	if err != nil {
		return nil, err
	}
	p.Enabled = on
	if err := d.db.PutProvider(ctx, by, p); err != nil {
		return nil, fmt.Errorf("storing provider %s: %w", name, err)
	}
	return p, nil
}

// testProvider asks the service for its models: the cheapest request that
// needs a good key.
func (d *Daemon) testProvider(ctx context.Context, _ store.Caller, r *http.Request) (any, error) {
	p, err := d.provider(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := d.now()
	models, err := d.listModelsOf(ctx, p)
	out := api.ProviderTest{OK: err == nil, TookMS: float64(d.now().Sub(began)) / float64(time.Millisecond), Models: models}
	if err != nil {
		out.Error = err.Error()
		out.Hint = "check the key and the address: nizectl providers add " + p.Name + " --base-url URL < key.txt"
	}
	return out, nil
}

func (d *Daemon) listModels(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	list, err := d.db.ListModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing models: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	var views []api.ModelView
	for _, m := range list {
		if !m.MayUse(by, groups) {
			continue
		}
		v := api.ModelView{ModelName: m, Available: true, Images: d.router.Sees(m.Target)}
		if _, err := d.router.Resolve(ctx, m.Target); err != nil {
			v.Available, v.Why = false, err.Error()
		}
		if v.Price, err = d.price(ctx, m.Target); err != nil {
			return nil, fmt.Errorf("reading the price of %s: %w", m.Target, err)
		}
		if !by.IsAdmin() { // what is behind a name is for admins
			v.ModelName, v.Why, v.Price.Model = store.ModelName{Name: m.Name, Default: m.Default}, "", ""
		}
		views = append(views, v)
	}
	return items(views), nil
}

func (d *Daemon) modelName(ctx context.Context, name string) (store.ModelName, error) {
	list, err := d.db.ListModels(ctx)
	if err != nil {
		return store.ModelName{}, fmt.Errorf("listing models: %w", err)
	}
	var names []string
	for _, m := range list {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return store.ModelName{}, store.Unknown("model", name, names)
}

func (d *Daemon) setModel(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.SetModel](r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("logical")
	if err := store.CheckSlug(name); err != nil {
		return nil, err
	}
	if err := d.checkTarget(ctx, req.Target); err != nil {
		return nil, err
	}
	m, err := d.modelName(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		all, err := d.db.ListModels(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing models: %w", err)
		}
		m = store.ModelName{Name: name, Default: len(all) == 0}
	} else if err != nil {
		return nil, err
	}
	m.Target = req.Target
	if req.Who != nil {
		if m.Who, err = d.directory.WhoMay(ctx, by, *req.Who); err != nil {
			return nil, err
		}
	}
	return d.putModel(ctx, by, m)
}

// checkTarget refuses what cannot be a provider/model of this daemon.
func (d *Daemon) checkTarget(ctx context.Context, target string) error {
	provider, model, ok := strings.Cut(target, "/")
	if !ok || provider == "" || model == "" {
		return fmt.Errorf("%w model %q: write provider/model, such as openai/gpt-5-mini", store.ErrInvalid, target)
	}
	if provider == llm.Offline {
		return nil
	}
	if _, err := d.provider(ctx, provider); err != nil {
		return fmt.Errorf("%w; add it first: nizectl providers add %s < key.txt", err, provider)
	}
	return nil
}

func (d *Daemon) putModel(ctx context.Context, by store.Caller, m store.ModelName) (any, error) {
	if err := d.db.PutModel(ctx, by, m); err != nil {
		return nil, fmt.Errorf("storing model %s: %w", m.Name, err)
	}
	return m, nil
}

func (d *Daemon) removeModel(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	m, err := d.modelName(ctx, r.PathValue("logical"))
	if err != nil {
		return nil, err
	}
	if err := d.db.DeleteModel(ctx, by, m.Name); err != nil {
		return nil, fmt.Errorf("removing model %s: %w", m.Name, err)
	}
	return nil, nil
}

func (d *Daemon) defaultModel(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	m, err := d.modelName(ctx, r.PathValue("logical"))
	if err != nil {
		return nil, err
	}
	m.Default = true
	return d.putModel(ctx, by, m)
}

func (d *Daemon) setFallbacks(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.SetFallbacks](r)
	if err != nil {
		return nil, err
	}
	m, err := d.modelName(ctx, r.PathValue("logical"))
	if err != nil {
		return nil, err
	}
	for _, f := range req.Fallbacks {
		if err := d.checkTarget(ctx, f); err != nil {
			return nil, err
		}
	}
	m.Fallbacks = req.Fallbacks
	return d.putModel(ctx, by, m)
}

func (d *Daemon) listAgents(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	list, err := d.agentsFor(ctx, by)
	if err != nil || by.IsAdmin() {
		return items(list), err
	}
	for i, a := range list { // how it is made is for admins
		list[i] = store.Agent{ID: a.ID, Name: a.Name, Default: a.Default, Created: a.Created}
	}
	return items(list), nil
}

// agentsFor lists the agents that the caller may use.
func (d *Daemon) agentsFor(ctx context.Context, by store.Caller) ([]store.Agent, error) {
	list, err := d.db.ListAgents(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	return slices.DeleteFunc(list, func(a store.Agent) bool { return !a.MayUse(by, groups) }), nil
}

func (d *Daemon) putAgent(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	a, err := decode[store.Agent](r)
	if err != nil {
		return nil, err
	}
	a.ID = r.PathValue("id")
	if err := store.CheckSlug(a.ID); err != nil {
		return nil, err
	}
	if a.Approval != "" {
		k, err := store.FindKey("approvals.mode")
		if err != nil {
			return nil, err
		}
		if _, err := k.Check(a.Approval); err != nil {
			return nil, fmt.Errorf("agent %s: %w", a.ID, err)
		}
	}
	if a.Who, err = d.directory.WhoMay(ctx, by, a.Who); err != nil {
		return nil, err
	}
	if a.Model != "" {
		if _, err := d.router.Resolve(ctx, a.Model); err != nil {
			return nil, err
		}
	}
	if a.MaxSteps < 0 || a.MaxSteps > 100 || a.MaxTokens < 0 || a.Temperature != nil && !(*a.Temperature >= 0 && *a.Temperature <= 2) {
		return nil, fmt.Errorf("%w agent %s: max_steps is 0 to 100, max_tokens at least 0, temperature 0 to 2", store.ErrInvalid, a.ID)
	}
	if old, err := d.db.GetAgent(ctx, a.ID); err == nil {
		a.Created = old.Created
	} else {
		a.Created = d.now()
	}
	if err := d.db.PutAgent(ctx, by, a); err != nil {
		return nil, fmt.Errorf("storing agent %s: %w", a.ID, err)
	}
	return a, nil
}

// agent finds one that the caller may use; a forbidden one is an unknown one.
func (d *Daemon) agent(ctx context.Context, by store.Caller, id string) (store.Agent, error) {
	list, err := d.agentsFor(ctx, by)
	if err != nil {
		return store.Agent{}, err
	}
	names := make([]string, len(list))
	for i, a := range list {
		if a.ID == id {
			return a, nil
		}
		names[i] = a.ID
	}
	return store.Agent{}, store.Unknown("agent", id, names)
}

func (d *Daemon) removeAgent(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	a, err := d.agent(ctx, by, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := d.db.DeleteAgent(ctx, by, a.ID); err != nil {
		return nil, fmt.Errorf("removing agent %s: %w", a.ID, err)
	}
	return nil, nil
}

// checkModel refuses a model name that is unknown to the caller: that there is
// none of that name, or that others alone may use it, is the same error.
func (d *Daemon) checkModel(ctx context.Context, by store.Caller, name string) error {
	list, err := d.modelsFor(ctx, by)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range list {
		if m.Name == name {
			return nil
		}
		names = append(names, m.Name)
	}
	return store.Unknown("model", name, names)
}

func (d *Daemon) checkAgent(ctx context.Context, by store.Caller, name string) error {
	_, err := d.agent(ctx, by, name)
	return err
}
