package settings

import (
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/printable"
)

// otherVariables are nize's variables that are not settings; they are documented where they
// are read.
var otherVariables = []string{"NIZE_CONFIG", "NIZE_DATABASE", "NIZE_MCP_CONFIG", "NIZE_MASTER_KEY", "NIZE_CHECK_DATABASE", "NIZE_GUARD_FD", "NIZE_MCP_PORT"}

// UnknownVariables returns a warning for each NIZE_ variable that is not used, with the
// most similar name. A misspelled variable would otherwise have no effect, unnoticed.
func (l *Layers) UnknownVariables() []string {
	known := slices.Clone(otherVariables)
	for _, k := range l.keys.list {
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
