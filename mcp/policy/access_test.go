package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"nize/store"
)

// BenchmarkUsable is what a search pays for each tool that it looks at.
func BenchmarkUsable(b *testing.B) {
	s := store.Server{Name: "box", Visibility: []string{"user:01ARZ3NDEKTSV4RRFFQ69G5FAV", "all"}}.Normal()
	v := &View{by: store.Caller{User: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Role: store.Member}, grants: []store.Grant{{Tool: "box:other", Deny: true}}}
	v.selectRules()
	var tools []*Tool
	for i := range 1000 {
		tools = append(tools, NewTool(store.Tool{Server: "box", Name: fmt.Sprintf("tool_%d", i), State: store.ToolAccepted, Pin: "p", Accepted: "p"}, &s))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, t := range tools {
			if !v.Usable(t) {
				b.Fatal("not usable")
			}
		}
	}
}

// only is one tool.
type only struct {
	Tools
	tool *Tool
}

func (o only) Get(string) (*Tool, bool) { return o.tool, true }
func (o only) Each(f func(*Tool) bool)  { f(o.tool) }

// TestVisibility: a tool that is for views alone is there for no model and no client, and
// one that is for models alone for no view.
func TestVisibility(t *testing.T) {
	s := store.Server{Name: "box", Visibility: []string{"all"}}.Normal()
	for _, by := range []store.Caller{{User: "ann", Role: store.Member}, {User: "root", Role: store.Admin, Surface: store.OnCLI}} {
		model := &View{by: by}
		views := &View{by: by, scope: store.Scope{View: true}}
		model.selectRules()
		views.selectRules()
		for meta, want := range map[string][2]bool{
			``: {true, true}, `{"ui":{"visibility":["model","app"]}}`: {true, true},
			`{"ui":{"visibility":["app"]}}`: {false, true}, `{"ui":{"visibility":["model"]}}`: {true, false}, `{"ui":{"visibility":[]}}`: {},
		} {
			tool := NewTool(store.Tool{Server: "box", Name: "t", Meta: json.RawMessage(meta), State: store.ToolAccepted, Pin: "p", Accepted: "p"}, &s)
			if got := [2]bool{model.Usable(tool), views.Usable(tool)}; got != want {
				t.Errorf("%s: %v for models and views of %s", meta, got, by.User)
			}
			var failure *store.CallError
			if _, err := (&Engine{tools: only{nil, tool}}).Find(model, "box:t"); !want[0] && (!errors.As(err, &failure) || failure.Code != store.CodeNotFound) {
				t.Errorf("%s: a model that names it is told %v", meta, err)
			}
		}
	}
}

// TestAgentsAnswerForNoView: an agent that does not ask counts for what a model asks
// for, and not for what a view does; one's own standing answer does for both.
func TestAgentsAnswerForNoView(t *testing.T) {
	s := store.Server{Name: "box", Visibility: []string{"all"}}.Normal()
	tool := NewTool(store.Tool{Server: "box", Name: "t", State: store.ToolAccepted, Pin: "p", Accepted: "p"}, &s)
	for _, c := range []struct{ view, granted, asks bool }{{false, false, false}, {true, false, true}, {true, true, false}} {
		v := &View{by: store.Caller{User: "root", Role: store.Admin, Surface: store.OnWeb}, agent: store.Agent{ID: "a", Approval: "none"}, scope: store.Scope{View: c.view}}
		if c.granted {
			v.grants = []store.Grant{{Tool: "box:t", Pin: "p", User: "root"}}
		}
		q := &question{tool: tool, mode: "auto"}
		(&Engine{}).addCaller(t.Context(), q, v, store.Call{By: "root"})
		q.stands = func(store.Grant) bool { return true }
		if got := q.decide().Asks(); got != c.asks {
			t.Errorf("a view %v, granted %v: it asks %v", c.view, c.granted, got)
		}
	}
}
