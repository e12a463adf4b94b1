package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// Cho's Slack is in Chinese: so is what nize says to her, until she chooses
// another language, which her conversation follows at once.
func TestSlackLanguage(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	fake := onSlack(t, k)
	root := ""
	// says waits until nize wrote to Cho what holds all of that.
	says := func(parts ...string) {
		t.Helper()
		k.until(strings.Join(parts, ", "), func() bool {
			list := fake.Messages(fake.DMChannel(slacktest.Cho))
			if root != "" {
				list = append(list, fake.Thread(fake.DMChannel(slacktest.Cho), root)...)
			}
			for _, m := range list {
				found := 0
				for _, part := range parts {
					if strings.Contains(m.Text, part) {
						found++
					}
				}
				if found == len(parts) {
					return true
				}
			}
			return false
		})
	}
	asked, err := fake.DM(slacktest.Cho, "please write a note down")
	if err != nil {
		t.Fatal(err)
	}
	root = asked.Root()
	says("运行 box:note", "可审批的人：", "CST 前有效，剩余", "状态：等待批准")
	if _, err := fake.Reply(slacktest.Cho, asked, "settings language zh-Hant"); err != nil {
		t.Fatal(err)
	}
	says("language", "zh-Hant")
	if _, err := fake.Reply(slacktest.Cho, asked, "please write a note down once more"); err != nil {
		t.Fatal(err)
	}
	says("執行 box:note", "狀態：等待核准")
}

// A channel's language is what nize says to all of it, at once and also in
// threads that go on; what one person reads alone stays in theirs.
func TestSlackChannelLanguage(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	fake := onSlack(t, k)
	speak := func(locale string) {
		t.Helper()
		if _, err := api.SetChannel.Call(ctx, k.Client, api.SetChannelRequest{Place: slacktest.General, Language: &locale}); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := fake.Mention(slacktest.Ann, slacktest.General, "please write a note down")
	if err != nil {
		t.Fatal(err)
	}
	says := func(text string) {
		t.Helper()
		k.until(text, func() bool {
			for _, m := range fake.Thread(slacktest.General, asked.TS) {
				if strings.Contains(m.Text+string(m.Blocks), text) {
					return true
				}
			}
			return false
		})
	}
	says("Run box:note")
	speak("zh-Hans")
	if _, err := fake.Mention(slacktest.Ann, slacktest.General, "help"); err != nil { // she alone reads that
		t.Fatal(err)
	}
	told(k, fake, slacktest.Ann, "Ask me anything in your own words")
	if _, err := fake.Reply(slacktest.Ann, asked, "<@"+slacktest.Bot+"> please write another note down"); err != nil {
		t.Fatal(err)
	}
	says("运行 box:note")
	speak("zh-Hant")
	if _, err := fake.Reply(slacktest.Ann, asked, "<@"+slacktest.Bot+"> please write a third note down"); err != nil {
		t.Fatal(err)
	}
	says("執行 box:note")
	if err := fake.Slash(ctx, slacktest.Ann, slacktest.General, "/nize ask what is the moon"); err != nil {
		t.Fatal(err)
	}
	k.until("the question, written down for all", func() bool {
		for _, m := range fake.Messages(slacktest.General) {
			if m.User == slacktest.Bot && strings.Contains(m.Text, "what is the moon") {
				return !strings.Contains(m.Text, "asks:")
			}
		}
		return false
	})
	// Her own conversation has her language.
	if _, err := fake.DM(slacktest.Ann, "please write a note down"); err != nil {
		t.Fatal(err)
	}
	k.until("an English card", func() bool {
		for _, m := range allThreads(fake, fake.DMChannel(slacktest.Ann)) {
			if strings.Contains(m.Text+string(m.Blocks), "Run box:note") {
				return true
			}
		}
		return false
	})
}
