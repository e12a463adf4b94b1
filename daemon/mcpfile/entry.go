package mcpfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// written is an entry as clients write it. An unknown field gets a note, since it has no
// effect.
type written struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]scalar `json:"env"`
	Cwd     string            `json:"cwd"`
	URL     string            `json:"url"`
	OpenAPI string            `json:"openapi"` // nize's own: an OpenAPI document, with url as the service
	Allow   []string          `json:"allow"`   // and its allowed operations
	Headers map[string]scalar `json:"headers"`

	Timeout        span `json:"timeout"`         // of one call: nize's own form, with a unit
	MaxConcurrency int  `json:"max_concurrency"` // nize's own: concurrent calls

	Description string `json:"description"`
	Disabled    bool   `json:"disabled"` // Cline, Windsurf
	Enabled     *bool  `json:"enabled"`

	dialect `json:"-"`
}

// span is a duration with its unit, such as "30s". Plain numbers are ignored, since some
// clients mean seconds and others milliseconds.
type span store.Duration

func (s *span) UnmarshalJSON(b []byte) error {
	if d, ok := spanOf(b); ok {
		*s = span(d)
	}
	return nil
}

func spanOf(b []byte) (store.Duration, bool) {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return 0, false
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	return store.Duration(d), err == nil && d > 0
}

// scalar is a string. Numbers and bools are read as their text, and null as the empty
// string. {"credential":"ID"} is a declared credential.
type scalar struct{ text, credential string }

func (s *scalar) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		var v store.Value
		if err := json.Unmarshal(b, &v); err != nil || v.Credential == "" {
			return fmt.Errorf(`a value must be a string or {"credential":"ID"}`)
		}
		s.credential = v.Credential
		return nil
	}
	switch {
	case string(b) == "null":
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, &s.text)
	default:
		s.text = string(b)
	}
	return nil
}

// known are the fields of written; each ignored field has the reason why ignoring it is
// harmless.
var known = []string{"type", "command", "args", "env", "cwd", "url", "openapi", "allow", "headers", "max_concurrency", "description", "disabled", "enabled", "name", "display_name", "title", "bundled"}

var ignored = map[string]string{
	"alwaysAllow":          "nize asks by its own rules: see nizectl servers edit --approval and --trust-annotations",
	"autoApprove":          "nize asks by its own rules: see nizectl servers edit --approval and --trust-annotations",
	"trust":                "nize asks by its own rules: see nizectl servers edit --approval and --trust-annotations",
	"envFile":              "the file is not read: put what the server needs into env, or seal it with nizectl credentials set",
	"timeout":              `clients don't agree on its unit: write one, such as "30s", or see nizectl servers edit --timeout`,
	"headersHelper":        "no helper is run: register the server with --header-secret Authorization",
	"authProviderType":     "register the server with --header-secret Authorization",
	"dev":                  "it is for developing the server",
	"sandboxEnabled":       "nize has no such sandbox",
	"includeTools":         "see nizectl servers edit --allow",
	"excludeTools":         "see nizectl servers edit --allow",
	"disabledTools":        "see nizectl servers edit --allow",
	"initializationConfig": "it is the editor's",
	"oauth_resource":       "the server's own documents say what a token is for",

	"enabled_tools":       "see nizectl servers edit --allow",
	"disabled_tools":      "see nizectl servers edit --allow",
	"available_tools":     "see nizectl servers edit --allow",
	"tools":               "see nizectl servers edit --allow",
	"startup_timeout_sec": "see nizectl servers edit --start-timeout",
	"startup_timeout_ms":  "see nizectl servers edit --start-timeout",
	"initTimeout":         "see nizectl servers edit --start-timeout",
	"tool_timeout_sec":    "see nizectl servers edit --timeout",
	"startup":             "nize connects to all that are not disabled",
	"watchPaths":          "nize starts a server again when its record changes",
	"serverInstructions":  "the server's own are used",
	"chatMenu":            "it is about how a client shows it",
	"iconPath":            "it is about how a client shows it",
	"gallery":             "it is about where a client found it",
	"version":             "it is about where a client found it",
}

// entry reads one entry; any error is in its Err.
func (r *reader) entry(key string, raw json.RawMessage) Entry {
	e := Entry{Key: clip(key), Secrets: map[string]store.Secret{}}
	fields, err := membersOf(raw)
	if err != nil {
		e.Err = invalid("it must be an object")
		return e
	}
	if len(fields) > maxValues {
		e.Err = invalid("it has more than %d fields", maxValues)
		return e
	}
	fields, d, err := r.canonical(fields)
	if err != nil {
		e.Err = err
		return e
	}
	var w written
	whole, err := json.Marshal(rawObject(fields))
	if err == nil {
		err = json.Unmarshal(whole, &w)
	}
	if err != nil {
		e.Err = invalid("%s", fieldError(fields))
		return e
	}
	w.dialect = d
	e.Notes = append(e.Notes, d.notes...)
	for _, f := range fields {
		if f.key == "tools" && allTools(f.value) {
			continue
		}
		if _, ok := spanOf(f.value); f.key == "timeout" && ok {
			continue
		}
		if !slices.Contains(known, f.key) {
			why := ignored[f.key]
			if why == "" {
				why = "nize does not know it"
			}
			e.Notes = append(e.Notes, fmt.Sprintf("%s is left out: %s", clip(f.key), why))
		}
	}
	e.Server.Description = clip(w.Description)
	e.Server.Timeout, e.Server.MaxConcurrency = store.Duration(w.Timeout), w.MaxConcurrency
	e.Server.Disabled = w.Disabled || w.Enabled != nil && !*w.Enabled
	e.Err = r.fill(&e, w)
	if e.Server.Transport != store.Stdio {
		e.login = d.login
	}
	return e
}

// fieldError finds the field with a wrong type.
func fieldError(fields []member) string {
	for _, f := range fields {
		var w written
		one := fmt.Appendf(nil, "{%q:%s}", f.key, f.value)
		if !slices.Contains(known, f.key) || json.Unmarshal(one, &w) == nil {
			continue
		}
		want := "text"
		switch f.key {
		case "args", "allow":
			want = "a list of texts"
		case "env", "headers":
			want = "an object of texts"
		case "disabled", "enabled":
			want = "true or false"
		case "max_concurrency":
			want = "a whole number"
		}
		return fmt.Sprintf("%s is not %s", f.key, want)
	}
	return "one of its fields has a wrong type"
}

// fill fills in the record.
func (r *reader) fill(e *Entry, w written) error {
	s := &e.Server
	switch client := elsewhere[w.Type]; {
	case w.foreign != "":
		return invalid("%s", w.foreign)
	case client != "":
		return invalid("it is part of %s (type %s): nize can't start it", client, w.Type)
	}
	if err := transport(s, w); err != nil {
		return err
	}
	if len(w.Args) > maxValues || len(w.Env) > maxValues || len(w.Headers) > maxValues {
		return invalid("it has more than %d arguments, variables or headers", maxValues)
	}
	x := &expander{env: r.opt.Env, inputs: r.inputs, own: w.Env, braces: r.braces}
	if w.vars != nil {
		x.inputs, x.users = w.vars, true
	}
	if s.Transport != store.Stdio {
		x.own = nil
		if len(w.Env) > 0 {
			e.Notes = append(e.Notes, "env is left out: a server over "+string(s.Transport)+" has none")
		}
		return r.fillRemote(e, w, x)
	}
	if len(w.Headers) > 0 {
		e.Notes = append(e.Notes, "headers is left out: a command has none")
	}
	return r.fillCommand(e, w, x)
}

// transport sets how the server is reached.
func transport(s *store.Server, w written) error {
	switch strings.ToLower(w.Type) {
	case "":
		switch {
		case w.OpenAPI != "":
			s.Transport = store.OpenAPI
		case w.Command != "":
			s.Transport = store.Stdio
		case w.URL != "":
			s.Transport = store.HTTP
			if u, err := url.Parse(w.URL); err == nil && !w.streamable && strings.HasSuffix(u.Path, "/sse") {
				s.Transport = store.SSE
			}
		}
	case "stdio", "local":
		s.Transport = store.Stdio
	case "http", "https", "streamable-http", "streamablehttp", "streamable_http", "http-stream", "httpstream", "remote":
		s.Transport = store.HTTP
	case "sse":
		s.Transport = store.SSE
	case "openapi":
		s.Transport = store.OpenAPI
	default:
		return invalid("type %q is none of stdio, http, sse and openapi", clip(w.Type))
	}
	switch {
	case s.Transport == store.OpenAPI && w.OpenAPI == "":
		return invalid("type openapi needs a document under openapi")
	case s.Transport == store.OpenAPI && w.Command != "":
		return invalid("it has both a command and an OpenAPI document")
	case s.Transport == store.OpenAPI:
		return nil
	case w.OpenAPI != "" || len(w.Allow) > 0:
		return invalid("openapi and allow are for a server of type openapi")
	case w.Command != "" && w.URL != "":
		return invalid("it has both a command and a url")
	case w.Command == "" && w.URL == "" && w.Type == "" && (w.Enabled != nil || w.Disabled):
		return invalid("it only turns a server on or off that another file describes: import that file")
	case w.Command == "" && w.URL == "":
		return invalid("it has neither a command nor a url")
	case s.Transport == store.Stdio && w.Command == "":
		return invalid("type %s needs a command", w.Type)
	case s.Transport != store.Stdio && w.URL == "":
		return invalid("type %s needs a url", w.Type)
	}
	return nil
}

func (r *reader) fillCommand(e *Entry, w written, x *expander) error {
	s := &e.Server
	if shell := strings.ToLower(w.Command); (shell == "cmd" || shell == "cmd.exe") && len(w.Args) > 1 && strings.EqualFold(w.Args[0], "/c") {
		w.Command, w.Args = w.Args[1], w.Args[2:]
		e.Notes = append(e.Notes, "cmd /c is left out: it is the shell of Windows")
	}
	var err error
	if s.Command, err = x.text("command", w.Command); err != nil {
		return err
	}
	if s.Cwd, err = x.text("cwd", w.Cwd); err != nil {
		return err
	}
	for i, arg := range w.Args {
		where := fmt.Sprintf("args[%d]", i)
		text, err := x.text(where, arg)
		if err != nil {
			return err
		}
		name := "" // --api-key VALUE and --api-key=VALUE
		if i > 0 && strings.HasPrefix(w.Args[i-1], "-") && !strings.HasPrefix(arg, "-") {
			name = strings.TrimLeft(w.Args[i-1], "-")
		}
		value := text
		if flag, after, ok := strings.Cut(text, "="); ok && strings.HasPrefix(flag, "-") {
			name, value = strings.TrimLeft(flag, "-"), after
		}
		if x.sealed || !strings.Contains(value, "${") && store.SecretValue(name, value) {
			return invalid("%s holds a key, which everybody on the machine could read there: give it to the server in env", where)
		}
		if system := store.ForeignPath(text); system != "" {
			e.Notes = append(e.Notes, fmt.Sprintf("%s is a path of %s: write that of this machine, if there is one", where, system))
		}
		if strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "$HOME/") {
			e.Notes = append(e.Notes, where+" begins with a home as a shell writes it, and is handed on as it stands: write the whole path")
		}
		s.Args = append(s.Args, text)
	}
	if err := r.values(e, "env", w.Env, x, &s.Env); err != nil {
		return err
	}
	for _, name := range w.keyring {
		if !validName("env", name) {
			return invalid("env_keys: %q is not a valid name", clip(name))
		}
		if _, ok := s.Env[name]; ok {
			continue
		}
		if s.Env == nil {
			s.Env = map[string]store.Value{}
		}
		s.Env[name] = store.Value{SecretKey: name}
		e.asks = append(e.asks, ask{where: "env." + name, credential: name})
	}
	return nil
}

func (r *reader) fillRemote(e *Entry, w written, x *expander) error {
	s := &e.Server
	if s.Transport == store.OpenAPI {
		if err := r.fillDocument(s, w, x); err != nil {
			return err
		}
		if w.URL == "" { // the document has it
			return r.values(e, "headers", w.Headers, x, &s.Headers)
		}
	}
	text, err := x.text("url", w.URL)
	if err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return invalid("url must be an http or https address")
	}
	secret := x.sealed || u.User != nil || store.LooksSecret(text)
	for key, vals := range u.Query() {
		secret = secret || store.SecretValue(key, strings.Join(vals, ""))
	}
	if secret {
		return invalid("url holds a key, which would be kept in clear: give it to the server in headers")
	}
	s.URL = text
	return r.values(e, "headers", w.Headers, x, &s.Headers)
}

// fillDocument sets the OpenAPI document of an entry. It trusts what the HTTP methods imply
// about operations, as nizectl servers add does.
func (r *reader) fillDocument(s *store.Server, w written, x *expander) (err error) {
	if s.Document, err = x.text("openapi", w.OpenAPI); err != nil {
		return err
	}
	if x.sealed || store.LooksSecret(s.Document) {
		return invalid("openapi holds a key, which would be kept in clear")
	}
	s.AllowedTools, s.TrustAnnotations = w.Allow, true
	return nil
}

// values reads env or headers. Keys are moved into the entry's secrets.
func (r *reader) values(e *Entry, field string, in map[string]scalar, x *expander, out *map[string]store.Value) error {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !validName(field, name) {
			return invalid("%s: %q is not a valid name", field, clip(name))
		}
		where := field + "." + name
		if id := in[name].credential; id != "" {
			if *out == nil {
				*out = map[string]store.Value{}
			}
			(*out)[name] = store.Value{Credential: id}
			continue
		}
		raw, err := x.placeholders(where, in[name].text)
		if err != nil {
			return err
		}
		if ids := inputsIn(raw); len(ids) > 0 {
			if *out == nil {
				*out = map[string]store.Value{}
			}
			(*out)[name] = store.Value{SecretKey: name}
			a := ask{where: where, input: x.describeInputs(ids), credential: name}
			if _, whole := wholeInput(name, raw); !whole {
				a.template = clip(in[name].text)
				if store.LooksSecret(inputPlace.ReplaceAllString(raw, "")) { // it contains another key
					a.template = "…"
				}
			}
			e.asks = append(e.asks, a)
			continue
		}
		x.skip = name // in its own value, a variable means the daemon's
		text, err := x.expand(where, raw)
		x.skip = ""
		if err != nil {
			return err
		}
		if strings.ContainsAny(text, "\x00") || field == "headers" && strings.ContainsAny(text, "\r\n") {
			return invalid("%s holds a line break or a zero byte", where)
		}
		v := store.Value{Text: text}
		if x.sealed || mustSeal(name, text) {
			v = store.Value{SecretKey: name}
			e.Secrets[name] = store.NewSecret(text)
		}
		if *out == nil {
			*out = map[string]store.Value{}
		}
		(*out)[name] = v
	}
	return nil
}

// inputPlace matches an input in a text.
var inputPlace = regexp.MustCompile(`\$\{input:[^}]*\}`)

func described(in Input) string {
	if in.Description == "" {
		return ""
	}
	return " (" + in.Description + ")"
}

// mustSeal is stricter than store.SecretValue: a number under the name of a password is
// sealed, too, which does no harm.
func mustSeal(name, value string) bool {
	upper := strings.ToUpper(name)
	number := value != "" && strings.Trim(value, "0123456789") == ""
	return store.SecretValue(name, value) || number && store.SecretName(name) && !strings.HasSuffix(upper, "TOKENS")
}

// validName returns an error for an invalid name of a variable or header.
func validName(field, name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		digit := c >= '0' && c <= '9'
		switch {
		case letter, digit && (i > 0 || field == "headers"):
		case field == "headers" && strings.ContainsRune("!#$%&'*+.^`|~-", c):
		case field == "env" && i > 0 && (c == '.' || c == '-'): // some programs use such variables
		default:
			return false
		}
	}
	return true
}

// allTools reports whether a list of tools excludes none, as in GitHub Copilot.
func allTools(raw json.RawMessage) bool {
	var list []string
	return json.Unmarshal(raw, &list) == nil && slices.Equal(list, []string{"*"})
}
