// Package mcpfile reads and edits the files in which MCP clients keep their servers.
//
// The text is JSON, with comments and trailing commas, TOML or YAML. It holds servers as an
// object
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
// [reader.canonical] converts other clients' field names to those of the first.
//
// Nothing is contacted, stored or run. Each entry is validated separately: an invalid one
// has an error, and the others work. The text is untrusted: sizes, counts and depth are
// bounded, and an entry can access only the environment that [Options] passes in.
//
// [SetJSON] and [SetTOML] write: they set one entry in a client's file and leave the rest
// unchanged.
//
// Values are handled as follows:
//
//   - ${VAR}, ${env:VAR} and ${VAR:-default} are replaced here, with the daemon's
//     environment, unless the entry itself declares VAR for its command: then the
//     command replaces it. Variables of nize's own are rejected.
//   - ${input:ID} is a value that VS Code would prompt for, and {{VAR}} one that
//     LibreChat asks its users for. In the value of a variable or header the whole
//     value becomes the name of a credential; elsewhere it makes the entry invalid.
//   - {env:VAR} is ${env:VAR} in opencode's files.
//   - A key in env or headers, literal or replaced, is moved to [Entry.Secrets] and
//     referred to. In a command line or a URL that isn't possible, so a key there
//     makes the entry invalid.
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

// Limits of a file.
const (
	MaxSize    = 4 << 20 // bytes
	MaxEntries = 500
	maxDepth   = 64
	maxValues  = 200 // arguments, variables or headers of one entry
)

// Options is the environment of a file.
type Options struct {
	// Env looks up a variable of the daemon's environment.
	Env func(name string) (string, bool)
}

// File is the content of a file.
type File struct {
	Entries []Entry // in the file's order
	Inputs  []Input // VS Code's prompts
}

// Entry is one server of the file.
type Entry struct {
	Key     string // its name in the file
	Name    string // the slug of it; "" if it has none
	Project string // the folder it applies to, in Claude Code's own file
	// Server is the record; its secret values are names of credentials.
	Server store.Server
	// Secrets are the values to seal, by credential name.
	Secrets map[string]store.Secret
	Notes   []string // notes for the user, one sentence each
	Login   string   // how to sign in, if the file requires it; a sentence
	Err     error    // why it can't be registered; wraps store.ErrInvalid
	asks    []ask
	login   *oauthClient // nil if no sign-in is needed
}

// ask is a value that the user must seal: the input itself, or a whole text that contains
// it.
type ask struct{ where, input, credential, template string }

// advice describes how, for the server of that name.
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

// Input is a placeholder for which VS Code prompts.
type Input struct {
	ID          string
	Description string
	Secret      bool
}

// Read reads a whole file. Its error wraps store.ErrInvalid and includes the position; an
// error in one entry is in that entry.
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

// reader collects the entries of a file.
type reader struct {
	opt    Options
	inputs map[string]Input
	braces bool // {env:VAR} is a placeholder, as in opencode's files
	file   File
	taken  map[string]int // index of the entry with each slug
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

// add adds an entry under a unique name. If the same server is in several projects, it is
// added once; a different server with the same name gets its project's name as well.
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

// same reports whether two entries are the same server.
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

// base returns the last element of a folder's path, with either separator.
func base(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// slug converts an entry's name to a server's name: "My Server_2" is my-server-2. It
// returns "" if no valid character is left.
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

// invalid returns the error why one entry can't be registered, a sentence.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", store.ErrInvalid, fmt.Errorf(format, args...))
}

// Reason returns an entry's error without the text of the sentinel.
func Reason(err error) string {
	text := err.Error()
	if errors.Is(err, store.ErrInvalid) {
		text = strings.TrimPrefix(text, store.ErrInvalid.Error()+": ")
	}
	return text
}

// clip bounds text of the file that is repeated in a message.
func clip(s string) string { return store.Clip(s, 200) }
