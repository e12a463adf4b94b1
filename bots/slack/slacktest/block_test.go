package slacktest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
)

func x(n int) string { return strings.Repeat("x", n) }

// several joins n copies of a JSON value, each with its number where %d is.
func several(n int, of string) string {
	var list []string
	for i := range n {
		list = append(list, strings.ReplaceAll(of, "%d", fmt.Sprint(i)))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func section(n int) string {
	return `{"type":"section","text":{"type":"mrkdwn","text":"` + x(n) + `"}}`
}

func button(more string) string {
	return `{"type":"button","text":{"type":"plain_text","text":"Go"}` + more + `}`
}

func actions(elements string) string { return `{"type":"actions","elements":` + elements + `}` }

func selection(options string) string {
	return actions(`[{"type":"static_select","action_id":"s","options":` + options + `}]`)
}

const option = `{"text":{"type":"plain_text","text":"o"},"value":"v%d"}`

// TestBlockLimits has each limit from both sides: what just fits and what just
// doesn't.
func TestBlockLimits(t *testing.T) {
	confirm := func(title, text, yes int) string {
		return button(fmt.Sprintf(`,"confirm":{"title":{"type":"plain_text","text":"%s"},"text":{"type":"mrkdwn","text":"%s"},"confirm":{"type":"plain_text","text":"%s"},"deny":{"type":"plain_text","text":"No"}}`,
			x(title), x(text), x(yes)))
	}
	header := func(n int) string { return `{"type":"header","text":{"type":"plain_text","text":"` + x(n) + `"}}` }
	markdown := func(n int) string { return `{"type":"markdown","text":"` + x(n) + `"}` }
	context := func(n int) string {
		return `{"type":"context","elements":` + several(n, `{"type":"mrkdwn","text":"c"}`) + `}`
	}
	table := func(rows, cells int) string {
		return `{"type":"table","rows":` + several(rows, several(cells, `{"type":"raw_text","text":"1"}`)) + `}`
	}
	rows := []struct{ name, good, bad, says string }{
		{"blocks", several(50, `{"type":"divider"}`), several(51, `{"type":"divider"}`), "no more than 50 items allowed [json-pointer:/blocks]"},
		{"section", "[" + section(3000) + "]", "[" + section(3001) + "]", "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"},
		{"a choice is one of the options", "[" + actions(`[{"type":"static_select","action_id":"s","options":`+several(2, option)+`,"initial_option":{"value":"v1","text":{"type":"plain_text","text":"o"}}}]`) + "]",
			"[" + actions(`[{"type":"static_select","action_id":"s","options":`+several(2, option)+`,"initial_option":{"value":"v2","text":{"type":"plain_text","text":"o"}}}]`) + "]", "must be one of the options"},
		{"all boxes are options", "[" + actions(`[{"type":"checkboxes","action_id":"s","options":`+several(2, option)+`,"initial_options":`+several(2, option)+`}]`) + "]",
			"[" + actions(`[{"type":"checkboxes","action_id":"s","options":`+several(2, option)+`,"initial_options":`+several(3, option)+`}]`) + "]", "must be one of the options"},
		{"section needs text", "[" + section(1) + "]", `[{"type":"section"}]`, "missing required field: text or fields"},
		{"empty text", "[" + section(1) + "]", "[" + section(0) + "]", "must be more than 0 characters"},
		{"fields", `[{"type":"section","fields":` + several(10, `{"type":"mrkdwn","text":"f"}`) + `}]`, `[{"type":"section","fields":` + several(11, `{"type":"mrkdwn","text":"f"}`) + `}]`, "no more than 10 items"},
		{"header", "[" + header(150) + "]", "[" + header(151) + "]", "less than 151"},
		{"header is plain", "[" + header(1) + "]", `[{"type":"header","text":{"type":"mrkdwn","text":"h"}}]`, "must be one of: plain_text"},
		{"context", "[" + context(10) + "]", "[" + context(11) + "]", "no more than 10 items"},
		{"actions", "[" + actions(several(25, button(`,"action_id":"a%d"`))) + "]", "[" + actions(several(26, button(`,"action_id":"a%d"`))) + "]", "no more than 25 items"},
		{"button text", "[" + actions("["+strings.Replace(button(""), "Go", x(75), 1)+"]") + "]", "[" + actions("["+strings.Replace(button(""), "Go", x(76), 1)+"]") + "]", "less than 76"},
		{"button value", "[" + actions("["+button(`,"value":"`+x(2000)+`"`)+"]") + "]", "[" + actions("["+button(`,"value":"`+x(2001)+`"`)+"]") + "]", "less than 2001"},
		{"button url", "[" + actions("["+button(`,"url":"https://a.example/"`)+"]") + "]", "[" + actions("["+button(`,"url":"javascript:alert(1)"`)+"]") + "]", "must be a valid URL"},
		{"button style", "[" + actions("["+button(`,"style":"danger"`)+"]") + "]", "[" + actions("["+button(`,"style":"default"`)+"]") + "]", "must be one of: primary, danger"},
		{"action_id", "[" + actions("["+button(`,"action_id":"`+x(255)+`"`)+"]") + "]", "[" + actions("["+button(`,"action_id":"`+x(256)+`"`)+"]") + "]", "less than 256"},
		{"action_id unique", "[" + actions("["+button(`,"action_id":"a"`)+"]") + "," + actions("["+button(`,"action_id":"a"`)+"]") + "]", "[" + actions("["+button(`,"action_id":"a"`)+","+button(`,"action_id":"a"`)+"]") + "]", "`action_id` must be unique"},
		{"block_id", `[{"type":"divider","block_id":"` + x(255) + `"}]`, `[{"type":"divider","block_id":"` + x(256) + `"}]`, "less than 256"},
		{"block_id unique", `[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"b"}]`, several(2, `{"type":"divider","block_id":"a"}`), "`block_id` must be unique"},
		{"options", "[" + selection(several(100, option)) + "]", "[" + selection(several(101, option)) + "]", "no more than 100 items"},
		{"no options", "[" + selection(several(1, option)) + "]", "[" + selection("[]") + "]", "no fewer than 1 items"},
		{"option value", "[" + selection(several(1, strings.Replace(option, "v%d", x(75), 1))) + "]", "[" + selection(several(1, strings.Replace(option, "v%d", x(76), 1))) + "]", "less than 76"},
		{"confirm title", "[" + actions("["+confirm(100, 300, 30)+"]") + "]", "[" + actions("["+confirm(101, 1, 1)+"]") + "]", "less than 101"},
		{"confirm text", "[" + actions("["+confirm(1, 1, 1)+"]") + "]", "[" + actions("["+confirm(1, 301, 1)+"]") + "]", "less than 301"},
		{"confirm button", "[" + actions("["+confirm(1, 1, 1)+"]") + "]", "[" + actions("["+confirm(1, 1, 31)+"]") + "]", "less than 31"},
		{"markdown", "[" + markdown(12000) + "]", "[" + markdown(6001) + "," + markdown(6000) + "]", "all markdown blocks together"},
		{"table", "[" + table(100, 20) + "]", "[" + table(101, 1) + "]", "no more than 100 items"},
		{"table cells", "[" + table(1, 20) + "]", "[" + table(1, 21) + "]", "no more than 20 items"},
		{"one table", "[" + table(1, 1) + "]", "[" + table(1, 1) + "," + table(1, 1) + "]", "only_one_table_allowed"},
		{"unknown block", "[" + section(1) + "]", `[{"type":"card","body":{"type":"mrkdwn","text":"x"}}]`, "unsupported type: card"},
		{"unknown field", "[" + section(1) + "]", `[{"type":"divider","color":"red"}]`, "invalid additional property: color"},
		{"input in actions", "[" + actions("["+button("")+"]") + "]", "[" + actions(`[{"type":"plain_text_input","action_id":"i"}]`) + "]", "unsupported type: plain_text_input"},
		{"emoji", `[{"type":"section","text":{"type":"plain_text","text":"x","emoji":true}}]`, `[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, "emoji is of plain_text only"},
		{"rich text", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}]`, `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text"}]}]}]`, "missing required field: text"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := slacktest.CheckBlocks(json.RawMessage(row.good)); err != nil {
				t.Errorf("what fits was refused: %v", err)
			}
			err := slacktest.CheckBlocks(json.RawMessage(row.bad))
			if err == nil || !strings.HasPrefix(err.Error(), "invalid_blocks") || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want invalid_blocks with %q", err, row.says)
			}
		})
	}
	if err := slacktest.CheckBlocks(json.RawMessage(several(5, section(2700)))); err == nil || !strings.HasPrefix(err.Error(), "msg_blocks_too_long") {
		t.Errorf("13,500 characters in all: got %v", err)
	}
	if err := slacktest.CheckBlocks(json.RawMessage(`{"type":"section"}`)); err == nil || err.Error() != "invalid_blocks_format" {
		t.Errorf("an object: got %v", err)
	}
}

func TestViewLimits(t *testing.T) {
	view := func(more string) string {
		return `{"type":"modal","title":{"type":"plain_text","text":"T"},"blocks":[]` + more + `}`
	}
	input := `{"type":"input","label":{"type":"plain_text","text":"L"},"element":{"type":"plain_text_input","action_id":"i"%s}}`
	submit := `,"submit":{"type":"plain_text","text":"S"}`
	with := func(blocks, more string) string {
		return `{"type":"modal","title":{"type":"plain_text","text":"T"},"blocks":` + blocks + more + `}`
	}
	for _, row := range []struct{ name, good, bad, says string }{
		{"title", strings.Replace(view(""), `"T"`, `"`+x(24)+`"`, 1), strings.Replace(view(""), `"T"`, `"`+x(25)+`"`, 1), "less than 25"},
		{"submit", view(submit), view(strings.Replace(submit, `"S"`, `"`+x(25)+`"`, 1)), "less than 25"},
		{"no title", view(""), `{"type":"modal","blocks":[]}`, "missing required field: title"},
		{"private_metadata", view(`,"private_metadata":"` + x(3000) + `"`), view(`,"private_metadata":"` + x(3001) + `"`), "less than 3001"},
		{"callback_id", view(`,"callback_id":"` + x(255) + `"`), view(`,"callback_id":"` + x(256) + `"`), "less than 256"},
		{"blocks", with(several(100, `{"type":"divider"}`), ""), with(several(101, `{"type":"divider"}`), ""), "no more than 100 items"},
		{"input needs submit", with("["+fmt.Sprintf(input, "")+"]", submit), with("["+fmt.Sprintf(input, "")+"]", ""), "submit is required"},
		{"input value", with("["+fmt.Sprintf(input, `,"initial_value":"`+x(3000)+`"`)+"]", submit), with("["+fmt.Sprintf(input, `,"initial_value":"`+x(3001)+`"`)+"]", submit), "less than 3001"},
		{"placeholder", with("["+fmt.Sprintf(input, `,"placeholder":{"type":"plain_text","text":"`+x(150)+`"}`)+"]", submit), with("["+fmt.Sprintf(input, `,"placeholder":{"type":"plain_text","text":"`+x(151)+`"}`)+"]", submit), "less than 151"},
		{"home has no submit", `{"type":"home","blocks":[]}`, `{"type":"home","blocks":[]` + submit + `}`, "a home tab has no title"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := slacktest.CheckView(json.RawMessage(row.good)); err != nil {
				t.Errorf("what fits was refused: %v", err)
			}
			if err := slacktest.CheckView(json.RawMessage(row.bad)); err == nil || !strings.HasPrefix(err.Error(), "invalid_arguments") || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want invalid_arguments with %q", err, row.says)
			}
		})
	}
}

// FuzzBlocks: no bytes may break the check, and what it lets pass must be
// readable by what shows it and what presses its buttons.
func FuzzBlocks(f *testing.F) {
	for _, s := range []string{"[]", "[" + section(3) + "]", "[" + actions("["+button(`,"action_id":"a"`)+"]") + "]", "[" + selection(several(2, option)) + "]", `[{"type":"rich_text","elements":[]}]`, `[null]`, `[{"type":null}]`,
		`[{"type":"markdown","text":"*a* <@U0ANN> https://a.example"}]`, `[{"type":"table","rows":[[{"type":"raw_number","value":1}]]}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if slacktest.CheckBlocks(raw) == nil {
			if !json.Valid(raw) {
				t.Fatalf("%q passed", raw)
			}
			_ = slacktest.Message{Blocks: raw, Mrkdwn: true}.Effects()
		}
		_ = slacktest.CheckView(raw) // must not panic
	})
}
