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
		`{"content":[{"type":"","text":"a"}]}`:                                                             "a",
		`{"content":[{"type":null,"text":"a"},{"type":"text","text":"b","annotations":7}]}`:                "a\nb",
		`{"content":[{"type":["text"],"text":"a"}]}`:                                                       "a",
		`{"content":[{"type":"markdown","text":"# a","mimeType":5}]}`:                                      "# a",
		`{"content":[{"type":"reasoning","text":"a","data":"aGkh"}]}`:                                      "a",
		`{"content":[{"type":"hologram","text":{"value":"a"}}]}`:                                           `{"type":"hologram","text":{"value":"a"}}`,
		`{"content":[{"type":"hologram","content":"a"}]}`:                                                  `{"type":"hologram","content":"a"}`,
		`{"content":[{"type":7},{"type":7,"data":1},{"type":"text","text":"b"}]}`:                          "{\"type\":7}\n{\"type\":7,\"data\":1}\nb",
		`{"content":[{"type":"text","text":5},{"type":"text","text":true}]}`:                               "5\ntrue",
		`{"content":[{"type":"text","text":{"a":1}}]}`:                                                     `{"type":"text","text":{"a":1}}`,
		`{"content":[{"type":"text","text":null},{"type":"text","text":"b"}]}`:                             "\nb",
		`{"content":[{"type":"link","uri":"https://a.example/x"}]}`:                                        `{"type":"link","uri":"https://a.example/x"}`,
		`{"content":{"type":"text","text":"a"}}`:                                                           "a",
		`{"content":"a"}`:                                                                                  "a",
		`{"content":[null,{"type":"text","text":"b"}]}`:                                                    "b",
		`{"content":[{"type":"hologram","data":"aGkh"}]}`:                                                  "[hologram , 3 bytes]", // bytes are no text
		`{"content":[{"type":"image","mimeType":"image/png","data":"aGkh","text":"a"}]}`:                   "[image image/png, 3 bytes]",
		`{"content":[],"structuredContent":{"a":1}}`:                                                       `{"a":1}`,
	} {
		if got := (&store.Result{Raw: json.RawMessage(raw)}).Text(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// FuzzResultText: whatever a server sends has a text.
func FuzzResultText(f *testing.F) {
	for _, raw := range []string{`{"content":[{"type":7}]}`, `{"content":[{"type":"text","text":{"a":1}}]}`, `{"content":"a"}`, `{"content":[null,5]}`, `{"content":{"resource":{"text":5}}}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		r := store.Result{Raw: raw}
		r.Text()
	})
}
