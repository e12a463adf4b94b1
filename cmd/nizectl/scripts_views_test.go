package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// viewed is an MCP server on standard input and output with a tool whose view declares
// that it connects to what stands in the file that is its argument.
func viewed() int {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || len(req.ID) == 0 {
			continue
		}
		var result any = struct{}{}
		switch req.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": struct{}{}, "resources": struct{}{}}, "serverInfo": map[string]any{"name": "harbour", "version": "1"}}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{"name": "harbour_map", "description": "Shows the map of the harbour.", "inputSchema": map[string]any{"type": "object"}, "_meta": map[string]any{"ui": map[string]any{"resourceUri": "ui://harbour/map"}}}}}
		case "resources/list":
			result = map[string]any{"resources": []any{}}
		case "resources/templates/list":
			result = map[string]any{"resourceTemplates": []any{}}
		case "resources/read":
			domains, err := os.ReadFile(os.Args[1])
			if err != nil {
				return 1
			}
			csp := map[string]any{"connectDomains": strings.Fields(string(domains))}
			result = map[string]any{"contents": []any{map[string]any{"uri": "ui://harbour/map", "mimeType": "text/html;profile=mcp-app", "text": "<p>The map", "_meta": map[string]any{"ui": map[string]any{"csp": csp}}}}}
		case "tools/call":
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": "Three ships."}}}
		}
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
		if err != nil {
			return 1
		}
		fmt.Println(string(line))
	}
	return 0
}
