package llm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
	"nize/store/database/databasetest"
)

// scribe is a model with a small window: it looks something up for each message, answers,
// and summarizes; it rejects prompts that are too long.
type scribe struct {
	window int

	mu      sync.Mutex // guards what follows
	asked   []llm.Request
	summed  []string // what it was asked to summarize
	tooLong int
}

func (m *scribe) Generate(_ context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(llm.EstimateUsage(req, llm.Reply{}).Prompt) > m.window {
		m.tooLong++
		return llm.Reply{}, &llm.ProviderError{Provider: "fake", Fault: llm.FaultTooLong}
	}
	last := req.Turns[len(req.Turns)-1]
	if strings.HasPrefix(req.System, "You sum up") {
		m.summed = append(m.summed, last.Text)
		text := fmt.Sprintf("SUMMARY %d.", len(m.summed))
		if strings.Contains(last.Text, "4711") {
			text += " The code is 4711."
		}
		return llm.Reply{Text: text, Finish: "stop"}, nil
	}
	m.asked = append(m.asked, req)
	if last.Role == store.FromUser {
		return llm.Reply{Calls: []store.ToolCall{llmtest.Call("discover_tools", map[string]string{"query": "more"}), llmtest.Call("discover_tools", map[string]string{"query": "again"})}, Finish: "tool_calls"}, nil
	}
	return llm.Reply{Text: "Answer " + strings.Repeat("a", 400), Finish: "stop"}, nil
}

func (m *scribe) newest() llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

// resultsFit returns an error unless each call of a request has exactly one result,
// directly after its step.
func resultsFit(turns []store.Turn) error {
	open, seen := map[string]bool{}, map[string]bool{}
	for i, t := range turns {
		if t.Role == store.FromTool {
			if !open[t.CallID] {
				return fmt.Errorf("%d: a result of %s, which is not called right before it", i, t.CallID)
			}
			delete(open, t.CallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("%d: %d calls have no result", i, len(open))
		}
		for _, c := range t.Calls {
			if seen[c.ID] {
				return fmt.Errorf("%d: call %s is there twice", i, c.ID)
			}
			open[c.ID], seen[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls at the end have no result", len(open))
	}
	return nil
}

// A conversation that exceeds its model's window continues: old results are shortened
// first, then turns are summarized once, which survives a restart; the stored turns stay
// complete.
func TestSummary(t *testing.T) {
	for _, known := range []bool{true, false} { // whether the window is known, or the service has to reject the prompt
		t.Run(fmt.Sprint(known), func(t *testing.T) {
			ctx := t.Context()
			db := databasetest.Open(t)
			user, err := db.EnsureUser(ctx, "local:1000", "Ann", store.Member)
			if err != nil {
				t.Fatal(err)
			}
			by := store.Caller{User: user.ID, Name: user.Name, Role: user.Role, Surface: store.OnTerminal}
			model := &scribe{window: 8192}
			name := store.ModelName{Name: "smart", Target: "ollama/m", Default: true}
			if known {
				name.Window = 8192
			}
			if err := db.PutProvider(ctx, by, store.Provider{Name: "ollama", Kind: "ollama", Enabled: true}); err != nil {
				t.Fatal(err)
			}
			if err := db.PutModel(ctx, by, name); err != nil {
				t.Fatal(err)
			}
			thread := store.Thread{ID: store.NewID(time.Now()), User: by.User, Created: time.Now()}
			if err := db.PutThread(ctx, by, thread); err != nil {
				t.Fatal(err)
			}
			g := &gateway{m: newMemory(), meta: func(store.ToolCall) (*store.Result, error) { return textResult(strings.Repeat("result ", 120)), nil }}
			agent := func() *llm.Agent {
				router := &llm.Router{Store: db, Open: func(store.Provider) (llm.Model, error) { return model, nil }, Meter: &llm.Meter{Ledger: db, Config: store.Defaults{"budgets.user.daily": "0"}}}
				return llm.New(llm.Deps{Threads: db, Calls: db, Agents: db, Config: store.Defaults{}, Tools: g, Models: router, Window: router.Window})
			}
			a := agent()
			say := func(n int, text string) {
				t.Helper()
				if _, err := a.Say(ctx, by, store.Inbound{Key: fmt.Sprint(n), Thread: thread.ID, By: by, Text: text}); err != nil {
					t.Fatal(err)
				}
				if err := a.Work(ctx, thread.ID, nil); err != nil {
					t.Fatal(err)
				}
				if err := resultsFit(model.newest().Turns); err != nil {
					t.Fatal(err)
				}
			}
			const messages = 24
			for i := range messages {
				text := fmt.Sprintf("message %d %s", i, strings.Repeat("m", 300))
				if i == 1 {
					text += " the code is 4711"
				}
				say(i, text)
				if i == messages-5 {
					a = agent() // as after a restart
				}
			}
			turns, err := db.Turns(ctx, thread.ID)
			if err != nil {
				t.Fatal(err)
			}
			roles := map[store.TurnRole]int{}
			for _, turn := range turns {
				roles[turn.Role]++
			}
			sums := roles[store.FromSummary]
			if roles[store.FromUser] != messages || roles[store.FromModel] != 2*messages || roles[store.FromTool] != 2*messages || sums == 0 || sums > messages/4 || roles[store.FromNize] != 0 {
				t.Errorf("stored %v", roles)
			}
			if len(model.summed) < sums {
				t.Errorf("summed up %d times, %d summaries are stored", len(model.summed), sums)
			}
			if known == (model.tooLong > 0) {
				t.Errorf("the service refused %d prompts", model.tooLong)
			}
			prompt := model.newest().Turns
			if !strings.Contains(prompt[0].Text, fmt.Sprintf("SUMMARY %d. The code is 4711.", len(model.summed))) || prompt[0].Role != store.FromNize {
				t.Errorf("the prompt begins with %q", prompt[0].Text)
			}
			if slices.ContainsFunc(prompt, func(turn store.Turn) bool { return strings.HasPrefix(turn.Text, "message 2 ") }) {
				t.Error("what is summed up is in the prompt, too")
			}
		})
	}
}

// A long conversation is passed to a fallback with a small window.
func TestFallbackWithSmallWindow(t *testing.T) {
	s := newShelf()
	s.models = []store.ModelName{{Name: "smart", Target: "groq/big", Window: 1_000_000, Fallbacks: []string{"ollama/small"}}, {Name: "small", Target: "ollama/small", Window: 8192}}
	small := &scribe{window: 8192}
	r := &llm.Router{Store: s, Open: func(p store.Provider) (llm.Model, error) {
		if p.Name == "groq" {
			return llmtest.New(t, llmtest.Step{Err: &llm.ProviderError{Fault: llm.FaultDown}}), nil
		}
		return small, nil
	}}
	var turns []store.Turn
	for i := range 200 {
		turns = append(turns, store.Turn{N: 2 * i, Role: store.FromUser, Text: strings.Repeat("q", 400)}, store.Turn{N: 2*i + 1, Role: store.FromModel, Text: "a"})
	}
	turns = append(turns, store.Turn{N: 400, Role: store.FromUser, Text: "now"})
	if _, err := r.Generate(t.Context(), "smart", llm.Request{Turns: turns}, nil); err != nil {
		t.Fatal(err)
	}
	got := small.newest()
	if n := len(got.Turns); n < 10 || n > 200 || len(turns) != 401 || got.Context != "Earlier parts of this conversation were left out because it is long." {
		t.Errorf("%d of %d turns went to the small model, told %q", n, len(turns), got.Context)
	}
}

func TestTableWindow(t *testing.T) {
	for name, want := range map[string]int{
		"gpt-5-mini-2025-08-07": 400_000, "gpt-4": 8192, "gpt-4-0613": 8192, "gpt-4o-mini": 128_000, "openai/gpt-5-chat:free": 128_000, "gpt-4.5-preview": 0, "gpt-40": 0,
		"claude-sonnet-4-5": 200_000, "o1-mini": 128_000, "models/gemini-2.5-flash": 1_000_000, "": 0, "meta-llama/llama-4-scout": 131072,
	} {
		if got := llm.TableWindow(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
