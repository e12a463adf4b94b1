// Package mcpfile reads the files in which MCP clients keep their servers.
//
// Known are {"mcpServers": {…}} as Claude Desktop, Cursor and Claude Code write
// it, the projects of Claude Code's own file, and VS Code's {"servers": {…},
// "inputs": […]}, alone or under "mcp" in its settings. Comments and trailing
// commas are let pass, since VS Code and Cursor do.
//
// Nothing is contacted, stored or run. Each entry is
// judged on its own, so that one that is wrong says why and the others work.
// The text is untrusted: sizes, counts and depth are bounded, and an entry can
// reach nothing but the environment that [Options] hands in.
//
// [SetJSON] and [SetTOML] go the other way: they put one entry into the text of
// a client's file and leave all else as it stands.
//
// What becomes of a value:
//
//   - ${VAR}, ${env:VAR} and ${VAR:-default} are replaced here, on the daemon's
//     side, unless the entry itself declares VAR for its command: then the
//     command replaces it. Variables of nize's own are refused.
//   - ${input:ID} is what VS Code would ask for: as the whole value of a
//     variable or header it becomes the name of a credential, elsewhere it makes
//     the entry invalid.
//   - A key in env or headers, literal or replaced, is taken out into
//     [Entry.Secrets] and referred to. A key in a command line or a URL can't
//     be, and makes the entry invalid.
package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"nize/store"
)

// Bounds of a file.
const (
	MaxSize    = 4 << 20 // bytes
	MaxEntries = 500
	maxDepth   = 64
	maxValues  = 200 // arguments, variables or headers of one entry
)

// Options is what a file may see of its surroundings.
type Options struct {
	// Env looks a variable of the daemon up.
	Env func(name string) (string, bool)
}

// File is what one file says.
type File struct {
	Entries []Entry // in the file's order
	Inputs  []Input // what VS Code would ask for
}

// Entry is one server of the file.
type Entry struct {
	Key     string // its name in the file
	Name    string // the slug made of it; "" where none can be made
	Project string // the folder that it is for, in Claude Code's own file
	// Server is the record; its secrets are names of credentials.
	Server store.Server
	// Secrets are the values to seal, by the credential's name.
	Secrets map[string]store.Secret
	Notes   []string // what is worth knowing, one sentence each
	Err     error    // why it can't be registered, wraps store.ErrInvalid
	asks    []ask
}

// ask is a value that somebody has to seal.
type ask struct{ where, input, credential string }

// Input is a placeholder that VS Code asks a person for.
type Input struct {
	ID          string
	Description string
	Secret      bool
}

// Read reads a whole file. Its error wraps store.ErrInvalid and says where the
// text is wrong; what is wrong with one entry is in that entry.
func Read(data []byte, opt Options) (File, error) {
	if len(data) > MaxSize {
		return File{}, fmt.Errorf("%w file: it is over %d MiB", store.ErrInvalid, MaxSize>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return File{}, fmt.Errorf("%w file: it is not UTF-8 text", store.ErrInvalid)
	}
	plain := stripComments(data)
	if err := checkDepth(plain); err != nil {
		return File{}, err
	}
	if err := syntax(plain); err != nil {
		return File{}, err
	}
	top, err := membersOf(plain)
	if err != nil {
		return File{}, fmt.Errorf("%w file: it must be a JSON object", store.ErrInvalid)
	}
	r := &reader{opt: opt, taken: map[string]int{}}
	found, err := r.top(top)
	if err != nil {
		return File{}, err
	}
	if !found {
		return File{}, fmt.Errorf(`%w file: it holds neither "mcpServers" nor "servers"`, store.ErrInvalid)
	}
	if len(r.file.Entries) > MaxEntries {
		return File{}, fmt.Errorf("%w file: it holds more than %d servers", store.ErrInvalid, MaxEntries)
	}
	return r.file, nil
}

// reader gathers the entries of a file.
type reader struct {
	opt    Options
	inputs map[string]Input
	file   File
	taken  map[string]int // slugs, and the entry that has each
}

// top reads the forms that a file can have; found says whether it had one.
func (r *reader) top(top []member) (found bool, err error) {
	if servers, ok := pick(top, "mcpServers"); ok {
		found = true
		if err := r.servers(servers, "mcpServers", ""); err != nil {
			return true, err
		}
	}
	if projects, ok := pick(top, "projects"); ok {
		if all, err := membersOf(projects); err == nil { // else the word means something else there
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
	code := top
	if settings, ok := pick(top, "mcp"); ok {
		if inner, err := membersOf(settings); err == nil {
			code = inner
		}
	}
	if servers, ok := pick(code, "servers"); ok {
		found = true
		if err := r.readInputs(code); err != nil {
			return true, err
		}
		if err := r.servers(servers, "servers", ""); err != nil {
			return true, err
		}
	}
	return found, nil
}

func (r *reader) readInputs(members []member) error {
	raw, ok := pick(members, "inputs")
	if !ok {
		return nil
	}
	var list []struct {
		ID          string `json:"id"`
		Description string `json:"description"`
		Password    bool   `json:"password"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%w file: inputs must be a list of inputs", store.ErrInvalid)
	}
	r.inputs = map[string]Input{}
	for _, i := range list {
		in := Input{ID: i.ID, Description: clip(i.Description), Secret: i.Password}
		r.inputs[i.ID] = in
		r.file.Inputs = append(r.file.Inputs, in)
	}
	return nil
}

func (r *reader) servers(raw json.RawMessage, where, project string) error {
	all, err := membersOf(raw)
	if err != nil {
		return fmt.Errorf("%w file: %s must be an object of servers", store.ErrInvalid, where)
	}
	for _, m := range all {
		e := r.entry(m.key, m.value)
		e.Project = project
		r.add(e)
		if len(r.file.Entries) > MaxEntries {
			return nil // Read says so
		}
	}
	return nil
}

// add takes an entry in under a name that is its own. The same server in
// several projects is one; another one of the same name is called after its
// project too.
func (r *reader) add(e Entry) {
	e.Name = slug(e.Key)
	if at, ok := r.taken[e.Name]; ok && e.Name != "" {
		first := r.file.Entries[at]
		if e.Project != "" && e.Err == nil && first.Err == nil && same(first, e) {
			return
		}
		if e.Project != "" {
			e.Name = slug(e.Key + "-" + base(e.Project))
		}
		if at, ok := r.taken[e.Name]; ok && e.Err == nil {
			e.Err = invalid("its name becomes %s, as that of %q does: rename one of them", e.Name, r.file.Entries[at].Key)
		}
	}
	if e.Err == nil {
		e.Err = store.CheckSlug(e.Name)
	}
	e.Server.Name = e.Name
	for _, a := range e.asks {
		e.Notes = append(e.Notes, fmt.Sprintf("%s asks for the input %s: seal it with nizectl credentials set %s %s", a.where, a.input, e.Name, a.credential))
	}
	if _, ok := r.taken[e.Name]; !ok {
		r.taken[e.Name] = len(r.file.Entries)
	}
	r.file.Entries = append(r.file.Entries, e)
}

// same says whether two entries are one server.
func same(a, b Entry) bool {
	x, errX := json.Marshal(a.Server)
	b.Server.Name = a.Server.Name
	y, errY := json.Marshal(b.Server)
	if errX != nil || errY != nil || !bytes.Equal(x, y) || len(a.Secrets) != len(b.Secrets) {
		return false
	}
	for k, v := range a.Secrets {
		if other, ok := b.Secrets[k]; !ok || other.Reveal() != v.Reveal() {
			return false
		}
	}
	return true
}

// base is the last part of a folder's path, of whatever system.
func base(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// slug makes a server's name of an entry's: "My Server_2" is my-server-2; ""
// where nothing is left.
func slug(key string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(key) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
		if b.Len() == 63 {
			break
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// invalid is why one entry can't be registered: a sentence.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", store.ErrInvalid, fmt.Errorf(format, args...))
}

// Reason is the sentence of an entry's error without the sentinel before it.
func Reason(err error) string {
	text := err.Error()
	if errors.Is(err, store.ErrInvalid) {
		text = strings.TrimPrefix(text, store.ErrInvalid.Error()+": ")
	}
	return text
}

// clip bounds what is repeated of a file's own words.
func clip(s string) string { return store.Clip(s, 200) }
