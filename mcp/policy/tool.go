package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"nize/mcp/feature"
	"nize/mcp/view"
	"nize/store"
)

// BuiltinServer is the reserved name of nize's own tools. They show a caller
// only what is theirs, so they need no sharing, no pin and no yes.
const BuiltinServer = "nize"

// NativeServer is the reserved name of the tools that run within nized, and of what
// extends them. They are nobody's until a list names them.
const NativeServer = "native"

// Tool is one tool with the server that it belongs to, whose record all of its
// tools share. It never changes.
type Tool struct {
	store.Tool
	Record *store.Server
	id     string     // server:name, made once: a search asks it of every tool
	runsAs store.Text // with whose credentials, where the record does not say

	credential string       // the id of the declared one that it is called with
	view       *view.Claims // of its view and visibility; nil where it says nothing of either
}

// NewTool is the tool t of the server s.
func NewTool(t store.Tool, s *store.Server) *Tool {
	declared, _ := s.Declared() // who registered it was told what was wrong
	return &Tool{Tool: t, Record: s, id: t.ID(), credential: declared, view: view.Of(t.Meta)}
}

// NewNativeTool is the native tool t, called with a declared credential, or with none.
func NewNativeTool(t store.Tool, s *store.Server, credential string) *Tool {
	return &Tool{Tool: t, Record: s, id: t.ID(), credential: credential, view: view.Of(t.Meta)}
}

// temporaryPrefix begins the names of temporary servers, which programs bring with
// their requests. No registered one has a dot.
const temporaryPrefix = "temporary."

// TemporaryName is the name of a temporary server.
func TemporaryName(slug, id string) string { return temporaryPrefix + slug + "." + id }

// IsTemporary says whether a server, or a tool by its id, is of that kind.
func IsTemporary(name string) bool { return strings.HasPrefix(name, temporaryPrefix) }

// NewTemporaryTool is the tool t of a temporary server s, called with what the
// project gave for it.
func NewTemporaryTool(t store.Tool, s *store.Server) *Tool {
	tool := NewTool(t, s)
	if tool.runsAs = store.Textf("no credential"); len(s.Headers) > 0 {
		tool.runsAs = store.Textf("what the project sends in headers")
	}
	return tool
}

// askedName is what an asker may call a tool.
var askedName = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]{1,128}$`)

// NewAskedTool is the tool of that name of a source of asks. A source has whatever
// tools it asks about, and there is no definition of them that could change. ok is
// false for a name that no tool has.
func NewAskedTool(s *store.Server, name string) (t *Tool, ok bool) {
	if s.Transport != store.External || !askedName.MatchString(name) || !feature.IsTool(name) {
		return nil, false
	}
	sum := sha256.Sum256([]byte("asked\x00" + s.Name + ":" + name))
	pin := hex.EncodeToString(sum[:])
	t = NewTool(store.Tool{Server: s.Name, Name: name, InputSchema: json.RawMessage("{}"), State: store.ToolAccepted, Pin: pin, Accepted: pin}, s)
	t.runsAs = store.Textf("the program that asks")
	return t, true
}

// Asked reports whether the tool is of a source of asks: nize decides, and the asker
// runs it.
func (t *Tool) Asked() bool { return t.Record.Transport == store.External }

// View is what the tool says of its view, and of who may call it.
func (t *Tool) View() view.Claims {
	if t.view == nil {
		return view.Claims{}
	}
	return *t.view
}

// Credential is the id of the declared credential that the tool is called with.
func (t *Tool) Credential() string { return t.credential }

// ID is server:name.
func (t *Tool) ID() string { return t.id }

// ReadOnly says whether the tool may be taken at its server's word to change
// nothing: annotations count only where an admin trusts them. A prompt or
// resource is read, by what the protocol says.
func (t *Tool) ReadOnly() bool {
	if !feature.IsTool(t.Name) {
		return true
	}
	return t.Record.TrustAnnotations && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// Effect is what the tool does by annotations that an admin trusts, "" if
// there are none.
func (t *Tool) Effect() store.Effect {
	switch says := t.Annotations; {
	case t.ReadOnly():
		return store.Reads
	case !t.Record.TrustAnnotations || says.Destructive == nil:
		return ""
	case *says.Destructive:
		return store.Deletes
	}
	return store.Changes
}

// Claim is what the server says that the tool does, whether or not an admin
// believes it; none where it says nothing.
func (t *Tool) Claim() store.Text {
	switch says := t.Annotations; {
	case says.ReadOnly != nil && *says.ReadOnly:
		return store.Textf("it only reads")
	case says.Destructive != nil && *says.Destructive:
		return store.Textf("it may destroy something")
	case says.Destructive != nil:
		return store.Textf("it changes something and destroys nothing")
	}
	return store.Text{}
}

// destructive says whether the tool may destroy something: all may of which an
// admin has not believed the opposite.
func (t *Tool) destructive() bool {
	return !t.ReadOnly() && !(t.Record.TrustAnnotations && t.Annotations.Destructive != nil && !*t.Annotations.Destructive)
}

// secrets names the credentials that the server is called with.
func (t *Tool) secrets() []string {
	var names []string
	for _, vals := range []map[string]store.Value{t.Record.Headers, t.Record.Env} {
		for _, v := range vals {
			if v.SecretKey != "" {
				names = append(names, v.SecretKey)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
