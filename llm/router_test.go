package llm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/llm"
	"nize/store"
)

// shelf is the part of a store that the router reads.
type shelf struct {
	providers []store.Provider
	models    []store.ModelName
}

// ListProviders returns new key values each time, as a database does.
func (s *shelf) ListProviders(context.Context) ([]store.Provider, error) {
	list := slices.Clone(s.providers)
	for i := range list {
		list[i].Key = store.NewSecret(list[i].Key.Reveal())
	}
	return list, nil
}

func (s *shelf) ListModels(context.Context) ([]store.ModelName, error) { return s.models, nil }

func newShelf() *shelf {
	key := store.NewSecret("k")
	return &shelf{
		providers: []store.Provider{
			{Name: "openai", Kind: "openai", Key: key, Enabled: true}, {Name: "groq", Kind: "groq", Key: key, Enabled: true},
			{Name: "off", Kind: "deepseek", Key: key}, {Name: "keyless", Kind: "deepseek", Enabled: true}, {Name: "ollama", Kind: "ollama", Enabled: true},
		},
		models: []store.ModelName{
			{Name: "fast", Target: "groq/a", Fallbacks: []string{"off/b", "openai/c", "groq/a", "ollama/d"}},
			{Name: "smart", Target: "openai/e/f"},
			{Name: "broken", Target: "off/x"},
		},
	}
}

func TestResolve(t *testing.T) {
	s := newShelf()
	r := &llm.Router{Store: s}
	check := func(name, want string) {
		t.Helper()
		targets, err := r.Resolve(t.Context(), name)
		var got []string
		for _, t := range targets {
			got = append(got, t.Name())
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, %v; want %s", name, got, err, want)
		}
	}
	check("fast", "groq/a openai/c ollama/d")
	check("smart", "openai/e/f")
	check("groq/any/thing", "groq/any/thing")
	check("offline/planner", "offline/planner")
	check("", "openai/gpt-5-mini") // a key alone is enough
	s.models[1].Default = true
	check("", "openai/e/f")
	s.models, s.providers = nil, s.providers[2:]
	check("", "offline/planner")
	r.Extra = []store.Provider{{Name: "openai", Kind: "openai", Key: store.NewSecret("env"), Enabled: true}}
	check("", "openai/gpt-5-mini")

	*s = *newShelf()
	for name, want := range map[string]string{
		"fsat": "did you mean fast?", "nothing-like-it": "nizectl models list", "nope/m": "there is no provider nope",
		"broken": "provider off is disabled", "keyless/m": "has no key", "groq/": "no model",
	} {
		_, err := r.Resolve(t.Context(), name)
		var te *llm.TargetError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), want) || !(errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid)) {
			t.Errorf("%q: got %v, want …%s", name, err, want)
		}
	}
}

func TestMayAsk(t *testing.T) {
	s := newShelf()
	s.models[1].Who = []string{"group:ops", "user:ada"}
	s.models[2].Who = []string{"admins"}
	r := &llm.Router{Store: s}
	member := store.Caller{User: "mia", Role: store.Member}
	for _, tt := range []struct {
		by     store.Caller
		groups []string
		name   string
		ok     bool
	}{
		{member, nil, "", true}, {member, nil, "fast", true}, {member, nil, "smart", false}, {member, nil, "broken", false},
		{member, nil, "groq/a", false}, {member, nil, "nope", false},
		{member, []string{"ops"}, "smart", true}, {member, []string{"admins"}, "broken", false},
		{store.Caller{User: "ada", Role: store.Member}, nil, "smart", true},
		{store.Caller{User: "root", Role: store.Admin}, nil, "broken", true}, {store.Caller{User: "root", Role: store.Admin}, nil, "groq/a", true},
	} {
		if err := r.MayAsk(t.Context(), tt.by, tt.groups, tt.name); (err == nil) != tt.ok || err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s in %v asks for %q: %v, want %v", tt.by.User, tt.groups, tt.name, err, tt.ok)
		}
	}
	if hidden, missing := r.MayAsk(t.Context(), member, nil, "smart").Error(), r.MayAsk(t.Context(), member, nil, "smxxx").Error(); hidden != strings.ReplaceAll(missing, "smxxx", "smart") {
		t.Errorf("a hidden name tells of itself: %q, a missing one %q", hidden, missing)
	}
	s.models[1].Default = true
	if err := r.MayAsk(t.Context(), member, nil, ""); err == nil {
		t.Error("a default that is meant for others was given")
	}
}

// answers is a Model that returns an error or its provider's name.
type answers struct {
	name  string
	err   error
	shown bool
	asked *[]string
}

func (a answers) Generate(_ context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	*a.asked = append(*a.asked, a.name+"/"+req.Model)
	if a.shown {
		delta(llm.Delta{Text: "some"})
	}
	return llm.Reply{Text: "from " + a.name}, a.err
}

func TestFallback(t *testing.T) {
	busy := &llm.ProviderError{Provider: "groq", Fault: llm.FaultBusy, RetryAfter: time.Minute}
	tests := []struct {
		name  string
		err   error
		shown bool
		want  string // the models asked
		reply string
	}{
		{"no error", nil, false, "groq/a", "groq/a"},
		{"429", busy, false, "groq/a openai/c", "openai/c"},
		{"500", &llm.ProviderError{Fault: llm.FaultDown}, false, "groq/a openai/c", "openai/c"},
		{"timeout", &llm.ProviderError{Fault: llm.FaultTimeout}, false, "groq/a openai/c", "openai/c"},
		{"after text was shown", busy, true, "groq/a", ""},
		{"bad request", &llm.ProviderError{Fault: llm.FaultRequest}, false, "groq/a", ""},
		{"cancelled", context.Canceled, false, "groq/a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			var opened int
			r := &llm.Router{Store: newShelf(), Open: func(p store.Provider) (llm.Model, error) {
				opened++
				a := answers{name: p.Name, asked: &asked}
				if p.Name == "groq" {
					a.err, a.shown = tt.err, tt.shown
				}
				return a, nil
			}}
			reply, err := r.Generate(t.Context(), "fast", llm.Request{}, nil)
			if got := strings.Join(asked, " "); got != tt.want {
				t.Errorf("asked %s, want %s", got, tt.want)
			}
			if tt.reply == "" {
				if !errors.Is(err, tt.err) || reply.Model != "groq/a" || reply.Kind != "groq" {
					t.Errorf("got %+v, %v", reply, err)
				}
			} else if err != nil || reply.Model != tt.reply {
				t.Errorf("got %+v, %v", reply, err)
			}
		})
	}
}

// A service that asked for a pause is tried last until it is over; clients are kept until
// their record changes.
func TestPause(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var asked []string
	opened := map[string]int{}
	s := newShelf()
	fault := error(&llm.ProviderError{Fault: llm.FaultBusy, RetryAfter: time.Minute})
	r := &llm.Router{Store: s, Now: func() time.Time { return now }, Open: func(p store.Provider) (llm.Model, error) {
		opened[p.Name]++
		a := answers{name: p.Name, asked: &asked}
		if p.Name == "groq" {
			a.err = fault
		}
		return a, nil
	}}
	ask := func(want string) {
		t.Helper()
		asked = nil
		if _, err := r.Generate(t.Context(), "fast", llm.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	ask("groq/a openai/c")
	ask("openai/c")
	now = now.Add(2 * time.Minute)
	ask("groq/a openai/c")
	s.providers[1].BaseURL = "http://other/v1"
	ask("openai/c")
	now = now.Add(2 * time.Minute)
	ask("groq/a openai/c")
	if opened["groq"] != 2 || opened["openai"] != 1 {
		t.Errorf("opened %v", opened)
	}
}

func TestPrice(t *testing.T) {
	u := llm.Usage{Prompt: 1_000_000, Cached: 400_000, Completion: 100_000}
	tests := []struct {
		kind, model string
		u           llm.Usage
		want        int64
		known       bool
	}{
		{"openai", "gpt-5-mini", u, 150_000 + 10_000 + 200_000, true},
		{"openai", "gpt-5-mini-2025-08-07", u, 360_000, true},
		{"openai", "gpt-unknown", u, 0, false},
		{"openai-compatible", "gpt-5-mini", u, 0, false},
		{"azure", "gpt-5-mini", u, 360_000, true},
		{"openai", "gpt-4o-2024-05-13", llm.Usage{Prompt: 1_000_000}, 5_000_000, true}, // a release with its own price
		{"openai", "gpt-5.4", llm.Usage{Prompt: 272_000, Completion: 1000}, 680_000 + 15_000, true},
		{"openai", "gpt-5.4", llm.Usage{Prompt: 272_001, Completion: 1000}, 1_360_005 + 22_500, true}, // a long prompt, whole
		{"anthropic", "claude-sonnet-4-5-20250929", u, 3_600_000 + 240_000 + 2_250_000, true},
		{"anthropic", "claude-haiku-4-5", llm.Usage{Prompt: 1_000_000, Cached: 400_000, Completion: 100_000}, 600_000 + 40_000 + 500_000, true},
		{"gemini", "gemini-2.5-pro", llm.Usage{Prompt: 100_000, Completion: 1000}, 125_000 + 10_000, true},
		{"mistral", "mistral-large-latest", u, 0, false},
		{"xai", "grok-4.7", llm.Usage{Prompt: 1000, Completion: 1000}, 2000 + 6000, true},
		{"groq", "openai/gpt-oss-20b", llm.Usage{Prompt: 100, Cached: 200}, 4, true}, // more cached tokens than sent give no refund
	}
	for _, tt := range tests {
		price, known := llm.TablePrice(tt.kind, tt.model)
		if got := price.Cost(tt.u); got != tt.want || known != tt.known {
			t.Errorf("%s/%s: got %d, %v; want %d, %v", tt.kind, tt.model, got, known, tt.want, tt.known)
		}
	}
}

// The built-in table is complete: every price is above 0, except for outputs of embeddings,
// and a cached token is never dearer than a fresh one.
func TestPriceTable(t *testing.T) {
	for _, kind := range []string{"openai", "anthropic", "gemini", "mistral", "xai"} {
		if len(llm.PricesAsOf(kind)) != len("2026-06") || !llm.PricesOf(kind) {
			t.Errorf("%s as of %q", kind, llm.PricesAsOf(kind))
		}
	}
	for kind, models := range llm.PriceTable() {
		for model, p := range models {
			if !(p.In > 0 && p.Cached > 0 && p.Cached <= p.In) || p.Out <= 0 && !strings.Contains(model, "embedding") {
				t.Errorf("%s/%s: %+v", kind, model, p)
			}
			if a := p.Above; a != nil && !(a.Tokens > 0 && a.In >= p.In && a.Out >= p.Out && a.Cached >= p.Cached) {
				t.Errorf("%s/%s above %+v", kind, model, a)
			}
			if got, ok := llm.TablePrice(kind, strings.ToUpper(model)); !ok || got != p {
				t.Errorf("%s/%s is not found", kind, model)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for _, s := range []string{"", "one", "two words", "  lead", "tail \n\n", "a\u00a0b\u0085", "\u00a0", "ä ö"} {
		var got string
		for w := range llm.SplitWords(s) {
			if w == "" {
				t.Fatalf("an empty word in %q", s)
			}
			got += w
		}
		if got != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
}
