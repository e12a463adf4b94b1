package mcpfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

// containers are the top-level keys under which clients keep their servers.
var containers = []string{"mcpServers", "mcp_servers", "context_servers", "amp.mcpServers", "mcp.servers"}

// entryFields say how the server is reached; an entry has one of them.
var entryFields = []string{"command", "cmd", "url", "serverUrl", "httpUrl", "uri", "openapi"}

// looksLikeEntry reports whether a value is a server in some client's form.
func looksLikeEntry(raw json.RawMessage) bool {
	fields, err := membersOf(raw)
	if err != nil {
		return false
	}
	for _, key := range entryFields {
		v, ok := pick(fields, key)
		if ok && len(v) > 0 && (v[0] == '"' || key == "command" && (v[0] == '[' || v[0] == '{')) {
			return true
		}
	}
	return false
}

// isSwitch reports whether a value only enables or disables a server that another file
// defines, as opencode has for an organization's servers.
func isSwitch(raw json.RawMessage) bool {
	fields, err := membersOf(raw)
	for _, f := range fields {
		if f.key != "enabled" && f.key != "disabled" || string(f.value) != "true" && string(f.value) != "false" {
			return false
		}
	}
	return err == nil && len(fields) > 0
}

// areSwitches reports whether all members of an object are switches.
func areSwitches(members []member) bool {
	for _, m := range members {
		if !isSwitch(m.value) {
			return false
		}
	}
	return len(members) > 0
}

// entriesIn counts the members of an object that look like servers, and the others. It
// ignores names that begin with $, which are metadata.
func entriesIn(members []member) (entries, others int) {
	for _, m := range members {
		switch {
		case strings.HasPrefix(m.key, "$"):
		case looksLikeEntry(m.value):
			entries++
		default:
			others++
		}
	}
	return entries, others
}

// top reads the possible forms of a file; found reports whether one matched.
func (r *reader) top(top []member) (found bool, err error) {
	for _, path := range [][]string{nil, {"powers"}, {"mcp"}} { // Kiro keeps those of powers below powers
		where := strings.Join(append(path, ""), ".")
		for _, key := range containers {
			if servers, ok := pick(inside(top, path), key); ok && (path == nil || !looksLikeEntry(servers)) {
				found = true
				if err := r.servers(servers, where+key, ""); err != nil {
					return true, err
				}
			}
		}
	}
	if projects, ok := pick(top, "projects"); ok {
		if all, err := membersOf(projects); err == nil { // otherwise the key has another meaning
			for _, p := range all {
				own, err := membersOf(p.value)
				servers, ok := pick(own, "mcpServers")
				if err != nil || !ok {
					continue
				}
				found = true
				if err := r.servers(servers, "projects."+p.key+".mcpServers", p.key); err != nil {
					return true, err
				}
			}
		}
	}
	for _, path := range [][]string{nil, {"settings"}, {"customizations", "vscode"}, {"customizations", "vscode", "settings"}} {
		in, err := r.codeOrOpencode(inside(top, path))
		if err != nil {
			return true, err
		}
		found = found || in
	}
	if extensions, ok := pick(top, "extensions"); ok { // Goose
		if all, err := membersOf(extensions); err == nil {
			if n, _ := entriesIn(all); n > 0 || len(all) == 0 {
				found = true
				if err := r.servers(extensions, "extensions", ""); err != nil {
					return true, err
				}
			}
		}
	}
	if found {
		return true, nil
	}
	return r.bare(top)
}

// inside returns the members of a nested object, nil if there is none.
func inside(top []member, path []string) []member {
	for _, key := range path {
		raw, ok := pick(top, key)
		inner, err := membersOf(raw)
		if !ok || err != nil {
			return nil
		}
		top = inner
	}
	return top
}

// codeOrOpencode reads VS Code's "servers", at the top or under "mcp" as in its settings,
// and the map under "mcp" of opencode and Crush.
func (r *reader) codeOrOpencode(top []member) (found bool, err error) {
	code := top
	if raw, ok := pick(top, "mcp"); ok {
		inner, err := membersOf(raw)
		servers, ofCode := pick(inner, "servers")
		switch {
		case err != nil: // the key has another meaning
		case ofCode && !looksLikeEntry(servers):
			code = inner
		default:
			if n, others := entriesIn(inner); n > 0 || others == 0 || areSwitches(inner) {
				r.braces = true
				err := r.servers(raw, "mcp", "")
				r.braces = false
				return true, err
			}
		}
	}
	servers, ok := pick(code, "servers")
	if !ok || looksLikeEntry(servers) { // then it is a server's name in a bare map
		return false, nil
	}
	if err := r.readInputs(code); err != nil {
		return true, err
	}
	return true, r.servers(servers, "servers", "")
}

// bare reads a map of servers without a key above it, as in a plugin of Claude Code. Most
// members must look like servers, since another kind of file may have a member with a url,
// too.
func (r *reader) bare(top []member) (found bool, err error) {
	all, err := json.Marshal(rawObject(top))
	if err != nil {
		return false, err
	}
	if looksLikeEntry(all) {
		return true, fmt.Errorf(`%w file: it is one server without a name: write {"mcpServers": {"NAME": …}} around it`, store.ErrInvalid)
	}
	entries, others := entriesIn(top)
	if entries == 0 || entries <= others {
		return false, nil
	}
	for _, m := range top {
		if !strings.HasPrefix(m.key, "$") {
			r.take(m.key, m.value, "")
		}
	}
	return true, nil
}

// rawObject is an object with its members in order.
type rawObject []member

func (o rawObject) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		writeText(&b, m.key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// servers reads an object of servers, or Continue's list of servers with names.
func (r *reader) servers(raw json.RawMessage, where, project string) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		for i, one := range list {
			var named struct {
				Name string `json:"name"`
			}
			if json.Unmarshal(one, &named) != nil || named.Name == "" {
				return fmt.Errorf("%w file: %s[%d] must be a server with a name", store.ErrInvalid, where, i)
			}
			r.take(named.Name, one, project)
		}
		return nil
	}
	var path string
	if json.Unmarshal(raw, &path) == nil && path != "" {
		return fmt.Errorf("%w file: %s names another file, %q: import that one", store.ErrInvalid, where, clip(path))
	}
	all, err := membersOf(raw)
	if err != nil {
		return fmt.Errorf("%w file: %s must be an object of servers", store.ErrInvalid, where)
	}
	for _, m := range all {
		r.take(m.key, m.value, project)
	}
	return nil
}

// take reads one entry. Read returns an error if there are too many.
func (r *reader) take(key string, raw json.RawMessage, project string) {
	if len(r.file.Entries) > MaxEntries {
		return
	}
	e := r.entry(key, raw)
	e.Project = project
	r.add(e)
}
