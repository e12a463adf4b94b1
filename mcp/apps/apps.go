// Package apps hands the views of tools on to MCP clients that show them, as MCP Apps
// has it: the tool names its view, and the client reads that as a resource.
//
// A view has an address of nize's own, ui://SERVER/REST, so that two servers' never
// meet in one. It goes along with what an admin accepted that it reaches outside, of
// what it declares. Who may have it is asked of the rules, by whoever lists the tool;
// this package only says what a client is told.
package apps

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

// Scheme begins the address of every view.
const Scheme = "ui://"

// Views are where views come from. The zero value has none.
type Views struct {
	// Template is the view of a native tool, "" where it has none.
	Template func(name string) string
	// Resource reads a resource of the server of a call's tool, which has the pin that
	// was accepted, with the credential of who looks.
	Resource func(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error)
}

// Announced says whether a client shows views: it said so when its session began, or
// with the request where there are no sessions.
func Announced(req sdk.Request) bool {
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

// Address is where a client reads the view of a tool, "" where it has none.
func (v Views) Address(t *policy.Tool) string {
	if t.Server == policy.NativeServer {
		if v.Template == nil || v.Template(t.Name) == "" {
			return ""
		}
		return Scheme + t.Server + "/" + t.Name
	}
	rest, ok := strings.CutPrefix(t.View().URI, Scheme)
	if !ok || v.Resource == nil {
		return ""
	}
	return Scheme + t.Server + "/" + rest
}

// Meta is the _meta of a tool for a client: of views, it tells those alone who show
// them.
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

// Resources lists the views of tools, each once.
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

// metaOf is what a client is told that a view may reach.
func metaOf(d view.Domains) sdk.Meta { return sdk.Meta{"ui": d.Grant()} }

// Read reads the view of a tool, and says the SHA-256 of its HTML as it was found.
func (v Views) Read(ctx context.Context, by store.Caller, t *policy.Tool) (c *sdk.ResourceContents, sum string, err error) {
	content := view.Content{Skybridge: true} // a template is written for window.openai, too
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
