package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/llm"
	"nize/llm/openai"
	"nize/store"
)

// Providers implements the operations on the services that run models.
type Providers struct {
	Store store.Models
	Extra []store.Provider // from the environment
	// Open creates the client of a service; it sends nothing.
	Open func(store.Provider) (*openai.Client, error)
	Now  func() time.Time
}

// Mount registers the operations.
func (p *Providers) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListProviders, p.List)
	mux.Handle(m, api.AddProvider, p.Add)
	mux.Handle(m, api.RemoveProvider, p.Remove)
	mux.Handle(m, api.DisableProvider, p.Disable)
	mux.Handle(m, api.EnableProvider, p.Enable)
	mux.Handle(m, api.TestProvider, p.Test)
}

// EnvironmentProviders returns the providers that need no record: an OpenAI key in the
// daemon's environment is enough for a first try.
func EnvironmentProviders(env func(string) string) []store.Provider {
	key := env("OPENAI_API_KEY")
	if key == "" {
		return nil
	}
	return []store.Provider{{Name: "openai", Kind: "openai", BaseURL: env("OPENAI_BASE_URL"), Key: store.NewSecret(key), HasKey: true, Enabled: true}}
}

// List returns the providers, without their keys.
func (p *Providers) List(ctx context.Context, _ store.Caller, _ api.Empty) (api.List[store.Provider], error) {
	list, err := p.All(ctx)
	return api.Items(list), err
}

// All returns the stored providers and those of the environment.
func (p *Providers) All(ctx context.Context) ([]store.Provider, error) {
	list, err := p.Store.ListProviders(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing providers: %w", err)
	}
	for _, extra := range p.Extra {
		if !slices.ContainsFunc(list, func(o store.Provider) bool { return o.Name == extra.Name }) {
			list = append(list, extra)
		}
	}
	return list, nil
}

// Find returns a provider by its name.
func (p *Providers) Find(ctx context.Context, name string) (store.Provider, error) {
	list, err := p.All(ctx)
	if err != nil {
		return store.Provider{}, err
	}
	var names []string
	for _, known := range list {
		if known.Name == name {
			return known, nil
		}
		names = append(names, known.Name)
	}
	return store.Provider{}, store.Unknown("provider", name, names)
}

// CheckTarget returns an error for a text that cannot be a provider/model of this daemon.
func (p *Providers) CheckTarget(ctx context.Context, target string) error {
	provider, model, ok := strings.Cut(target, "/")
	if !ok || provider == "" || model == "" {
		return fmt.Errorf("%w model %q: write provider/model, such as openai/gpt-5-mini", store.ErrInvalid, target)
	}
	if provider == llm.Offline {
		return nil
	}
	if _, err := p.Find(ctx, provider); err != nil {
		return fmt.Errorf("%w; add it first: nizectl providers add %s < key.txt", err, provider)
	}
	return nil
}

// checkTime is the timeout for listing a service's models.
const checkTime = 20 * time.Second

// CheckOffered returns an error if a provider lists its models and the given one is
// missing. If they can't be listed, unchecked is the reason.
func (p *Providers) CheckOffered(ctx context.Context, target string) (unchecked string, err error) {
	if err := p.CheckTarget(ctx, target); err != nil {
		return "", err
	}
	name, model, _ := strings.Cut(target, "/")
	if name == llm.Offline {
		return "", nil
	}
	provider, err := p.Find(ctx, name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	listed, err := p.ListModelsOf(ctx, provider)
	switch {
	case err != nil:
		return whyNot(err, provider), nil
	case len(listed) == 0:
		return "it lists no models", nil
	case openai.Offers(provider.Kind, listed, model):
		return "", nil
	}
	near := ""
	if names := nearest(model, listed, 3); len(names) > 0 {
		near = "; did you mean " + strings.Join(names, ", ") + "?"
	}
	return "", fmt.Errorf("model %q of %s %w%s (nizectl models list --provider %s shows them; --force takes it anyway)", model, name, store.ErrNotFound, near, name)
}

// nearest returns the names most similar to the given one.
func nearest(name string, names []string, most int) (out []string) {
	for range most {
		near := store.Nearest(name, names)
		if near == "" {
			break
		}
		out = append(out, near)
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == near })
	}
	return out
}

// whyNot describes for an admin why a request to a service failed.
func whyNot(err error, provider store.Provider) string {
	var pe *llm.ProviderError
	if !errors.As(err, &pe) {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Sprintf("it did not answer within %v", checkTime)
		}
		return err.Error()
	}
	said := ""
	if pe.Status != 0 {
		said = fmt.Sprintf(" (HTTP %d)", pe.Status)
	}
	if pe.Message != "" {
		said += ": " + pe.Message
	}
	switch {
	case pe.Fault == llm.FaultAuth && provider.Key.IsZero():
		return "it wants a key" + said
	case pe.Fault == llm.FaultAuth:
		return "it did not accept the key" + said
	case pe.Status == 404:
		return "there is no list of models at its address" + said
	case pe.Fault == llm.FaultDown && pe.Status == 0:
		return "it cannot be reached" + said
	}
	return "it answered with an error" + said
}

// Add adds a provider, or replaces the key and address of an existing one.
func (p *Providers) Add(ctx context.Context, by store.Caller, req api.AddProviderRequest) (none api.AddedProvider, err error) {
	if err := store.CheckSlug(req.Name); err != nil {
		return none, err
	}
	if req.Name == llm.Offline {
		return none, fmt.Errorf("provider %s is built in: %w", llm.Offline, store.ErrExists)
	}
	added := store.Provider{Name: req.Name, Kind: req.Kind, BaseURL: req.BaseURL, Key: req.Key.Secret, HasKey: !req.Key.IsZero(), Enabled: true, Created: p.Now()}
	if added.Kind == "" {
		added.Kind = added.Name
		if _, ok := openai.Kinds[added.Kind]; !ok && added.BaseURL != "" {
			added.Kind = openai.KindOf(added.BaseURL)
		}
	}
	if err := p.check(added); err != nil {
		return none, err
	}
	var found *api.ProviderTest
	if req.Try {
		test, base := p.try(ctx, added)
		if !test.OK {
			return none, fmt.Errorf("%w provider %s, so nothing was stored: %s; correct it, or store it untried with --force", store.ErrInvalid, added.Name, test.Error)
		}
		added.BaseURL, found = base, &test
	}
	stored, err := p.put(ctx, by, added)
	return api.AddedProvider{Provider: stored, Found: found}, err
}

// try lists a service's models and returns the base URL that worked: addresses are often
// given without the trailing /v1.
func (p *Providers) try(ctx context.Context, provider store.Provider) (api.ProviderTest, string) {
	test, err := p.ask(ctx, provider)
	base := strings.TrimRight(provider.BaseURL, "/")
	var pe *llm.ProviderError
	if errors.As(err, &pe) && pe.Fault == llm.FaultRequest && provider.Kind == "openai-compatible" && !strings.HasSuffix(base, "/v1") {
		longer := provider
		longer.BaseURL = base + "/v1"
		if again, err := p.ask(ctx, longer); err == nil {
			return again, longer.BaseURL
		}
	}
	return test, provider.BaseURL
}

// check returns an error for a provider that could never work.
func (p *Providers) check(added store.Provider) error {
	needsKey, ok := openai.Kinds[added.Kind]
	if !ok {
		return fmt.Errorf("%w provider kind %q: use --kind with one of %s", store.ErrInvalid, added.Kind, strings.Join(slices.Sorted(maps.Keys(openai.Kinds)), ", "))
	}
	if needsKey && added.Key.IsZero() {
		return fmt.Errorf("%w provider %s: it needs a key: nizectl providers add %s < key.txt", store.ErrInvalid, added.Name, added.Name)
	}
	_, err := p.Open(added)
	return err
}

func (p *Providers) put(ctx context.Context, by store.Caller, provider store.Provider) (store.Provider, error) {
	if err := p.Store.PutProvider(ctx, by, provider); err != nil {
		return store.Provider{}, fmt.Errorf("storing provider %s: %w", provider.Name, err)
	}
	return provider, nil
}

// Remove removes a provider and its key.
func (p *Providers) Remove(ctx context.Context, by store.Caller, req api.ProviderRequest) (none api.Empty, err error) {
	if _, err := p.Find(ctx, req.Name); err != nil {
		return none, err
	}
	if err := p.Store.DeleteProvider(ctx, by, req.Name); errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("provider %s comes from the environment of nized: %w: unset its variable and start nized again", req.Name, store.ErrConflict)
	} else if err != nil {
		return none, fmt.Errorf("removing provider %s: %w", req.Name, err)
	}
	return none, nil
}

// Enable enables a provider.
func (p *Providers) Enable(ctx context.Context, by store.Caller, req api.ProviderRequest) (store.Provider, error) {
	return p.setEnabled(ctx, by, req.Name, true)
}

// Disable disables a provider.
func (p *Providers) Disable(ctx context.Context, by store.Caller, req api.ProviderRequest) (store.Provider, error) {
	return p.setEnabled(ctx, by, req.Name, false)
}

func (p *Providers) setEnabled(ctx context.Context, by store.Caller, name string, on bool) (store.Provider, error) {
	provider, err := p.Find(ctx, name)
	if err != nil {
		return store.Provider{}, err
	}
	provider.Enabled = on
	return p.put(ctx, by, provider)
}

// Test lists a service's models: the cheapest request that needs a valid key.
func (p *Providers) Test(ctx context.Context, _ store.Caller, req api.ProviderRequest) (none api.ProviderTest, err error) {
	provider, err := p.Find(ctx, req.Name)
	if err != nil {
		return none, err
	}
	out, err := p.ask(ctx, provider)
	if err != nil {
		out.Hint = "check the key and the address: nizectl providers add " + req.Name + " --base-url URL < key.txt"
	}
	return out, nil
}

// ask lists a service's models and returns the result of the test.
func (p *Providers) ask(ctx context.Context, provider store.Provider) (api.ProviderTest, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	began := p.Now()
	models, err := p.ListModelsOf(ctx, provider)
	out := api.ProviderTest{OK: err == nil, TookMS: float64(p.Now().Sub(began)) / float64(time.Millisecond), Models: models}
	if err != nil {
		out.Error = whyNot(err, provider)
	}
	return out, err
}

// ListModelsOf returns a service's models.
func (p *Providers) ListModelsOf(ctx context.Context, provider store.Provider) ([]string, error) {
	c, err := p.Open(provider)
	if err != nil {
		return nil, err
	}
	return c.ListModels(ctx)
}
