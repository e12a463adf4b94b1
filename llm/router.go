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

// defaultModels is used for a provider of that kind as long as no model was
// made the default, so that a key alone is enough to begin with.
var defaultModels = map[string]string{"openai": "gpt-5-mini"}

// maxCool bounds how long a busy service is passed over because it asked for it.
const maxCool = 5 * time.Minute

// Providers is the part of [store.Models] that the router reads.
type Providers interface {
	ListProviders(ctx context.Context) ([]store.Provider, error)
	ListModels(ctx context.Context) ([]store.ModelName, error)
}

// Target is one model of one provider.
type Target struct {
	Provider store.Provider
	Model    string // the provider's own name of it
	Window   int    // how many tokens it takes; 0 is unknown
}

// Name is provider/model.
func (t Target) Name() string { return t.Provider.Name + "/" + t.Model }

// Router finds the models behind a name and asks them in order. The
// zero value of the optional fields works.
type Router struct {
	Store Providers
	// Open makes the client of a provider; the roof binds llm/openai and
	// llm/offline here. What it returns is kept as long as the provider's
	// record stays the same.
	Open func(p store.Provider) (Model, error)
	// Extra are providers from elsewhere, such as an environment variable; one
	// of the same name in the store goes before them.
	Extra []store.Provider
	// Meter books what is asked; nil books nothing.
	Meter *Meter
	// Pictures are what came with messages; nil shows none to any model.
	Pictures Pictures
	// Results returns a call for the pictures in its result; nil shows none of them.
	Results func(ctx context.Context, call string) (store.Call, error)
	// TakesImages says of a model (provider/model) whether it takes pictures; nil is no.
	TakesImages func(model string) bool
	Now         func() time.Time // optional
	Log         *slog.Logger     // optional

	mu     sync.Mutex // guards what follows
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

// Resolve returns the model behind a logical name or provider/model and then
// its fallbacks; "" is the default, which is [OfflineModel] where nothing is
// configured. Only enabled providers with what they need are returned. The
// error is a [*TargetError] wrapping [store.ErrNotFound] or [store.ErrInvalid].
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

// providers lists the store's and then the extra ones.
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

// candidates are the targets to try for a name, as provider/model.
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

// unknownModel is the error for a name that is none of those.
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

// MayAsk is a [MayAskFunc]: admins may ask for every model, all others for the
// logical names that are meant for them, and never for provider/model.
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

// findTarget finds the provider of provider/model.
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

// notReady says why a provider can't be asked, or "".
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

// Generate asks the models behind name in order. The next one is asked only
// after an error that is [ProviderError.Temporary], or where a model's own
// budget is used up, and only as long as no text was given to delta. Services that asked for a pause are tried last
// until it is over.
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
			temporary = true // another model has a budget of its own
		}
		if temporary && pe != nil && pe.RetryAfter > 0 {
			r.pauseModel(t, pe.RetryAfter)
		}
		if shown || !temporary || ctx.Err() != nil || i == len(targets)-1 {
			return reply, err
		}
		r.log().Warn("model failed, asking the fallback", "model", t.Name(), "fallback", targets[i+1].Name(), "error", err)
	}
	return Reply{}, err // not reached: Resolve never returns an empty list
}

// askTarget asks one model. Even with an error, the reply says who was asked.
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
			// One picture that a service does not take must not end the whole
			// conversation, of which it stays a part.
			r.log().Warn("a model refused a request with pictures, asking without them", "model", t.Name(), "pictures", pictures, "error", err)
			err = generate(req)
		}
	}
	reply.Model, reply.Kind = t.Name(), t.Provider.Kind
	return reply, shown, err
}

// Window is how many tokens the model behind a name takes: what an admin set for
// it, else what the table says; 0 is unknown.
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
		return 0 // it is what one's own server was started with
	}
	return TableWindow(t.Model)
}

// fitTarget leaves out what has no room in a model with a smaller window than the
// request was made for: a fallback, or the model of a program's round.
func (r *Router) fitTarget(t Target, req *Request) {
	window := t.Window
	if window == 0 || requestTokens(*req) <= int64(promptTokens(window, req.MaxTokens)) {
		return
	}
	newest := 0
	for _, t := range req.Turns {
		if t.Role == store.FromUser {
			newest = t.N
		}
	}
	req.Turns = slices.Clone(req.Turns)
	if compactHistory(req, newest, promptTokens(window, req.MaxTokens)) {
		req.Context = strings.TrimLeft(strings.TrimSuffix(req.Context, droppedNote)+droppedNote, "\n") // a fallback may be cut again
		r.log().Info("a conversation was cut for a model with a small window", "model", t.Name(), "window", window)
	}
}

// openProvider returns the client of a provider and makes it on first use and after a
// change of the record.
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

// sameProvider compares two readings of a record: each has the key as a Secret of
// its own, which are not ==.
func sameProvider(a, b store.Provider) bool {
	if a.Key.Reveal() != b.Key.Reveal() {
		return false
	}
	a.Key, b.Key = store.Secret{}, store.Secret{}
	return a == b
}

// pauseModel notes that a model wants to be left alone for a while.
func (r *Router) pauseModel(t Target, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cool == nil {
		r.cool = make(map[string]time.Time)
	}
	r.cool[t.Name()] = r.now().Add(min(d, maxCool))
}

// pausedLast moves those that want to be left alone to the end.
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
