// Package expose says what a client sees by name, beside or in place of the five
// meta-tools, under which names, and in which form.
//
// A token's expose: scopes choose: meta (the five, as without any), native
// (nize's own tools), all (every MCP tool and native one), patterns of tools, or the
// name of a native one. They decide
// what is listed and called by name, never what may be used: that is mcp/policy,
// which is asked for each thing that is listed and again when it is called.
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

// The modes that are words.
const (
	Meta   = "meta"
	Native = "native"
	All    = "all"
)

// prefix begins the scopes that are meant here.
const prefix = "expose:"

// Exposure is what one token lists by name. The zero value lists nothing.
type Exposure struct {
	Meta     bool     // the five meta-tools
	patterns []string // of tools
}

// Of reads the scopes of a token; without any of these it is meta. own is the
// reserved server name of nize's own tools.
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

// IsScope says whether a scope is one of these.
func IsScope(scope string) bool { return strings.HasPrefix(scope, prefix) }

// Check says why a scope of this kind can't be had, or returns nil. native refuses a
// pattern of native tools that matches none.
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

// NoTool says that no tool at all is listed by name.
func (e Exposure) NoTool() bool { return len(e.patterns) == 0 }

// Tool says whether a tool is listed by name. "all" are the tools of MCP servers
// and the native ones; those beside the five (own says that it is one) are asked for by
// native or by name.
func (e Exposure) Tool(id string, own bool) bool {
	return slices.ContainsFunc(e.patterns, func(p string) bool { return (p != "*" || !own) && store.MatchTool(p, id) })
}

// Bounds of a name: what models and other gateways take.
const (
	maxName  = 64
	headName = 55 // of one that is too long, or that two share
)

// Names gives each of ids, which are server:name, the name that a client sees:
// server__name, with "_" for what models don't take in a name. What is too long,
// or what two would share, is cut and ends in a hash of the id. All of those that
// would share one are changed so: no name passes from one tool to another when a
// server gains a tool, which a client would then call unawares.
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

// Feature says whether a prompt or resource is listed: no meta-tool reaches one,
// so that those of all servers are there where the five meta-tools are.
func (e Exposure) Feature(id string) bool {
	return e.Meta || store.MatchAny(e.patterns, id)
}

// NoFeature says that no prompt or resource can be.
func (e Exposure) NoFeature(own string) bool {
	return !e.Meta && !slices.ContainsFunc(e.patterns, func(p string) bool {
		return !strings.HasPrefix(p, "native:") && !strings.HasPrefix(p, own+":")
	})
}

// addressScheme begins the address that a resource has at nize.
const addressScheme = "nize://"

// Address is the address of a server's resource, or of a template of them, at
// nize: two servers may have one of the same.
func Address(server, uri string) string { return addressScheme + server + "/" + uri }

// SplitAddress cuts such an address; ok is false for a server's own.
func SplitAddress(address string) (server, uri string, ok bool) {
	rest, ok := strings.CutPrefix(address, addressScheme)
	if !ok {
		return "", address, false
	}
	return strings.Cut(rest, "/")
}

// TemplateMatches says whether a server's template of addresses has one.
func TemplateMatches(template, uri string) bool {
	t, err := uritemplate.New(template)
	return err == nil && t.Regexp().MatchString(uri)
}
