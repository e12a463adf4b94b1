package mcp

import (
	"bytes"
	"encoding/json"
)

// The names of the five meta-tools.
const (
	Discover = "discover_tools"
	Describe = "get_tool_schema"
	Execute  = "execute_tool"
	Domains  = "list_tool_domains"
	Browse   = "browse_tool_domain"
)

// mustJSON encodes a value of ours, without escaping for HTML. Values whose
// raw parts are no JSON are a programmer's mistake.
func mustJSON(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
