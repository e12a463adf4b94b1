package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
)

// uiScheme is the prefix of every view's address.
const uiScheme = "ui://"

// Views provides the views of tools to MCP clients that show them, as specified by MCP Apps: a
// tool names its view, and the client reads that as a resource. The zero value has none.
//
// A view has nize's own address, ui://SERVER/REST, so that those of two servers never
// collide. It is sent with the declared external origins that an admin accepted. The caller
// that lists the tool must check the rights.
type Views struct {
	// Template returns the view of a native tool, or "".
	Template func(name string) string
	// Resource reads a resource of the server of a call's tool, which has the accepted pin,
	// with the credential of by.
	Resource func(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error)
}

// showsViews reports whether a client shows views: it declares so when its session begins,
// or in the request if there are no sessions.
func showsViews(req sdk.Request) bool {
	r, ok := req.(interface {
		ClientCapabilities() *sdk.ClientCapabilities
	})
	if !ok {
		return false
	}
	can := r.ClientCapabilities()
	if can == nil {
		return false
	}
	for _, said := range []any{can.Extensions[view.Extension], can.Experimental[view.Extension]} {
		settings, ok := said.(map[string]any)
		types, limited := settings["mimeTypes"].([]any)
		if ok && (!limited || slices.Contains(types, any(view.MimeType))) {
			return true
		}
	}
	return false
}

// Address returns the address of a tool's view for clients, or "".
func (v Views) Address(t *policy.Tool) string {
	if t.Server == policy.NativeServer {
		if v.Template == nil || v.Template(t.Name) == "" {
			return ""
		}
		return uiScheme + t.Server + "/" + t.Name
	}
	rest, ok := strings.CutPrefix(t.View().URI, uiScheme)
	if !ok || v.Resource == nil {
		return ""
	}
	return uiScheme + t.Server + "/" + rest
}

// Meta returns the _meta of a tool for a client. It mentions views only for clients that
// show them.
func (v Views) Meta(t *policy.Tool, shows bool) sdk.Meta {
	m := expose.WithoutViews(expose.MetaOf(t.Meta))
	says := t.View()
	address := v.Address(t)
	if !shows || address == "" && !says.NotModel && !says.NotApp {
		return m
	}
	var who []string
	if !says.NotModel {
		who = append(who, "model")
	}
	if !says.NotApp {
		who = append(who, "app")
	}
	if m == nil {
		m = sdk.Meta{}
	}
	m["ui"] = struct {
		Address    string   `json:"resourceUri,omitempty"`
		Visibility []string `json:"visibility"`
	}{address, who}
	return m
}

// Resources returns the views of tools, each once.
func (v Views) Resources(tools []*policy.Tool) (list []*sdk.Resource) {
	listed := map[string]bool{"": true}
	for _, t := range tools {
		address := v.Address(t)
		if listed[address] {
			continue
		}
		listed[address] = true
		list = append(list, &sdk.Resource{URI: address, Name: t.Name, Title: t.Title, MIMEType: view.MimeType, Meta: metaOf(t.View().Accepted)})
	}
	return list
}

// metaOf returns a view's permissions for a client.
func metaOf(d view.Domains) sdk.Meta { return sdk.Meta{"ui": d.Grant()} }

// Read reads the view of a tool, and returns the SHA-256 of its original HTML.
func (v Views) Read(ctx context.Context, by store.Caller, t *policy.Tool) (c *sdk.ResourceContents, sum string, err error) {
	content := view.Content{Skybridge: true} // templates are also written for window.openai
	if t.Server == policy.NativeServer {
		content.HTML = []byte(v.Template(t.Name))
	} else {
		raw, err := v.Resource(ctx, by, store.Call{Server: t.Server, Tool: t.Name, Pin: t.Accepted}, t.View().URI)
		if err != nil {
			return nil, "", err
		}
		if content, err = view.Read(raw, t.View()); err != nil {
			return nil, "", err
		}
	}
	if len(content.HTML) == 0 {
		return nil, "", errors.New("it is not there any more")
	}
	found := sha256.Sum256(content.HTML)
	if content.Skybridge {
		if content.HTML, err = view.Standalone(string(content.HTML)); err != nil {
			return nil, "", err
		}
	}
	return &sdk.ResourceContents{URI: v.Address(t), MIMEType: view.MimeType, Text: string(content.HTML), Meta: metaOf(content.Granted(t.View().Accepted))}, hex.EncodeToString(found[:]), nil
}
