package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/store/display"
)

func hostileView() display.View {
	return display.View{
		Title: "Issue 7 <!channel> *now*", Link: "https://tracker.example/7", Text: "see <@U0BEN>, [here](https://evil.example) and https://evil.example\n\u202egnp.exe",
		Fields: []display.Field{{Name: "Who @everyone", Value: "<@U0BEN|ben>"}, {Name: "State", Value: "`open`"}},
		Table:  &display.Table{Columns: []string{"Day", "```Rain"}, Rows: [][]string{{"Mon", "12 mm"}, {"Tue", "<!here>"}}, Left: 3},
	}
}

// The result of a tool as it looks, and within what Slack takes.
func TestResultGolden(t *testing.T) {
	w := phrases.For("en")
	blocks := ResultBlocks("nize-1", hostileView(), w)
	got, err := json.MarshalIndent(blocks, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "result.golden", append(bytes.ReplaceAll(got, []byte("\\u003c"), []byte("<")), '\n'))
	if blocks[0].ID() != "nize-1" || blocks[1].ID() != "" || strings.Contains(string(got), `"mrkdwn"`) || strings.Count(string(got), `"url"`) != 1 {
		t.Errorf("ids %q %q; %s", blocks[0].ID(), blocks[1].ID(), got)
	}
	long := display.View{Title: strings.Repeat("t", 9999), Text: strings.Repeat("x", 9999), Table: &display.Table{}}
	for range 30 {
		long.Fields = append(long.Fields, display.Field{Name: strings.Repeat("n", 999), Value: strings.Repeat("v", 9999)})
		long.Table.Columns = append(long.Table.Columns, strings.Repeat("c", 999))
		long.Table.Rows = append(long.Table.Rows, make([]string, 30))
		for i := range long.Table.Rows {
			long.Table.Rows[i][len(long.Fields)-1] = strings.Repeat("z", 999)
		}
	}
	size := 0
	for _, b := range ResultBlocks("", long.Bounded(), w) {
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		size += len(raw)
		if s, ok := b.(*slackgo.SectionBlock); ok && len(s.Fields) > 10 {
			t.Errorf("%d fields", len(s.Fields))
		}
	}
	if size > 13_200+3_000 { // with what JSON adds to the text
		t.Errorf("%d bytes", size)
	}
}
