package view

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
)

// TestWordsBlocks: commands are code, what is to be copied stands apart, and
// nothing else of a text does anything.
func TestWordsBlocks(t *testing.T) {
	for text, want := range map[string]string{
		"no marks":             "",
		"Did you mean `help`?": "code",
		"one ` mark":           "",
		"a `b\nc` d":           "",
		"use:\n```\n{\"a\": \"`\"}\n```\nthen `x`": "code pre",
		"``` never closed":                         "",
		"`` ``` ` ```` ``` ``":                     "any",
	} {
		raw, err := json.Marshal(WordsBlocks(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := slacktest.CheckBlocks(raw); err != nil {
			t.Errorf("%q: Slack refuses %s: %v", text, raw, err)
		}
		got := strings.Join(slacktest.Message{Blocks: raw}.Effects().Format, " ")
		if want != "any" && got != want {
			t.Errorf("%q is formatted as %q, want %q: %s", text, got, want, raw)
		}
	}
	for _, nastiest := range nasty {
		text := "`" + nastiest + "` " + nastiest + "\n```\n" + nastiest + "\n```"
		raw, err := json.Marshal(WordsBlocks(strings.ToValidUTF8(text, "")))
		if err != nil {
			t.Fatal(err)
		}
		if err := slacktest.CheckBlocks(raw); err != nil {
			t.Errorf("%q: Slack refuses %s: %v", text, raw, err)
		}
		if e := (slacktest.Message{Blocks: raw}).Effects(); e.Pings() || len(e.Links) > 0 || len(e.Emoji) > 0 {
			t.Errorf("%q does something: %+v", text, e)
		}
	}
}
