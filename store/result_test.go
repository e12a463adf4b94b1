package store_test

import (
	"encoding/json"
	"testing"

	"nize/store"
)

// TestResultText: an item of a type that is not known keeps its text, and one that is
// wrongly built takes nothing from the others.
func TestResultText(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                              "a\nb",
		`{"content":[{"type":"hologram","text":"a"},{"type":"text","text":"b"}]}`:                          "a\nb",
		`{"content":[{"type":"hologram","text":"a","data":{"x":1}},{"type":"text","text":"b"}]}`:           "a\nb",
		`{"content":[{"type":7,"text":"a"},{"text":"b"},"c"]}`:                                             "a\nb\nc",
		`{"content":[{"type":"image","mimeType":"image/png","data":"aGkh"}]}`:                              "[image image/png, 3 bytes]",
		`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"c"}},{"type":"text","text":"b"}]}`: "c\nb",
		`{"content":[],"structuredContent":{"a":1}}`:                                                       `{"a":1}`,
	} {
		if got := (&store.Result{Raw: json.RawMessage(raw)}).Text(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
