package mcpfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// words maps some clients' names of fields to the usual ones.
var words = map[string]string{
	"cmd": "command", "envs": "env", "environment": "env", "uri": "url", "http_headers": "headers",
	"transport": "type", "transportType": "type", "serverUrl": "url", "httpUrl": "url",
	"maxConcurrency": "max_concurrency",
}

// elsewhere are types of servers that run inside a client.
var elsewhere = map[string]string{"builtin": "Goose", "platform": "Goose", "frontend": "Goose", "inline_python": "Goose"}

// spellings maps the lower-case names of the fields that nize reads to their proper
// spelling.
var spellings = func() map[string]string {
	all := map[string]string{}
	for _, key := range known {
		all[strings.ToLower(key)] = key
	}
	for key := range words {
		all[strings.ToLower(key)] = key
	}
	return all
}()

// spelled returns nize's spelling of a field: serverURL is serverUrl.
func spelled(key string) string {
	if slices.Contains(known, key) || words[key] != "" || ignored[key] != "" {
		return key
	}
	if usual, ok := spellings[strings.ToLower(key)]; ok {
		return usual
	}
	return key
}

// canonical converts an entry's fields from its client's form to those of [written]. Fields
// that have no counterpart there are returned in d.
func (r *reader) canonical(fields []member) (out []member, d dialect, err error) {
	set := func(key string, value json.RawMessage) {
		for i := range out {
			if out[i].key == key {
				out[i].value = value
				return
			}
		}
		out = append(out, member{key, value})
	}
	for _, f := range fields {
		key := spelled(f.key)
		f.key = key
		if w, ok := words[key]; ok {
			if _, both := pick(fields, w); both && string(f.value) != "null" {
				continue // the proper name takes precedence
			}
			key = w
		}
		switch f.key {
		case "httpUrl":
			d.streamable = true
		case "env_http_headers", "bearer_token_env_var", "env_vars", "env_keys", "oauth", "auth", "requiresOAuth", "scopes", "customUserVars", "settings", "source":
			d.fields = append(d.fields, f)
			continue
		}
		set(key, f.value)
	}
	if raw, ok := pick(out, "command"); ok {
		if err := splitCommand(raw, out, set); err != nil {
			return nil, d, err
		}
	}
	get := func(key string) (json.RawMessage, bool) { return pick(out, key) }
	for _, f := range d.fields {
		if err := d.read(f, get, set); err != nil {
			return nil, d, err
		}
	}
	return out, d, nil
}

// splitCommand splits a command that is a list with its arguments, as in opencode, or an
// object, as in older settings of Zed.
func splitCommand(raw json.RawMessage, fields []member, set func(string, json.RawMessage)) error {
	var list []string
	switch {
	case len(raw) > 0 && raw[0] == '[':
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return invalid("command is not a list of texts")
		}
		args := list[1:]
		if more, ok := pick(fields, "args"); ok {
			var rest []string
			if json.Unmarshal(more, &rest) != nil {
				return invalid("args is not a list of texts")
			}
			args = append(args, rest...)
		}
		set("command", text(list[0]))
		set("args", texts(args))
	case len(raw) > 0 && raw[0] == '{':
		inner, err := membersOf(raw)
		if err != nil {
			return invalid("command is not text")
		}
		path, ok := pick(inner, "path")
		if !ok {
			return invalid("command has no path")
		}
		set("command", path)
		for _, key := range []string{"args", "env"} {
			if v, ok := pick(inner, key); ok {
				set(key, v)
			}
		}
	}
	return nil
}

func text(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}

func texts(list []string) json.RawMessage {
	b, _ := json.Marshal(list) // strings always encode
	return b
}

// dialect is the client-specific part of an entry.
type dialect struct {
	fields     []member
	streamable bool // its url is Streamable HTTP, whatever its path
	keyring    []string
	vars       map[string]Input // variables that LibreChat asks users for
	login      *oauthClient
	foreign    string // why nize can't start it
	notes      []string
}

// oauthClient is an entry's sign-in configuration.
type oauthClient struct {
	id     string
	scopes []string
	secret bool // there is a client secret
}

// read reads one field.
func (d *dialect) read(f member, get func(string) (json.RawMessage, bool), set func(string, json.RawMessage)) error {
	add := func(to, name, value string) {
		all := map[string]json.RawMessage{}
		if had, ok := get(to); ok {
			_ = json.Unmarshal(had, &all) // on failure, the field is reported later
		}
		if _, ok := all[name]; !ok {
			all[name] = text(value)
		}
		b, _ := json.Marshal(all) // decoded from JSON, so it encodes
		set(to, b)
	}
	wrong := func(want string) error { return invalid("%s is not %s", f.key, want) }
	switch f.key {
	case "bearer_token_env_var":
		var name string
		if json.Unmarshal(f.value, &name) != nil {
			return wrong("the name of a variable")
		}
		if name != "" {
			add("headers", "Authorization", "Bearer ${"+name+"}")
		}
	case "env_http_headers":
		names := map[string]string{}
		if json.Unmarshal(f.value, &names) != nil {
			return wrong("an object of names of variables")
		}
		if len(names) > maxValues {
			return invalid("%s has more than %d variables", f.key, maxValues)
		}
		for header, name := range names {
			add("headers", header, "${"+name+"}")
		}
	case "env_vars":
		var list []json.RawMessage
		if json.Unmarshal(f.value, &list) != nil {
			return wrong("a list of names of variables")
		}
		if len(list) > maxValues {
			return invalid("%s has more than %d variables", f.key, maxValues)
		}
		for _, one := range list {
			var named struct {
				Name string `json:"name"`
			}
			if json.Unmarshal(one, &named.Name) != nil && json.Unmarshal(one, &named) != nil || named.Name == "" {
				return wrong("a list of names of variables")
			}
			add("env", named.Name, "${"+named.Name+"}")
		}
	case "env_keys":
		if json.Unmarshal(f.value, &d.keyring) != nil {
			return wrong("a list of names of variables")
		}
	case "customUserVars":
		var vars map[string]struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		if json.Unmarshal(f.value, &vars) != nil {
			return wrong("an object of variables")
		}
		d.vars = map[string]Input{}
		for name, v := range vars {
			d.vars[name] = Input{ID: name, Description: clip(v.Title)}
		}
	case "scopes": // Codex has it outside the oauth block
		var scopes []string
		if json.Unmarshal(f.value, &scopes) != nil {
			return wrong("a list of texts")
		}
		if d.login == nil {
			d.login = &oauthClient{}
		}
		if len(d.login.scopes) == 0 {
			d.login.scopes = scopes
		}
	case "oauth", "auth", "requiresOAuth":
		c := readOAuth(f.value)
		switch text := string(f.value); {
		case c != nil && (d.login == nil || d.login.id == ""):
			if d.login != nil && len(c.scopes) == 0 {
				c.scopes = d.login.scopes
			}
			d.login = c
		case c == nil && f.key == "auth" && text != "null" && text != "false" && text != `"none"`:
			d.notes = append(d.notes, "auth is left out: register the server with --header-secret Authorization")
		}
	case "source":
		var from string
		if json.Unmarshal(f.value, &from) == nil && from == "extension" {
			d.foreign = "it is an extension of Zed, which only Zed can start: register the command that it runs"
		}
	case "settings":
		if _, ok := get("command"); !ok {
			if _, ok := get("url"); !ok {
				d.foreign = "it is the settings of an extension of Zed, which only Zed can start: register the command that it runs"
			}
		}
	}
	return nil
}

// readOAuth reads a sign-in block; it returns nil if no sign-in is needed.
func readOAuth(raw json.RawMessage) *oauthClient {
	switch s := string(raw); {
	case s == "true", s == `"oauth"`, s == `"OAuth"`:
		return &oauthClient{}
	case len(raw) == 0 || raw[0] != '{':
		return nil
	}
	fields, err := membersOf(raw)
	if err != nil {
		return nil
	}
	c := &oauthClient{}
	for _, f := range fields {
		var s string
		isText := json.Unmarshal(f.value, &s) == nil && s != ""
		switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(f.key)) {
		case "enabled":
			if string(f.value) == "false" {
				return nil
			}
		case "type":
			if isText && !strings.Contains(strings.ToLower(s), "oauth") {
				return nil
			}
		case "clientid":
			if isText {
				c.id = s
			}
		case "clientsecret":
			c.secret = isText
		case "scope", "scopes", "oauthscope", "oauthscopes":
			if isText {
				c.scopes = strings.Fields(s)
			} else if json.Unmarshal(f.value, &c.scopes) != nil {
				c.scopes = nil
			}
		}
	}
	return c
}

// advice describes how to sign in to the server of that name.
func (c *oauthClient) advice(server string) string {
	b := "sign in with nizectl servers login " + server
	if c.id != "" {
		b += " --client-id " + word(c.id, "ID")
	}
	for _, s := range c.scopes[:min(len(c.scopes), 20)] {
		b += " --scope " + word(s, "SCOPE")
	}
	if c.secret {
		b += ", which asks for the client's secret: that of the file is not taken over"
	}
	return b
}

// word returns s if a shell takes it literally, else instead.
func word(s, instead string) string {
	if len(s) > 200 || !plainWord.MatchString(s) {
		return instead
	}
	return s
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._:/@%+=-]+$`)

// envBraces and fileBraces are opencode's placeholders, userBraces LibreChat's; bareVar
// matches a value that is only a variable, as in Gemini CLI.
var (
	envBraces  = regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	fileBraces = regexp.MustCompile(`\{file:[^}]*\}`)
	bareVar    = regexp.MustCompile(`^(Bearer )?\$([A-Z][A-Z0-9_]+)$`)
	userBraces = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
)

// placeholders converts the client's placeholders to ${…}.
func (x *expander) placeholders(where, s string) (string, error) {
	if x.braces {
		if found := fileBraces.FindString(s); found != "" {
			return "", invalid("%s: %s is the content of a file, which nize does not read: write the value, or seal it with nizectl credentials set", where, clip(found))
		}
		s = envBraces.ReplaceAllString(s, "$${env:$1}")
	}
	s = bareVar.ReplaceAllString(s, "$1$${$2}")
	var err error
	s = userBraces.ReplaceAllStringFunc(s, func(found string) string {
		name := userBraces.FindStringSubmatch(found)[1]
		if _, ok := x.inputs[name]; ok && x.users {
			return "${input:" + name + "}"
		}
		if strings.HasPrefix(name, "LIBRECHAT_") && err == nil {
			err = invalid("%s: {{%s}} is the user of LibreChat, whom nize does not know: write the value", where, name)
		}
		return found
	})
	return s, err
}

// inputsIn returns the inputs that a text refers to.
func inputsIn(s string) (ids []string) {
	for {
		_, rest, ok := strings.Cut(s, "${input:")
		id, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			return ids
		}
		if id = clip(id); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		s = after
	}
}

// describeInputs lists inputs with their descriptions, if known.
func (x *expander) describeInputs(ids []string) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(" and ")
		}
		fmt.Fprintf(&b, "%s%s", id, described(x.inputs[id]))
	}
	return b.String()
}
