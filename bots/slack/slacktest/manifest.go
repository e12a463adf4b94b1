package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// manifest is the relevant part of an app manifest. Pointers distinguish missing fields,
// which Slack doesn't treat as false.
type manifest struct {
	Features struct {
		AppHome struct {
			Messages *bool `json:"messages_tab_enabled"`
			ReadOnly *bool `json:"messages_tab_read_only_enabled"`
			Home     *bool `json:"home_tab_enabled"`
		} `json:"app_home"`
		BotUser   *json.RawMessage `json:"bot_user"`
		AgentView *struct {
			Description string   `json:"agent_description"`
			Prompts     []Prompt `json:"suggested_prompts"`
		} `json:"agent_view"`
		AssistantView *json.RawMessage `json:"assistant_view"`
		Commands      []struct {
			Command     string `json:"command"`
			Description string `json:"description"`
			URL         string `json:"url"`
		} `json:"slash_commands"`
		Shortcuts []struct {
			Name     string `json:"name"`
			Type     string `json:"type"`
			Callback string `json:"callback_id"`
		} `json:"shortcuts"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL string   `json:"request_url"`
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url"`
		} `json:"interactivity"`
		SocketMode bool `json:"socket_mode_enabled"`
	} `json:"settings"`
}

// eventScopes are the scopes for a subscription; one of them is enough.
var eventScopes = map[string][]string{
	"app_mention":                      {"app_mentions:read"},
	"message.channels":                 {"channels:history"},
	"message.groups":                   {"groups:history"},
	"message.im":                       {"im:history"},
	"message.mpim":                     {"mpim:history"},
	"member_joined_channel":            {"channels:read", "groups:read"},
	"member_left_channel":              {"channels:read", "groups:read"},
	"user_change":                      {"users:read"},
	"reaction_added":                   {"reactions:read"},
	"assistant_thread_started":         {"assistant:write"},
	"assistant_thread_context_changed": {"assistant:write"},
	"app_home_opened":                  nil,
	"app_uninstalled":                  nil,
	"tokens_revoked":                   nil,
	"app_context_changed":              nil,
	"agent_session_stopped":            nil,
	"agent_session_title_changed":      nil,
}

// FromManifest returns the Options of an app created from this manifest, so that a test
// shows whether its scopes and events are sufficient. The error lists everything that Slack
// would refuse, or would interpret unexpectedly.
func FromManifest(raw []byte) (Options, error) {
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return Options{}, fmt.Errorf("reading the manifest: %w", err)
	}
	wrong := slices.Concat(m.features(), m.subscriptions(), m.addresses())
	opt := Options{Scopes: m.OAuth.Scopes.Bot, Events: m.Settings.Events.Bot, Assistant: m.Features.AssistantView != nil}
	if len(wrong) > 0 {
		return opt, fmt.Errorf("invalid_manifest: %s", strings.Join(wrong, "; "))
	}
	return opt, nil
}

// features returns the mistakes in the app's visible features.
func (m *manifest) features() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	f := m.Features
	if f.BotUser == nil {
		say("features.bot_user is missing: an app without one can't post")
	}
	if on := f.AppHome.Messages; on != nil && *on && f.AppHome.ReadOnly == nil {
		say("features.app_home.messages_tab_read_only_enabled is missing: nobody can write to the app unless it is false")
	}
	switch {
	case f.AgentView != nil && f.AssistantView != nil:
		say("features has agent_view and assistant_view: it must be one")
	case f.AgentView != nil:
		if n := utf8.RuneCountInString(f.AgentView.Description); n == 0 || n > 300 {
			say("features.agent_view.agent_description has %d characters, not 1 to 300", n)
		}
		if n := len(f.AgentView.Prompts); n > maxPrompts {
			say("features.agent_view.suggested_prompts are %d, more than %d", n, maxPrompts)
		}
	case f.AssistantView != nil:
		say("features.assistant_view: new apps have agent_view only")
	}
	for _, c := range f.Commands {
		if !strings.HasPrefix(c.Command, "/") || len(c.Command) > 32 || c.Description == "" {
			say("slash command %q needs a name of 2 to 32 characters with a / and a description", c.Command)
		}
	}
	for _, s := range f.Shortcuts {
		if s.Type != "message" && s.Type != "global" || s.Callback == "" || utf8.RuneCountInString(s.Name) > 24 {
			say("shortcut %q needs a type, a callback_id and a name of at most 24 characters", s.Name)
		}
	}
	return wrong
}

// subscriptions returns missing and duplicate scopes.
func (m *manifest) subscriptions() (wrong []string) {
	scopes := m.OAuth.Scopes.Bot
	need := func(what string, oneOf []string) {
		if len(oneOf) > 0 && !slices.ContainsFunc(oneOf, func(s string) bool { return slices.Contains(scopes, s) }) {
			wrong = append(wrong, what+" needs the scope "+strings.Join(oneOf, " or "))
		}
	}
	for _, e := range m.Settings.Events.Bot {
		oneOf, known := eventScopes[e]
		if !known {
			wrong = append(wrong, "nothing is known of the event "+e)
		}
		need("event "+e, oneOf)
	}
	if len(m.Features.Commands) > 0 || len(m.Features.Shortcuts) > 0 {
		need("a command or shortcut", []string{"commands"})
	}
	if m.Features.AgentView != nil || m.Features.AssistantView != nil {
		need("an agent", []string{"assistant:write"})
	}
	seen := map[string]int{}
	for _, s := range slices.Concat(scopes, m.Settings.Events.Bot) {
		seen[s]++
	}
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		if seen[s] > 1 {
			wrong = append(wrong, s+" is there twice")
		}
	}
	return wrong
}

// addresses checks the request URLs, which Slack needs without Socket Mode.
func (m *manifest) addresses() (wrong []string) {
	s := m.Settings
	if !s.Interactivity.Enabled {
		wrong = append(wrong, "settings.interactivity.is_enabled is false: buttons do nothing")
	}
	if s.SocketMode {
		return wrong
	}
	if s.Events.URL == "" || s.Interactivity.URL == "" {
		wrong = append(wrong, "without socket_mode_enabled, event_subscriptions and interactivity need a request_url")
	}
	for _, c := range m.Features.Commands {
		if c.URL == "" {
			wrong = append(wrong, "without socket_mode_enabled, "+c.Command+" needs a url")
		}
	}
	return wrong
}
