package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/daemon/agenthook"
	"nize/daemon/api"
	"nize/daemon/mcpfile"
	"nize/store"
)

// hookLimit is the timeout for the hook set in the agents, in seconds; the hook ends before
// that.
const hookLimit = 600

// hookFile is where an agent stores its hooks, and in what form.
type hookFile struct {
	file  func(where) string
	lists []hookList
	after string // how to make the agent load them
}

// hookList is a list in a file, and the form of its entries.
type hookList struct {
	path  []string
	entry func(command string) any
}

// hook is an entry in the form of Claude Code, Codex and Gemini CLI: hooks for tools that
// match a matcher.
type hook struct {
	Matcher string       `json:"matcher"`
	Hooks   []hookAction `json:"hooks"`
}

type hookAction struct {
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Command   string `json:"command"`
	Timeout   int    `json:"timeout"`
	OnFailure string `json:"onFailure,omitempty"`
}

// cursorHook is an entry in the form of Cursor.
type cursorHook struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout"`
	FailClosed bool   `json:"failClosed"`
}

var hookFiles = map[string]hookFile{
	"claude-code": {
		file: func(w where) string {
			if at := w.env("CLAUDE_CONFIG_DIR"); filepath.IsAbs(at) {
				return filepath.Join(at, "settings.json")
			}
			return filepath.Join(w.home, ".claude", "settings.json")
		},
		lists: []hookList{{[]string{"hooks", "PreToolUse"}, func(command string) any {
			return hook{"*", []hookAction{{Type: "command", Command: command, Timeout: hookLimit, OnFailure: "block"}}}
		}}},
		after: "start a new session",
	},
	"codex": {
		file: func(w where) string { return w.own("CODEX_HOME", ".codex", "hooks.json") },
		lists: []hookList{{[]string{"hooks", "PreToolUse"}, func(command string) any {
			return hook{"*", []hookAction{{Type: "command", Command: command, Timeout: hookLimit}}}
		}}},
		after: "start a new session, and trust the hook when Codex asks",
	},
	"cursor": {
		file: func(w where) string { return w.own("", ".cursor", "hooks.json") },
		lists: []hookList{
			{[]string{"hooks", "beforeShellExecution"}, func(command string) any { return cursorHook{command, hookLimit, true} }},
			{[]string{"hooks", "beforeMCPExecution"}, func(command string) any { return cursorHook{command, hookLimit, true} }},
		},
		after: "restart Cursor",
	},
	"gemini-cli": {
		file: func(w where) string { return w.own("", ".gemini", "settings.json") },
		lists: []hookList{{[]string{"hooks", "BeforeTool"}, func(command string) any {
			return hook{"*", []hookAction{{Type: "command", Name: "nize", Command: command, Timeout: hookLimit * 1000}}}
		}}},
		after: "start a new session",
	},
}

// hookNames returns the clients that have hooks.
func hookNames() []string {
	return command.Each(agenthook.Clients, func(c agenthook.Client) string { return c.Name })
}

// hookClient returns the client with the form of its hooks file.
func hookClient(one client) (client, error) {
	f, ok := hookFiles[one.name]
	if !ok {
		return one, command.Usagef("--hooks: hooks of %s are not supported; supported clients: %s", one.title, strings.Join(hookNames(), ", "))
	}
	one.file, one.after = f.file, f.after
	one.shape, one.unit = nil, 0
	one.form = func(text []byte, _, _ string, any any) (out []byte, changed bool, err error) {
		entry := any.(mcpfile.Command) // it has no shape
		line := entry.Path
		if strings.ContainsAny(line, " \t\"'\\$`;&|<>()*?[]{}~#!") {
			line = "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		}
		for _, arg := range entry.Args {
			line += " " + arg
		}
		out = text
		for _, list := range f.lists {
			var did bool
			if out, did, err = mcpfile.AddToList(out, list.path, list.entry(line), isOurs(one.name)); err != nil {
				return nil, false, err
			}
			changed = changed || did
		}
		if len(bytes.TrimSpace(text)) > 0 {
			return out, changed, nil
		}
		if one.name == "cursor" {
			out = bytes.Replace(out, []byte("{"), []byte(`{"version": 1,`), 1)
		}
		var whole bytes.Buffer
		err = json.Indent(&whole, out, "", "  ")
		return whole.Bytes(), changed, err
	}
	return one, nil
}

// isOurs reports whether an entry of a list was written by connect.
func isOurs(name string) func(json.RawMessage) bool {
	return func(raw json.RawMessage) bool { return bytes.Contains(raw, []byte(" hook "+name)) }
}

// hookEntry returns the command of the hook. It names the socket, since agents start it in
// any directory and environment.
func hookEntry(one client, program, socket string) mcpfile.Command {
	if strings.ContainsAny(socket, " '") {
		socket = "'" + strings.ReplaceAll(socket, "'", `'\''`) + "'"
	}
	return mcpfile.Command{Path: program, Args: []string{"--socket", socket, "hook", one.name}}
}

// addSource registers the client as a source of asks, if there is none.
func addSource(ctx context.Context, c *command.Call, one client) {
	_, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: one.name})
	if err == nil {
		return
	}
	if api.ExitCode(err) == api.ExitNotFound {
		_, err = api.AddServer.Call(ctx, c.API, api.AddServerRequest{Server: store.Server{Name: one.name, Transport: store.External, About: store.About{Title: one.title}}})
	}
	switch {
	case err == nil:
		c.Note("%s is now a source of asks, for admins only; to share it: nizectl servers share %s --with all|group:G|user:U", one.name, one.name)
	case errors.Is(err, store.ErrExists):
	case errors.Is(err, api.ErrNoDaemon):
		c.Note("nized does not run, so the source could not be added: nizectl servers add %s --external", one.name)
	default:
		c.Note("the source of asks is missing or not shared with you (%v); an admin can add it: nizectl servers add %s --external && nizectl servers share %s --with all", err, one.name, one.name)
	}
}
