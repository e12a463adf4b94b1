// Package clients connects the MCP clients of this machine: `nizectl mcp` is
// the server that they start, `nizectl connect` the entry that starts it, as
// the documentation of each has it.
package clients

import (
	"path/filepath"

	"nize/daemon/mcpfile"
)

// client is one MCP client: where it keeps its servers, and in what form.
type client struct {
	name  string
	title string
	file  func(where) string
	key   string // what its servers stand under
	form  form
	typed bool   // an entry says that it is over standard input and output
	after string // what makes it see the entry
}

// form is that of a file.
type form func(text []byte, key, name string, entry mcpfile.Command) (out []byte, changed bool, err error)

// where is what the place of a file depends on.
type where struct {
	mac  bool
	home string
	env  func(string) string
}

// config is the directory that programs keep their settings in.
func (w where) config(names ...string) string {
	dir := filepath.Join(w.home, ".config")
	if xdg := w.env("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		dir = xdg
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// support is the same for programs that follow the Mac's habits there.
func (w where) support(names ...string) string {
	if w.mac {
		return filepath.Join(append([]string{w.home, "Library", "Application Support"}, names...)...)
	}
	return w.config(names...)
}

// own is a directory of the program's in the home, which a variable may move.
func (w where) own(variable, dir, name string) string {
	if at := w.env(variable); variable != "" && filepath.IsAbs(at) {
		return filepath.Join(at, name)
	}
	return filepath.Join(w.home, dir, name)
}

// clients are all of them. Claude Desktop takes no server over HTTP from its
// file; the others would, but a URL needs a token.
var clients = []client{
	{name: "claude-desktop", title: "Claude Desktop", key: "mcpServers", form: mcpfile.SetJSON, after: "quit it and start it again",
		file: func(w where) string { return w.support("Claude", "claude_desktop_config.json") }},
	{name: "claude-code", title: "Claude Code", key: "mcpServers", form: mcpfile.SetJSON, typed: true, after: "start a new session",
		file: func(w where) string { return w.own("CLAUDE_CONFIG_DIR", "", ".claude.json") }},
	{name: "cursor", title: "Cursor", key: "mcpServers", form: mcpfile.SetJSON, typed: true, after: "turn it on in Settings, MCP",
		file: func(w where) string { return w.own("", ".cursor", "mcp.json") }},
	{name: "vscode", title: "VS Code", key: "servers", form: mcpfile.SetJSON, typed: true, after: "run MCP: List Servers",
		file: func(w where) string { return w.support("Code", "User", "mcp.json") }},
	{name: "zed", title: "Zed", key: "context_servers", form: mcpfile.SetJSON, after: "it is in the agent's settings at once",
		file: func(w where) string { return w.config("zed", "settings.json") }},
	{name: "windsurf", title: "Windsurf", key: "mcpServers", form: mcpfile.SetJSON, after: "press Refresh in Cascade, MCP servers",
		file: func(w where) string { return w.own("", ".codeium/windsurf", "mcp_config.json") }},
	{name: "codex", title: "Codex", key: "mcp_servers", form: mcpfile.SetTOML, after: "start a new session",
		file: func(w where) string { return w.own("CODEX_HOME", ".codex", "config.toml") }},
	{name: "gemini-cli", title: "Gemini CLI", key: "mcpServers", form: mcpfile.SetJSON, after: "start a new session",
		file: func(w where) string { return w.own("", ".gemini", "settings.json") }},
}

// entry is what starts nizectl mcp there.
func (c client) entry(program, socket string) mcpfile.Command {
	e := mcpfile.Command{Path: program, Args: []string{"--socket", socket, "mcp"}}
	if c.typed {
		e.Type = "stdio"
	}
	return e
}
