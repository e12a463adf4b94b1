package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// defaultModels has the model used for a kind of provider while no default model is set, so
// that a key is enough to start.
var defaultModels = map[string]string{"openai": "gpt-5-mini"}

// maxCool limits how long a busy service is avoided at its own request.
const maxCool = 5 * time.Minute

// Providers is the part of [store.Models] that the router reads.
type Providers interface {
	ListProviders(ctx context.Context) ([]store.Provider, error)
	ListModels(ctx context.Context) ([]store.ModelName, error)
}

// Target is a model of a provider.
type Target struct {
	Provider store.Provider
	Model    string // the provider's own name of it
	Window   int    // context window in tokens; 0 if unknown
}

// Name returns provider/model.
func (t Target) Name() string { return t.Provider.Name + "/" + t.Model }

// Router finds the models for a name and asks them in order. The zero value of the optional
// fields works.
type Router struct {
	Store Providers
	// Open creates the client of a provider; the composition root uses llm/openai and
	// llm/offline. The client is kept as long as the provider's record doesn't change.
	Open func(p store.Provider) (Model, error)
	// Extra are providers from other sources, such as an environment variable; one with the
	// same name in the store has priority.
	Extra []store.Provider
	// Meter books the calls; nil books nothing.
	Meter *Meter
	// Pictures reads pictures from messages; if nil, models get none.
	Pictures Pictures
	// Results returns a call for the pictures in its result; if nil, models get none of
	// them.
	Results func(ctx context.Context, call string) (store.Call, error)
	// TakesImages reports whether a model (provider/model) accepts pictures; nil means none
	// does.
	TakesImages func(model string) bool
	Now         func() time.Time // optional
	Log         *slog.Logger     // optional

	mu     sync.Mutex // guards the fields below
	opened map[string]openedModel
	cool   map[string]time.Time // target → when it may be asked again
}

type openedModel struct {
	provider store.Provider
	model    Model
}

var _ Models = (*Router)(nil)

func (r *Router) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

func (r *Router) log() *slog.Logger {
	if r.Log != nil {
		return r.Log
	}
	return slog.New(slog.DiscardHandler)
}

// Resolve returns the model of a logical name or provider/model, followed by its fallbacks;
// "" is the default, which is [OfflineModel] if nothing is configured. It returns only
// enabled providers that are completely configured. The error is a [*TargetError] wrapping
// [store.ErrNotFound] or [store.ErrInvalid].
func (r *Router) Resolve(ctx context.Context, name string) ([]Target, error) {
	providers, err := r.providers(ctx)
	if err != nil {
		return nil, err
	}
	names, err := r.Store.ListModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing models: %w", err)
	}
	wanted := candidates(name, names, providers)
	var targets []Target
	var first error
	for _, w := range wanted {
		t, err := findTarget(w, providers, names)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if !slices.ContainsFunc(targets, func(o Target) bool { return o.Name() == t.Name() }) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		return nil, first
	}
	return targets, nil
}

// providers lists the store's providers and then the extra ones.
func (r *Router) providers(ctx context.Context) ([]store.Provider, error) {
	list, err := r.Store.ListProviders(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing providers: %w", err)
	}
	for _, p := range append(slices.Clone(r.Extra), store.Provider{Name: Offline, Kind: Offline, Enabled: true}) {
		if !slices.ContainsFunc(list, func(o store.Provider) bool { return o.Name == p.Name }) {
			list = append(list, p)
		}
	}
	return list, nil
}

// candidates returns the targets to try for a name, as provider/model.
func candidates(name string, names []store.ModelName, providers []store.Provider) []string {
	for _, m := range names {
		if m.Name == name || (name == "" && m.Default) {
			return append([]string{m.Target}, m.Fallbacks...)
		}
	}
	if name != "" {
		return []string{name}
	}
	for _, p := range providers {
		if model := defaultModels[p.Kind]; model != "" && notReady(p) == (store.Text{}) {
			return []string{p.Name + "/" + model}
		}
	}
	return []string{OfflineModel}
}

// unknownModel returns the error for an unknown name.
func unknownModel(name string, names []store.ModelName) error {
	known := make([]string, len(names))
	for i, m := range names {
		known[i] = m.Name
	}
	why := store.Textf("there is no model of that name; see nizectl models list")
	if near := store.Nearest(name, known); near != "" {
		why = store.Textf("there is no model of that name; did you mean %s?", near)
	}
	return &TargetError{Name: name, Why: why, Err: store.ErrNotFound}
}

// MayAsk is a [MayAskFunc]: admins may use every model; others may use the logical names
// available to them, and never provider/model.
func (r *Router) MayAsk(ctx context.Context, by store.Caller, groups []string, name string) error {
	if by.IsAdmin() {
		return nil
	}
	all, err := r.Store.ListModels(ctx)
	if err != nil {
		return fmt.Errorf("listing models: %w", err)
	}
	theirs := slices.DeleteFunc(slices.Clone(all), func(m store.ModelName) bool { return !m.MayUse(by, groups) })
	wanted := func(m store.ModelName) bool { return m.Name == name || name == "" && m.Default }
	switch {
	case slices.ContainsFunc(theirs, wanted), name == "" && !slices.ContainsFunc(all, wanted):
		return nil
	case name == "":
		return &TargetError{Name: "of the default", Why: store.Textf("it is not meant for you; see nizectl models list for those that are"), Err: store.ErrNotFound}
	}
	return unknownModel(name, theirs)
}

// findTarget returns the target of provider/model.
func findTarget(name string, providers []store.Provider, names []store.ModelName) (Target, error) {
	head, model, ok := strings.Cut(name, "/")
	if !ok || model == "" {
		return Target{}, unknownModel(name, names)
	}
	for _, p := range providers {
		if p.Name != head {
			continue
		}
		if why := notReady(p); why != (store.Text{}) {
			return Target{}, &TargetError{Name: name, Why: why, Err: store.ErrInvalid, Behind: true}
		}
		t := Target{Provider: p, Model: model}
		t.Window = windowOf(t, names)
		return t, nil
	}
	return Target{}, &TargetError{Name: name, Why: store.Textf("there is no provider %s; see nizectl providers list", head), Err: store.ErrNotFound, Behind: true}
}

// notReady returns why a provider can't be used, or "".
func notReady(p store.Provider) store.Text {
	if !p.Enabled {
		return store.Textf("provider %s is disabled", p.Name)
	}
	switch p.Kind {
	case Offline, "ollama", "openai-compatible":
	default:
		if p.Key.IsZero() {
			return store.Textf("provider %s has no key", p.Name)
		}
	}
	return store.Text{}
}

// Generate asks the models of name in order. It tries the next one only after a
// [ProviderError.Temporary] error, or if a model's own budget is used up, and only while
// delta got no text. Services that asked for a pause are tried last until it is over.
func (r *Router) Generate(ctx context.Context, name string, req Request, delta func(Delta)) (Reply, error) {
	targets, err := r.Resolve(ctx, name)
	if err != nil {
		return Reply{}, err
	}
	targets = r.pausedLast(targets)
	for i, t := range targets {
		reply, shown, err := r.askTarget(ctx, t, req, delta)
		if err == nil {
			return reply, nil
		}
		var pe *ProviderError
		temporary := errors.As(err, &pe) && pe.Temporary()
		var full *store.BudgetError
		if errors.As(err, &full) && strings.HasPrefix(full.Subject, "model:") {
			temporary = true // another model has its own budget
		}
		if temporary && pe != nil && pe.RetryAfter > 0 {
			r.pauseModel(t, pe.RetryAfter)
		}
		if shown || !temporary || ctx.Err() != nil || i == len(targets)-1 {
			return reply, err
		}
		r.log().Warn("model failed, asking the fallback", "model", t.Name(), "fallback", targets[i+1].Name(), "error", err)
	}
	return Reply{}, err // unreachable: Resolve never returns an empty list
}

// askTarget asks one model. Even with an error, the reply names the model.
func (r *Router) askTarget(ctx context.Context, t Target, req Request, delta func(Delta)) (reply Reply, shown bool, err error) {
	model, err := r.openProvider(t.Provider)
	generate := func(req Request) error {
		req.Model = t.Model
		reply, err = r.Meter.Generate(ctx, t, model, req, func(d Delta) {
			shown = shown || d.Text != ""
			if delta != nil {
				delta(d)
			}
		})
		return err
	}
	if err == nil {
		r.fitTarget(t, &req)
		seen, pictures := r.addPictures(ctx, t, req)
		err = generate(seen)
		if pictures > 0 && !shown && isRequestFault(err) {
			// A picture that a service rejects must not end the conversation, because it
			// stays in its history.
			r.log().Warn("a model refused a request with pictures, asking without them", "model", t.Name(), "pictures", pictures, "error", err)
			err = generate(req)
		}
	}
	reply.Model, reply.Kind = t.Name(), t.Provider.Kind
	return reply, shown, err
}

// Window returns the context window of the model with a name in tokens: as set by an admin,
// otherwise the table's; 0 if unknown.
func (r *Router) Window(ctx context.Context, name string) int {
	targets, err := r.Resolve(ctx, name)
	if err != nil {
		return 0
	}
	return targets[0].Window
}

func windowOf(t Target, names []store.ModelName) int {
	for _, m := range names {
		if m.Target == t.Name() && m.Window > 0 {
			return m.Window
		}
	}
	if IsFree(t.Provider.Kind) {
		return 0 // it depends on how one's own server was started
	}
	return TableWindow(t.Model)
}

// fitTarget drops what doesn't fit into a model with a smaller window than the request was
// made for: a fallback, or the model of a program's round.
func (r *Router) fitTarget(t Target, req *Request) {
	budget := promptTokens(t.Window, req.MaxTokens)
	if t.Window == 0 || promptBytes(*req) <= bytesOf(budget) {
		return
	}
	newest := 0
	for _, t := range req.Turns {
		if t.Role == store.FromUser {
			newest = t.N
		}
	}
	req.Turns = slices.Clone(req.Turns)
	if compactHistory(req, newest, budget) {
		req.Context = strings.TrimLeft(strings.TrimSuffix(req.Context, droppedNote)+droppedNote, "\n") // a second fallback may cut the request again
		r.log().Info("a conversation was cut for a model with a small window", "model", t.Name(), "window", t.Window)
	}
}

// openProvider returns the client of a provider. It creates the client on first use and
// after a change of the record.
func (r *Router) openProvider(p store.Provider) (Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.opened[p.Name]; ok && sameProvider(o.provider, p) {
		return o.model, nil
	}
	m, err := r.Open(p)
	if err != nil {
		return nil, fmt.Errorf("opening provider %s: %w", p.Name, err)
	}
	if r.opened == nil {
		r.opened = make(map[string]openedModel)
	}
	r.opened[p.Name] = openedModel{p, m}
	return m, nil
}

// sameProvider compares two readings of a record: their keys are separate Secret values,
// which are never ==.
func sameProvider(a, b store.Provider) bool {
	if a.Key.Reveal() != b.Key.Reveal() {
		return false
	}
	a.Key, b.Key = store.Secret{}, store.Secret{}
	return a == b
}

// pauseModel records that a model asked for a pause.
func (r *Router) pauseModel(t Target, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cool == nil {
		r.cool = make(map[string]time.Time)
	}
	r.cool[t.Name()] = r.now().Add(min(d, maxCool))
}

// pausedLast moves the models that asked for a pause to the end.
func (r *Router) pausedLast(targets []Target) []Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	slices.SortStableFunc(targets, func(a, b Target) int {
		return boolInt(now.Before(r.cool[a.Name()])) - boolInt(now.Before(r.cool[b.Name()]))
	})
	return targets
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
