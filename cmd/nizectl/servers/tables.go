package servers

import (
	"fmt"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// HealthTable shows servers as people ask for them.
func HealthTable(a *command.App, servers []api.Health) *command.Table {
	t := a.Table("SERVER", "STATE", "TOOLS", "LATENCY", "RESTARTS", "LAST ERROR").Numbers(2, 3, 4).Text(5)
	t.State = 1
	for _, s := range servers {
		tools := fmt.Sprint(s.ToolCount)
		if s.Held > 0 {
			tools += fmt.Sprintf(" (%d held)", s.Held)
		}
		if s.Refused > 0 {
			tools += fmt.Sprintf(" (%d refused)", s.Refused)
		}
		t.Row(s.Name, s.State, tools, command.Millis(s.LatencyMS), fmt.Sprint(s.Restarts), lastError(s))
	}
	return t
}

// lastError is a server's last error as an operator reads it: that a login is needed is
// said to people in a chat, with the command that is there.
func lastError(s api.Health) string {
	if s.State == "login needed" {
		return "sign in: nizectl servers login " + s.Name
	}
	return s.LastError
}

// ToolTable shows tools, with their state where one is not accepted.
func ToolTable(a *command.App, tools []api.ToolView) *command.Table {
	t := a.Table("TOOL", "STATE", "DESCRIPTION").Text(2)
	t.State = 1
	for _, tool := range tools {
		about := tool.Description
		if len(tool.Findings) > 0 {
			about = strings.Join(tool.Findings, "; ")
		}
		t.Row(tool.ID, string(tool.State), about)
	}
	return t
}

// areHeld says how many tools are held: "1 tool is", "14 tools are".
func areHeld(n int) string {
	if n == 1 {
		return "1 tool is"
	}
	return command.Count(n, "tool") + " are"
}
