package incoming

import (
	"encoding/json"
	"testing"
)

// TestMessageText: a person's message may have all of its words in blocks, or a table
// that its text does not have.
func TestMessageText(t *testing.T) {
	section := func(elements string) string {
		return `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + elements + `]}]}`
	}
	const table = `{"type":"table","rows":[[{"type":"raw_text","text":"Host"},{"type":"raw_text","text":"State"}],[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"db1"}]}]},{"type":"raw_text","text":"down"}]]}`
	for name, c := range map[string]struct{ text, blocks, want string }{
		"text":                    {"hello", "", "hello"},
		"text and the same words": {"hello", "[" + section(`{"type":"text","text":"hello"}`) + "]", "hello"},
		"rich text only":          {"", "[" + section(`{"type":"text","text":"restart db1"}`) + "]", "restart db1"},
		"a mention of nize":       {"", "[" + section(`{"type":"user","user_id":"UNIZE"},{"type":"text","text":" restart db1"}`) + "]", "restart db1"},
		"of somebody else":        {"", "[" + section(`{"type":"text","text":"ask "},{"type":"user","user_id":"UBEN"}`) + "]", "ask @ben"},
		"a section":               {"", `[{"type":"section","text":{"type":"mrkdwn","text":"look at <https://a.example|it>"}}]`, "look at it (https://a.example)"},
		"a table only":            {"", "[" + table + "]", "Host | State\ndb1 | down"},
		"text and a table":        {"<@UNIZE> which is down?", "[" + section(`{"type":"text","text":"which is down?"}`) + "," + table + "]", "which is down?\nHost | State\ndb1 | down"},
		"no blocks":               {"", "", ""},
		"odd blocks":              {"", `{"type":"table"}`, ""},
		"odd rows":                {"hi", `[{"type":"table","rows":[null,[null]]}]`, "hi"},
	} {
		m := &Message{Text: c.text, Blocks: json.RawMessage(c.blocks)}
		got := MessageText(m, "UNIZE", func(id string) string { return map[string]string{"UBEN": "ben"}[id] })
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
