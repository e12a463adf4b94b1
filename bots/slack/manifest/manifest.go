// Package manifest has nize's Slack app manifest. nizectl prints it, and the bot compares
// its token with it.
//
// It is a file because slack-go's type omits false values, among them the one that makes
// the Messages tab writable.
package manifest

import (
	_ "embed" // the manifest
	"encoding/json"
	"slices"
	"strings"
)

// JSON is the complete manifest.
//
//go:embed manifest.json
var JSON []byte

// HTTP returns the manifest of an app in HTTP mode, with the request URLs of a daemon at
// origin, such as https://nize.example.com.
func HTTP(origin string) []byte {
	text := string(JSON)
	for _, change := range [][2]string{
		{`"socket_mode_enabled": true`, `"socket_mode_enabled": false`},
		{`"event_subscriptions": {`, `"event_subscriptions": {` + "\n      " + `"request_url": "` + origin + `/slack/events",`},
		{`"interactivity": { "is_enabled": true`, `"interactivity": { "is_enabled": true, "request_url": "` + origin + `/slack/interactions"`},
		{`{ "command": "/nize",`, `{ "command": "/nize", "url": "` + origin + `/slack/commands",`},
	} {
		if strings.Count(text, change[0]) != 1 {
			panic("manifest.json lacks " + change[0]) // the file is part of the program
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return []byte(text)
}

// Prompt is a suggested question that Slack shows in an empty chat.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Command is a slash command.
type Command struct {
	Name  string `json:"command"`
	About string `json:"description"`
	Hint  string `json:"usage_hint"` // possible arguments: "[one | another]"
}

// manifest is the part of the manifest that is read.
type manifest struct {
	Features struct {
		Agent struct {
			Prompts []Prompt `json:"suggested_prompts"`
		} `json:"agent_view"`
		Commands []Command `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
}

func read() manifest {
	var m manifest
	if err := json.Unmarshal(JSON, &m); err != nil {
		panic(err) // the file is part of the program
	}
	return m
}

// Scopes returns the scopes that the bot token needs, sorted.
func Scopes() []string { return slices.Sorted(slices.Values(read().OAuth.Scopes.Bot)) }

// Commands returns the slash commands.
func Commands() []Command { return read().Features.Commands }

// Prompts returns the suggested questions.
func Prompts() []Prompt { return read().Features.Agent.Prompts }
