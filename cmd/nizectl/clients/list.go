package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/daemon/mcpfile"
)

// listed is a client in the list of connect.
type listed struct {
	Client    string `json:"client"`
	Title     string `json:"title"`
	Installed bool   `json:"installed"`
	Connected bool   `json:"connected"` // its file has an entry called --name
	File      string `json:"file"`
}

// list prints the clients, and which of them are installed.
func list(c *command.Call) error {
	for _, flag := range []string{"write", "hooks", "file"} {
		if c.Cmd.IsSet(flag) {
			return command.Usagef("connect --%s needs CLIENT: nizectl connect lists them", flag)
		}
	}
	home, err := api.Home()
	if err != nil {
		return fmt.Errorf("finding the clients: %w", err)
	}
	w := where{mac: runtime.GOOS == "darwin", home: home, env: c.Env}
	all := command.Each(clients, func(one client) listed { return look(one, w, c.Cmd.String("name")) })
	if c.JSON {
		return c.PrintJSON(all)
	}
	t := c.Table("CLIENT", "INSTALLED", "CONNECTED", "NAME", "FILE")
	t.State = 1
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "-"
	}
	for _, one := range all {
		t.Row(one.Client, yes(one.Installed), yes(one.Connected), one.Title, one.File)
	}
	t.Print("")
	c.Note("to connect one: nizectl connect CLIENT --write; for another, let it start: nizectl mcp")
	return nil
}

// look looks for a client on this machine: its program, its file, or the file's folder.
func look(one client, w where, name string) listed {
	out := listed{Client: one.name, Title: one.title, File: one.file(w)}
	for _, program := range one.found {
		_, err := exec.LookPath(program)
		out.Installed = out.Installed || err == nil
	}
	text, _, err := readFile(out.File)
	if err == nil && text != nil {
		out.Installed = true
		file, err := mcpfile.Read(text, mcpfile.Options{Env: func(string) (string, bool) { return "", false }})
		out.Connected = err == nil && slices.ContainsFunc(file.Entries, func(e mcpfile.Entry) bool { return e.Key == name && e.Project == "" })
	}
	if dir := filepath.Dir(out.File); dir != w.home && !out.Installed {
		info, err := os.Stat(dir)
		out.Installed = err == nil && info.IsDir()
	}
	return out
}
