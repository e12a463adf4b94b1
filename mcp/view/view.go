// Package view knows what a tool says of its view, HTML that shows the tool's
// result, and under which policy that is served: MCP Apps (the extension
// io.modelcontextprotocol/ui), and the older names of the same.
//
// A view is code of whoever wrote it, in a frame without an origin. What keeps it
// there is the policy that [Policy] makes, which goes with it as a header; what it
// may load from outside is what it declares and an admin accepted.
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
	// MimeType is that of a view, and Skybridge the one of those that a tool names
	// by the oldest name.
	MimeType  = "text/html;profile=mcp-app"
	Skybridge = "text/html+skybridge"

	// MaxBytes bounds the HTML of a view, and MaxTemplate that of one of nize's own
	// or of an extension.
	MaxBytes    = 8 << 20
	MaxTemplate = 1 << 20
	maxURI      = 1 << 10

	// Capabilities is what nize tells a server that it can do: to show views.
	Capabilities = `{"extensions":{"` + Extension + `":{"mimeTypes":["` + MimeType + `"]}}}`
)

// Claims are what a tool says of its view, and of who may call it.
type Claims struct {
	URI string // ui://…; "" is none
	// Skybridge says that the view is named by the oldest name, and may have that
	// type.
	Skybridge bool
	// NotModel and NotApp say who may not call the tool: models and clients, or views.
	NotModel, NotApp bool
	// Accepted is what the view declared when the tool was listed. It is a part of
	// what is accepted with the tool.
	Accepted Domains
}

// Domains are the outside origins that the view declared; c may be nil.
func (c *Claims) Domains() []string {
	if c == nil {
		return nil
	}
	return c.Accepted.All()
}

// Sends says how a view can send what it is given to other hosts than those that it
// declares, for the admin who accepts it; c may be nil.
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

// Of reads a tool's _meta; nil is one that says nothing of the kind, as nearly every
// tool.
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
	_ = json.Unmarshal(doc["ui"], &ui) // what is no object says nothing
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
		_ = json.Unmarshal(ui.Visibility, &who) // nobody, then: what can't be read shows nothing to anybody
		c.NotModel, c.NotApp = !slices.Contains(who, "model"), !slices.Contains(who, "app")
	}
	_ = json.Unmarshal(doc[acceptedKey], &c.Accepted) // [Pinned] wrote it
	if c.URI == "" && !c.NotModel && !c.NotApp {
		return nil
	}
	return c
}

// acceptedKey is where a tool's meta keeps what its view declares.
const acceptedKey = "nize/view"

// Pinned adds what a view declares to the meta of its tool, so that it is accepted
// with the tool, and a change of it is a change of the tool. What the server itself
// says under that name does not count.
func Pinned(meta json.RawMessage, d Domains) json.RawMessage {
	var doc map[string]json.RawMessage
	if !d.Any() && !bytes.Contains(meta, []byte(acceptedKey)) || json.Unmarshal(meta, &doc) != nil || doc == nil {
		return meta
	}
	delete(doc, acceptedKey)
	if d.Any() {
		doc[acceptedKey], _ = json.Marshal(d) // strings and a bool
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil
	}
	return out
}

// Domains are what a view may reach outside, and be allowed in the browser.
type Domains struct {
	Connect   []string `json:"connect,omitempty"`
	Resource  []string `json:"resource,omitempty"`
	Frame     []string `json:"frame,omitempty"`
	Clipboard bool     `json:"clipboard,omitempty"` // it may write to it

	// Dropped is what was declared and is no origin that can be allowed.
	Dropped []string `json:"-"`
}

// Any says whether there is anything.
func (d Domains) Any() bool {
	return len(d.Connect)+len(d.Resource)+len(d.Frame) > 0 || d.Clipboard
}

// And is what both have.
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

// Granted is what a view may do beyond showing what it is given, in the form in which
// hosts and servers tell it.
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

// Grant is the domains in that form.
func (d Domains) Grant() (g Granted) {
	g.CSP.Connect, g.CSP.Resource, g.CSP.Frame = d.Connect, d.Resource, d.Frame
	if d.Clipboard {
		g.Permissions.Clipboard = &struct{}{}
	}
	return g
}

// Findings say what an admin has to know before the tool is accepted.
func (d Domains) Findings() (list []string) {
	if all := d.All(); len(all) > 0 {
		list = append(list, "its view wants to reach "+strings.Join(all, ", "))
	}
	if d.Clipboard {
		list = append(list, "its view wants to write to the clipboard")
	}
	return list
}

// All are the outside origins, each once.
func (d Domains) All() []string {
	all := slices.Concat(d.Connect, d.Resource, d.Frame)
	slices.Sort(all)
	return slices.Compact(all)
}

// Content is the one item that a view's resource has.
type Content struct {
	HTML []byte
	Meta json.RawMessage
	// Skybridge says that it is written for window.openai.
	Skybridge bool
}

// Read reads the answer of resources/read for a view.
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
		return c, fmt.Errorf("it is no answer of resources/read: %w", err)
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

// Domains is what the view declares: with its content, or else where it is listed.
func (c Content) Domains(listed json.RawMessage) Domains {
	for _, meta := range []json.RawMessage{c.Meta, listed} {
		var doc map[string]json.RawMessage
		if json.Unmarshal(meta, &doc) == nil && (doc["ui"] != nil || doc["openai/widgetCSP"] != nil) {
			return Declared(meta)
		}
	}
	return Domains{}
}

// Granted is what a view gets: what it declares, of what was accepted with its tool. One
// that declares nothing itself does so where it is listed, and that was accepted.
func (c Content) Granted(accepted Domains) Domains {
	var doc map[string]json.RawMessage
	if json.Unmarshal(c.Meta, &doc) == nil && (doc["ui"] != nil || doc["openai/widgetCSP"] != nil) {
		return Declared(c.Meta).And(accepted)
	}
	return accepted
}

// maxDomains bounds each list.
const maxDomains = 50

// origin is what may stand in a policy: nothing else, so that no entry can end the
// list that it is in.
var origin = regexp.MustCompile(`^(?:https|wss)://(?:\*\.(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+|(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?$`)

// Declared reads what the _meta of a view's resource declares.
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

// Policy is the Content-Security-Policy of a view that stands in a page of that
// origin, and may have an origin of its own. A nonce is a template's: its own scripts
// run by it, and nothing else does.
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
