package bots

import (
	"encoding/json"
	"testing"

	"nize/bots/phrases"
)

// TestEditFields: a form keeps what it does not show and the bytes of what was not
// touched.
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
