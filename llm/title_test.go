package llm_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

// titled is a memory that stores titles.
type titled struct{ *memory }

func (m titled) EditThread(_ context.Context, _ store.Caller, _ string, edit func(*store.Thread)) (store.Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	edit(&m.thread)
	return m.thread, nil
}

// fast is a model that writes titles; without a kind there is none.
type fast struct {
	*llmtest.Script
	kind string
}

func (f fast) Generate(ctx context.Context, _ string, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	return f.Script.Generate(ctx, req, delta)
}

func (f fast) Resolve(context.Context, string) ([]llm.Target, error) {
	if f.kind == "" {
		return nil, store.ErrNotFound
	}
	return []llm.Target{{Provider: store.Provider{Kind: f.kind}}}, nil
}

// A conversation gets a title after its first answer, and only then; without one it keeps
// its first words.
func TestTitles(t *testing.T) {
	tests := map[string]struct {
		kind    string
		steps   []llmtest.Step
		private bool
		named   bool
		want    string
	}{
		"written":        {kind: "openai", steps: []llmtest.Step{{Text: " **\u201eWetter\u201c in\u202e Oslo.**\nMore."}}, want: "\u201eWetter\u201c in Oslo"},
		"quoted":         {kind: "openai", steps: []llmtest.Step{{Text: "\u300c奥斯陆天气\u300d。"}}, want: "奥斯陆天气"},
		"long":           {kind: "openai", steps: []llmtest.Step{{Text: strings.Repeat("ä", 99)}}, want: strings.Repeat("ä", 59) + "…"},
		"a secret":       {kind: "openai", steps: []llmtest.Step{{Text: "Key sk-abcdefghijklmnopqrst"}}, want: "Key " + store.RedactText("sk-abcdefghijklmnopqrst")},
		"empty":          {kind: "openai", steps: []llmtest.Step{{Text: " \n"}}, want: "hi"},
		"no model":       {want: "hi"},
		"planner":        {kind: llm.Offline, want: "hi"},
		"fails":          {kind: "openai", steps: []llmtest.Step{{Err: errors.New("out of order")}}, want: "hi"},
		"named":          {kind: "openai", steps: []llmtest.Step{{Text: "Else"}}, named: true, want: "hi"},
		"private answer": {kind: "openai", private: true, want: "hi"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, llmtest.Step{Text: "Hello there."}, llmtest.Step{Text: "Hello again."})
			b.m.thread.Title, b.m.thread.Named = "hi", test.named
			model := fast{llmtest.New(t, test.steps...), test.kind}
			b.Titles = llm.NewTitles(titled{b.m}, model, slog.New(slog.DiscardHandler))
			b.say(ann, "hi")
			b.work()
			if test.private {
				b.m.turns[1].For = ann.User
			}
			err := b.Titles.WriteWaiting(t.Context())
			if (err != nil) != (name == "fails") || b.m.thread.Title != test.want {
				t.Errorf("%q, want %q; %v", b.m.thread.Title, test.want, err)
			}
			for _, req := range model.Requests() {
				if text := req.Turns[0].Text; !strings.Contains(text, "person: hi") || !strings.Contains(text, "assistant: Hello there.") || req.Bill.By.User != store.System.User {
					t.Errorf("asked with %+v", req)
				}
			}
			b.say(ann, "and?")
			b.work()
			if err := b.Titles.WriteWaiting(t.Context()); err != nil { // must not ask a model: the script has no more steps
				t.Error(err)
			}
		})
	}
}
