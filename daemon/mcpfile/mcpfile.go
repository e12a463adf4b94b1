// Package mcpfile reads the files in which MCP clients keep their servers.
//
// The text is JSON, with comments and trailing commas, TOML or YAML. Servers stand in
// it as an object
//
//	mcpServers       Claude Desktop, Claude Code (its projects, too), Cursor, Windsurf,
//	                 Cline, Roo, Kiro, Gemini CLI, LibreChat; Continue has a list
//	servers, inputs  VS Code, alone or under mcp in its settings
//	context_servers  Zed
//	mcp_servers      Codex
//	mcp              opencode, Crush
//	extensions       Goose
//	                 alone, as in a plugin of Claude Code
//
// What a client calls otherwise, [reader.canonical] turns into the words of the first.
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
//   - ${input:ID} is what VS Code would ask for, and {{VAR}} LibreChat its users: in
//     the value of a variable or header the whole value becomes the name of a
//     credential, elsewhere it makes the entry invalid.
//   - {env:VAR} is ${env:VAR} in opencode's files.
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
	Login   string   // how to sign in, if the file says that one does; a sentence
	Err     error    // why it can't be registered, wraps store.ErrInvalid
	asks    []ask
	login   *oauthClient // nil if nobody needs to sign in
}

// ask is a value that somebody has to seal: the input, or all of a text in which it
// has a place.
type ask struct{ where, input, credential, template string }

// advice says how, for the server of that name.
func (a ask) advice(server string) string {
	command := "nizectl credentials set " + server + " " + a.credential
	switch {
	case a.input == "":
		return fmt.Sprintf("%s is in the keyring of its client: seal it with %s", a.where, command)
	case a.template == "":
		return fmt.Sprintf("%s asks for the input %s: seal it with %s", a.where, a.input, command)
	}
	return fmt.Sprintf("%s asks for the input %s: seal the whole of %q, the input filled in, with %s", a.where, a.input, a.template, command)
}

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
	if !utf8.Valid(data) {
		return File{}, fmt.Errorf("%w file: it is not UTF-8 text", store.ErrInvalid)
	}
	text, err := plain(data)
	if err != nil {
		return File{}, err
	}
	top, err := membersOf(text)
	if err != nil {
		return File{}, fmt.Errorf("%w file: it must be a JSON object", store.ErrInvalid)
	}
	r := &reader{opt: opt, taken: map[string]int{}}
	found, err := r.top(top)
	if err != nil {
		return File{}, err
	}
	if !found {
		return File{}, fmt.Errorf(`%w file: it holds neither "mcpServers" nor "servers", nor what other clients call them ("context_servers", "mcp_servers", "mcp", "extensions"), nor servers alone`, store.ErrInvalid)
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
	braces bool // {env:VAR} is a placeholder, as in opencode's files
	file   File
	taken  map[string]int // slugs, and the entry that has each
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
		e.Notes = append(e.Notes, a.advice(e.Name))
	}
	if e.login != nil {
		e.Login = e.login.advice(e.Name)
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
