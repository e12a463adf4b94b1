// Package clients connects the MCP clients and coding agents of this machine to nize.
//
// `nizectl mcp` is the server that they start, and `nizectl connect` writes the entry that
// starts it, in the form documented by each client.
package clients

import (
	"os"
	"path/filepath"
	"time"

	"nize/daemon/mcpfile"
)

// client is one MCP client: where it stores its servers, and in what form.
type client struct {
	name  string
	title string
	file  func(where) string
	key   string // the key of its servers
	form  form
	typed bool                                     // an entry must name the transport stdio
	shape func(name string, e mcpfile.Command) any // for entries with other fields
	unit  time.Duration                            // of an entry's call timeout; 0: the client has none
	found []string                                 // programs that show that it is installed, besides its file's folder
	after string                                   // how to make it load the entry
}

// form sets an entry in the text of a configuration file.
type form func(text []byte, key, name string, entry any) (out []byte, changed bool, err error)

// waits is the call timeout set in a client. A call may wait for a person, so it is a
// minute longer than nize's own wait (mcp.wait).
const waits = 11 * time.Minute

func setTOML(text []byte, key, name string, entry any) (out []byte, changed bool, err error) {
	return mcpfile.SetTOML(text, key, name, entry.(mcpfile.Command)) // a client with TOML has no shape
}

func setYAML(text []byte, key, name string, entry any) (out []byte, changed bool, err error) {
	return mcpfile.SetYAML(text, key, name, entry.([]mcpfile.Field)) // from gooseEntry
}

// where is what the path of a file depends on.
type where struct {
	mac  bool
	home string
	env  func(string) string
}

// config returns a path in the user's configuration directory.
func (w where) config(names ...string) string {
	dir := filepath.Join(w.home, ".config")
	if xdg := w.env("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		dir = xdg
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// support does the same for programs that follow the Mac's conventions there.
func (w where) support(names ...string) string {
	if w.mac {
		return filepath.Join(append([]string{w.home, "Library", "Application Support"}, names...)...)
	}
	return w.config(names...)
}

// first returns the first existing file, or the last path.
func (w where) first(paths ...string) string {
	for _, path := range paths[:len(paths)-1] {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return paths[len(paths)-1]
}

// own returns a path in the program's directory in the home, which a variable may move.
func (w where) own(variable, dir, name string) string {
	if at := w.env(variable); variable != "" && filepath.IsAbs(at) {
		return filepath.Join(at, name)
	}
	return filepath.Join(w.home, dir, name)
}

// clients lists all clients. Claude Desktop accepts no HTTP server in its file; the others
// would, but a URL needs a token.
var clients = []client{
	{name: "claude-desktop", title: "Claude Desktop", key: "mcpServers", form: mcpfile.SetJSON, after: "quit it and start it again",
		file: func(w where) string { return w.support("Claude", "claude_desktop_config.json") }},
	{name: "claude-code", title: "Claude Code", key: "mcpServers", form: mcpfile.SetJSON, typed: true, found: []string{"claude"}, after: "start a new session",
		file: func(w where) string { return w.own("CLAUDE_CONFIG_DIR", "", ".claude.json") }},
	{name: "cursor", title: "Cursor", key: "mcpServers", form: mcpfile.SetJSON, typed: true, found: []string{"cursor"}, after: "turn it on in Settings, MCP",
		file: func(w where) string { return w.own("", ".cursor", "mcp.json") }},
	{name: "vscode", title: "VS Code", key: "servers", form: mcpfile.SetJSON, typed: true, found: []string{"code"}, after: "run MCP: List Servers",
		file: func(w where) string { return w.support("Code", "User", "mcp.json") }},
	{name: "zed", title: "Zed", key: "context_servers", form: mcpfile.SetJSON, found: []string{"zed"}, after: "it is in the agent's settings at once",
		file: func(w where) string { return w.config("zed", "settings.json") }},
	{name: "windsurf", title: "Windsurf", key: "mcpServers", form: mcpfile.SetJSON, after: "press Refresh in Cascade, MCP servers",
		file: func(w where) string { return w.own("", ".codeium/windsurf", "mcp_config.json") }},
	{name: "codex", title: "Codex", key: "mcp_servers", form: setTOML, unit: time.Second, found: []string{"codex"}, after: "start a new session",
		file: func(w where) string { return w.own("CODEX_HOME", ".codex", "config.toml") }},
	{name: "gemini-cli", title: "Gemini CLI", key: "mcpServers", form: mcpfile.SetJSON, unit: time.Millisecond, found: []string{"gemini"}, after: "start a new session",
		file: func(w where) string { return w.own("", ".gemini", "settings.json") }},
	{name: "copilot-cli", title: "GitHub Copilot CLI", key: "mcpServers", form: mcpfile.SetJSON, shape: copilotEntry, unit: time.Millisecond, found: []string{"copilot"}, after: "start a new session",
		file: func(w where) string { return w.own("COPILOT_HOME", ".copilot", "mcp-config.json") }},
	{name: "opencode", title: "opencode", key: "mcp", form: mcpfile.SetJSON, shape: opencodeEntry, unit: time.Millisecond, found: []string{"opencode"}, after: "start it again",
		file: func(w where) string {
			return w.first(w.config("opencode", "opencode.jsonc"), w.config("opencode", "opencode.json"))
		}},
	{name: "cline", title: "Cline in VS Code", key: "mcpServers", form: mcpfile.SetJSON, unit: time.Second, after: "it is among its MCP servers at once",
		file: func(w where) string {
			return w.support("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
		}},
	{name: "goose", title: "Goose", key: "extensions", form: setYAML, shape: gooseEntry, unit: time.Second, found: []string{"goose"}, after: "start a new session",
		file: func(w where) string { return w.config("goose", "config.yaml") }},
	{name: "jetbrains", title: "Junie in JetBrains IDEs", key: "mcpServers", form: mcpfile.SetJSON, after: "see Settings, Tools, Junie, MCP",
		file: func(w where) string { return w.own("", ".junie/mcp", "mcp.json") }},
	{name: "lm-studio", title: "LM Studio", key: "mcpServers", form: mcpfile.SetJSON, found: []string{"lms"}, after: "it is in the Program tab at once",
		file: func(w where) string { return w.own("", ".lmstudio", "mcp.json") }},
}

// entry returns the command that starts nizectl mcp for the client.
func (c client) entry(program, socket string) mcpfile.Command {
	e := mcpfile.Command{Path: program, Args: []string{"--socket", socket, "mcp"}}
	if c.typed {
		e.Type = "stdio"
	}
	if c.unit > 0 {
		e.Wait = int(waits / c.unit)
	}
	return e
}

// written returns the entry in the form of the client's file.
func (c client) written(name string, e mcpfile.Command) any {
	if c.shape != nil {
		return c.shape(name, e)
	}
	return e
}

// copilotEntry names the allowed tools; without them none is allowed.
func copilotEntry(_ string, e mcpfile.Command) any {
	return struct {
		Type    string   `json:"type"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Tools   []string `json:"tools"`
		Timeout int      `json:"timeout"`
	}{"local", e.Path, e.Args, []string{"*"}, e.Wait}
}

// opencodeEntry has the command and its arguments in one list.
func opencodeEntry(_ string, e mcpfile.Command) any {
	return struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
		Timeout int      `json:"timeout"`
	}{"local", append([]string{e.Path}, e.Args...), true, e.Wait}
}

// gooseEntry returns an extension of Goose.
func gooseEntry(name string, e mcpfile.Command) any {
	return []mcpfile.Field{
		{Name: "enabled", Value: true}, {Name: "type", Value: "stdio"}, {Name: "name", Value: name}, {Name: "description", Value: "The team's tools, through nize"},
		{Name: "cmd", Value: e.Path}, {Name: "args", Value: e.Args}, {Name: "timeout", Value: e.Wait},
	}
}
