package slacktest_test

import (
	"slices"
	"strings"
	"testing"

	"nize/bots/slack/slacktest"
)

const goodManifest = `{
 "features": {
  "app_home": {"home_tab_enabled": true, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
  "bot_user": {"display_name": "nize"},
  "agent_view": {"agent_description": "d", "suggested_prompts": [{"title": "t", "message": "m"}]},
  "slash_commands": [{"command": "/nize", "description": "Ask"}],
  "shortcuts": [{"name": "Ask", "type": "message", "callback_id": "ask"}]
 },
 "oauth_config": {"scopes": {"bot": ["app_mentions:read", "assistant:write", "channels:history", "commands"]}},
 "settings": {"event_subscriptions": {"bot_events": ["app_mention", "message.channels", "app_home_opened"]}, "interactivity": {"is_enabled": true}, "socket_mode_enabled": true}
}`

func TestManifest(t *testing.T) {
	opt, err := slacktest.FromManifest([]byte(goodManifest))
	if err != nil || !slices.Contains(opt.Scopes, "commands") || !slices.Contains(opt.Events, "app_mention") || opt.Assistant {
		t.Fatalf("got %+v, %v", opt, err)
	}
	for _, row := range []struct{ old, new, says string }{
		{`, "messages_tab_read_only_enabled": false`, ``, "messages_tab_read_only_enabled is missing"},
		{`"bot_user": {"display_name": "nize"},`, ``, "bot_user is missing"},
		{`"agent_description": "d"`, `"agent_description": "` + x(301) + `"`, "301 characters"},
		{`[{"title": "t", "message": "m"}]`, several(5, `{"title": "t", "message": "m"}`), "are 5, more than 4"},
		{`"agent_view"`, `"assistant_view": {}, "agent_view"`, "it must be one"},
		{`"agent_view"`, `"assistant_view"`, "new apps have agent_view only"},
		{`"/nize"`, `"nize"`, "slash command"},
		{`"callback_id": "ask"`, `"callback_id": ""`, "shortcut"},
		{`"channels:history", `, ``, "event message.channels needs the scope channels:history"},
		{`, "commands"`, ``, "needs the scope commands"},
		{`"app_home_opened"`, `"app_home_open"`, "nothing is known of the event app_home_open"},
		{`"app_home_opened"`, `"app_mention"`, "app_mention is there twice"},
		{`"is_enabled": true`, `"is_enabled": false`, "buttons do nothing"},
		{`"socket_mode_enabled": true`, `"socket_mode_enabled": false`, "need a request_url"},
	} {
		if _, err := slacktest.FromManifest([]byte(strings.Replace(goodManifest, row.old, row.new, 1))); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want %q", row.new, err, row.says)
		}
	}
	if _, err := slacktest.FromManifest([]byte(`{"features":[]}`)); err == nil {
		t.Error("a manifest of another shape passed")
	}
	a := start(t, slacktest.Options{NoConnections: true})
	a.bad("missing_scope", "apps.connections.open")
}
