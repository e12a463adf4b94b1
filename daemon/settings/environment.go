package settings

import (
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/printable"
)

// otherVariables are those of nize's that are no settings; what they are for
// stands where they are read.
var otherVariables = []string{"NIZE_CONFIG", "NIZE_DATABASE", "NIZE_MCP_CONFIG", "NIZE_MASTER_KEY", "NIZE_CHECK_DATABASE", "NIZE_GUARD_FD", "NIZE_MCP_PORT"}

// UnknownVariables says of each NIZE_ variable that nobody reads that it is
// so, and which one was most likely meant: one that is misspelled would do
// nothing, and say so nowhere.
func (l *Layers) UnknownVariables() []string {
	known := slices.Clone(otherVariables)
	for _, k := range allKeys() {
		known = append(known, envName(k.Name))
	}
	var list []string
	for _, pair := range l.src.Environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "NIZE_") || slices.Contains(known, name) {
			continue
		}
		text := fmt.Sprintf("the environment variable %s does nothing", printable.Escape(store.Clip(name, 100)))
		if near := store.Nearest(name, known); near != "" {
			text += "; did you mean " + near + "?"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}
