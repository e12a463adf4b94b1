package bots

import (
	"encoding/json"
	"strconv"
	"testing"

	"nize/bots/phrases"
	"nize/store"
)

// TestEditFields: a form keeps what it doesn't show and the bytes of unchanged values.
func TestEditFields(t *testing.T) {
	limits := EditLimits{Fields: 5, Options: 25, Option: 75, Input: 3000}
	schema := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"number"},"on":{"type":"boolean"},"kind":{"type":"string","enum":["a","b"]}},"required":["title"]}`)
	s, _, ok := limits.flat(schema, map[string]json.RawMessage{"extra": json.RawMessage("[1]")})
	if !ok {
		t.Fatal("the schema is flat")
	}
	w := phrases.For("")
	for _, test := range []struct {
		name, given, old, want string
		wrong                  bool
	}{
		{"n", "1000", "1e3", "1000", false}, {"n", "1e3", "1e3", "1e3", false}, {"n", " 2.50 ", "1e3", "2.50", false}, {"n", "two", "1e3", "", true},
		{"n", "NaN", "", "", true}, {"n", "\"1\"", "", "", true}, {"title", "a\"b", `"x"`, `"a\"b"`, false}, {"title", "", `"x"`, "", false},
		{"title", "", `""`, `""`, false}, {"kind", "1", `"a"`, `"b"`, false}, {"kind", "7", `"a"`, "", true}, {"on", "1", "true", "false", false},
	} {
		v, problem := s.Properties[test.name].read(test.given, true, json.RawMessage(test.old), w)
		if string(v) != test.want || (problem != "") != test.wrong {
			t.Errorf("%s given %q: %q, %q; want %q", test.name, test.given, v, problem, test.want)
		}
	}
	if _, _, ok := limits.flat(json.RawMessage(`{"properties":{"a":{"type":"object"}}}`), nil); ok {
		t.Error("a nested schema is not flat")
	}
}

// TestEditKinds: each argument has the kind of field that fits its schema.
func TestEditKinds(t *testing.T) {
	limits := EditLimits{Fields: 20, Options: 25, Option: 75, Input: 3000}
	schema := json.RawMessage(`{"properties":{"title":{"type":"string"},"body":{"type":"string"},"code":{"type":"string","maxLength":8},"day":{"type":"string","format":"date"},
		"labels":{"type":"array","items":{"type":"string"}},"ids":{"type":"array","items":{"type":"integer"}},"on":{"type":"boolean"},"kind":{"type":"string","enum":["a","b"]}}}`)
	card := store.Card{Args: json.RawMessage(`{"day":"line\nline","ids":[1e2,7],"labels":["bug","a b"],"on":true,"title":"x"}`)}
	edit := EditCall(card, schema, limits)
	if edit.Form == "" {
		t.Fatalf("no form: %+v", edit)
	}
	got := map[string]EditField{}
	for _, f := range edit.Fields {
		got[f.Name] = f
	}
	for name, want := range map[string]EditField{
		"title": {}, "body": {Long: true}, "code": {}, "day": {Long: true}, "labels": {Long: true, List: true}, "ids": {Long: true, List: true}, "on": {Toggle: true}, "kind": {},
	} {
		if f := got[name]; f.Long != want.Long || f.List != want.List || f.Toggle != want.Toggle {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if got["labels"].Value != "bug\na b" || got["ids"].Value != "1e2\n7" || len(got["kind"].Options) != 2 || got["on"].Chosen != 0 {
		t.Errorf("values: %+v", got)
	}
	for _, test := range []struct{ name, given, want string }{
		{"labels", "bug\na b", `["bug","a b"]`}, {"labels", "bug\n\nnew\r\n", `["bug","new"]`}, {"labels", " ", ""}, {"ids", "7\n1e2", `[7,1e2]`}, {"ids", "7\nx", "wrong"}, {"ids", "1.5", "wrong"},
	} {
		args, wrong, err := ReadEdit(card, schema, edit.Form, limits, func(name string) ([]string, bool) {
			f := got[name]
			switch {
			case name == test.name:
				return []string{test.given}, true
			case f.Chosen >= 0:
				return []string{strconv.Itoa(f.Chosen)}, true
			}
			return []string{f.Value}, true
		}, phrases.For(""))
		now := map[string]json.RawMessage{}
		if err == nil && len(wrong) == 0 {
			err = json.Unmarshal(args, &now)
		}
		if text := string(now[test.name]); err != nil || text != test.want && (test.want != "wrong" || wrong[test.name] == "") {
			t.Errorf("%s given %q: %s, %v, %v", test.name, test.given, text, wrong, err)
		}
		if len(wrong) == 0 && (string(now["title"]) != `"x"` || string(now["on"]) != "true") {
			t.Errorf("what was not touched is %s", args)
		}
	}
	for _, args := range []string{`{"labels":["two\nlines"]}`, `{"labels":[""]}`, `{"labels":[1]}`, `{"labels":[["x"]]}`, `{"labels":null}`, `{"labels":["a\u202e"]}`} {
		if e := EditCall(store.Card{Args: json.RawMessage(args)}, schema, limits); e.Form != "" {
			t.Errorf("%s is edited as a form", args)
		}
	}
}

// TestQuestionForm: titled choices and lists of choices are fields; only a question
// shows the titles, since a tool's arguments must not be described as something else.
func TestQuestionForm(t *testing.T) {
	limits := EditLimits{Fields: 5, Options: 25, Option: 75, Input: 3000}
	schema := json.RawMessage(`{"properties":{"z":{"type":["string","null"],"title":"Zone"},"to":{"type":"string","title":"To","oneOf":[{"const":"eve","title":"Ann"},{"const":"bo"}]},"of":{"type":"array","items":{"enum":["x","y"]}}}}`)
	for _, test := range []struct {
		question *store.Question
		label    string
		option   string
	}{{nil, "to", "eve"}, {&store.Question{Schema: schema}, "To", "Ann"}} {
		card := store.Card{Args: json.RawMessage(`{"of":["y"],"to":"bo"}`), Question: test.question}
		e := EditCall(card, schema, limits)
		if len(e.Fields) != 3 || e.Fields[0].Name != "z" || e.Fields[1].Label != test.label || e.Fields[1].Options[0] != test.option || e.Fields[1].Chosen != 1 || !e.Fields[2].Many || len(e.Fields[2].Several) != 1 {
			t.Fatalf("%+v", e)
		}
		args, wrong, err := ReadEdit(card, schema, e.Form, limits, func(name string) ([]string, bool) {
			v, ok := map[string][]string{"to": {"0"}, "of": {"0", "1"}, "z": {""}}[name]
			return v, ok
		}, phrases.For(""))
		if string(args) != `{"of":["x","y"],"to":"eve"}` || len(wrong) > 0 || err != nil {
			t.Errorf("%s, %v, %v", args, wrong, err)
		}
	}
}
