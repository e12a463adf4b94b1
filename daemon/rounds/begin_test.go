package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/project"
)

type noConfig struct{ store.Config }

func (noConfig) Get(_, key string) string {
	return map[string]string{"agent.tools.maxSteps": "10", "limits.project.rounds": "2", "limits.rounds": "3"}[key]
}

// testEngine has the tool list_items on the servers alpha and beta.
func testEngine() *Engine {
	return New(Options{Config: noConfig{}, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		FindTool: func(_ context.Context, _ store.Caller, id string) (store.Tool, error) {
			server, name, ok := strings.Cut(id, ":")
			if !ok || server != "alpha" && server != "beta" {
				return store.Tool{}, store.Unknown("tool", id, nil)
			}
			return store.Tool{Server: server, Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil
		},
		CheckModel: func(context.Context, string) error { return nil }})
}

// Of colliding names the first keeps its own; a name that providers would refuse
// is written as they take it.
func TestNames(t *testing.T) {
	var req Request
	body := `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[
		{"type":"function","function":{"name":"look"}},{"type":"callable","callable_id":"alpha:list_items"},
		{"type":"callable","callable_id":"beta:list_items"},{"type":"callable","callable_id":"alpha:look"},
		{"type":"callable","callable_id":"alpha:get.it/now"},{"type":"callable","callable_id":"alpha:` + strings.Repeat("n", 70) + `"}]}`
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	s, _, err := testEngine().begin(t.Context(), project.Project{ID: "p"}, req)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range s.Tools {
		names = append(names, o.Function.Name)
	}
	want := "look list_items beta__list_items alpha__look get_it_now " + strings.Repeat("n", 55) + "_"
	if got := strings.Join(names, " "); !strings.HasPrefix(got, want) || len(names[5]) != 64 {
		t.Errorf("the model is told %s, want %s…", got, want)
	}
}

// What does not fit is named, whatever comes, and what passes can be given to a
// model: each call has its result right behind it.
func FuzzBegin(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"a","content":"2"}]}`,
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url"}]}]}`,
		`{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"callable","callable_id":"alpha:b"},{"type":"callable","callable_id":"alpha:b"}]}`,
		`{"model":"m","max_steps":-1,"temperature":9}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var req Request
		if json.Unmarshal(body, &req) != nil {
			return
		}
		s, turns, err := testEngine().begin(t.Context(), project.Project{ID: "p"}, req)
		if err != nil {
			var e *api.Error
			if !errors.As(err, &e) || e.Status() < 400 || e.Status() > 499 || e.Param == "" {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		open, seen, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, turn := range turns {
			if len(open) > 0 && turn.Role != store.FromTool {
				t.Fatalf("%s: a call has no result", body)
			}
			delete(open, turn.CallID)
			for _, c := range turn.Calls {
				if seen[c.ID] {
					t.Fatalf("%s: two calls have the id %s", body, c.ID)
				}
				open[c.ID], seen[c.ID] = true, true
			}
		}
		for _, o := range s.Tools {
			if names[o.Function.Name] || !functionName.MatchString(o.Function.Name) {
				t.Fatalf("%s: the name %q", body, o.Function.Name)
			}
			names[o.Function.Name] = true
		}
		if len(open) > 0 || s.MaxSteps < 1 || s.MaxSteps > 10 {
			t.Fatalf("%s: %d calls without a result, %d steps", body, len(open), s.MaxSteps)
		}
	})
}

// A project has no more rounds at once than it may, and all together no more than
// nized does; one that ends makes room.
func TestAdmit(t *testing.T) {
	e := testEngine()
	var leave []func()
	for i, step := range []struct {
		project, why string
	}{{"a", ""}, {"a", ""}, {"a", "the project has 2 rounds"}, {"b", ""}, {"b", "nize has 3 rounds"}, {"", ""}, {"b", ""}} {
		if step.project == "" {
			leave[0]()
			continue
		}
		out, err := e.admit(project.Project{ID: step.project})
		var refused *api.Error
		switch {
		case step.why == "" && err == nil:
			leave = append(leave, out)
		case !errors.As(err, &refused) || !strings.HasPrefix(refused.Message, step.why) || refused.Status() != 429 || refused.Code != "rate_limited" || refused.Retry < 1:
			t.Errorf("%d: %+v, want %q", i, err, step.why)
		}
	}
	for _, out := range leave[1:] {
		out()
	}
	if e.all != 0 || len(e.atWork) != 0 {
		t.Errorf("%d and %v are left", e.all, e.atWork)
	}
}
