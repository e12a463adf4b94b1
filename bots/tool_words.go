package bots

import (
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// lookups are what the assistant looks up before it calls a tool, by the names
// that models know them by and people need not.
var lookups = map[string]phrases.Key{
	"discover_tools":     phrases.LookupSearch,
	"get_tool_schema":    phrases.LookupUse,
	"list_tool_domains":  phrases.LookupAll,
	"browse_tool_domain": phrases.LookupAll,
}

// Lookup says whether a tool's line tells of looking something up, and what in
// the reader's words.
func Lookup(name string, words phrases.Catalogue) (title string, ok bool) {
	key, ok := lookups[name]
	if !ok {
		return "", false
	}
	return words.Say(key), true
}

// IsLookupLine says whether a line that an earlier run wrote, in whatever language,
// tells of looking something up: it gives way to what follows, as one of this run does.
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

// LookupWords is the line of a lookup, without and with what was asked or found.
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

// LineState says how a tool stands, for the line that tells of it.
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
