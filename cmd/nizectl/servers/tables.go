package servers

import (
	"fmt"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// HealthTable returns a table of servers and their health.
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

// lastError returns a server's last error for an operator. The stored text about a missing
// login is for people in a chat and names a chat command.
func lastError(s api.Health) string {
	if s.State == "login needed" {
		return "sign in: nizectl servers login " + s.Name
	}
	return s.LastError
}

// ToolTable returns a table of tools, with the state of those that are not accepted.
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

// areHeld returns how many tools are held: "1 tool is", "14 tools are".
func areHeld(n int) string {
	if n == 1 {
		return "1 tool is"
	}
	return command.Count(n, "tool") + " are"
}
