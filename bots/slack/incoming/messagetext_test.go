package incoming

import (
	"encoding/json"
	slackgo "github.com/slack-go/slack"
	"strings"
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
		m := &Message{Msg: slackgo.Msg{Text: c.text}, Blocks: json.RawMessage(c.blocks)}
		got := MessageText(m, "UNIZE", func(id string) string { return map[string]string{"UBEN": "ben"}[id] })
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBlocksOfEachType: what a message says in blocks or attachments alone.
func TestBlocksOfEachType(t *testing.T) {
	rich := func(elements string) string { return `[{"type":"rich_text","elements":[` + elements + `]}]` }
	section := func(elements string) string {
		return `{"type":"rich_text_section","elements":[` + elements + `]}`
	}
	item := func(text string) string { return section(`{"type":"text","text":"` + text + `"}`) }
	deep := strings.Repeat(`{"type":"rich_text","elements":[`, 5000) + item("x") + strings.Repeat("]}", 5000)
	for name, c := range map[string]struct{ blocks, attachments, want string }{
		"a list":                   {rich(item("buy") + `,{"type":"rich_text_list","style":"bullet","elements":[` + item("milk") + "," + item("bread") + `]},` + item("today")), "", "buy\n- milk\n- bread\ntoday"},
		"an ordered list":          {rich(`{"type":"rich_text_list","style":"ordered","offset":2,"elements":[` + item("a") + "," + item("b") + `]}`), "", "3. a\n4. b"},
		"a list in a list":         {rich(`{"type":"rich_text_list","style":"bullet","elements":[` + item("a") + `]},{"type":"rich_text_list","style":"bullet","indent":1,"elements":[` + item("b") + `]}`), "", "- a\n  - b"},
		"a quote":                  {rich(`{"type":"rich_text_quote","elements":[{"type":"text","text":"one\ntwo"}]}`), "", "> one\n> two"},
		"preformatted":             {rich(`{"type":"rich_text_preformatted","elements":[{"type":"text","text":"rm -rf /tmp/x\nls"}]}`), "", "```\nrm -rf /tmp/x\nls\n```"},
		"a mention in code":        {rich(`{"type":"rich_text_preformatted","elements":[{"type":"text","text":"<@UNIZE> & <b>"}]}`), "", "```\n<@UNIZE> & <b>\n```"},
		"code in a line":           {rich(section(`{"type":"text","text":"run "},{"type":"text","text":"df -h","style":{"code":true}}`)), "", "run `df -h`"},
		"a link with words":        {rich(section(`{"type":"text","text":"see "},{"type":"link","url":"https://a.example/x","text":"the runbook"}`)), "", "see the runbook (https://a.example/x)"},
		"a link alone":             {rich(section(`{"type":"link","url":"https://a.example/x"}`)), "", "https://a.example/x"},
		"an emoji":                 {rich(section(`{"type":"emoji","name":"tada","unicode":"1f389"},{"type":"text","text":" done"}`)), "", ":tada: done"},
		"a mention":                {rich(section(`{"type":"user","user_id":"UBEN"},{"type":"text","text":" and "},{"type":"usergroup","usergroup_id":"S1"},{"type":"text","text":" in "},{"type":"channel","channel_id":"C1"},{"type":"text","text":" "},{"type":"broadcast","range":"here"}`)), "", "@ben and @S1 in #C1 @here"},
		"a mention of nize":        {rich(section(`{"type":"user","user_id":"UNIZE"},{"type":"text","text":" restart"}`)), "", "restart"},
		"a date":                   {rich(section(`{"type":"text","text":"at "},{"type":"date","timestamp":1720710212,"format":"{date_num}","fallback":"2024-07-11"}`)), "", "at 2024-07-11"},
		"a colour":                 {rich(section(`{"type":"color","value":"#F405B3"}`)), "", "#F405B3"},
		"a header":                 {`[{"type":"header","text":{"type":"plain_text","text":"Deploy <1>"}},{"type":"divider"},{"type":"section","text":{"type":"mrkdwn","text":"*done* &amp; dusted"}}]`, "", "Deploy <1>\n*done* & dusted"},
		"fields":                   {`[{"type":"section","fields":[{"type":"mrkdwn","text":"*Host*"},{"type":"plain_text","text":"db1"}]}]`, "", "*Host*\ndb1"},
		"text, fields, a button":   {`[{"type":"section","text":{"type":"mrkdwn","text":"Hosts"},"fields":[{"type":"mrkdwn","text":"db1"}],"accessory":{"type":"button","text":{"type":"plain_text","text":"Go"},"value":"secret"}}]`, "", "Hosts\ndb1"},
		"context":                  {`[{"type":"context","elements":[{"type":"image","image_url":"https://a.example/i","alt_text":"a cat"},{"type":"mrkdwn","text":"by <@UBEN>"}]}]`, "", "a cat\nby @ben"},
		"markdown":                 {`[{"type":"markdown","text":"**bold** [x](https://a.example)"}]`, "", "**bold** [x](https://a.example)"},
		"an image":                 {`[{"type":"image","title":{"type":"plain_text","text":"Load"},"image_url":"https://a.example/i","alt_text":"load of db1"}]`, "", "Load\nload of db1"},
		"a video":                  {`[{"type":"video","title":{"type":"plain_text","text":"Demo"},"description":{"type":"plain_text","text":"how it works"},"video_url":"https://a.example/v","alt_text":"demo"}]`, "", "Demo\nhow it works\ndemo"},
		"an input":                 {`[{"type":"input","label":{"type":"plain_text","text":"Which host?"},"element":{"type":"plain_text_input","action_id":"a"}}]`, "", "Which host?"},
		"a table with numbers":     {`[{"type":"table","rows":[[{"type":"raw_text","text":"db1"},{"type":"raw_number","value":3}],[{"type":"raw_text","text":"db2"},{"type":"raw_number","value":4.5}]]}]`, "", "db1 | 3\ndb2 | 4.5"},
		"a table with a link":      {`[{"type":"table","rows":[[{"type":"rich_text","elements":[` + section(`{"type":"link","url":"https://a.example","text":"run"}`) + `]},{"type":"raw_text","text":"ok"}]]}]`, "", "run (https://a.example) | ok"},
		"mentions in a section":    {`[{"type":"section","text":{"type":"mrkdwn","text":"<@UNIZE>: restart <@UBEN>"}}]`, "", "restart @ben"},
		"a type that is not known": {`[{"type":"callout","elements":[` + item("mind the gap") + `]}]`, "", "mind the gap"},
		"one with a body":          {`[{"type":"card","title":{"type":"plain_text","text":"Card"},"body":{"type":"mrkdwn","text":"a <https://a.example|b>"}}]`, "", "Card\na b (https://a.example)"},
		"one with other members":   {`[{"type":"tabs","panels":[{"label":"A","content":[` + `{"type":"section","text":{"type":"plain_text","text":"in a"}}` + `]},{"label":"B","text":"in b"}]}]`, "", "A\nin a\nB\nin b"},
		"a part that is not known": {rich(`{"type":"rich_text_aside","elements":[{"type":"text","text":"psst"}]}`), "", "psst"},
		"an odd one among others":  {`[null,7,{"type":"section","text":["a"]},{"type":9},{"type":"section","fields":{"type":"plain_text","text":"f"}},{"type":"header","text":{"type":"plain_text","text":"ok"}},{"type":"rich_text","elements":"x"}]`, "", "f\nok\nx"},
		"nested without end":       {"[" + deep + "]", "", ""},
		"an attachment":            {"", `[{"pretext":"New","title":"Build 7","title_link":"https://a.example","text":"failed &lt;1&gt;","fields":[{"title":"Branch","value":"main","short":true},{"title":"By","value":"<@UBEN>"}],"footer":"ci"}]`, "New\nBuild 7\nfailed <1>\nBranch: main\nBy: @ben"},
		"blocks of an attachment":  {"", `[{"color":"#f00","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"down"}}]}]`, "down"},
		"a fallback":               {"", `[{"fallback":"[no preview available]","image_url":"https://a.example/i"}]`, "[no preview available]"},
		"a message passed on":      {"", `[{"is_share":true,"author_id":"UBEN","text":"not mine"}]`, ""},
		"blocks and attachments":   {`[{"type":"header","text":{"type":"plain_text","text":"mine"}}]`, `[{"text":"a preview","from_url":"https://a.example"}]`, "mine"},
	} {
		m := &Message{Blocks: json.RawMessage(c.blocks), Attachments: json.RawMessage(c.attachments)}
		got := MessageText(m, "UNIZE", func(id string) string { return map[string]string{"UBEN": "ben"}[id] })
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
