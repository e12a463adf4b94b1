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
	Origin  string    `json:"origin,omitempty"` // the file and line that it is from; "" was made by hand
	Created time.Time `json:"created"`
}

// ModelName is a logical name mapped to provider/model.
type ModelName struct {
	Name      string   `json:"name"`
	Target    string   `json:"target"` // provider/model
	Fallbacks []string `json:"fallbacks,omitempty"`
	Default   bool     `json:"default,omitempty"` // PutModel clears it on the others
	Who       []string `json:"who,omitempty"`     // may use it: user:ID, group:NAME, or admins alone; empty is all
	Window    int      `json:"window,omitempty"`  // tokens that Target takes; 0 is what the built-in table says
	Origin    string   `json:"origin,omitempty"`  // as of a Provider
}

// Price is what a model costs, in US dollars per million tokens.
type Price struct {
	Model   string    `json:"model"`            // provider/model
	In      float64   `json:"in"`               // of the prompt
	Cached  float64   `json:"cached"`           // of what of the prompt the provider had cached
	Out     float64   `json:"out"`              // of the answer, reasoning included
	Updated time.Time `json:"updated,omitzero"` // when an admin set it
}

// Agent is a named profile.
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
	Who          []string  `json:"who,omitempty"`           // may use it: user:ID, group:NAME, or admins alone; empty is all
	Origin       string    `json:"origin,omitempty"`        // as of a Provider, or an ExtensionOrigin
	Created      time.Time `json:"created"`
}

// ExtensionOrigin is the Origin of what an extension brings: its file, below the
// data directory.
func ExtensionOrigin(name string) string { return "extensions/" + name + "/extension.json" }

// FromExtension says whether an extension brings it. What the configuration file has
// ends in a line.
func (a Agent) FromExtension() bool {
	return strings.HasPrefix(a.Origin, "extensions/") && strings.HasSuffix(a.Origin, "/extension.json")
}

// MayUse says whether the caller, who is in the groups named, may use the
// model by its name; admins may use all.
func (m ModelName) MayUse(by Caller, groups []string) bool { return mayUse(m.Who, by, groups) }

// MayUse says whether the caller, who is in the groups named, may use the
// agent; admins may use all.
func (a Agent) MayUse(by Caller, groups []string) bool { return mayUse(a.Who, by, groups) }

func mayUse(who []string, by Caller, groups []string) bool {
	return len(who) == 0 || by.IsAdmin() || Among(who, by.User, groups)
}
