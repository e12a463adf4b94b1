package expose

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/feature"
	"nize/store"
	"nize/store/toolschema"
)

// anyOutput is the first protocol version in which structured content, and the root of its
// schema, may be of any type.
const anyOutput = "2026-07-28"

// Tool returns a server's tool as a client of a protocol version sees it: as listed, under
// another name, without its view, which is announced separately. Clients drop a whole list
// because of one unacceptable schema, so an input schema gets the root type that all
// require, and an output schema is omitted if older clients don't accept its root type.
func Tool(name string, t *store.Tool, version string) *sdk.Tool {
	out := &sdk.Tool{
		Name: name, Title: t.Title, Description: t.Description, InputSchema: toolschema.Listed(t.InputSchema),
		Meta: WithoutViews(MetaOf(t.Meta)), Icons: iconsOf(t.Icons),
	}
	if toolschema.IsObject(t.OutputSchema) || version >= anyOutput && IsObject(t.OutputSchema) {
		out.OutputSchema = t.OutputSchema
	}
	if a := t.Annotations; a != (store.Annotations{}) {
		yes := func(b *bool) bool { return b != nil && *b }
		out.Annotations = &sdk.ToolAnnotations{Title: a.Title, ReadOnlyHint: yes(a.ReadOnly), IdempotentHint: yes(a.Idempotent), DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
	}
	return out
}

// Structured returns the structured content of a result as a client of a protocol version
// accepts it: older clients drop a result in which it is not an object.
func Structured(content json.RawMessage, version string) json.RawMessage {
	if version >= anyOutput || IsObject(content) {
		return content
	}
	return nil
}

// IsObject reports whether a value is a JSON object.
func IsObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// MetaOf parses a _meta object and keeps its numbers as written. It returns nil for any
// other value.
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

// WithoutViews removes the fields about views, of servers and of nize itself, from a _meta:
// clients that show views get them separately.
func WithoutViews(m sdk.Meta) sdk.Meta {
	maps.DeleteFunc(m, func(key string, _ any) bool {
		return key == "ui" || strings.HasPrefix(key, "ui/") || strings.HasPrefix(key, "nize/") || key == "openai/outputTemplate" || strings.HasPrefix(key, "openai/widget")
	})
	return m
}

func iconsOf(raw json.RawMessage) []sdk.Icon {
	var list []sdk.Icon
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// Prompt returns a server's prompt as a client sees it.
func Prompt(name string, t *store.Tool) *sdk.Prompt {
	p := &sdk.Prompt{}
	read(t, p)
	p.Name, p.Icons = name, iconsOf(t.Icons)
	return p
}

// Resource returns a server's resource as a client sees it.
func Resource(t *store.Tool) *sdk.Resource {
	r := &sdk.Resource{}
	read(t, r)
	_, uri := feature.Of(t.Name)
	r.URI, r.Icons, r.Meta = Address(t.Server, uri), iconsOf(t.Icons), WithoutViews(r.Meta)
	return r
}

// Template returns a server's resource template as a client sees it.
func Template(t *store.Tool) *sdk.ResourceTemplate {
	r := &sdk.ResourceTemplate{}
	read(t, r)
	_, uri := feature.Of(t.Name)
	r.URITemplate, r.Icons, r.Meta = Address(t.Server, uri), iconsOf(t.Icons), WithoutViews(r.Meta)
	return r
}

// read decodes the server's definition. A member of the wrong type stays empty.
func read(t *store.Tool, into any) { _ = json.Unmarshal(t.Meta, into) }
