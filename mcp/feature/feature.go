// Package feature distinguishes a server's prompts and resources from its tools.
//
// They are stored like tools, in store.Tool, under names that no tool has: prompt:NAME,
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

// Of splits such a name. It returns kind "" for a tool's name.
func Of(name string) (kind, rest string) {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok || kind != Prompt && kind != Resource && kind != Template {
		return "", name
	}
	return kind, rest
}

// IsTool reports whether a name is a tool's.
func IsTool(name string) bool {
	kind, _ := Of(name)
	return kind == ""
}

// IsToolID reports whether an id, server:name, is a tool's.
func IsToolID(id string) bool {
	_, name, _ := store.SplitToolID(id)
	return IsTool(name)
}
