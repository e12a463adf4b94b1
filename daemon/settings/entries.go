package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"nize/store"
)

// Entries are the lists of tables in nized.toml, which are not settings: [[providers]],
// [[models]] and [[agents]].
type Entries struct {
	Providers []ProviderEntry
	Models    []ModelEntry
	Agents    []AgentEntry
}

// Place is the position of an entry: the file, the line of its header, and the lines of its
// fields.
type Place struct {
	file  string
	line  int
	lines map[string]int
}

// String returns FILE:LINE.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// Wrap adds the position of a field to an error, or that of the whole entry if field is "".
func (p Place) Wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	if line, ok := p.lines[field]; ok {
		return fmt.Errorf("%s:%d: %s: %w", p.file, line, field, err)
	}
	return fmt.Errorf("%s: %w", p, err)
}

// ProviderEntry is a [[providers]]. Its key is in a file or in a variable of the daemon's
// environment, never here.
type ProviderEntry struct {
	Place   `json:"-"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	BaseURL string `json:"base_url"`
	KeyFile string `json:"key_file"`
	KeyEnv  string `json:"key_env"`
	Enabled *bool  `json:"enabled"` // default true
}

// ModelEntry is a [[models]].
type ModelEntry struct {
	Place     `json:"-"`
	Name      string   `json:"name"`
	Target    string   `json:"target"`
	Fallbacks []string `json:"fallbacks"`
	Default   bool     `json:"default"`
	Who       []string `json:"who"`
	Window    int      `json:"window"`
}

// AgentEntry is an [[agents]].
type AgentEntry struct {
	Place        `json:"-"`
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Model        string   `json:"model"`
	SystemPrompt string   `json:"system_prompt"`
	MaxTokens    int      `json:"max_tokens"`
	Temperature  *float64 `json:"temperature"`
	AllowedTools []string `json:"allowed_tools"`
	Direct       bool     `json:"direct"`
	MaxSteps     int      `json:"max_steps"`
	Approval     string   `json:"approval"`
	Default      bool     `json:"default"`
	Who          []string `json:"who"`
}

// entryTables are the lists of tables that a file may contain.
var entryTables = []string{"agents", "models", "providers"}

// entry is an undecoded entry.
type entry struct {
	table  string
	line   int
	fields map[string]any
	lines  map[string]int
}

// begin starts an entry at its header.
func (w *walker) begin(n *unstable.Node) error {
	parts, line := w.key(n)
	name := strings.Join(parts, ".")
	if !slices.Contains(entryTables, name) {
		return &lineError{line, fmt.Errorf("%w list of tables %q: there is [[%s]]", store.ErrInvalid, name, strings.Join(entryTables, "]], [["))}
	}
	w.entries = append(w.entries, entry{name, line, map[string]any{}, map[string]int{}})
	return nil
}

// add adds a field to the last entry.
func (w *walker) add(n *unstable.Node) error {
	parts, line := w.key(n)
	e := &w.entries[len(w.entries)-1]
	name := strings.Join(parts, ".")
	value, err := plainValue(n.Value())
	if err != nil {
		return &lineError{line, fmt.Errorf("%w value for %s of [[%s]]: %w", store.ErrInvalid, name, e.table, err)}
	}
	e.fields[name], e.lines[name] = value, line
	return nil
}

// plainValue converts a TOML value to its JSON equivalent.
func plainValue(v *unstable.Node) (any, error) {
	switch v.Kind {
	case unstable.String:
		return string(v.Data), nil
	case unstable.Bool:
		return string(v.Data) == "true", nil
	case unstable.Integer, unstable.Float:
		return json.Number(strings.TrimPrefix(strings.ReplaceAll(string(v.Data), "_", ""), "+")), nil
	case unstable.Array:
		list := []string{}
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.String {
				return nil, errors.New("want a list of strings")
			}
			list = append(list, string(it.Node().Data))
		}
		return list, nil
	}
	return nil, errors.New("want a string, a number, true or false, or a list of strings")
}

// decodeEntries decodes entries and checks that their names are unique.
func decodeEntries(file string, read []entry) (all Entries, err error) {
	seen := map[string]int{}
	for _, e := range read {
		at, name, field := Place{file, e.line, e.lines}, "", "name"
		switch e.table {
		case "providers":
			p := ProviderEntry{}
			err = e.into(&p)
			p.Place, name = at, p.Name
			if p.KeyFile != "" && !filepath.IsAbs(p.KeyFile) { // relative to this file, not to the working directory
				p.KeyFile = filepath.Join(filepath.Dir(file), p.KeyFile)
			}
			if e.lines["key_file"] > 0 && e.lines["key_env"] > 0 && err == nil {
				err = &lineError{e.lines["key_env"], fmt.Errorf("%w value for key_env of [[providers]]: key_file is given, too", store.ErrInvalid)}
			}
			all.Providers = append(all.Providers, p)
		case "models":
			m := ModelEntry{}
			err = e.into(&m)
			m.Place, name = at, m.Name
			all.Models = append(all.Models, m)
		case "agents":
			a := AgentEntry{}
			err = e.into(&a)
			a.Place, name, field = at, a.ID, "id"
			all.Agents = append(all.Agents, a)
		}
		if err != nil {
			return Entries{}, err
		}
		if err := store.CheckSlug(name); err != nil {
			return Entries{}, &lineError{max(e.line, e.lines[field]), fmt.Errorf("%s of [[%s]]: %w", field, e.table, err)}
		}
		if before, twice := seen[e.table+" "+name]; twice {
			return Entries{}, &lineError{e.lines[field], fmt.Errorf("%w %s of [[%s]]: line %d has %s already", store.ErrInvalid, field, e.table, before, name)}
		}
		seen[e.table+" "+name] = e.lines[field]
	}
	return all, nil
}

// into decodes the fields one by one, so that an error has the field's line.
func (e entry) into(v any) error {
	t := reflect.TypeOf(v).Elem()
	var known []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("json"); tag != "-" {
			known = append(known, tag)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(e.fields), func(a, b string) int { return e.lines[a] - e.lines[b] }) {
		value := e.fields[name]
		at := func(err error) error { return &lineError{e.lines[name], err} }
		if name == "key" && e.table == "providers" {
			return at(fmt.Errorf("%w field key of [[providers]]: a key does not stand in this file; name a file that has it with key_file, or a variable of nized's environment with key_env", store.ErrInvalid))
		}
		if !slices.Contains(known, name) {
			near := store.Nearest(name, known)
			if near != "" {
				near = "; did you mean " + near + "?"
			}
			return at(fmt.Errorf("field of [[%s]] %q %w%s", e.table, name, store.ErrNotFound, near))
		}
		data, err := json.Marshal(map[string]any{name: value})
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return at(fmt.Errorf("%w value for %s of [[%s]]: want %s", store.ErrInvalid, name, e.table, kindName(wrong.Type)))
		}
		if err != nil {
			return at(fmt.Errorf("%w value for %s of [[%s]]", store.ErrInvalid, name, e.table))
		}
	}
	return nil
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list of strings"
	}
	return "a string"
}

// Entries returns the entries of the file in force.
func (l *Layers) Entries() Entries { return l.current.Load().entries }
