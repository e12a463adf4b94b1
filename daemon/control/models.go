package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/llm"
	"nize/store"
)

// Models implements the operations on model names, which stand for providers' models.
type Models struct {
	Store     store.Models
	Providers *Providers
	Prices    interface {
		Of(ctx context.Context, model string) (api.PriceView, error)
	}
	Router    *llm.Router
	Directory *people.Directory
}

// Mount registers the operations.
func (m *Models) Mount(on *mux.Mux) {
	mux.Handle(on, api.ListModels, m.List)
	mux.Handle(on, api.RemoveModel, m.Remove)
	mux.Handle(on, api.SetModel, m.Set)
	mux.Handle(on, api.SetDefaultModel, m.SetDefault)
	mux.Handle(on, api.SetFallbacks, m.SetFallbacks)
}

// List returns the model names that the caller may use.
func (m *Models) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ModelView], err error) {
	list, err := m.UsableBy(ctx, by)
	if err != nil {
		return none, err
	}
	var views []api.ModelView
	for _, name := range list {
		v := api.ModelView{ModelName: name, Available: true, Images: m.Router.TakesImages(name.Target), EffectiveWindow: m.Router.Window(ctx, name.Target)}
		if _, err := m.Router.Resolve(ctx, name.Target); err != nil {
			v.Available, v.Why = false, store.TextOf(err)
		}
		if v.Price, err = m.Prices.Of(ctx, name.Target); err != nil {
			return none, fmt.Errorf("reading the price of %s: %w", name.Target, err)
		}
		if !by.IsAdmin() { // only admins may see a name's target
			v.ModelName, v.Why, v.Price.Model = store.ModelName{Name: name.Name, Default: name.Default}, store.Text{}, ""
			v.EffectiveWindow = 0
		}
		views = append(views, v)
	}
	return api.Items(views), nil
}

// UsableBy returns the model names that the caller may use.
func (m *Models) UsableBy(ctx context.Context, by store.Caller) ([]store.ModelName, error) {
	list, err := m.Store.ListModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing models: %w", err)
	}
	groups := m.Directory.GroupsOf(ctx, by)
	return slices.DeleteFunc(list, func(name store.ModelName) bool { return !name.MayUse(by, groups) }), nil
}

// Check returns an error if the caller may not use a model name. The error is the same if
// the name doesn't exist.
func (m *Models) Check(ctx context.Context, by store.Caller, name string) error {
	list, err := m.UsableBy(ctx, by)
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, known := range list {
		if known.Name == name {
			return nil
		}
		names[i] = known.Name
	}
	return store.Unknown("model", name, names)
}

// MayAsk returns an error if the caller may not use a model, given by its name or as
// PROVIDER/MODEL.
func (m *Models) MayAsk(ctx context.Context, by store.Caller, name string) error {
	if err := m.Router.MayAsk(ctx, by, m.Directory.GroupsOf(ctx, by), name); err != nil {
		return err
	}
	_, err := m.Router.Resolve(ctx, name)
	var te *llm.TargetError
	if errors.As(err, &te) && te.Behind && !by.IsAdmin() {
		return &llm.TargetError{Name: name, Why: store.Textf("its model service is not available now"), Err: te.Err}
	}
	return err
}

// find returns a model name. If it doesn't exist, find returns a new one beside the error.
func (m *Models) find(ctx context.Context, name string) (store.ModelName, error) {
	list, err := m.Store.ListModels(ctx)
	if err != nil {
		return store.ModelName{}, fmt.Errorf("listing models: %w", err)
	}
	var names []string
	for _, known := range list {
		if known.Name == name {
			return known, nil
		}
		names = append(names, known.Name)
	}
	return store.ModelName{Name: name, Default: len(list) == 0}, store.Unknown("model", name, names)
}

// Set maps a model name to provider/model and keeps its fallbacks.
func (m *Models) Set(ctx context.Context, by store.Caller, req api.SetModelRequest) (none api.MappedModel, err error) {
	if err := store.CheckSlug(req.Name); err != nil {
		return none, err
	}
	unchecked, err := m.checkTargets(ctx, req.Force, req.Target)
	if err != nil {
		return none, err
	}
	name, err := m.find(ctx, req.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, err
	}
	if name.Target != req.Target {
		name.Target, name.Window = req.Target, 0 // a window belongs to its model
	}
	if req.Window != nil {
		if *req.Window != 0 && (*req.Window < llm.MinWindow || *req.Window > llm.MaxWindow) {
			return none, fmt.Errorf("%w window %d: use %d to %d tokens, or 0 for what the built-in table says", store.ErrInvalid, *req.Window, llm.MinWindow, llm.MaxWindow)
		}
		name.Window = *req.Window
	}
	if req.Who != nil {
		if name.Who, err = m.Directory.WhoMay(ctx, by, *req.Who); err != nil {
			return none, err
		}
	}
	stored, err := m.put(ctx, by, name)
	return api.MappedModel{ModelName: stored, Unchecked: unchecked}, err
}

// checkTargets returns an error if a target is not a model of a provider. With force it
// accepts every name of an existing provider.
func (m *Models) checkTargets(ctx context.Context, force bool, targets ...string) (unchecked string, err error) {
	for _, t := range targets {
		if force {
			err = m.Providers.CheckTarget(ctx, t)
		} else if why, checkErr := m.Providers.CheckOffered(ctx, t); checkErr != nil {
			err = checkErr
		} else if why != "" {
			unchecked = t + ": " + why
		}
		if err != nil {
			return "", err
		}
	}
	return unchecked, nil
}

func (m *Models) put(ctx context.Context, by store.Caller, name store.ModelName) (store.ModelName, error) {
	if err := m.Store.PutModel(ctx, by, name); err != nil {
		return store.ModelName{}, fmt.Errorf("storing model %s: %w", name.Name, err)
	}
	return name, nil
}

// Remove removes a model name.
func (m *Models) Remove(ctx context.Context, by store.Caller, req api.ModelRequest) (none api.Empty, err error) {
	if _, err := m.find(ctx, req.Name); err != nil {
		return none, err
	}
	if err := m.Store.DeleteModel(ctx, by, req.Name); err != nil {
		return none, fmt.Errorf("removing model %s: %w", req.Name, err)
	}
	return none, nil
}

// SetDefault makes a model name the default.
func (m *Models) SetDefault(ctx context.Context, by store.Caller, req api.ModelRequest) (none store.ModelName, err error) {
	name, err := m.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	name.Default = true
	return m.put(ctx, by, name)
}

// SetFallbacks replaces a model name's fallbacks.
func (m *Models) SetFallbacks(ctx context.Context, by store.Caller, req api.SetFallbacksRequest) (none api.MappedModel, err error) {
	name, err := m.find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	unchecked, err := m.checkTargets(ctx, req.Force, req.Fallbacks...)
	if err != nil {
		return none, err
	}
	name.Fallbacks = req.Fallbacks
	stored, err := m.put(ctx, by, name)
	return api.MappedModel{ModelName: stored, Unchecked: unchecked}, err
}
