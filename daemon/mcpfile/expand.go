package mcpfile

import (
	"fmt"
	"strings"

	"nize/store"
)

// expander replaces the placeholders of one entry.
type expander struct {
	env    func(string) (string, bool)
	inputs map[string]Input
	own    map[string]scalar // variables that the entry declares for its command
	skip   string            // the one that is being read, not declared yet
	sealed bool              // the last text contained a key, judging by a variable's name
	braces bool              // {env:VAR} is a placeholder
	users  bool              // {{VAR}} is a placeholder for an input
}

// text replaces the placeholders in s; where is for the error.
func (x *expander) text(where, s string) (string, error) {
	s, err := x.placeholders(where, s)
	if err != nil {
		return "", err
	}
	return x.expand(where, s)
}

// expand replaces ${…}.
func (x *expander) expand(where, s string) (string, error) {
	x.sealed = false
	if len(s) > 64<<10 {
		return "", invalid("%s is over 64 KiB", where)
	}
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(s, "${")
		b.WriteString(head)
		if !ok {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest) // not a placeholder
			return b.String(), nil
		}
		value, err := x.value(where, name)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		if b.Len() > 64<<10 {
			return "", invalid("%s is over 64 KiB when its placeholders are filled in", where)
		}
		s = after
	}
}

// value returns the value of one placeholder.
func (x *expander) value(where, name string) (string, error) {
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		in := x.inputs[id]
		what := fmt.Sprintf("%s asks for the input %s%s, which nize can take only in a variable or a header", where, clip(id), described(in))
		switch {
		case where == "url":
			return "", invalid("%s: give it to the server in headers", what)
		case in.Secret:
			return "", invalid("%s: give it to the server in env", what)
		}
		return "", invalid("%s: write the value there", what)
	}
	for prefix, what := range map[string]string{"file:": "the content of a file, which nize does not read", "command:": "what a command of an editor returns", "config:": "a setting of an editor"} {
		if strings.HasPrefix(name, prefix) {
			return "", invalid("%s: ${%s} is %s: write the value, or seal it with nizectl credentials set", where, clip(name), what)
		}
	}
	switch name {
	case "workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "file", "cwd":
		return "", invalid("%s: ${%s} is the folder that an editor has open: write the path", where, name)
	case "userHome":
		name = "env:HOME"
	case "pathSeparator", "/":
		return "/", nil
	}
	fallback, hasFallback := "", false
	variable := strings.TrimPrefix(name, "env:")
	if head, tail, ok := strings.Cut(variable, ":-"); ok {
		variable, fallback, hasFallback = head, tail, true
	}
	if !validName("env", variable) {
		return "${" + name + "}", nil // not one of ours; the program may understand it
	}
	if _, declared := x.own[variable]; declared && variable != x.skip {
		return "${" + name + "}", nil // the command expands it
	}
	if strings.HasPrefix(strings.ToUpper(variable), "NIZE_") {
		return "", invalid("%s: ${%s} is nize's own and is given to no server", where, variable)
	}
	text, ok := x.env(variable)
	if !ok || text == "" && hasFallback {
		if !hasFallback {
			return "", invalid("%s: the variable %s is not set for nized; set it where nized is started, or write the value", where, variable)
		}
		text = fallback
	}
	x.sealed = x.sealed || store.SecretValue(variable, text)
	return text, nil
}

// wholeInput reports whether a value is a single ${input:ID}. nize itself adds "Bearer " to
// an Authorization without a scheme.
func wholeInput(name, value string) (id string, ok bool) {
	value = strings.TrimSpace(value)
	if strings.EqualFold(name, "Authorization") {
		value = strings.TrimPrefix(value, "Bearer ")
	}
	id, ok = strings.CutPrefix(value, "${input:")
	if !ok || strings.Count(value, "${") != 1 || !strings.HasSuffix(id, "}") {
		return "", false
	}
	id = strings.TrimSuffix(id, "}")
	return id, !strings.Contains(id, "}")
}
