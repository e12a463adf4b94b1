// Package view reads the views and the renderers of tools, which show their results.
//
// A view is HTML that shows the tool's result, as in MCP Apps (the extension
// io.modelcontextprotocol/ui), which also has older names.
//
// A view is its author's code, in a frame without an origin. It is confined by the policy
// that [Policy] returns, which is sent with it as a header. It may only load from origins
// that it declares and an admin accepted.
//
// A [Renderer] makes a text with fields and a table, for platforms that show no HTML.
package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Extension is the name of MCP Apps among the capabilities of clients.
	Extension = "io.modelcontextprotocol/ui"
	// MimeType is the media type of a view, and Skybridge that of views declared under the
	// oldest name.
	MimeType  = "text/html;profile=mcp-app"
	Skybridge = "text/html+skybridge"

	// MaxBytes is the maximum size of a view's HTML, and MaxTemplate that of nize's own and
	// of extensions' views.
	MaxBytes    = 8 << 20
	MaxTemplate = 1 << 20
	maxURI      = 1 << 10

	// Capabilities is the client capability that nize declares to servers: showing views.
	Capabilities = `{"extensions":{"` + Extension + `":{"mimeTypes":["` + MimeType + `"]}}}`
)

// Claims holds a tool's declarations about its view, and about who may call it.
type Claims struct {
	URI string // ui://…; "" if there is none
	// Skybridge means that the view is declared under the oldest name, and may have that
	// media type.
	Skybridge bool
	// NotModel and NotApp forbid calls of the tool by models and clients, and by views.
	NotModel, NotApp bool
	// Accepted holds what the view declared when the tool was listed. It is accepted
	// together with the tool.
	Accepted Domains
}

// Domains returns the external origins that the view declared; c may be nil.
func (c *Claims) Domains() []string {
	if c == nil {
		return nil
	}
	return c.Accepted.All()
}

// Sends describes how a view can send its data to hosts that it doesn't declare, for the
// admin who accepts it; c may be nil.
func (c *Claims) Sends() (list []string) {
	if c == nil || c.URI == "" {
		return nil
	}
	list = append(list, "in Firefox, Safari and older versions of Chromium, by the names and ports of addresses that it tries to go to: the page stops it, but only once the browser has connected")
	if of := c.Accepted.Frame; len(of) > 0 {
		list = append(list, "by the pages of "+strings.Join(of, ", ")+" that it shows: they may pass on what they get, in most browsers also by WebRTC to any host")
	}
	return list
}

// Of reads a tool's _meta. It returns nil if there are no such declarations, as for nearly
// every tool.
func Of(meta json.RawMessage) *Claims {
	if !bytes.Contains(meta, []byte("ui")) && !bytes.Contains(meta, []byte("openai")) {
		return nil
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal(meta, &doc) != nil {
		return nil
	}
	c := &Claims{}
	var ui struct {
		URI        json.RawMessage `json:"resourceUri"`
		Visibility json.RawMessage `json:"visibility"`
	}
	_ = json.Unmarshal(doc["ui"], &ui) // other values count as absent
	for _, from := range []json.RawMessage{ui.URI, doc["ui/resourceUri"], doc["openai/outputTemplate"]} {
		uri := ""
		if json.Unmarshal(from, &uri) != nil || !strings.HasPrefix(uri, "ui://") || len(uri) > maxURI {
			continue
		}
		c.URI, c.Skybridge = uri, bytes.Equal(from, doc["openai/outputTemplate"])
		break
	}
	var who []string
	if len(ui.Visibility) > 0 && string(ui.Visibility) != "null" {
		_ = json.Unmarshal(ui.Visibility, &who) // an invalid value allows no one
		c.NotModel, c.NotApp = !slices.Contains(who, "model"), !slices.Contains(who, "app")
	}
	_ = json.Unmarshal(doc[acceptedKey], &c.Accepted) // written by [Pinned]
	if c.URI == "" && !c.NotModel && !c.NotApp {
		return nil
	}
	return c
}

// acceptedKey is the key in a tool's meta of its view's declarations.
const acceptedKey = "nize/view"

// Pinned adds a view's declarations to the meta of its tool, so that they are accepted with
// the tool, and changing them changes the tool. It overwrites a value of the server under
// that key.
func Pinned(meta json.RawMessage, d Domains) json.RawMessage {
	var doc map[string]json.RawMessage
	if !d.Any() && !bytes.Contains(meta, []byte(acceptedKey)) || json.Unmarshal(meta, &doc) != nil || doc == nil {
		return meta
	}
	delete(doc, acceptedKey)
	if d.Any() {
		doc[acceptedKey], _ = json.Marshal(d) // unreachable: only strings and a bool
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil
	}
	return out
}

// Domains holds the external origins that a view may reach, and its permissions in the
// browser.
type Domains struct {
	Connect   []string `json:"connect,omitempty"`
	Resource  []string `json:"resource,omitempty"`
	Frame     []string `json:"frame,omitempty"`
	Clipboard bool     `json:"clipboard,omitempty"` // it may write to the clipboard

	// Dropped lists declared values that are not valid origins.
	Dropped []string `json:"-"`
}

// Any reports whether anything is declared.
func (d Domains) Any() bool {
	return len(d.Connect)+len(d.Resource)+len(d.Frame) > 0 || d.Clipboard
}

// And returns the intersection.
func (d Domains) And(o Domains) Domains {
	both := func(a, b []string) (list []string) {
		for _, s := range a {
			if slices.Contains(b, s) {
				list = append(list, s)
			}
		}
		return list
	}
	return Domains{Connect: both(d.Connect, o.Connect), Resource: both(d.Resource, o.Resource), Frame: both(d.Frame, o.Frame), Clipboard: d.Clipboard && o.Clipboard}
}

// Granted holds a view's permissions in the form that hosts and servers use.
type Granted struct {
	CSP struct {
		Connect  []string `json:"connectDomains,omitempty"`
		Resource []string `json:"resourceDomains,omitempty"`
		Frame    []string `json:"frameDomains,omitempty"`
	} `json:"csp"`
	Permissions struct {
		Clipboard *struct{} `json:"clipboardWrite,omitempty"`
	} `json:"permissions"`
}

// Grant returns the domains in that form.
func (d Domains) Grant() (g Granted) {
	g.CSP.Connect, g.CSP.Resource, g.CSP.Frame = d.Connect, d.Resource, d.Frame
	if d.Clipboard {
		g.Permissions.Clipboard = &struct{}{}
	}
	return g
}

// Findings returns the information that an admin needs before accepting the tool.
func (d Domains) Findings() (list []string) {
	if all := d.All(); len(all) > 0 {
		list = append(list, "its view wants to reach "+strings.Join(all, ", "))
	}
	if d.Clipboard {
		list = append(list, "its view wants to write to the clipboard")
	}
	return list
}

// All returns the external origins, each once.
func (d Domains) All() []string {
	all := slices.Concat(d.Connect, d.Resource, d.Frame)
	slices.Sort(all)
	return slices.Compact(all)
}

// Content is the single item of a view's resource.
type Content struct {
	HTML []byte
	Meta json.RawMessage
	// Skybridge means that it is written for window.openai.
	Skybridge bool
}

// Read parses the response of resources/read for a view.
func Read(raw json.RawMessage, of Claims) (c Content, err error) {
	var doc struct {
		Contents []struct {
			MimeType string          `json:"mimeType"`
			Text     *string         `json:"text"`
			Blob     []byte          `json:"blob"`
			Meta     json.RawMessage `json:"_meta"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return c, fmt.Errorf("it is not a response of resources/read: %w", err)
	}
	if len(doc.Contents) != 1 {
		return c, fmt.Errorf("it has %d parts instead of one", len(doc.Contents))
	}
	part := doc.Contents[0]
	kind := strings.ToLower(strings.ReplaceAll(part.MimeType, " ", ""))
	if kind != MimeType && (!of.Skybridge || kind != Skybridge) {
		return c, fmt.Errorf("it is of the type %.80q instead of %s", part.MimeType, MimeType)
	}
	c.HTML, c.Meta = part.Blob, part.Meta
	if part.Text != nil {
		c.HTML = []byte(*part.Text)
	}
	switch {
	case len(c.HTML) == 0:
		return c, errors.New("it is empty")
	case len(c.HTML) > MaxBytes:
		return Content{}, fmt.Errorf("it is over %d MiB", MaxBytes>>20)
	case !utf8.Valid(c.HTML):
		return Content{}, errors.New("it is not in UTF-8")
	}
	c.Skybridge = kind == Skybridge
	return c, nil
}

// Domains returns the view's declarations: with its content, or else those in the list.
func (c Content) Domains(listed json.RawMessage) Domains {
	for _, meta := range []json.RawMessage{c.Meta, listed} {
		var doc map[string]json.RawMessage
		if json.Unmarshal(meta, &doc) == nil && (doc["ui"] != nil || doc["openai/widgetCSP"] != nil) {
			return Declared(meta)
		}
	}
	return Domains{}
}

// Granted returns the permissions of a view: those that it declares and that were accepted
// with its tool. A view whose content declares nothing gets the accepted ones, because it
// declares them in the list.
func (c Content) Granted(accepted Domains) Domains {
	var doc map[string]json.RawMessage
	if json.Unmarshal(c.Meta, &doc) == nil && (doc["ui"] != nil || doc["openai/widgetCSP"] != nil) {
		return Declared(c.Meta).And(accepted)
	}
	return accepted
}

// maxDomains limits each list.
const maxDomains = 50

// origin matches the entries that are allowed in a policy, and nothing else, so that no
// entry can end the list that contains it.
var origin = regexp.MustCompile(`^(?:https|wss)://(?:\*\.(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+|(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?$`)

// Declared returns the declarations in the _meta of a view's resource.
func Declared(meta json.RawMessage) (d Domains) {
	var doc struct {
		UI *struct {
			CSP struct {
				Connect  []string `json:"connectDomains"`
				Resource []string `json:"resourceDomains"`
				Frame    []string `json:"frameDomains"`
			} `json:"csp"`
			Permissions map[string]json.RawMessage `json:"permissions"`
		} `json:"ui"`
		Old struct {
			Connect  []string `json:"connect_domains"`
			Resource []string `json:"resource_domains"`
			Frame    []string `json:"frame_domains"`
		} `json:"openai/widgetCSP"`
	}
	if len(meta) == 0 || json.Unmarshal(meta, &doc) != nil {
		return d
	}
	clean := func(list []string) (out []string) {
		for _, s := range list {
			s = strings.TrimSuffix(strings.ToLower(s), "/")
			switch {
			case len(s) > 300 || !origin.MatchString(s) || len(out) == maxDomains:
				d.Dropped = append(d.Dropped, s)
			case !slices.Contains(out, s):
				out = append(out, s)
			}
		}
		slices.Sort(out)
		return out
	}
	if doc.UI == nil {
		d.Connect, d.Resource, d.Frame = clean(doc.Old.Connect), clean(doc.Old.Resource), clean(doc.Old.Frame)
		return d
	}
	d.Connect, d.Resource, d.Frame = clean(doc.UI.CSP.Connect), clean(doc.UI.CSP.Resource), clean(doc.UI.CSP.Frame)
	_, d.Clipboard = doc.UI.Permissions["clipboardWrite"]
	return d
}

// Policy returns the Content-Security-Policy of a view that is embedded in a page of the
// given origin, and may have its own origin. A nonce is a template's: only its own scripts
// run with it.
func Policy(page string, own bool, nonce string, d Domains) string {
	with := func(what string, more []string) string {
		return strings.TrimSpace(what + " " + strings.Join(more, " "))
	}
	or := func(list []string) string {
		if len(list) == 0 {
			return "'none'"
		}
		return strings.Join(list, " ")
	}
	script := with("'unsafe-inline'", d.Resource)
	if nonce != "" {
		script, d = "'nonce-"+nonce+"'", Domains{}
	}
	sandbox := "sandbox allow-scripts allow-forms"
	if own {
		sandbox += " allow-same-origin"
	}
	return sandbox + "; default-src 'none'; script-src " + script +
		"; style-src " + with("'unsafe-inline'", d.Resource) +
		"; img-src " + with("data: blob:", d.Resource) +
		"; font-src " + with("data:", d.Resource) +
		"; media-src " + with("data: blob:", d.Resource) +
		"; connect-src " + or(d.Connect) +
		"; frame-src " + or(d.Frame) +
		"; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types default; frame-ancestors " + cmp.Or(page, "'none'")
}
