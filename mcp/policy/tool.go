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

// BuiltinServer is the reserved name of nize's own tools. They only show a caller their own
// data, so they need no sharing, no pin and no approval.
const BuiltinServer = "nize"

// NativeServer is the reserved name of the tools that run within nized, and of their
// extensions. No caller may use them unless a list names them.
const NativeServer = "native"

// Tool is one tool together with the record of its server, which all of the server's tools
// share. It is immutable.
type Tool struct {
	store.Tool
	Record *store.Server
	id     string     // server:name, cached because a search reads it for every tool
	runsAs store.Text // description of the credentials, if the record doesn't have one

	credential string       // id of its declared credential
	view       *view.Claims // its view and visibility; nil if it declares neither
}

// NewTool returns the tool t of the server s.
func NewTool(t store.Tool, s *store.Server) *Tool {
	declared, _ := s.Declared() // registration already reported the error
	return &Tool{Tool: t, Record: s, id: t.ID(), credential: declared, view: view.Of(t.Meta)}
}

// NewNativeTool returns the native tool t, with a declared credential or none.
func NewNativeTool(t store.Tool, s *store.Server, credential string) *Tool {
	return &Tool{Tool: t, Record: s, id: t.ID(), credential: credential, view: view.Of(t.Meta)}
}

// temporaryPrefix is the prefix of the names of temporary servers, which programs send with
// their requests. Names of registered servers contain no dot.
const temporaryPrefix = "temporary."

// TemporaryName returns the name of a temporary server.
func TemporaryName(slug, id string) string { return temporaryPrefix + slug + "." + id }

// IsTemporary reports whether a server name or a tool id is that of a temporary server.
func IsTemporary(name string) bool { return strings.HasPrefix(name, temporaryPrefix) }

// NewTemporaryTool returns the tool t of a temporary server s, which is called with the
// credentials that the project provided.
func NewTemporaryTool(t store.Tool, s *store.Server) *Tool {
	tool := NewTool(t, s)
	if tool.runsAs = store.Textf("no credential"); len(s.Headers) > 0 {
		tool.runsAs = store.Textf("what the project sends in headers")
	}
	return tool
}

// askedName matches the tool names that an asker may use.
var askedName = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]{1,128}$`)

// NewAskedTool returns the tool with that name of a source of asks. A source may ask about
// any tool, and there is no definition that could change. It returns ok false for an
// invalid name.
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

// Asked reports whether the tool belongs to a source of asks: nize decides, and the asker
// runs it.
func (t *Tool) Asked() bool { return t.Record.Transport == store.External }

// View returns the tool's declarations about its view and about who may call it.
func (t *Tool) View() view.Claims {
	if t.view == nil {
		return view.Claims{}
	}
	return *t.view
}

// Credential returns the id of the tool's declared credential.
func (t *Tool) Credential() string { return t.credential }

// ID returns server:name.
func (t *Tool) ID() string { return t.id }

// ReadOnly reports whether the tool changes nothing. It returns true for annotations only
// if an admin trusts them. Prompts and resources are always read-only, as the protocol
// specifies.
func (t *Tool) ReadOnly() bool {
	if !feature.IsTool(t.Name) {
		return true
	}
	return t.Record.TrustAnnotations && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// Effect returns the tool's effect according to trusted annotations, or "".
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

// Claim returns the server's own description of the tool's effect, whether or not an admin
// trusts it, or the zero Text.
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

// destructive reports whether the tool may destroy something. It returns true unless an
// admin trusts the server's claim of the opposite.
func (t *Tool) destructive() bool {
	return !t.ReadOnly() && !(t.Record.TrustAnnotations && t.Annotations.Destructive != nil && !*t.Annotations.Destructive)
}

// secrets returns the names of the credentials that the server uses.
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
