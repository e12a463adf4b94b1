package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

// books records what a meter does.
type books struct {
	held    map[string]store.Reservation
	spends  []store.Spend
	refuse  map[string]error // keyed by provider/model
	crossed []store.BudgetState
}

func (b *books) Reserve(_ context.Context, _ store.Caller, r store.Reservation) error {
	if err := b.refuse[r.Spend.ModelName()]; err != nil {
		return err
	}
	b.held[r.Spend.ID] = r
	return nil
}

func (b *books) Release(_ context.Context, id string) error {
	delete(b.held, id)
	return nil
}

func (b *books) SettleSpend(_ context.Context, _ store.Caller, s store.Spend) ([]store.BudgetState, error) {
	delete(b.held, s.ID)
	b.spends = append(b.spends, s)
	return b.crossed, nil
}

// priced are prices set by an admin.
type priced map[string]store.Price

func (p priced) GetPrice(_ context.Context, model string) (store.Price, error) {
	if v, ok := p[model]; ok {
		return v, nil
	}
	return store.Price{}, store.ErrNotFound
}

// says is a model with one answer.
type says struct {
	reply llm.Reply
	shown string
	err   error
	held  func()
}

func (s says) Generate(_ context.Context, _ llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	if s.held != nil {
		s.held()
	}
	if s.shown != "" {
		delta(llm.Delta{Text: s.shown})
	}
	return s.reply, s.err
}

func TestMeter(t *testing.T) {
	usage := llm.Usage{Prompt: 1000, Completion: 100}
	down := &llm.ProviderError{Fault: llm.FaultDown}
	for _, tt := range []struct {
		name, kind, model string
		says              says
		maxTokens         int
		held              int64 // tokens that were reserved above the prompt, -1 for no reservation
		want              store.Spend
		spends            int
	}{
		{"a known price", "openai", "gpt-5-mini", says{reply: llm.Reply{Text: "a", Usage: usage}}, 0, 8192, store.Spend{Prompt: 1000, Completion: 100, MicroUSD: 450, Priced: true}, 1},
		{"an admin's price", "openai", "mine", says{reply: llm.Reply{Text: "a", Usage: usage}}, 50, 50, store.Spend{Prompt: 1000, Completion: 100, MicroUSD: 2000, Priced: true}, 1},
		{"no price", "openai", "other", says{reply: llm.Reply{Text: "a", Usage: usage}}, 0, 8192, store.Spend{Prompt: 1000, Completion: 100}, 1},
		{"the provider's own", "openrouter", "x/y", says{reply: llm.Reply{Text: "a", Usage: llm.Usage{Prompt: 5, MicroUSD: 7, Priced: true}}}, 0, 8192, store.Spend{Prompt: 5, MicroUSD: 7, Priced: true}, 1},
		{"one's own machine", "ollama", "llama", says{reply: llm.Reply{Text: "a", Usage: usage}}, 0, 8192, store.Spend{Prompt: 1000, Completion: 100, Priced: true}, 1},
		{"offline", "offline", "planner", says{reply: llm.Reply{Text: "a"}}, 0, -1, store.Spend{Priced: true}, 1},
		{"no numbers", "openai", "gpt-5-mini", says{reply: llm.Reply{Text: strings.Repeat("a", 36)}}, 0, 8192, store.Spend{Prompt: 1, Completion: 11, MicroUSD: 22, Priced: true, Estimated: true}, 1},
		{"broken off", "openai", "gpt-5-mini", says{shown: strings.Repeat("a", 36), err: down}, 0, 8192, store.Spend{Prompt: 1, Completion: 11, MicroUSD: 22, Priced: true, Estimated: true}, 1},
		{"nothing came", "openai", "gpt-5-mini", says{err: down}, 0, 8192, store.Spend{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &books{held: map[string]store.Reservation{}}
			now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
			prices := priced{"p/mine": {In: 1, Cached: 1, Out: 10}}
			m := &llm.Meter{Ledger: b, Prices: prices, Config: store.Defaults{"budgets.admins": "false"}, Now: func() time.Time { return now }}
			tt.says.held = func() {
				clear(prices) // a call costs what the price was when it began
				if got := len(b.held) == 0; got != (tt.held < 0) {
					t.Errorf("nothing is reserved: %v", got)
				}
				for _, r := range b.held {
					if r.Tokens != 2*r.Spend.Prompt+tt.held || r.UserDaily != 200_000 || !r.Exempt || r.Spend.Completion != 0 || !r.Spend.Estimated {
						t.Errorf("reserved %+v", r)
					}
				}
			}
			req := llm.Request{System: "hi", MaxTokens: tt.maxTokens, Bill: &llm.Bill{By: store.Caller{User: "u", Role: store.Admin}, Team: "local", Thread: "T", Agent: "a"}}
			reply, err := m.Generate(t.Context(), llm.Target{Provider: store.Provider{Name: "p", Kind: tt.kind}, Model: tt.model}, tt.says, req, nil)
			if !errors.Is(err, tt.says.err) || reply.Model != "p/"+tt.model || reply.Kind != tt.kind {
				t.Errorf("%+v, %v", reply, err)
			}
			if len(b.held) != 0 || len(b.spends) != tt.spends {
				t.Fatalf("held %v, spends %+v", b.held, b.spends)
			}
			if tt.spends == 0 {
				return
			}
			got := b.spends[0]
			if got.ID == "" || got.User != "u" || got.Team != "local" || got.Thread != "T" || got.Agent != "a" || got.Provider != "p" || got.Model != tt.model {
				t.Errorf("booked to %+v", got)
			}
			got = store.Spend{Prompt: got.Prompt, Completion: got.Completion, MicroUSD: got.MicroUSD, Priced: got.Priced, Estimated: got.Estimated}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A model whose own budget is used up is skipped; a person's budget refuses.
func TestFallbackOverBudget(t *testing.T) {
	state := store.BudgetState{Budget: store.Budget{Subject: "model:groq/a", Period: store.Daily, Unit: store.InTokens, Limit: 10}, Used: 10}
	for subject, want := range map[string]string{"model:groq/a": "openai/c", "user:*": "groq/a openai/c"} {
		state.Subject = subject
		full := &store.BudgetError{BudgetState: state}
		b := &books{held: map[string]store.Reservation{}, refuse: map[string]error{"groq/a": full}}
		if subject == "user:*" {
			b.refuse["openai/c"] = full
		}
		var asked []string
		r := &llm.Router{Store: newShelf(), Meter: &llm.Meter{Ledger: b, Config: store.Defaults{}}, Open: func(p store.Provider) (llm.Model, error) {
			return answers{name: p.Name, asked: &asked}, nil
		}}
		_, err := r.Generate(t.Context(), "fast", llm.Request{Bill: &llm.Bill{By: store.Caller{User: "u"}}}, nil)
		if subject == "user:*" {
			var e *store.BudgetError
			if !errors.As(err, &e) || len(asked) != 0 {
				t.Errorf("a person's budget: asked %v, %v", asked, err)
			}
			continue
		}
		if got := strings.Join(asked, " "); err != nil || got != want {
			t.Errorf("%s: asked %q, %v; want %q", subject, got, err, want)
		}
	}
}

// TestBudgetWords checks what a person reads, in their own time zone.
func TestBudgetWords(t *testing.T) {
	b := newBench(t, llmtest.Step{Text: "Hello there."})
	state := store.BudgetState{
		Budget: store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: 200_000}, Used: 200_312,
		Resets: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
	}
	held, unpriced, team := state, state, state
	held.Used, held.Reserved = 195_000, 9000
	unpriced.Unit, unpriced.Limit = store.InUSD, 5_000_000
	team.Subject, team.Period = "team:local", store.Monthly
	model := state
	model.Subject = "model:acme/m"
	for want, err := range map[string]*store.BudgetError{
		"Your daily budget of 200,000 tokens is used up. It resets on Sunday, 22 November, 01:00 (Europe/Berlin). An admin can raise it.":                                                                                 {BudgetState: state},
		"Your daily budget of 200,000 tokens is nearly used up, and answers that are being written now may need the rest. Please try again when they are there. It resets on Sunday, 22 November, 01:00 (Europe/Berlin).": {BudgetState: held},
		"Your daily budget of $5.00 is in money, and nize was not told what the model costs. An admin can tell it.":                                                                                                       {BudgetState: unpriced, Unpriced: "p/m"},
		"The daily budget of the model (200,000 tokens) is used up. It resets on Sunday, 22 November, 01:00 (Europe/Berlin). An admin can raise it.":                                                                      {BudgetState: model},
		"The monthly budget of team local (200,000 tokens) is used up. It resets on Sunday, 22 November, 01:00 (Europe/Berlin). An admin can raise it.":                                                                   {BudgetState: team},
	} {
		b.m.budget = err
		b.say(ann, want)
		b.work()
		if last := b.told[len(b.told)-1]; last.Kind != "error" || last.Text != want {
			t.Errorf("got %q\nwant %q", last.Text, want)
		}
		if b.m.thread.Open {
			t.Error("the thread stays open")
		}
	}
	b.m.budget = nil
	state.Used = 160_001
	b.m.crossed = []store.BudgetState{state}
	b.say(ann, "hello")
	b.work()
	var notices []string
	for _, p := range b.told {
		if p.Kind == "notice" {
			notices = append(notices, p.Text)
		}
	}
	if len(notices) != 1 || notices[0] != "Your daily budget of 200,000 tokens is used to 80 %: 160,001 tokens. It resets on Sunday, 22 November, 01:00 (Europe/Berlin)." {
		t.Errorf("notices %q", notices)
	}
}
