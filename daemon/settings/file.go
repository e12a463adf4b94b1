package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"nize/store"
)

// maxFile bounds nized.toml.
const maxFile = 1 << 20

// fileValue is a normalized value of nized.toml and its line.
type fileValue struct {
	value string
	line  int
}

// readFile reads and validates a whole configuration file; its errors contain the line. A
// missing file has no values, but is an error if its path was given explicitly.
func readFile(path string, named bool, keys *keySet, channel IsChannel) (values map[string]fileValue, entries Entries, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && !named {
		return nil, Entries{}, nil
	}
	if err != nil {
		return nil, Entries{}, fmt.Errorf("opening the configuration: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return nil, Entries{}, fmt.Errorf("looking at the configuration: %w", err)
	case !fi.Mode().IsRegular():
		return nil, Entries{}, fmt.Errorf("%w configuration %s: it is not a regular file", store.ErrInvalid, path)
	case fi.Mode().Perm()&0o002 != 0:
		return nil, Entries{}, fmt.Errorf("%w configuration %s: everyone can write it (%04o), and it defines who must approve what; chmod o-w %s", store.ErrInvalid, path, fi.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, Entries{}, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, Entries{}, fmt.Errorf("%w configuration %s: it is over %d MiB", store.ErrInvalid, path, maxFile>>20)
	}
	values, read, err := decodeFile(data, keys, channel)
	if err == nil {
		entries, err = decodeEntries(path, read)
	}
	if err != nil {
		return nil, Entries{}, fmt.Errorf("%s:%w", path, err)
	}
	return values, entries, nil
}

// lineError is an error at a line of the file; its text follows the file's name and a
// colon.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string {
	if e.line == 0 {
		return " " + e.err.Error()
	}
	return fmt.Sprintf("%d: %v", e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

// decodeFile converts TOML to validated values by dotted key. The library's decoder
// validates the TOML; a second pass with its parser provides the lines.
func decodeFile(data []byte, keys *keySet, channel IsChannel) (map[string]fileValue, []entry, error) {
	var tree map[string]any
	bad := toml.Unmarshal(data, &tree)
	var at *toml.DecodeError
	if errors.As(bad, &at) {
		row, _ := at.Position()
		return nil, nil, &lineError{row, fmt.Errorf("%w TOML: %s", store.ErrInvalid, strings.TrimPrefix(at.Error(), "toml: "))}
	}
	w := walker{values: map[string]fileValue{}, keys: keys, channel: channel}
	w.Reset(data)
	var table []string
	inEntry := false
	for w.NextExpression() {
		n := w.Expression()
		var err error
		switch n.Kind {
		case unstable.Table:
			table, err = w.table(n)
			inEntry = false
		case unstable.ArrayTable:
			err, inEntry = w.begin(n), true
		case unstable.KeyValue:
			if inEntry {
				err = w.add(n)
			} else {
				err = w.put(table, n)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := errors.Join(w.Error(), bad); err != nil { // an error without a line that the walk did not find
		return nil, nil, &lineError{0, fmt.Errorf("%w TOML: %w", store.ErrInvalid, err)}
	}
	return w.values, w.entries, nil
}

// walker collects the values of a file.
type walker struct {
	unstable.Parser
	keys    *keySet
	values  map[string]fileValue
	entries []entry
	channel IsChannel
}

// key returns the dotted key of a table or a value, and its line.
func (w *walker) key(n *unstable.Node) (parts []string, line int) {
	for it := n.Key(); it.Next(); {
		part := it.Node()
		parts = append(parts, string(part.Data))
		line = w.Shape(part.Raw).Start.Line
	}
	return parts, line
}

// table validates a header, so that a misspelt one is reported even if the table is empty.
func (w *walker) table(n *unstable.Node) ([]string, error) {
	parts, line := w.key(n)
	name := strings.Join(parts, ".")
	var tables []string
	for _, k := range w.keys.list {
		for i, r := range k.Name {
			if r == '.' {
				tables = append(tables, k.Name[:i])
			}
		}
	}
	if !slices.Contains(tables, name) {
		return nil, &lineError{line, store.Unknown("table", name, tables)}
	}
	return parts, nil
}

func (w *walker) put(table []string, n *unstable.Node) error {
	parts, line := w.key(n)
	parts = slices.Concat(table, parts)
	v := n.Value()
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if err := w.put(parts, it.Node()); err != nil {
				return err
			}
		}
		return nil
	}
	name := strings.Join(parts, ".")
	k, err := w.keys.find(name)
	if err != nil {
		return &lineError{line, err}
	}
	if old, twice := w.values[name]; twice {
		return &lineError{line, fmt.Errorf("%w setting %s: line %d has it already", store.ErrInvalid, name, old.line)}
	}
	if k.UserOnly {
		return &lineError{line, fmt.Errorf("%w setting %s: it is a personal setting; set it with nizectl config set --user", store.ErrInvalid, name)}
	}
	text, err := textOf(k, v)
	if err == nil {
		text, err = checkValue(k, text, w.channel)
	}
	if err != nil {
		return &lineError{line, err}
	}
	w.values[name] = fileValue{text, line}
	return nil
}

// textOf returns a TOML value as it would be typed after `config set`. Strings are accepted
// for every setting, since durations and choices are written as strings.
func textOf(k store.Key, v *unstable.Node) (string, error) {
	switch v.Kind {
	case unstable.String, unstable.Bool:
		return string(v.Data), nil
	case unstable.Integer, unstable.Float:
		return strings.TrimPrefix(strings.ReplaceAll(string(v.Data), "_", ""), "+"), nil
	case unstable.Array:
		if k.Kind != store.KindList {
			return "", fmt.Errorf("%w value for %s: it is a %s, not a list", store.ErrInvalid, k.Name, k.Kind)
		}
		var list []string
		for it := v.Children(); it.Next(); {
			item := it.Node()
			if item.Kind != unstable.String || strings.Contains(string(item.Data), ",") {
				return "", fmt.Errorf("%w value for %s: want a list of strings without commas", store.ErrInvalid, k.Name)
			}
			list = append(list, string(item.Data))
		}
		return strings.Join(list, ","), nil
	}
	return "", fmt.Errorf("%w value for %s: want a %s", store.ErrInvalid, k.Name, k.Kind)
}
