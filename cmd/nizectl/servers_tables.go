package main

import (
	"fmt"
	"strings"

	"nize/daemon/api"
)

// healthTable shows servers as people ask for them.
func (a *app) healthTable(servers []api.Health) *table {
	t := a.table("SERVER", "STATE", "TOOLS", "LATENCY", "RESTARTS", "LAST ERROR").numbers(2, 3, 4).text(5)
	t.state = 1
	for _, s := range servers {
		tools := fmt.Sprint(s.ToolCount)
		if s.Held > 0 {
			tools += fmt.Sprintf(" (%d held)", s.Held)
		}
		t.row(s.Name, s.State, tools, millis(s.LatencyMS), fmt.Sprint(s.Restarts), clip(s.LastError, 60))
	}
	return t
}

// toolTable shows tools, with their state where one is not accepted.
func (a *app) toolTable(tools []api.ToolView) *table {
	t := a.table("TOOL", "STATE", "DESCRIPTION").text(2)
	t.state = 1
	for _, tool := range tools {
		about := tool.Description
		if len(tool.Findings) > 0 {
			about = strings.Join(tool.Findings, "; ")
		}
		t.row(tool.ID, string(tool.State), clip(about, 80))
	}
	return t
}
