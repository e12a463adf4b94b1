package expose

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// Tool is a server's tool as a client sees it: as listed, under another name.
func Tool(name string, t *store.Tool) *sdk.Tool {
	out := &sdk.Tool{
		Name: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		Meta: MetaOf(t.Meta), Icons: iconsOf(t.Icons),
	}
	if len(t.OutputSchema) > 0 {
		out.OutputSchema = t.OutputSchema
	}
	if a := t.Annotations; a != (store.Annotations{}) {
		yes := func(b *bool) bool { return b != nil && *b }
		out.Annotations = &sdk.ToolAnnotations{Title: a.Title, ReadOnlyHint: yes(a.ReadOnly), IdempotentHint: yes(a.Idempotent), DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
	}
	return out
}

// MetaOf reads a _meta object with its numbers as they were written; nil for what
// is none.
func MetaOf(raw json.RawMessage) sdk.Meta {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m sdk.Meta
	if err := dec.Decode(&m); err != nil {
		return nil
	}
	return m
}

func iconsOf(raw json.RawMessage) []sdk.Icon {
	var list []sdk.Icon
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
