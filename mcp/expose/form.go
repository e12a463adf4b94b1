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

// anyOutput is the first version of the protocol in which structured content, and
// the root of its schema, may be of any type.
const anyOutput = "2026-07-28"

// Tool is a server's tool as a client of a version of the protocol sees it: as
// listed, under another name, but for its view, which is told apart. Clients drop a
// whole list for a schema that they don't take, so an input schema gets the root
// that all require, and one of results is left out if older clients take no such root.
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

// Structured returns the structured content of a result as a client of a version of
// the protocol takes it: older ones drop a result in which it is no object.
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

// WithoutViews takes out what servers, and nize for itself, keep of views in a _meta:
// who shows views is told of them apart.
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

// Prompt is a server's prompt as a client sees it.
func Prompt(name string, t *store.Tool) *sdk.Prompt {
	p := &sdk.Prompt{}
	read(t, p)
	p.Name, p.Icons = name, iconsOf(t.Icons)
	return p
}

// Resource is a server's resource as a client sees it.
func Resource(t *store.Tool) *sdk.Resource {
	r := &sdk.Resource{}
	read(t, r)
	_, uri := feature.Of(t.Name)
	r.URI, r.Icons, r.Meta = Address(t.Server, uri), iconsOf(t.Icons), WithoutViews(r.Meta)
	return r
}

// Template is a server's template of resources as a client sees it.
func Template(t *store.Tool) *sdk.ResourceTemplate {
	r := &sdk.ResourceTemplate{}
	read(t, r)
	_, uri := feature.Of(t.Name)
	r.URITemplate, r.Icons, r.Meta = Address(t.Server, uri), iconsOf(t.Icons), WithoutViews(r.Meta)
	return r
}

// read reads what the server listed. A member of another type than the protocol's
// is left as it is empty.
func read(t *store.Tool, into any) { _ = json.Unmarshal(t.Meta, into) }
