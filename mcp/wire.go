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

// mustJSON encodes a value without HTML escaping. It panics if a raw part of the value is
// not valid JSON, which is a programmer's mistake.
func mustJSON(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
