package expose

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/feature"
	"nize/store"
)

// Tool is a server's tool as a client sees it: as listed, under another name, but for
// its view, which is told apart.
func Tool(name string, t *store.Tool) *sdk.Tool {
	out := &sdk.Tool{
		Name: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		Meta: WithoutViews(MetaOf(t.Meta)), Icons: iconsOf(t.Icons),
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
