package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"nize/store"
)

// Route describes how the arguments of a call become a request. It is a part of the tool's
// definition, and so of what an admin accepts.
type Route struct {
	Method     string      `json:"method"`
	Path       string      `json:"path"`               // as in the document, with {name} for parameters
	Absolute   bool        `json:"absolute,omitempty"` // relative to Prefix on the host, not to the server's base URL
	Prefix     string      `json:"prefix,omitempty"`
	Accept     string      `json:"accept,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Body       *Body       `json:"body,omitempty"`
}

// Parameter is an argument that is sent outside of the body.
type Parameter struct {
	Arg      string `json:"arg"`
	Name     string `json:"name,omitempty"` // on the wire, if different
	In       string `json:"in"`
	Style    string `json:"style,omitempty"`
	Explode  bool   `json:"explode,omitempty"`
	Reserved bool   `json:"reserved,omitempty"` // characters such as / are not escaped in a query
	Media    string `json:"media,omitempty"`    // media type as which the whole value is encoded
	Required bool   `json:"required,omitempty"`
}

// Body is the argument "body".
type Body struct {
	Media    string           `json:"media"`
	Required bool             `json:"required,omitempty"`
	Fields   map[string]Field `json:"fields,omitempty"` // of a form, the fields that are not sent as text
}

// Field is one field of a form.
type Field struct {
	File   bool   `json:"file,omitempty"`   // the value is base64, and sent decoded
	Media  string `json:"media,omitempty"`  // media type of its part
	Style  string `json:"style,omitempty"`  // style of an object or array
	Joined bool   `json:"joined,omitempty"` // an array is sent as one field
}

// bodyArg is the name of the body's argument.
const bodyArg = "body"

// wrong returns an error about arguments, for the caller.
func wrong(message store.Text) error {
	return &store.CallError{Code: store.CodeInvalid, Message: message}
}

// Request builds the request of a call below base. args is a JSON object. header holds the
// registered headers, which take precedence over arguments; a name prefixed with
// store.QueryPrefix is a query parameter.
func (r Route) Request(ctx context.Context, base *url.URL, header http.Header, args json.RawMessage) (*http.Request, error) {
	values := object{}
	if len(args) > 0 {
		if values = asObject(args); values == nil {
			return nil, wrong(store.Textf("the arguments are not a JSON object"))
		}
	}
	for name, v := range values {
		if string(v) == "null" && name != bodyArg {
			delete(values, name)
		}
	}
	path, query, own, cookies, err := r.place(values)
	if err != nil {
		return nil, err
	}
	prefix := base.EscapedPath()
	if r.Absolute {
		prefix = r.Prefix
	}
	u := *base
	raw, fixed, _ := strings.Cut(path, "?")
	u.RawPath = strings.TrimSuffix(prefix, "/") + raw
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, fmt.Errorf("%w path of an operation: %q", store.ErrInvalid, store.Clip(r.Path, 100))
	}
	header, registered := splitQuery(header)
	u.RawQuery = withQuery(strings.Join(slices.DeleteFunc([]string{base.RawQuery, fixed, strings.Join(query, "&")}, func(s string) bool { return s == "" }), "&"), registered)
	media, body, err := r.encodeBody(values[bodyArg])
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), reader)
	if err != nil {
		return nil, store.NetworkError(err)
	}
	maps.Copy(req.Header, own)
	if len(cookies) > 0 {
		req.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	for name, v := range header {
		if name == "Cookie" && len(cookies) > 0 {
			v = []string{strings.Join(append(slices.Clone(v), cookies...), "; ")}
		}
		req.Header[name] = v
	}
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json, */*;q=0.1"))
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	return req, nil
}

// splitQuery separates the registered query parameters from the registered headers.
func splitQuery(registered http.Header) (header http.Header, query map[string]string) {
	header, query = make(http.Header, len(registered)), map[string]string{}
	for name, v := range registered {
		if key, ok := strings.CutPrefix(name, store.QueryPrefix); ok && len(v) > 0 {
			query[key] = v[0]
			continue
		}
		header[name] = v
	}
	return header, query
}

// withQuery adds the registered parameters to a query and removes others with the same
// names: a caller must not choose the key that a service gets.
func withQuery(raw string, registered map[string]string) string {
	if len(registered) == 0 {
		return raw
	}
	pairs := slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		_, ok := registered[name]
		return pair == "" || ok
	})
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		pairs = append(pairs, escape(name, "[]$.:")+"="+escape(registered[name], ""))
	}
	return strings.Join(pairs, "&")
}

// EscapedSecret returns a secret as it appears in a query, for masks: a service may return
// the requested URL.
func EscapedSecret(secret string) string { return escape(secret, "") }

// place encodes the parameters for their locations.
func (r Route) place(values object) (path string, query []string, header http.Header, cookies []string, err error) {
	path, header = r.Path, http.Header{}
	used := map[string]bool{}
	if r.Body != nil {
		used[bodyArg] = true
	}
	for _, p := range r.Parameters {
		used[p.Arg] = true
		raw, ok := values[p.Arg]
		if !ok {
			if p.Required {
				return "", nil, nil, nil, wrong(store.Textf("the argument %s is missing", p.Arg))
			}
			continue
		}
		v, err := parse(raw)
		if err != nil {
			return "", nil, nil, nil, wrong(store.Textf("the argument %s is not JSON", p.Arg))
		}
		if p.Media != "" {
			v = value{text: string(compact(raw))}
			if kindOf(p.Media) != "json" {
				v = value{text: scalarText(raw)}
			}
		}
		name := cmp.Or(p.Name, p.Arg)
		switch p.In {
		case "path":
			text := inPath(name, p, v)
			if text == "" || text == "." || text == ".." {
				return "", nil, nil, nil, wrong(store.Textf("the argument %s can't be empty, . or .., because it is a part of the path", p.Arg))
			}
			path = strings.ReplaceAll(path, "{"+name+"}", text)
		case "query":
			query = append(query, inQuery(name, p, v)...)
		case "header":
			text := simple(v, p.Explode, func(s string) string { return s })
			if strings.ContainsAny(text, "\r\n\x00") {
				return "", nil, nil, nil, wrong(store.Textf("the argument %s has a line break, which no header can have", p.Arg))
			}
			header.Set(name, strings.TrimSpace(text))
		case "cookie":
			cookies = append(cookies, inQuery(name, p, v)...)
		}
	}
	for name := range values {
		if !used[name] {
			return "", nil, nil, nil, wrong(store.Textf("the tool has no argument %s", name))
		}
	}
	for segment := range strings.SplitSeq(strings.SplitN(path, "?", 2)[0], "/") {
		if segment == "." || segment == ".." || strings.ContainsAny(segment, "{}") {
			return "", nil, nil, nil, fmt.Errorf("%w path of an operation: %q", store.ErrInvalid, store.Clip(r.Path, 100))
		}
	}
	return escapeTemplate(path), query, header, cookies, nil
}

// escapeTemplate escapes characters that a document's path contains unescaped, such as a
// space.
func escapeTemplate(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^`+"`", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// value is an argument: a string, a list or an object.
type value struct {
	text   string
	list   []value
	keys   []string // keys of an object, in order
	fields map[string]value
	isList bool
	raw    json.RawMessage // set for an item of a list
}

// parse reads an argument.
func parse(raw json.RawMessage) (value, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return value{}, nil
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return value{}, fmt.Errorf("is not JSON")
		}
		v := value{isList: true}
		for _, e := range list {
			item, err := parse(e)
			if err != nil {
				return value{}, err
			}
			item.raw = e
			v.list = append(v.list, item)
		}
		return v, nil
	case '{':
		o := asObject(raw)
		if o == nil {
			return value{}, fmt.Errorf("is not JSON")
		}
		v := value{keys: slices.Sorted(maps.Keys(o)), fields: map[string]value{}}
		for key, e := range o {
			field, err := parse(e)
			if err != nil {
				return value{}, err
			}
			v.fields[key] = field
		}
		return v, nil
	}
	return value{text: scalarText(raw)}, nil
}

// scalarText returns a string unquoted, and any other value as JSON.
func scalarText(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(compact(raw))
}

// item returns the text of an item of a list; a nested list or object is JSON.
func (v value) item() string {
	if v.isList || v.fields != nil {
		return string(compact(v.raw))
	}
	return v.text
}

// flat returns the text of a field that can only be text.
func (v value) flat() string {
	switch {
	case v.isList:
		var parts []string
		for _, e := range v.list {
			parts = append(parts, e.item())
		}
		return strings.Join(parts, ",")
	case v.fields != nil:
		var parts []string
		for _, k := range v.keys {
			parts = append(parts, k, v.fields[k].flat())
		}
		return strings.Join(parts, ",")
	}
	return v.text
}

// simple encodes the style of paths and headers: a,b and k,v or, exploded, k=v.
func simple(v value, explode bool, esc func(string) string) string {
	return joined(v, explode, ",", ",", esc)
}

func joined(v value, explode bool, separator, pair string, esc func(string) string) string {
	var parts []string
	switch {
	case v.isList:
		for _, e := range v.list {
			parts = append(parts, esc(e.item()))
		}
	case v.fields != nil:
		for _, k := range v.keys {
			if explode {
				parts = append(parts, esc(k)+"="+esc(v.fields[k].flat()))
			} else {
				parts = append(parts, esc(k)+pair+esc(v.fields[k].flat()))
			}
		}
	default:
		return esc(v.text)
	}
	return strings.Join(parts, separator)
}

// inPath encodes a path parameter.
func inPath(name string, p Parameter, v value) string {
	esc := func(s string) string { return escape(s, "") }
	switch p.Style {
	case "label":
		separator := ","
		if p.Explode {
			separator = "."
		}
		return "." + joined(v, p.Explode, separator, ",", esc)
	case "matrix":
		if p.Explode && v.isList {
			var b strings.Builder
			for _, e := range v.list {
				b.WriteString(";" + esc(name) + "=" + esc(e.item()))
			}
			return b.String()
		}
		if p.Explode && v.fields != nil {
			return ";" + joined(v, true, ";", ",", esc)
		}
		return ";" + esc(name) + "=" + joined(v, false, ",", ",", esc)
	}
	return simple(v, p.Explode, esc)
}

// inQuery encodes a query or cookie parameter as one or several pairs.
func inQuery(name string, p Parameter, v value) []string {
	reserved := ""
	if p.Reserved {
		reserved = ":/?@!$'()*,;[]"
	}
	esc := func(s string) string { return escape(s, reserved) }
	key := escape(name, "[]$.:")
	if p.In == "cookie" {
		key = escape(name, "")
	}
	switch {
	case p.Style == "deepObject" && (v.fields != nil || v.isList):
		return deep(key, v, esc)
	case v.isList && p.Explode:
		var pairs []string
		for _, e := range v.list {
			pairs = append(pairs, key+"="+esc(e.item()))
		}
		return pairs
	case v.fields != nil && p.Explode:
		var pairs []string
		for _, k := range v.keys {
			pairs = append(pairs, escape(k, "[]$.:")+"="+esc(v.fields[k].flat()))
		}
		return pairs
	}
	separator := ","
	switch p.Style {
	case "spaceDelimited":
		separator = "%20"
	case "pipeDelimited":
		separator = "%7C"
	case "tabDelimited":
		separator = "%09"
	}
	if v.isList && len(v.list) == 0 || v.fields != nil && len(v.keys) == 0 {
		return nil
	}
	return []string{key + "=" + joined(v, false, separator, separator, esc)}
}

// deep encodes an object as key[a][b]=c. The specification doesn't define arrays; they get
// their indexes, as services with this style expect.
func deep(key string, v value, esc func(string) string) (pairs []string) {
	switch {
	case v.isList:
		for i, e := range v.list {
			pairs = append(pairs, deep(key+"["+strconv.Itoa(i)+"]", e, esc)...)
		}
	case v.fields != nil:
		for _, k := range v.keys {
			pairs = append(pairs, deep(key+"["+escape(k, "")+"]", v.fields[k], esc)...)
		}
	default:
		pairs = append(pairs, key+"="+esc(v.text))
	}
	return pairs
}

// escape percent-encodes everything but RFC 3986's unreserved characters and those in may.
func escape(s, may string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~' || strings.IndexByte(may, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// encodeBody encodes the body; nil means none.
func (r Route) encodeBody(raw json.RawMessage) (media string, body []byte, err error) {
	if r.Body == nil {
		return "", nil, nil
	}
	kind := kindOf(r.Body.Media)
	if len(raw) == 0 || string(raw) == "null" && kind != "json" {
		if r.Body.Required {
			return "", nil, wrong(store.Textf("the argument %s is missing", bodyArg))
		}
		return "", nil, nil
	}
	switch kind {
	case "json":
		return r.Body.Media, raw, nil
	case "form":
		o := asObject(raw)
		if o == nil {
			return "", nil, wrong(store.Textf("the argument %s is not an object of the form's fields", bodyArg))
		}
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(o)) {
			v, err := parse(o[name])
			if err != nil {
				return "", nil, wrong(store.Textf("the argument %s is not JSON", bodyArg))
			}
			f := r.Body.Fields[name]
			if kindOf(f.Media) == "json" || v.fields != nil && f.Style == "" { // objects are JSON unless a style is given
				pairs = append(pairs, escape(name, "")+"="+escape(string(compact(o[name])), ""))
				continue
			}
			p := Parameter{Style: f.Style, Explode: !f.Joined}
			pairs = append(pairs, inQuery(name, p, v)...)
		}
		return r.Body.Media, []byte(strings.Join(pairs, "&")), nil
	case "multipart":
		return r.multipart(raw)
	case "text":
		return r.Body.Media, []byte(scalarText(raw)), nil
	}
	content, err := fromBase64(scalarText(raw))
	if err != nil {
		return "", nil, wrong(store.Textf("the argument %s is not base64", bodyArg))
	}
	return r.Body.Media, content, nil
}

func fromBase64(s string) ([]byte, error) {
	if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), "")); err == nil {
		return b, nil
	}
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// multipart encodes a form with files.
func (r Route) multipart(raw json.RawMessage) (string, []byte, error) {
	o := asObject(raw)
	if o == nil {
		return "", nil, wrong(store.Textf("the argument %s is not an object of the form's fields", bodyArg))
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		f := r.Body.Fields[name]
		parts := []json.RawMessage{o[name]}
		var list []json.RawMessage
		if json.Unmarshal(o[name], &list) == nil && list != nil && kindOf(f.Media) != "json" {
			parts = list
		}
		for _, part := range parts {
			media, content := f.Media, []byte(scalarText(part))
			h := textproto.MIMEHeader{}
			disposition := `form-data; name="` + fieldName(name) + `"`
			if f.File {
				data, err := fromBase64(scalarText(part))
				if err != nil {
					return "", nil, wrong(store.Textf("the argument %s is not base64", bodyArg+"."+name))
				}
				content, media = data, cmp.Or(media, "application/octet-stream")
				disposition += `; filename="` + fieldName(name) + `"`
			} else if len(part) > 0 && (part[0] == '{' || part[0] == '[') {
				media = cmp.Or(media, "application/json")
			}
			h.Set("Content-Disposition", disposition)
			if media != "" {
				h.Set("Content-Type", media)
			}
			pw, err := w.CreatePart(h)
			if err != nil {
				return "", nil, err
			}
			if _, err := pw.Write(content); err != nil {
				return "", nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return w.FormDataContentType(), b.Bytes(), nil
}

// fieldName returns a name escaped for a Content-Disposition.
func fieldName(name string) string {
	return strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name)
}
