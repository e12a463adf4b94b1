// Package expose determines which tools a client sees by name, under which names and in
// which form.
//
// These are listed beside or instead of the five meta-tools.
//
// A token's expose: scopes choose: meta (the five meta-tools, the default), native (nize's
// own tools), all (every MCP tool and native one), patterns of tools, or the name of a
// native tool. They determine the tools that are listed and called by name, never the tools
// that may be used: mcp/policy decides that, both when a tool is listed and when it is
// called.
package expose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"nize/store"
)

// The named modes.
const (
	Meta   = "meta"
	Native = "native"
	All    = "all"
)

// prefix is the prefix of these scopes.
const prefix = "expose:"

// Exposure is the set of tools that one token lists by name. The zero value lists nothing.
type Exposure struct {
	Meta     bool     // the five meta-tools
	patterns []string // patterns of tools
}

// Of returns the exposure of a token's scopes; the default is meta. own is the reserved
// server name of nize's own tools.
func Of(scopes []string, own string) Exposure {
	var e Exposure
	said := false
	for _, s := range scopes {
		mode, ok := strings.CutPrefix(s, prefix)
		if !ok {
			continue
		}
		said = true
		switch mode {
		case Meta:
			e.Meta = true
		case Native:
			e.patterns = append(e.patterns, own+":*")
			fallthrough
		default:
			e.patterns = append(e.patterns, store.ExposePatterns(mode)...)
		}
	}
	e.Meta = e.Meta || !said
	return e
}

// IsScope reports whether a scope is an expose scope.
func IsScope(scope string) bool { return strings.HasPrefix(scope, prefix) }

// Check returns an error if such a scope is invalid. native returns an error for a pattern
// of native tools without a match.
func Check(scope string, native func(pattern string) error) error {
	mode := strings.TrimPrefix(scope, prefix)
	server, tool, ok := store.SplitToolID(mode)
	switch {
	case slices.Contains([]string{Meta, Native, All, "*"}, mode):
		return nil
	case !strings.Contains(mode, ":") && mode != "" && !strings.Contains(mode, "*") && native(store.ExposePatterns(mode)[0]) == nil:
		return nil
	case !ok || server == "" || tool == "":
		return fmt.Errorf("%w scope %q: use expose:meta, expose:native, expose:all or expose:PATTERN, such as expose:github:*, or the name of a native tool, such as expose:web-scrape", store.ErrInvalid, scope)
	}
	return nil
}

// NoTool reports whether no tool is listed by name.
func (e Exposure) NoTool() bool { return len(e.patterns) == 0 }

// Tool reports whether a tool is listed by name. "all" includes the tools of MCP servers
// and the native ones; nize's own tools besides the five (own is true) require native or
// their name.
func (e Exposure) Tool(id string, own bool) bool {
	return slices.ContainsFunc(e.patterns, func(p string) bool { return (p != "*" || !own) && store.MatchTool(p, id) })
}

// Limits of a name, as accepted by models and other gateways.
const (
	maxName  = 64
	headName = 55 // prefix of a name that is too long, or not unique
)

// Names maps each of ids, in the form server:name, to the name that a client sees:
// server__name, with "_" for characters that models don't accept in a name. Names that are
// too long or not unique are cut and end in a hash of the id. All ids with the same name
// are changed: a name never moves from one tool to another when a server gains a tool,
// because a client would then unknowingly call the other one.
func Names(ids []string) map[string]string {
	owner := make(map[string]string, len(ids)) // by name
	for _, id := range ids {
		n := plainName(id)
		if _, taken := owner[n]; taken {
			owner[n] = ""
			continue
		}
		owner[n] = id
	}
	names := make(map[string]string, len(ids)) // by id
	for _, id := range ids {
		n := plainName(id)
		if owner[n] != id || len(n) > maxName {
			sum := sha256.Sum256([]byte(id))
			n = n[:min(len(n), headName)] + "_" + hex.EncodeToString(sum[:4])
		}
		names[id] = n
	}
	return names
}

func plainName(id string) string {
	server, name, _ := store.SplitToolID(id)
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, server+"__"+name)
}

// Feature reports whether a prompt or resource is listed. No meta-tool reaches them, so
// those of all servers are listed together with the five meta-tools.
func (e Exposure) Feature(id string) bool {
	return e.Meta || store.MatchAny(e.patterns, id)
}

// NoFeature reports whether no prompt or resource can be listed.
func (e Exposure) NoFeature(own string) bool {
	return !e.Meta && !slices.ContainsFunc(e.patterns, func(p string) bool {
		return !strings.HasPrefix(p, "native:") && !strings.HasPrefix(p, own+":")
	})
}

// addressScheme is the scheme of nize's addresses of resources.
const addressScheme = "nize://"

// Address returns nize's address of a server's resource, or of a template of resources: two
// servers may have resources with the same URI.
func Address(server, uri string) string { return addressScheme + server + "/" + uri }

// SplitAddress splits such an address. It returns ok false for a server's own URI.
func SplitAddress(address string) (server, uri string, ok bool) {
	rest, ok := strings.CutPrefix(address, addressScheme)
	if !ok {
		return "", address, false
	}
	return strings.Cut(rest, "/")
}

// TemplateMatches reports whether a server's URI template matches a URI.
func TemplateMatches(template, uri string) bool {
	t, err := uritemplate.New(template)
	return err == nil && t.Regexp().MatchString(uri)
}
