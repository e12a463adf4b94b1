package view

import (
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/store"
)

// TestLookupsOfAnEarlierRun: a lookup that an earlier run of nized wrote, in whatever
// language, gives way to what follows, as one of this run does; tools stay.
func TestLookupsOfAnEarlierRun(t *testing.T) {
	for was, want := range map[string]string{
		"box:a: done – 1\nSearch for tools… – dice":            "box:a: done – 1",
		"Search for tools: box:roll":                           "",
		"How a tool is used: box:other":                        "",
		"What tools there are":                                 "",
		phrases.For("zh-Hans").Say(phrases.LookupUse) + "…":    "",
		phrases.For("zh-Hant").Say(phrases.LookupAll) + ": 失敗": "",
		"Search for tools of:x: done":                          "Search for tools of:x: done",
		"box:a: done\nbox:b: failed":                           "box:a: done\nbox:b: failed",
	} {
		before := ToolsIn(slackgo.Message{Msg: slackgo.Msg{Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{slackgo.NewContextBlock("x", PlainText(was))}}}})
		before.Retell("tool/c", store.ToolLine{Name: "box:roll", State: store.Running}, phrases.For(""))
		if got := strings.Join(before.lines, "\n"); got != want {
			t.Errorf("of %q is left %q, want %q", was, got, want)
		}
	}
}
