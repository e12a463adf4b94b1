package extension

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

// manifest is extension.json.
type manifest struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage // of structuredContent
	Renderer     string          // a file of the folder: how results are shown
	CredentialID string          // of a declared credential, which each call has
	Timeout      store.Duration
	Command      []string
}

// fields are those of a manifest, and whether there must be one.
var fields = map[string]bool{
	"name": true, "title": false, "description": true, "inputSchema": true, "outputSchema": false,
	"renderer": false, "credentialId": false, "timeout": false, "command": true,
}

// fieldError is what is wrong with one field of a file.
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

// decode reads a manifest strictly. folder is where it stands.
func decode(folder string, raw []byte) (m manifest, err error) {
	if _, err := store.Canonical(raw); err != nil { // keys that stand twice, and what is no JSON
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
	for name, into := range map[string]*string{"name": &m.Name, "title": &m.Title, "description": &m.Description, "renderer": &m.Renderer, "credentialId": &m.CredentialID} {
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
	return m, nil
}

// syntax says where a document is none.
func syntax(raw []byte, err error) string {
	var bad *json.SyntaxError
	if errors.As(json.Unmarshal(raw, new(any)), &bad) {
		at := min(int(bad.Offset), len(raw))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(raw[:at], []byte("\n")), bad)
	}
	return err.Error()
}
