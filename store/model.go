package store

import (
	"strings"
	"time"
)

// Provider is an account at a model service.
type Provider struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // of llm/openai, or offline
	BaseURL string    `json:"base_url,omitempty"`
	Key     Secret    `json:"-"` // sealed at rest
	HasKey  bool      `json:"has_key"`
	Enabled bool      `json:"enabled"`
	Origin  string    `json:"origin,omitempty"` // the file and line that define it; "" was created by hand
	Created time.Time `json:"created"`
}

// ModelName maps a logical name to provider/model.
type ModelName struct {
	Name      string   `json:"name"`
	Target    string   `json:"target"` // provider/model
	Fallbacks []string `json:"fallbacks,omitempty"`
	Default   bool     `json:"default,omitempty"` // PutModel clears it on the others
	Who       []string `json:"who,omitempty"`     // who may use it: user:ID, group:NAME, or admins; empty is everyone
	Window    int      `json:"window,omitempty"`  // Target's context window in tokens; 0 is the value of the built-in table
	Origin    string   `json:"origin,omitempty"`  // as in Provider
}

// Price is the price of a model, in US dollars per million tokens.
type Price struct {
	Model   string    `json:"model"`            // provider/model
	In      float64   `json:"in"`               // of the prompt
	Cached  float64   `json:"cached"`           // of the part of the prompt that the provider had cached
	Out     float64   `json:"out"`              // of the answer, including reasoning
	Updated time.Time `json:"updated,omitzero"` // when an admin set it
}

// Agent is a named profile of the assistant.
type Agent struct {
	ID           string    `json:"id"`
	Name         string    `json:"name,omitempty"`
	Model        string    `json:"model,omitempty"` // "" is the default model
	SystemPrompt string    `json:"system_prompt,omitempty"`
	MaxTokens    int       `json:"max_tokens,omitempty"`
	Temperature  *float64  `json:"temperature,omitempty"`
	AllowedTools []string  `json:"allowed_tools,omitempty"` // patterns; nil is all tools of enabled MCP servers
	Direct       bool      `json:"direct,omitempty"`        // its tools are functions of its model; otherwise it searches for them
	MaxSteps     int       `json:"max_steps,omitempty"`     // 0 is the setting agent.tools.maxSteps
	Approval     string    `json:"approval,omitempty"`      // none, all, whitelist, blacklist, auto; "" is the system's
	Default      bool      `json:"default,omitempty"`       // PutAgent clears it on the others
	Who          []string  `json:"who,omitempty"`           // who may use it: user:ID, group:NAME, or admins; empty is everyone
	Origin       string    `json:"origin,omitempty"`        // as in Provider, or an ExtensionOrigin
	Created      time.Time `json:"created"`
}

// ExtensionOrigin returns the Origin of what an extension provides: its file, relative to
// the data directory.
func ExtensionOrigin(name string) string { return "extensions/" + name + "/extension.json" }

// FromExtension reports whether an extension provides the agent. Origins in the
// configuration file end in a line number.
func (a Agent) FromExtension() bool {
	return strings.HasPrefix(a.Origin, "extensions/") && strings.HasSuffix(a.Origin, "/extension.json")
}

// MayUse reports whether the caller, a member of the given groups, may use the model by its
// name; admins may use all.
func (m ModelName) MayUse(by Caller, groups []string) bool { return mayUse(m.Who, by, groups) }

// MayUse reports whether the caller, a member of the given groups, may use the agent;
// admins may use all.
func (a Agent) MayUse(by Caller, groups []string) bool { return mayUse(a.Who, by, groups) }

func mayUse(who []string, by Caller, groups []string) bool {
	return len(who) == 0 || by.IsAdmin() || Among(who, by.User, groups)
}
