// Package openapi turns the operations of an OpenAPI document into tools and calls them
// over HTTP.
//
// For such a server nize itself is the MCP part. [Read] builds the tools from OpenAPI 3.0,
// 3.1 and 3.2, and Swagger 2.0, as JSON or YAML. [Conn] replaces the connection to an MCP
// server, so that lists, pins, limits, masks, approvals and the audit trail apply as for
// any server.
//
// # The tools
//
//	name         the operationId, or the method and the path; at most 64 characters
//	schema       the parameters by their names and the body as "body"
//	annotations  by the method: GET and HEAD only read, DELETE destroys
//	_meta        its [Route]: how arguments become a request
//
// If a parameter's name is already used, by a parameter of another location or by "body",
// its location is appended (id_query). The order is path, query, header, cookie, body.
//
// A call uses the route of the accepted definition, never the current document: the route
// is a part of the pin.
//
// # Protection against documents
//
// A document is treated as hostile. Its size, its depth, the expansion of aliases and
// references and the total size of all schemas are limited. References must point into the
// document; an operation that needs another document is left out, with a warning. Schemas
// are rebuilt from keywords of known types; parts that are too large become open objects.
// An operation at another host than the server's is left out, because credentials are for
// that host alone. A value in a path can't leave its segment. Headers that carry
// credentials or frame the message are not parameters.
//
// # Why this is not a library
//
// kin-openapi and libopenapi decode a whole document into models: for the 13 MB of
// GitHub's, kin-openapi takes 5.6 s and 640 MB, a dangling reference fails all operations,
// and the schemas, which make up most of a tool, have to be encoded again. Here a document
// stays JSON, and only the required parts are decoded. The tests do use kin-openapi, as an
// independent reading of the specification that checks the generated requests.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"nize/store"
)

// Limits of a document.
const (
	MaxDocument   = 32 << 20 // bytes, as fetched and as JSON
	MaxOperations = 2000     // tools of one server
	maxDepth      = 200      // nesting of YAML values
	maxHops       = 16       // chained references
	maxPointer    = 1 << 10  // bytes of a reference
	maxList       = 6 << 20  // bytes of all tools
	maxWarnings   = 10
)

// Options configures Read.
type Options struct {
	// At is the URL of the document; nil for a file.
	At *url.URL
	// Base is the base URL of the operations; if nil, it is taken from the document.
	Base *url.URL
	// Allow reports whether an operation becomes a tool; nil allows all.
	Allow func(name, method, path string) bool
}

// Document is the result of Read.
type Document struct {
	Format   string // such as "OpenAPI 3.1.0"
	Title    string
	Version  string
	About    string   // the beginning of its description
	Base     *url.URL // its path has no trailing slash
	Tools    []Tool
	Wants    []Want // credentials, the most required first; empty if no operation requires one
	Warnings []string
}

// Tool is one operation in the form in which it is listed.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations annotations     `json:"annotations"`
	Meta        toolMeta        `json:"_meta"`
}

type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// toolMeta is the _meta of a definition.
type toolMeta struct {
	Route Route `json:"nize/request"`
}

// RouteOf returns the route in the _meta of an accepted definition.
func RouteOf(meta json.RawMessage) (Route, bool) {
	var m struct {
		Route *Route `json:"nize/request"`
	}
	if json.Unmarshal(meta, &m) != nil || m.Route == nil || m.Route.Method == "" {
		return Route{}, false
	}
	return *m.Route, true
}

// Want is a credential that operations require.
type Want struct {
	Header string // the header that contains it; "" if it is not a header
	Query  string // the query parameter that contains it
	Note   string // form of the header's value, if it is more than the key
}

// object is a JSON object with undecoded members.
type object map[string]json.RawMessage

// asObject decodes an object. It returns nil if raw is not an object.
func asObject(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text returns a string member, or "".
func (o object) text(key string) string {
	var s string
	if json.Unmarshal(o[key], &s) != nil {
		return ""
	}
	return s
}

// flag returns a boolean member, and whether it is present.
func (o object) flag(key string) (value, said bool) {
	said = json.Unmarshal(o[key], &value) == nil && len(o[key]) > 0 && string(o[key]) != "null"
	return value && said, said
}

func (o object) object(key string) object { return asObject(o[key]) }

// list returns an array member, or nil.
func (o object) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[key], &l) != nil {
		return nil
	}
	return l
}

// texts returns a member that is an array of strings.
func (o object) texts(key string) []string {
	var l []string
	if json.Unmarshal(o[key], &l) != nil {
		return nil
	}
	return l
}

// reader reads one document.
type reader struct {
	opt      Options
	root     object
	swagger  bool // version 2.0
	old      bool // its schemas follow 3.0 or 2.0
	at       map[string]object
	defs     map[string]*definition // by pointer
	names    map[string]string      // names of definitions, by pointer
	taken    map[string]bool        // the names in use
	schemes  object
	document *Document
	warned   int
	own      struct {
		url *url.URL
		err error
	}
}

// Read reads a document. Its errors wrap store.ErrInvalid.
func Read(data []byte, opt Options) (*Document, error) {
	if len(data) > MaxDocument {
		return nil, invalid("it has more than %d MiB", MaxDocument>>20)
	}
	plain, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	r := &reader{opt: opt, at: map[string]object{}, defs: map[string]*definition{}, names: map[string]string{}, taken: map[string]bool{}, document: &Document{}}
	if r.root = asObject(plain); r.root == nil {
		return nil, invalid("it is not a JSON or YAML object")
	}
	if err := r.version(); err != nil {
		return nil, err
	}
	info := r.root.object("info")
	r.document.Title, r.document.Version = oneLine(info.text("title"), 100), oneLine(info.text("version"), 40)
	r.document.About = store.Clip(store.FirstSentence(oneLine(info.text("description"), 1000)), 200)
	if err := r.base(); err != nil {
		return nil, err
	}
	if r.swagger {
		r.schemes = r.root.object("securityDefinitions")
	} else {
		r.schemes = r.root.object("components").object("securitySchemes")
	}
	if err := r.operations(); err != nil {
		return nil, err
	}
	return r.document, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w OpenAPI document: "+format, append([]any{store.ErrInvalid}, args...)...)
}

// version determines the specification that the document follows.
func (r *reader) version() error {
	v, s := r.root.text("openapi"), r.root.text("swagger")
	switch {
	case strings.HasPrefix(v, "3.0"):
		r.old = true
	case strings.HasPrefix(v, "3."):
	case s == "2.0" || string(r.root["swagger"]) == "2.0" || string(r.root["swagger"]) == "2":
		r.swagger, r.old = true, true
		r.document.Format = "Swagger 2.0"
		return nil
	case v != "":
		return invalid("its version is %q: nize reads OpenAPI 3.0 to 3.2 and Swagger 2.0", store.Clip(v, 20))
	case s != "" || r.root["swagger"] != nil:
		return invalid("its version is Swagger %q: nize reads Swagger 2.0 and OpenAPI 3.0 to 3.2; convert it first", store.Clip(s, 20))
	case r.root["asyncapi"] != nil:
		return invalid("it is an AsyncAPI document, which describes messages and no HTTP operations")
	default:
		return invalid(`it has neither "openapi" nor "swagger": it is something else`)
	}
	r.document.Format = "OpenAPI " + store.Clip(v, 20)
	return nil
}

// base determines the base URL of the operations.
func (r *reader) base() error {
	if r.opt.Base != nil {
		r.document.Base = trimmed(r.opt.Base)
		return nil
	}
	u, err := r.ownBase()
	if err != nil {
		return err
	}
	r.document.Base = u
	return nil
}

// ownBase returns the cached result of documentBase.
func (r *reader) ownBase() (*url.URL, error) {
	if r.own.url == nil && r.own.err == nil {
		r.own.url, r.own.err = r.documentBase()
	}
	return r.own.url, r.own.err
}

// documentBase returns the base URL that the document itself declares.
func (r *reader) documentBase() (*url.URL, error) {
	if r.swagger {
		return r.swaggerBase()
	}
	servers := r.root.list("servers")
	if len(servers) == 0 {
		servers = r.inOperations()
	}
	if len(servers) == 0 {
		servers = []json.RawMessage{json.RawMessage(`{"url":"/"}`)}
	}
	var first error
	for _, raw := range servers {
		u, err := r.serverURL(asObject(raw))
		if err == nil {
			return u, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// inOperations returns the servers of the first path or operation that has any, for a
// document that has none at the top level.
func (r *reader) inOperations() []json.RawMessage {
	paths := r.root.object("paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := asObject(paths[path])
		if all := item.list("servers"); len(all) > 0 {
			return all
		}
		for _, method := range methods {
			if all := item.object(method).list("servers"); len(all) > 0 {
				return all
			}
		}
	}
	return nil
}

// serverURL returns the URL of a server object, with its variables replaced by their
// defaults.
func (r *reader) serverURL(server object) (*url.URL, error) {
	text, vars := server.text("url"), server.object("variables")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		v := asObject(vars[name])
		value := v.text("default")
		if value == "" {
			if enum := v.texts("enum"); len(enum) > 0 {
				value = enum[0]
			}
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	if strings.ContainsAny(text, "{}") {
		return nil, invalid("its server %q has a variable without a default: give --base-url", store.Clip(text, 100))
	}
	return r.absolute(text)
}

// absolute resolves a URL of the document against the document's own URL.
func (r *reader) absolute(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, invalid("its server %q is not a URL: give --base-url", store.Clip(text, 100))
	}
	if !u.IsAbs() && u.Host != "" && r.opt.At == nil {
		u.Scheme = "https"
	}
	if !u.IsAbs() {
		if r.opt.At == nil {
			return nil, invalid("it says its server only as %q, and it is a file: give --base-url", store.Clip(text, 100))
		}
		u = r.opt.At.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, invalid("its server %q is not an http or https URL without a user: give --base-url", store.Clip(u.Redacted(), 100))
	}
	return trimmed(u), nil
}

func (r *reader) swaggerBase() (*url.URL, error) {
	host := r.root.text("host")
	scheme := ""
	schemes := r.root.texts("schemes")
	switch {
	case slices.Contains(schemes, "https"):
		scheme = "https"
	case slices.Contains(schemes, "http"):
		scheme = "http"
	case r.opt.At != nil:
		scheme = r.opt.At.Scheme
	}
	if host == "" && r.opt.At != nil {
		host = r.opt.At.Host
		scheme = r.opt.At.Scheme
	}
	if host == "" {
		return nil, invalid("it says no host: give --base-url")
	}
	if scheme == "" {
		scheme = "https"
	}
	return r.absolute(scheme + "://" + host + "/" + strings.TrimPrefix(r.root.text("basePath"), "/"))
}

// trimmed returns a copy of a URL without trailing slashes, user and fragment.
func trimmed(u *url.URL) *url.URL {
	c := *u
	c.Fragment, c.RawFragment, c.User = "", "", nil
	c.Path, c.RawPath = strings.TrimRight(c.Path, "/"), strings.TrimRight(c.RawPath, "/")
	return &c
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

func (r *reader) warn(format string, args ...any) {
	switch r.warned++; {
	case r.warned < maxWarnings:
		r.document.Warnings = append(r.document.Warnings, fmt.Sprintf(format, args...))
	case r.warned == maxWarnings:
		r.document.Warnings = append(r.document.Warnings, fmt.Sprintf(format, args...)+"; other warnings are left out")
	}
}

// errRef is a reference that can't be resolved.
var errRef = errors.New("a reference")

// follow returns a value, or the target of its reference, and the pointer of the last
// reference, or "". The error says why a reference can't be resolved.
func (r *reader) follow(raw json.RawMessage) (object, string, error) {
	o, at := asObject(raw), ""
	for hop := 0; ; hop++ {
		ref := o.text("$ref")
		if ref == "" {
			return o, at, nil
		}
		if hop == maxHops {
			return nil, "", fmt.Errorf("%w %q leads in a circle", errRef, store.Clip(ref, 80))
		}
		target, err := r.find(ref)
		if err != nil {
			return nil, "", err
		}
		o, at = asObject(target), ref
	}
}

// find returns the target of a reference.
func (r *reader) find(ref string) (json.RawMessage, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || ref == "" {
		return nil, fmt.Errorf("%w to another document, %q", errRef, store.Clip(ref, 80))
	}
	if pointer == "" || pointer[0] != '/' {
		return nil, fmt.Errorf("%w to a name, %q, which is not followed", errRef, store.Clip(ref, 80))
	}
	if len(pointer) > maxPointer {
		return nil, fmt.Errorf("%w of more than %d bytes, %q", errRef, maxPointer, store.Clip(ref, 80))
	}
	if unescaped, err := url.PathUnescape(pointer); err == nil {
		pointer = unescaped
	}
	raw, ok := r.lookUp(pointer)
	if !ok {
		return nil, fmt.Errorf("%w to nowhere, %q", errRef, store.Clip(ref, 80))
	}
	return raw, nil
}

// lookUp resolves a JSON pointer. Objects on the way are decoded once.
func (r *reader) lookUp(pointer string) (json.RawMessage, bool) {
	i := strings.LastIndexByte(pointer, '/')
	parent, key := pointer[:i], strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[i+1:])
	if parent == "" {
		raw, ok := r.root[key]
		return raw, ok
	}
	o, known := r.at[parent]
	if !known {
		raw, ok := r.lookUp(parent)
		if !ok {
			return nil, false
		}
		if o = asObject(raw); o == nil {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) == nil {
				o = object{}
				for n, e := range list {
					o[fmt.Sprint(n)] = e
				}
			}
		}
		r.at[parent] = o
	}
	raw, ok := o[key]
	return raw, ok
}

// oneLine returns a text of the document on one line of at most max bytes.
func oneLine(text string, max int) string {
	return store.Clip(strings.Join(strings.Fields(text), " "), max)
}
