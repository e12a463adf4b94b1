package extensions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/store"
)

const (
	manifestFile = "extension.json"
	maxManifest  = 256 << 10 // bytes

	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
)

// manifest is the content of extension.json.
type manifest struct {
	Name          string
	Title         string
	Description   string
	InputSchema   json.RawMessage
	OutputSchema  json.RawMessage // of structuredContent
	Renderer      string          // a file of the folder: the renderer of results
	Template      string          // HTML that shows results
	TemplateFile  string          // or a file of the folder that contains it
	templateField string          // the field that names the template
	CredentialID  string          // of a declared credential, which each call gets
	Timeout       store.Duration
	Command       []string
	Agents        []store.Agent
}

// fields maps the fields of a manifest to whether they are required.
var fields = map[string]bool{
	"name": true, "title": false, "description": true, "inputSchema": true, "outputSchema": false,
	"renderer": false, "credentialId": false, "timeout": false, "command": true, "agents": false,
	"template": false, "_meta": false,
}

// fieldError is an error in one field of a file.
type fieldError struct {
	file, field, why string
}

func (e *fieldError) Error() string {
	if e.field == "" {
		return e.file + ": " + e.why
	}
	return e.file + ": " + e.field + ": " + e.why
}

func wrong(field, format string, args ...any) error {
	return &fieldError{manifestFile, field, fmt.Sprintf(format, args...)}
}

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// decode parses a manifest strictly. folder is the folder that contains it.
func decode(folder string, raw []byte) (m manifest, err error) {
	if _, err := store.Canonical(raw); err != nil { // rejects duplicate keys and invalid JSON
		return m, wrong("", "%s", syntax(raw, err))
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal(raw, &doc) != nil || doc == nil {
		return m, wrong("", "it must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if _, ok := fields[name]; !ok {
			known := slices.Sorted(maps.Keys(fields))
			if near := store.Nearest(name, known); near != "" {
				return m, wrong(name, "there is no such field; did you mean %s?", near)
			}
			return m, wrong(name, "there is no such field; there are %s", strings.Join(known, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] && len(doc[name]) == 0 {
			return m, wrong(name, "it is missing")
		}
	}
	for name, into := range map[string]*string{"name": &m.Name, "title": &m.Title, "description": &m.Description, "renderer": &m.Renderer, "template": &m.TemplateFile, "credentialId": &m.CredentialID} {
		if v, ok := doc[name]; ok && (json.Unmarshal(v, into) != nil || v[0] != '"' || strings.TrimSpace(*into) == "") {
			return m, wrong(name, "it must be a text")
		}
	}
	for name, into := range map[string]*json.RawMessage{"inputSchema": &m.InputSchema, "outputSchema": &m.OutputSchema} {
		if v, ok := doc[name]; ok {
			if v[0] != '{' {
				return m, wrong(name, "it must be a JSON Schema")
			}
			*into = v
		}
	}
	switch {
	case !names.MatchString(m.Name):
		return m, wrong("name", "use 1 to 63 letters, digits, _, - and ., starting with a letter or digit")
	case m.CredentialID != "" && store.CheckSlug(m.CredentialID) != nil:
		return m, wrong("credentialId", "use 1 to 63 of a-z, 0-9 and -, not starting with -")
	case m.Name != folder:
		return m, wrong("name", "it must be %q, as its folder", folder)
	}
	m.templateField = "template"
	if v, ok := doc["_meta"]; ok {
		if err := m.decodeMeta(v); err != nil {
			return m, err
		}
	}
	if v, ok := doc["timeout"]; ok {
		if json.Unmarshal(v, &m.Timeout) != nil || m.Timeout <= 0 || time.Duration(m.Timeout) > maxTimeout {
			return m, wrong("timeout", `it must be a duration such as "30s", at most %s`, store.SpanText(maxTimeout))
		}
	}
	if one := ""; json.Unmarshal(doc["command"], &one) == nil {
		m.Command = []string{one}
	} else if json.Unmarshal(doc["command"], &m.Command) != nil {
		return m, wrong("command", `it must be a program or a list of a program and its arguments, such as ["python3", "run.py"]`)
	}
	for i, word := range m.Command {
		switch {
		case strings.ContainsRune(word, 0) || i == 0 && word == "":
			return m, wrong("command", "word %d is empty or holds a zero byte", i+1)
		case store.LooksSecret(word):
			return m, wrong("command", "word %d looks like a key, and everybody on this machine can read a command line", i+1)
		}
	}
	if len(m.Command) == 0 {
		return m, wrong("command", "it is empty")
	}
	if v, ok := doc["agents"]; ok {
		m.Agents, err = decodeAgents(v)
	}
	return m, err
}

// decodeMeta reads the template of a manifest that has it in its _meta, under the name that
// the interface of tools uses.
func (m *manifest) decodeMeta(raw json.RawMessage) error {
	var doc map[string]json.RawMessage
	if json.Unmarshal(raw, &doc) != nil || doc == nil {
		return wrong("_meta", "it must be an object")
	}
	into := map[string]*string{"ui/template": &m.Template, "ui/templateFile": &m.TemplateFile}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		switch {
		case into[name] == nil:
			return wrong("_meta."+name, "there is no such field; there are ui/template, ui/templateFile")
		case m.Template+m.TemplateFile != "":
			return wrong("_meta."+name, "there is a template already")
		case json.Unmarshal(doc[name], into[name]) != nil || *into[name] == "":
			return wrong("_meta."+name, "it must be a text")
		case name == "ui/templateFile":
			m.templateField = "_meta." + name
		}
	}
	return nil
}

// decodeAgents reads the agents that an extension provides, with the fields of an agent in
// the configuration file. An extension can't choose the default agent.
func decodeAgents(raw json.RawMessage) (list []store.Agent, err error) {
	var docs []map[string]json.RawMessage
	if json.Unmarshal(raw, &docs) != nil || raw[0] != '[' {
		return nil, wrong("agents", `it must be a list of objects, such as [{"id": "helper", "system_prompt": "Be brief."}]`)
	}
	for i, doc := range docs {
		var a store.Agent
		fields := map[string]struct {
			into any
			kind string
		}{
			"id": {&a.ID, "a text"}, "name": {&a.Name, "a text"}, "model": {&a.Model, "a text"}, "system_prompt": {&a.SystemPrompt, "a text"}, "approval": {&a.Approval, "a text"},
			"max_tokens": {&a.MaxTokens, "a whole number"}, "max_steps": {&a.MaxSteps, "a whole number"}, "temperature": {&a.Temperature, "a number"},
			"allowed_tools": {&a.AllowedTools, "a list of texts"}, "who": {&a.Who, "a list of texts"}, "direct": {&a.Direct, "true or false"},
		}
		at := fmt.Sprintf("agents[%d]", i)
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			f, ok := fields[name]
			if known := slices.Sorted(maps.Keys(fields)); !ok {
				if near := store.Nearest(name, known); near != "" {
					return nil, wrong(at+"."+name, "there is no such field; did you mean %s?", near)
				}
				return nil, wrong(at+"."+name, "there is no such field; there are %s", strings.Join(known, ", "))
			}
			if json.Unmarshal(doc[name], f.into) != nil || string(doc[name]) == "null" {
				return nil, wrong(at+"."+name, "it must be %s", f.kind)
			}
		}
		if err := store.CheckSlug(a.ID); err != nil {
			return nil, wrong(at+".id", "%v", err)
		}
		if j := slices.IndexFunc(list, func(o store.Agent) bool { return o.ID == a.ID }); j >= 0 {
			return nil, wrong(at+".id", "agents[%d] is %s already", j, a.ID)
		}
		list = append(list, a)
	}
	return list, nil
}

// syntax returns the position of a syntax error.
func syntax(raw []byte, err error) string {
	var bad *json.SyntaxError
	if errors.As(json.Unmarshal(raw, new(any)), &bad) {
		at := min(int(bad.Offset), len(raw))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(raw[:at], []byte("\n")), bad)
	}
	return err.Error()
}
