package mcp

import (
	"encoding/json"
	"testing"
)

// TestContentIsPassedOn: content reaches the client as the server wrote it, or as text if
// the client would reject the whole result because of its form.
func TestContentIsPassedOn(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"a","x":1},{"type":"image","data":"aGk=","mimeType":"image/png"}]`: `[{"type":"text","text":"a","x":1},{"type":"image","data":"aGk=","mimeType":"image/png"}]`,
		`[{"type":"hologram","text":"a"}]`:        `[{"type":"hologram","text":"a"}]`, // from a protocol version unknown to nize
		`[]`:                                      `[]`,
		`null`:                                    `[]`,
		`"a"`:                                     `[{"type":"text","text":"a"}]`,
		`{"type":"text","text":"a"}`:              `[{"type":"text","text":"a"}]`,
		`["a",{"type":"text","text":"b"}]`:        `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`,
		`[null,{"text":"a"}]`:                     `[{"type":"text","text":"a"}]`,
		`[{"type":null,"text":"a"}]`:              `[{"type":"text","text":"a"}]`,
		`[{"type":7,"text":"a"}]`:                 `[{"type":"text","text":"a"}]`,
		`[{"type":"text","text":5}]`:              `[{"type":"text","text":"5"}]`,
		`[{"type":"text"}]`:                       `[{"type":"text","text":""}]`,
		`[{"type":"text","text":{"a":1}}]`:        `[{"type":"text","text":"{\"type\":\"text\",\"text\":{\"a\":1}}"}]`,
		`[{"uri":"https://a.example/x"},{"n":1}]`: `[{"type":"text","text":"{\"uri\":\"https://a.example/x\"}"},{"type":"text","text":"{\"n\":1}"}]`,
	} {
		var a answer
		a.take(json.RawMessage(`{"content":` + content + `}`))
		var got struct{ Content json.RawMessage }
		if err := json.Unmarshal(a.append(nil), &got); err != nil || string(got.Content) != want {
			t.Errorf("%s: %s, %v, want %s", content, got.Content, err, want)
		}
	}
}
