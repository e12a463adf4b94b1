package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// askedText summarizes a function's arguments for a person: the words of a search, the name
// of a tool, otherwise the arguments.
func askedText(tc store.ToolCall) string {
	var args struct {
		Query    string `json:"query"`
		ToolID   string `json:"tool_id"`
		DomainID string `json:"domain_id"`
	}
	if err := json.Unmarshal([]byte(tc.Args), &args); err != nil {
		return brief(tc.Args)
	}
	for _, s := range []string{args.Query, args.ToolID, args.DomainID} {
		if s != "" && tc.Name != ExecuteTool {
			return brief(s)
		}
	}
	if args.ToolID != "" || tc.Args == "{}" {
		return brief(args.ToolID)
	}
	return brief(tc.Args)
}

// foundNames summarizes the result of a meta-tool for a person: names instead of JSON.
func foundNames(text string) store.Text {
	var answer struct {
		Tools []struct {
			ToolID string `json:"tool_id"`
		} `json:"tools"`
		Domains []struct {
			ID string `json:"id"`
		} `json:"domains"`
		ToolID string `json:"tool_id"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return store.Plain(text)
	}
	var names []string
	for _, t := range answer.Tools {
		names = append(names, t.ToolID)
	}
	for _, d := range answer.Domains {
		names = append(names, d.ID)
	}
	switch {
	case answer.ToolID != "":
		return store.Plain(answer.ToolID)
	case len(names) == 0:
		return store.Textf("nothing")
	case len(names) > 3:
		return store.Plain(fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3))
	}
	return store.Plain(strings.Join(names, ", "))
}

// brief returns a text as one short line.
func brief(text string) string { return store.Brief(text) }
