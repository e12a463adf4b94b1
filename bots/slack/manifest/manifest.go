// Package manifest holds nize's app as Slack is asked to make it, for nizectl,
// which prints it, and for the bot, which compares its token with it.
//
// It is kept as a file: slack-go's type leaves out what is false, and with it
// that the Messages tab may be written in.
package manifest

import (
	_ "embed" // the manifest
	"encoding/json"
	"slices"
	"strings"
)

// JSON is the whole manifest.
//
//go:embed manifest.json
var JSON []byte

// HTTP is the manifest of an app in HTTP mode: with the request URLs of a
// daemon at origin, such as https://nize.example.com.
func HTTP(origin string) []byte {
	text := string(JSON)
	for _, change := range [][2]string{
		{`"socket_mode_enabled": true`, `"socket_mode_enabled": false`},
		{`"event_subscriptions": {`, `"event_subscriptions": {` + "\n      " + `"request_url": "` + origin + `/slack/events",`},
		{`"interactivity": { "is_enabled": true`, `"interactivity": { "is_enabled": true, "request_url": "` + origin + `/slack/interactions"`},
		{`{ "command": "/nize",`, `{ "command": "/nize", "url": "` + origin + `/slack/commands",`},
	} {
		if strings.Count(text, change[0]) != 1 {
			panic("manifest.json lacks " + change[0]) // it is a part of the program
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return []byte(text)
}

// Prompt is one of the questions that Slack offers beside an empty chat.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Command is a slash command.
type Command struct {
	Name  string `json:"command"`
	About string `json:"description"`
	Hint  string `json:"usage_hint"` // the words that may follow: "[one | another]"
}

// manifest is what is read of it.
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
		panic(err) // it is a part of the program
	}
	return m
}

// Scopes are what the bot's token must allow, sorted.
func Scopes() []string { return slices.Sorted(slices.Values(read().OAuth.Scopes.Bot)) }

// Commands are the slash commands.
func Commands() []Command { return read().Features.Commands }

// Prompts are the suggested questions.
func Prompts() []Prompt { return read().Features.Agent.Prompts }
