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
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := k.AddServer(ctx, api.AddServer{Server: store.Server{Name: "box", URL: up.HTTP(), Visibility: []string{"all"}}}); err != nil {
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
	says("运行 box:note", "可审批的人：", "CST（剩余", "状态：等待批准")
	if _, err := fake.Reply(slacktest.Cho, asked, "settings language zh-Hant"); err != nil {
		t.Fatal(err)
	}
	says("language", "zh-Hant")
	if _, err := fake.Reply(slacktest.Cho, asked, "please write a note down once more"); err != nil {
		t.Fatal(err)
	}
	says("執行 box:note", "狀態：等待核准")
}
