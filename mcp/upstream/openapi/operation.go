package openapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"nize/store"
)

// methods lists the methods of a path item that become tools. It omits TRACE and CONNECT,
// which echo the headers of a request or open a tunnel.
var methods = []string{"get", "head", "options", "post", "put", "patch", "delete", "query"}

// Limits of one tool.
const (
	maxName        = 64
	maxTitle       = 120
	maxDescription = 1200
	maxParameters  = 200
	maxSchema      = 40 << 10 // bytes, if there are few tools
	minSchema      = 1 << 10
)

// operation is an operation that becomes a tool.
type operation struct {
	tool Tool
	root map[string]json.RawMessage // its schema without definitions
	refs []string
}

// param is a parameter, in whichever version it is described.
type param struct {
	name, in    string
	description string
	required    bool
	schema      json.RawMessage
	style       string
	explode     bool
	reserved    bool
	media       string // media type of a value that is encoded as a whole
}

// operations builds the tools.
func (r *reader) operations() error {
	paths := r.root.object("paths")
	var all []operation
	wants := map[Want]int{}
	taken := map[string]bool{}
	anonymous, listed, allowed := 0, 0, 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _, err := r.follow(paths[path])
		if err != nil {
			r.warn("%s is left out: it has %v", store.Clip(path, 80), err)
			continue
		}
		for _, method := range methods {
			raw, ok := item[method]
			if !ok {
				continue
			}
			op := asObject(raw)
			if op == nil || path == "" || path[0] != '/' {
				continue
			}
			listed++
			name := r.toolName(op, method, path, taken)
			taken[name] = true
			upper := strings.ToUpper(method)
			bare, _, _ := strings.Cut(path, "#")
			if r.opt.Allow != nil && !r.opt.Allow(name, upper, bare) {
				continue
			}
			if allowed++; allowed > MaxOperations {
				continue // only counted
			}
			o, err := r.operation(item, op, upper, path)
			if err != nil {
				r.warn("%s %s is left out: %v", upper, store.Clip(path, 80), err)
				continue
			}
			o.tool.Name = name
			all = append(all, o)
			w, open := r.wants(op)
			if open {
				anonymous++
			}
			for _, one := range w {
				wants[one]++
			}
		}
	}
	switch {
	case allowed > MaxOperations:
		return invalid("it has %d operations, and one server has at most %d tools: choose some with --allow, such as --allow 'GET /users*'", allowed, MaxOperations)
	case len(all) == 0 && listed > 0 && r.warned > 0:
		return invalid("none of its %d operations can be a tool: %s", listed, r.document.Warnings[0])
	case len(all) == 0 && listed > 0:
		return invalid("--allow matches none of its %d operations", listed)
	case len(all) == 0:
		return invalid("it has no operations")
	}
	if anonymous < len(all) {
		r.document.Wants = slices.SortedFunc(maps.Keys(wants), func(a, b Want) int {
			return cmp.Or(wants[b]-wants[a], strings.Compare(a.Header+a.Query+a.Note, b.Header+b.Query+b.Note))
		})
	}
	return r.schemas(all)
}

// schemas completes the tools' schemas. If their total exceeds maxList, it halves the limit
// of each tool until it doesn't.
func (r *reader) schemas(all []operation) error {
	for room := maxSchema; ; room /= 2 {
		total := 0
		r.document.Tools = nil
		for _, o := range all {
			schema, err := r.complete(maps.Clone(o.root), slices.Clone(o.refs), room)
			if err != nil {
				r.warn("%s is left out: it has %v", o.tool.Name, err)
				continue
			}
			o.tool.InputSchema = schema
			total += len(schema) + len(o.tool.Description) + len(o.tool.Name) + 500
			r.document.Tools = append(r.document.Tools, o.tool)
		}
		if len(r.document.Tools) == 0 {
			return invalid("none of its operations can be a tool: %s", r.document.Warnings[0])
		}
		if total <= maxList || room <= minSchema {
			return nil
		}
	}
}

// operation reads one operation.
func (r *reader) operation(item, op object, method, path string) (o operation, err error) {
	route := Route{Method: method}
	route.Path, _, _ = strings.Cut(path, "#") // some documents use a fragment to distinguish operations with one path
	if route.Prefix, route.Absolute, err = r.place(item, op); err != nil {
		return o, err
	}
	params, err := r.parameters(item, op, path)
	if err != nil {
		return o, err
	}
	body, err := r.body(op, params)
	if err != nil {
		return o, err
	}
	route.Accept = r.accept(op)
	p := part{r: r, depth: maxInline}
	properties, required := map[string]json.RawMessage{}, []string{}
	slices.SortStableFunc(params, func(a, b param) int { return places[a.in] - places[b.in] })
	names := map[string]bool{}
	if body != nil {
		names["body"] = true // reserved, so that the body has the same name in all tools
	}
	for _, one := range params {
		if one.in == "form" {
			continue
		}
		arg := argName(one.name, one.in, names)
		names[arg] = true
		schema := r.argument(&p, one.schema, one.description)
		properties[arg] = schema
		if one.required {
			required = append(required, arg)
		}
		to := Parameter{Arg: arg, In: one.in, Style: one.style, Explode: one.explode, Reserved: one.reserved, Media: one.media, Required: one.required}
		if one.name != arg {
			to.Name = one.name
		}
		route.Parameters = append(route.Parameters, to)
	}
	if body != nil {
		properties["body"] = r.argument(&p, body.schema, body.description)
		if body.Required {
			required = append(required, "body")
		}
		route.Body = &body.Body
	}
	for depth := maxInline / 2; depth > 0 && (len(encode(properties)) > maxSchema/2 || nodesIn(encode(properties)) > maxNodes/2); depth /= 2 {
		p.refs = nil
		for _, to := range route.Parameters {
			i := slices.IndexFunc(params, func(one param) bool { return one.in == to.In && one.name == cmp.Or(to.Name, to.Arg) })
			p.depth = depth
			properties[to.Arg] = r.argument(&p, params[i].schema, params[i].description)
		}
		if body != nil {
			p.depth = depth
			properties["body"] = r.argument(&p, body.schema, body.description)
		}
	}
	if p.err != nil {
		return o, fmt.Errorf("it has %w", p.err)
	}
	o.root = map[string]json.RawMessage{"type": quote("object"), "properties": encode(properties), "additionalProperties": json.RawMessage("false")}
	if len(required) > 0 {
		o.root["required"] = marshal(required)
	}
	o.refs = p.refs
	o.tool.Title = oneLine(op.text("summary"), maxTitle)
	o.tool.Description = describe(item, op, method, path)
	o.tool.Annotations = annotations{
		ReadOnly:    method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == "QUERY",
		Destructive: method == http.MethodDelete,
		Idempotent:  method != http.MethodPost && method != http.MethodPatch,
		OpenWorld:   true,
	}
	o.tool.Meta.Route = route
	return o, nil
}

// argument returns the schema of one argument. A reference at its top level is replaced by
// its target.
func (r *reader) argument(p *part, raw json.RawMessage, description string) json.RawMessage {
	if o := asObject(raw); o.text("$ref") != "" && len(o) == 1 {
		if target, _, err := r.follow(raw); err == nil && target != nil {
			raw = encode(target)
		}
	}
	schema := p.rebuild(raw)
	if description == "" {
		return schema
	}
	o := asObject(schema)
	if o == nil {
		return schema
	}
	o["description"] = quote(store.Clip(strings.TrimSpace(description), maxProse))
	return encode(o)
}

// describe returns the description of an operation for people and models.
func describe(item, op object, method, path string) string {
	var parts []string
	if gone, _ := op.flag("deprecated"); gone {
		parts = append(parts, "Deprecated.")
	}
	summary := strings.TrimSpace(cmp.Or(op.text("summary"), item.text("summary")))
	text := strings.TrimSpace(cmp.Or(op.text("description"), item.text("description")))
	if summary != "" && !strings.HasPrefix(text, summary) {
		parts = append(parts, store.Clip(summary, maxTitle))
	}
	if text != "" {
		parts = append(parts, store.Clip(text, maxDescription))
	}
	return strings.Join(append(parts, method+" "+store.Clip(path, 300)), "\n\n")
}

// toolName returns the name of an operation. A name that is too long, or already used, ends
// in a part of the operation's hash, so that it doesn't depend on the other operations.
func (r *reader) toolName(op object, method, path string, taken map[string]bool) string {
	id := op.text("operationId")
	name := cleanName(id, 1<<10)
	if name == "" {
		id = method + " " + path
		name = cleanName(id, 1<<10)
	}
	if len(name) > maxName {
		name = hashed(name, id)
	}
	if taken[name] {
		name = hashed(name, method+" "+path)
	}
	for n := 0; taken[name]; n++ { // only after a hash collision
		name = hashed(name, fmt.Sprint(method, path, n))
	}
	return name
}

func hashed(name, of string) string {
	sum := sha256.Sum256([]byte(of))
	tail := "_" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(store.Head(name, maxName-len(tail)), "_-") + tail
}

// places is the order in which parameters are named.
var places = map[string]int{"path": 1, "query": 2, "header": 3, "cookie": 4, "form": 5}

// argName returns the name of a parameter's argument.
func argName(name, in string, taken map[string]bool) string {
	arg := cleanName(strings.NewReplacer("[]", "", ".", "_").Replace(name), maxName)
	if arg == "" {
		arg = in
	}
	if taken[arg] {
		arg = store.Head(arg, maxName-len(in)-1) + "_" + in
	}
	for base, n := arg, 2; taken[arg]; n++ {
		arg = store.Head(base, maxName-4) + "_" + fmt.Sprint(n)
	}
	return arg
}

// place returns where the path of an operation starts: at the server's base URL or, if
// absolute is true, at prefix on its host.
func (r *reader) place(item, op object) (prefix string, absolute bool, err error) {
	servers := op.list("servers")
	if len(servers) == 0 {
		servers = item.list("servers")
	}
	if len(servers) == 0 {
		return "", false, nil
	}
	u, err := r.serverURL(asObject(servers[0]))
	if err != nil {
		return "", false, err
	}
	own, err := r.ownBase()
	switch {
	case err == nil && u.String() == own.String():
		return "", false, nil
	case err == nil && sameOrigin(u, own), sameOrigin(u, r.document.Base):
		return u.EscapedPath(), true, nil
	}
	return "", false, fmt.Errorf("it is at another host, %s: add that as a server of its own, with --base-url %s", store.Clip(u.Host, 100), store.Clip(u.String(), 150))
}

// ownHeaders carry credentials or frame the message; no argument sets them.
var ownHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "Host": true, "Connection": true, "Content-Length": true, "Content-Type": true,
	"Transfer-Encoding": true, "Upgrade": true, "Te": true, "Trailer": true, "Expect": true, "Accept": true, "Accept-Encoding": true, "Keep-Alive": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Real-Ip": true, "X-Http-Method-Override": true, "X-Method-Override": true, "X-Http-Method": true,
}

// parameters returns the parameters of an operation and of its path.
func (r *reader) parameters(item, op object, path string) ([]param, error) {
	byKey := map[string]int{}
	var all []param
	for _, raw := range slices.Concat(item.list("parameters"), op.list("parameters")) {
		o, _, err := r.follow(raw)
		if err != nil {
			return nil, fmt.Errorf("a parameter has %w", err)
		}
		one, ok, err := r.parameter(o)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		key := one.in + " " + one.name
		if i, there := byKey[key]; there {
			all[i] = one
			continue
		}
		byKey[key] = len(all)
		all = append(all, one)
	}
	if len(all) > maxParameters {
		return nil, fmt.Errorf("it has %d parameters, over %d", len(all), maxParameters)
	}
	inPath := placeholders(path)
	for _, name := range inPath {
		if _, ok := byKey["path "+name]; !ok { // many documents omit some
			all = append(all, param{name: name, in: "path", required: true, schema: json.RawMessage(`{"type":"string"}`)})
		}
	}
	return slices.DeleteFunc(all, func(p param) bool { return p.in == "path" && !slices.Contains(inPath, p.name) }), nil
}

var placeholder = regexp.MustCompile(`\{([^{}/]+)\}`)

// placeholders returns the names of the parameters in a path.
func placeholders(path string) (names []string) {
	for _, m := range placeholder.FindAllStringSubmatch(path, -1) {
		names = append(names, m[1])
	}
	return names
}

// parameter reads one parameter. It returns ok false for one that no argument may set.
func (r *reader) parameter(o object) (p param, ok bool, err error) {
	p = param{name: o.text("name"), in: o.text("in"), description: o.text("description"), schema: o["schema"]}
	p.required, _ = o.flag("required")
	if p.name == "" || len(p.name) > 256 {
		return p, false, nil
	}
	switch p.in {
	case "path":
		p.required = true
	case "query", "cookie":
	case "header":
		canonical := textproto.CanonicalMIMEHeaderKey(p.name)
		if ownHeaders[canonical] || strings.HasPrefix(canonical, "Proxy-") || !validHeader(p.name) {
			return p, false, nil
		}
	case "body", "formData":
		if !r.swagger {
			return p, false, nil
		}
		p.in = "form"
		if o.text("in") == "body" {
			return p, false, nil // read by body
		}
	default:
		if p.in == "querystring" {
			return p, false, fmt.Errorf("a parameter is a whole query string, which is not supported")
		}
		return p, false, nil
	}
	if r.credential(p.in, p.name) {
		return p, false, nil
	}
	if r.swagger {
		p.schema = encode(o)
		p.style, p.explode = collection(o.text("collectionFormat"), p.in)
		return p, true, nil
	}
	if content := o.object("content"); len(content) > 0 {
		p.media = slices.Sorted(maps.Keys(content))[0]
		if _, json := content["application/json"]; json {
			p.media = "application/json"
		}
		p.schema = asObject(content[p.media])["schema"]
		return p, true, nil
	}
	p.style = o.text("style")
	if known := styles[p.in]; !slices.Contains(known, p.style) {
		p.style = known[0]
	}
	p.explode = p.style == "form" || p.style == "cookie"
	if explode, said := o.flag("explode"); said {
		p.explode = explode
	}
	p.reserved, _ = o.flag("allowReserved")
	return p, true, nil
}

// styles lists the styles for each location, the default first.
var styles = map[string][]string{
	"path": {"simple", "label", "matrix"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"}, "header": {"simple"}, "cookie": {"form", "cookie"},
}

// collection converts a collectionFormat of Swagger 2.0 to a style.
func collection(format, in string) (style string, explode bool) {
	if in == "path" || in == "header" {
		return "simple", false
	}
	switch format {
	case "multi":
		return "form", true
	case "ssv":
		return "spaceDelimited", false
	case "pipes":
		return "pipeDelimited", false
	case "tsv":
		return "tabDelimited", false
	}
	return "form", false
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")

func validHeader(name string) bool { return headerName.MatchString(name) }

// credential reports whether a parameter is the key of a security scheme.
func (r *reader) credential(in, name string) bool {
	for key := range r.schemes {
		s, _, err := r.follow(r.schemes[key])
		if err != nil || s.text("type") != "apiKey" || s.text("in") != in {
			continue
		}
		if s.text("name") == name || in == "header" && strings.EqualFold(s.text("name"), name) {
			return true
		}
	}
	return false
}

// wants returns the credentials of the first security requirement of an operation. It
// returns open true if none is needed.
func (r *reader) wants(op object) (all []Want, open bool) {
	raw, said := op["security"]
	if !said {
		raw = r.root["security"]
	}
	var ways []map[string]json.RawMessage
	if json.Unmarshal(raw, &ways) != nil || len(ways) == 0 {
		return nil, true
	}
	for _, way := range ways {
		if len(way) == 0 {
			return nil, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ways[0])) {
		s, _, err := r.follow(r.schemes[name])
		if err != nil || s == nil {
			continue
		}
		if w, ok := wantOf(s); ok {
			all = append(all, w)
		}
	}
	return all, false
}

// wantOf returns where a security scheme expects its credential.
func wantOf(s object) (w Want, ok bool) {
	switch s.text("type") {
	case "apiKey":
		name := s.text("name")
		if !validHeader(name) {
			return w, false
		}
		switch s.text("in") {
		case "header":
			return Want{Header: name}, true
		case "cookie":
			return Want{Header: "Cookie", Note: "its value is " + name + "= and the key"}, true
		case "query":
			return Want{Query: name}, true
		}
	case "basic":
		return basicWant, true
	case "http":
		if strings.EqualFold(s.text("scheme"), "basic") {
			return basicWant, true
		}
		return Want{Header: "Authorization"}, true
	case "oauth2", "openIdConnect":
		return Want{Header: "Authorization"}, true
	}
	return w, false
}

var basicWant = Want{Header: "Authorization", Note: `its value is "Basic " and the base64 of user:password`}

// bodyOf is a request body.
type bodyOf struct {
	Body
	schema      json.RawMessage
	description string
}

// body returns the request body of an operation, or nil.
func (r *reader) body(op object, params []param) (*bodyOf, error) {
	if r.swagger {
		return r.swaggerBody(op, params)
	}
	raw, ok := op["requestBody"]
	if !ok {
		return nil, nil
	}
	o, _, err := r.follow(raw)
	if err != nil {
		return nil, fmt.Errorf("its body has %w", err)
	}
	content := o.object("content")
	if len(content) == 0 {
		return nil, nil
	}
	media := bestMedia(slices.Sorted(maps.Keys(content)))
	if media == "" {
		return nil, fmt.Errorf("its body has no media type that can be sent")
	}
	m := asObject(content[media])
	b := &bodyOf{Body: Body{Media: concrete(media)}, schema: m["schema"], description: o.text("description")}
	b.Required, _ = o.flag("required")
	if err := r.fields(b, m.object("encoding")); err != nil {
		return nil, err
	}
	return b, nil
}

// kindOf returns the kind of a body, by its media type.
func kindOf(media string) string {
	base, _, err := mime.ParseMediaType(media)
	if err != nil {
		base = strings.ToLower(strings.TrimSpace(media))
	}
	switch {
	case base == "application/json" || strings.HasSuffix(base, "+json") || base == "text/json":
		return "json"
	case base == "application/x-www-form-urlencoded":
		return "form"
	case base == "multipart/form-data":
		return "multipart"
	case strings.HasPrefix(base, "multipart/"):
		return ""
	case strings.HasPrefix(base, "text/"), strings.HasSuffix(base, "+xml"), base == "application/xml", base == "application/yaml", base == "application/x-yaml", base == "application/graphql",
		base == "application/x-ndjson", base == "application/jsonl", base == "application/sql", base == "application/javascript":
		return "text"
	case strings.Contains(base, "/"):
		return "bytes"
	}
	return ""
}

// bestMedia returns the preferred media type of a body: JSON, then forms, then text, then
// bytes.
func bestMedia(all []string) string {
	for _, kind := range []string{"json", "form", "multipart", "text", "bytes"} {
		if kind == "json" && slices.Contains(all, "application/json") {
			return "application/json"
		}
		for _, media := range all {
			wild := strings.HasPrefix(media, "*/*")
			if k := kindOf(media); k == kind && !wild || wild && kind == "json" {
				if _, _, err := mime.ParseMediaType(media); err == nil {
					return media
				}
			}
		}
	}
	return ""
}

// concrete returns the media type to send for one that may be a range.
func concrete(media string) string {
	switch {
	case strings.HasPrefix(media, "*/*"), strings.HasPrefix(media, "application/*"):
		return "application/json"
	case strings.HasPrefix(media, "text/*"):
		return "text/plain"
	case strings.Contains(media, "*"):
		return "application/octet-stream"
	}
	return media
}

// fields sets the body's schema as its kind requires, and how the fields of a form are
// encoded.
func (r *reader) fields(b *bodyOf, encoding object) error {
	switch kindOf(b.Media) {
	case "json":
		return nil
	case "text":
		b.schema = json.RawMessage(`{"type":"string"}`)
		b.description = strings.TrimSpace(store.Clip(b.description, maxProse-60) + "\n\nThe text itself, as " + b.Media + ".")
		return nil
	case "bytes":
		b.schema = json.RawMessage(`{"type":"string","contentEncoding":"base64"}`)
		b.description = strings.TrimSpace(store.Clip(b.description, maxProse-60) + "\n\nIn base64; it is sent as " + b.Media + ".")
		return nil
	}
	schema, _, err := r.follow(b.schema)
	if err != nil {
		return fmt.Errorf("its body has %w", err)
	}
	properties := r.allProperties(schema, 0)
	b.Fields = map[string]Field{}
	binary := false
	for name, raw := range properties {
		own, _, err := r.follow(raw)
		if err != nil {
			continue // the schema already implies it
		}
		how, _, _ := r.follow(encoding[name])
		f := Field{Media: store.Clip(how.text("contentType"), 200)}
		if i := strings.IndexByte(f.Media, ','); i >= 0 {
			f.Media = f.Media[:i]
		}
		if f.Media != "" {
			f.Media = concrete(f.Media)
			if _, _, err := mime.ParseMediaType(f.Media); err != nil {
				f.Media = ""
			}
		}
		f.Style = how.text("style")
		if !slices.Contains(styles["query"], f.Style) {
			f.Style = ""
		}
		if explode, said := how.flag("explode"); said && !explode {
			f.Joined = true
		}
		items, _, _ := r.follow(own["items"])
		f.File = isBinary(own) || isBinary(items)
		binary = binary || f.File
		if f != (Field{}) {
			b.Fields[name] = f
		}
	}
	if len(b.Fields) == 0 {
		b.Fields = nil
	}
	if binary {
		b.description = strings.TrimSpace(store.Clip(b.description, maxProse-60) + "\n\nThe content of files is in base64.")
	}
	return nil
}

// isBinary reports whether a property is the content of a file.
func isBinary(schema object) bool {
	return schema.text("format") == "binary" || schema.text("type") == "file" || schema.text("contentMediaType") != "" && schema.text("contentEncoding") == ""
}

// allProperties returns the properties of a schema and of the schemas that it is composed
// of.
func (r *reader) allProperties(schema object, depth int) object {
	all := object{}
	if depth > 4 {
		return all
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, raw := range schema.list(key) {
			if one, _, err := r.follow(raw); err == nil {
				maps.Copy(all, r.allProperties(one, depth+1))
			}
		}
	}
	maps.Copy(all, schema.object("properties"))
	return all
}

// swaggerBody returns the body of an operation of Swagger 2.0: one parameter, or the fields
// of a form.
func (r *reader) swaggerBody(op object, params []param) (*bodyOf, error) {
	consumes := op.texts("consumes")
	if len(consumes) == 0 {
		consumes = r.root.texts("consumes")
	}
	for _, raw := range op.list("parameters") {
		o, _, err := r.follow(raw)
		if err != nil || o.text("in") != "body" {
			continue
		}
		media := bestMedia(slices.DeleteFunc(slices.Clone(consumes), func(m string) bool { k := kindOf(m); return k == "form" || k == "multipart" }))
		b := &bodyOf{Body: Body{Media: concrete(cmp.Or(media, "application/json"))}, schema: o["schema"], description: o.text("description")}
		b.Required, _ = o.flag("required")
		return b, r.fields(b, nil)
	}
	properties, required, files := map[string]json.RawMessage{}, []string{}, false
	fields := map[string]Field{}
	for _, p := range params {
		if p.in != "form" {
			continue
		}
		o := asObject(p.schema)
		file := o.text("type") == "file"
		files = files || file
		properties[p.name] = p.schema
		if p.required {
			required = append(required, p.name)
		}
		f := Field{File: file, Joined: !p.explode && o.text("type") == "array", Style: p.style}
		if f.Style == "form" {
			f.Style = ""
		}
		if f != (Field{}) {
			fields[p.name] = f
		}
	}
	if len(properties) == 0 {
		return nil, nil
	}
	b := &bodyOf{Body: Body{Media: "application/x-www-form-urlencoded", Required: len(required) > 0}}
	if files || slices.ContainsFunc(consumes, func(m string) bool { return kindOf(m) == "multipart" }) && !slices.ContainsFunc(consumes, func(m string) bool { return kindOf(m) == "form" }) {
		b.Media = "multipart/form-data"
	}
	if files {
		b.description = "The content of files is in base64."
	}
	if len(fields) > 0 {
		b.Fields = fields
	}
	schema := map[string]json.RawMessage{"type": quote("object"), "properties": encode(properties)}
	if len(required) > 0 {
		schema["required"] = marshal(required)
	}
	b.schema = encode(schema)
	return b, nil
}

// accept returns the media types of an operation's responses.
func (r *reader) accept(op object) string {
	var all []string
	if r.swagger {
		if all = op.texts("produces"); len(all) == 0 {
			all = r.root.texts("produces")
		}
	} else {
		responses := op.object("responses")
		for _, code := range slices.Sorted(maps.Keys(responses)) {
			if code[0] != '2' && code != "default" {
				continue
			}
			if o, _, err := r.follow(responses[code]); err == nil {
				all = append(all, slices.Sorted(maps.Keys(o.object("content")))...)
			}
		}
	}
	var kept []string
	for _, media := range all {
		if _, _, err := mime.ParseMediaType(media); err == nil && len(media) < 100 && !slices.Contains(kept, media) && !strings.HasPrefix(media, "*") {
			kept = append(kept, media)
		}
	}
	slices.SortStableFunc(kept, func(a, b string) int { return rank(a) - rank(b) })
	kept = kept[:min(len(kept), 5)]
	if len(kept) == 0 || rank(kept[0]) > 0 {
		kept = append(kept, "application/json;q=0.5")
	}
	return strings.Join(append(kept, "*/*;q=0.1"), ", ")
}

// rank sorts JSON first.
func rank(media string) int {
	if kindOf(media) == "json" {
		return 0
	}
	return 1
}

// Allowed reports whether one of the patterns "METHOD PATHGLOB" matches an operation. A
// method may be *, and a * in the path matches anything, including slashes.
func Allowed(patterns []string, method, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		m, glob, ok := strings.Cut(p, " ")
		return ok && (m == "*" || strings.EqualFold(m, method)) && matches(strings.TrimSpace(glob), path)
	})
}

// CheckPattern returns an error if a pattern of operations can't match any. It accepts
// patterns without a space, which name tools.
func CheckPattern(pattern string) error {
	m, glob, ok := strings.Cut(pattern, " ")
	if !ok {
		return nil
	}
	if m != "*" && !slices.Contains(methods, strings.ToLower(m)) {
		return fmt.Errorf("%w pattern %q: its first word is not a method such as GET, or *", store.ErrInvalid, pattern)
	}
	if glob = strings.TrimSpace(glob); !strings.HasPrefix(glob, "/") && !strings.HasPrefix(glob, "*") || strings.Contains(glob, " ") {
		return fmt.Errorf("%w pattern %q: write METHOD and a path, such as 'GET /users*' or 'GET *'", store.ErrInvalid, pattern)
	}
	return nil
}

// matches reports whether a glob, whose only wildcard is *, matches s.
func matches(glob, s string) bool {
	parts := strings.Split(glob, "*")
	if len(parts) == 1 {
		return glob == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
