package bots

import (
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// lookups are the assistant's lookups before it calls a tool, keyed by the names that only
// models see.
var lookups = map[string]phrases.Key{
	"discover_tools":     phrases.LookupSearch,
	"get_tool_schema":    phrases.LookupUse,
	"list_tool_domains":  phrases.LookupAll,
	"browse_tool_domain": phrases.LookupAll,
}

// Lookup reports whether a tool is a lookup, and returns its title in the reader's
// language.
func Lookup(name string, words phrases.Catalogue) (title string, ok bool) {
	key, ok := lookups[name]
	if !ok {
		return "", false
	}
	return words.Say(key), true
}

// IsLookupLine reports whether a line written by an earlier run, in any language, is a
// lookup line. Like those of this run, it is replaced by the next line.
func IsLookupLine(line string) bool {
	for _, locale := range []string{"en", "zh-Hans", "zh-Hant"} {
		for _, key := range lookups {
			rest, ok := strings.CutPrefix(line, phrases.For(locale).Say(key))
			if ok && (rest == "" || strings.HasPrefix(rest, "…") || strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " – ")) {
				return true
			}
		}
	}
	return false
}

// LookupWords returns the line of a lookup, with or without its query or result.
func LookupWords(line store.ToolLine, title string, words phrases.Catalogue) string {
	switch {
	case !line.State.Final():
		title += "…"
	case line.State != store.Done:
		title += ": " + words.Text(line.State.Word())
	}
	if line.Brief == (store.Text{}) {
		return title
	}
	between := ": "
	if line.State != store.Done {
		between = " – "
	}
	return title + between + Escape(words.Text(line.Brief))
}

// LineState returns a tool's state in words for its line.
func LineState(state store.State) store.Text {
	key, ok := map[store.State]phrases.Key{
		store.Planned: phrases.StatePlanned, store.Running: phrases.ToolCalling, store.Pending: phrases.StatePending,
		store.Done: phrases.StateDone, store.Failed: phrases.StateFailed, store.Refused: phrases.StateRefused,
		store.Expired: phrases.StateExpired, store.Cancelled: phrases.StateCancelled, store.Approved: phrases.StateApproved,
	}[state]
	if !ok {
		key = phrases.StateLost
	}
	return key.Text()
}
