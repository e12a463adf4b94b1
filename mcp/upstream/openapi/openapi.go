// Package openapi makes tools of the operations of an OpenAPI document and calls them
// over HTTP: a server of which nize itself is the MCP half.
//
// [Read] makes the tools: OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0, as JSON or YAML.
// [Conn] stands where the connection of an MCP server stands, so that lists, pins,
// limits, masks, approvals and the audit trail apply as they do to any server.
//
// # What a tool is
//
//	name         the operationId, or the method and the path; at most 64 characters
//	schema       the parameters by their names and the body as "body"
//	annotations  by the method: GET and HEAD only read, DELETE destroys
//	_meta        its [Route]: how arguments become a request
//
// A parameter whose name is taken, by one of another place or by "body", has its place
// behind its name (id_query). The order is path, query, header, cookie, body.
//
// A call is made from the route of the definition that was accepted, never from what the
// document says by then: the route is a part of the pin.
//
// # What is never assumed
//
// A document is hostile until shown otherwise. Its size, its depth, what aliases and
// references expand to and what all schemas take together are bounded. References lead
// to places in the document: what needs another one is left out, with a warning. Schemas
// are rebuilt from keywords of known types; parts that are too large become open objects.
// An operation at another host than the server's is left out, since credentials are for
// that host alone. A value in a path can't leave its segment. Headers that carry
// credentials or frame the message are no parameters.
//
// # Why this is not a library
//
// kin-openapi and libopenapi decode a whole document into models: the 13 MB of GitHub's
// take the first 5.6 s and 640 MB, a reference to nowhere fails all operations, and the
// schemas, which are what a tool consists of, have to be written out again. Here a
// document stays JSON, of which only what is needed is decoded. The tests do have
// kin-openapi: it judges the requests that are made, as somebody else's reading of the
// specification.
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

// Bounds of a document.
const (
	MaxDocument   = 32 << 20 // bytes, fetched and as JSON
	MaxOperations = 2000     // that are tools of one server
	maxDepth      = 200      // nested values of YAML
	maxHops       = 16       // references that lead to references
	maxPointer    = 1 << 10  // bytes of one
	maxList       = 6 << 20  // bytes that all tools take
	maxWarnings   = 10
)

// Options is what a document is read for.
type Options struct {
	// At is the address of the document; nil for a file.
	At *url.URL
	// Base is the address below which the operations are; nil takes it from the document.
	Base *url.URL
	// Allow says which operations become tools; nil is all.
	Allow func(name, method, path string) bool
}

// Document is what was read.
type Document struct {
	Format   string // such as "OpenAPI 3.1.0"
	Title    string
	Version  string
	About    string   // the beginning of its description
	Base     *url.URL // without a slash at the end of its path
	Tools    []Tool
	Wants    []Want // credentials, the most wanted first; none if no operation needs one
	Warnings []string
}

// Tool is one operation, as it is listed.
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

// toolMeta is what a definition has beside the words of the protocol.
type toolMeta struct {
	Route Route `json:"nize/request"`
}

// RouteOf reads the route of an accepted definition from its _meta.
func RouteOf(meta json.RawMessage) (Route, bool) {
	var m struct {
		Route *Route `json:"nize/request"`
	}
	if json.Unmarshal(meta, &m) != nil || m.Route == nil || m.Route.Method == "" {
		return Route{}, false
	}
	return *m.Route, true
}

// Want is a credential that operations want.
type Want struct {
	Header string // the header that has it; "" if it is no header
	Query  string // the parameter that has it
	Note   string // what the header's value is, if that is more than the key
}

// object is a JSON object whose members were not looked at.
type object map[string]json.RawMessage

// asObject decodes an object; nil is none.
func asObject(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text is a member that is a text; "" is none.
func (o object) text(key string) string {
	var s string
	if json.Unmarshal(o[key], &s) != nil {
		return ""
	}
	return s
}

// flag is a member that is true or false.
func (o object) flag(key string) (value, said bool) {
	said = json.Unmarshal(o[key], &value) == nil && len(o[key]) > 0 && string(o[key]) != "null"
	return value && said, said
}

func (o object) object(key string) object { return asObject(o[key]) }

// list is a member that is an array; nil is none.
func (o object) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[key], &l) != nil {
		return nil
	}
	return l
}

// texts is a member that is an array of texts.
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
	swagger  bool // 2.0
	old      bool // its schemas are those of 3.0 or 2.0
	at       map[string]object
	defs     map[string]*definition // by pointer
	names    map[string]string      // of definitions, by pointer
	taken    map[string]bool        // those names
	schemes  object
	document *Document
	warned   int
	own      struct {
		url *url.URL
		err error
	}
}

// Read reads a document. Its error wraps store.ErrInvalid.
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

// version finds which specification the document follows.
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

// base finds the address below which the operations are.
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

// ownBase is documentBase, found once.
func (r *reader) ownBase() (*url.URL, error) {
	if r.own.url == nil && r.own.err == nil {
		r.own.url, r.own.err = r.documentBase()
	}
	return r.own.url, r.own.err
}

// documentBase is what the document itself says of its address.
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

// inOperations are the servers of the first path or operation that has some, for a
// document that has none itself.
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

// serverURL is the address of a server object, its variables replaced by their defaults.
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

// absolute resolves an address of the document against its own.
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

// trimmed is a copy without what only the end of an address has.
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

// errRef is a reference that can't be followed.
var errRef = errors.New("a reference")

// follow returns what a value or its reference is, and where in the document the last
// reference led, "" without one. The error says why a reference leads to nothing.
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

// find returns what a reference names.
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

// lookUp finds a JSON pointer. Objects on the way are decoded once.
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

// oneLine is a text of the document on one line, in at most max bytes.
func oneLine(text string, max int) string {
	return store.Clip(strings.Join(strings.Fields(text), " "), max)
}
