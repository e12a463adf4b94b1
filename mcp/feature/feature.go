// Package feature tells what a server offers besides tools from its tools. It is
// kept as they are, in store.Tool, under names that no tool has: prompt:NAME,
// resource:URI and template:URI_TEMPLATE.
package feature

import (
	"strings"

	"nize/store"
)

// The kinds.
const (
	Prompt   = "prompt"
	Resource = "resource"
	Template = "template"
)

// Of cuts such a name; kind is "" for a tool's.
func Of(name string) (kind, rest string) {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok || kind != Prompt && kind != Resource && kind != Template {
		return "", name
	}
	return kind, rest
}

// IsTool says whether a name is a tool's.
func IsTool(name string) bool {
	kind, _ := Of(name)
	return kind == ""
}

// IsToolID says whether an id, server:name, is a tool's.
func IsToolID(id string) bool {
	_, name, _ := store.SplitToolID(id)
	return IsTool(name)
}
