package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/store"
)

// A tool's result is shown on one line: JSON completely, not just its first brace.
func TestBriefResult(t *testing.T) {
	long := `{"text":"` + strings.Repeat("x", 300) + `"}`
	for text, want := range map[string]string{
		"{\n  \"sum\": 1e3,\n  \"of\": [\n    1,\n    2\n  ]\n}": `{"sum":1e3,"of":[1,2]}`,
		"[\n1\n]":               "[1]",
		"{\n not JSON":          "{",
		"first line\nand more":  "first line",
		" \n{\"a\":\"<b>\"}\n ": `{"a":"<b>"}`,
		long:                    store.Clip(long, 200),
		"":                      "",
	} {
		raw, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := briefResult(&store.Result{Raw: raw}); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
