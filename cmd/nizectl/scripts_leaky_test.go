package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// leaky is an MCP server on standard input and output that repeats its variable
// KEY wherever it can: as it is, in base64 and percent-encoded.
func leaky() int {
	key := os.Getenv("KEY")
	said := fmt.Sprintf("%s, %s, %s and %s", key, base64.StdEncoding.EncodeToString([]byte("ann:"+key)), base64.RawURLEncoding.EncodeToString([]byte(key)), url.QueryEscape(key))
	fmt.Fprintln(os.Stderr, "started with "+said)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name            string
				ProtocolVersion string
			}
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || len(req.ID) == 0 {
			continue
		}
		text := map[string]any{"type": "text", "text": "The phrase of the day is " + said}
		result, failure := any(struct{}{}), any(nil)
		switch req.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": req.Params.ProtocolVersion, "capabilities": map[string]any{"tools": struct{}{}}, "serverInfo": map[string]any{"name": key, "version": "1"}, "instructions": "log in with " + said}
		case "tools/list":
			var tools []any
			for _, name := range []string{"phrase_of_the_day", "refuse", "fail"} {
				tools = append(tools, map[string]any{"name": name, "description": "Tells the phrase of the day, with " + said, "inputSchema": map[string]any{"type": "object"}, "annotations": map[string]any{"readOnlyHint": true}})
			}
			result = map[string]any{"tools": tools}
		case "tools/call":
			switch req.Params.Name {
			case "refuse":
				result, failure = nil, map[string]any{"code": -32602, "message": "bad arguments: " + said, "data": said}
			case "fail":
				result = map[string]any{"isError": true, "content": []any{text}}
			default:
				result = map[string]any{"content": []any{text}, "structuredContent": map[string]any{key: said}}
			}
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result}
		if failure != nil {
			reply = map[string]any{"jsonrpc": "2.0", "id": req.ID, "error": failure}
		}
		line, err := json.Marshal(reply)
		if err != nil {
			return 1
		}
		fmt.Println(strings.ReplaceAll(string(line), "\n", ""))
	}
	return 0
}
