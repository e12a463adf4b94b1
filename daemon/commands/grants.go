package daemon

import (
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// grantText is what a standing answer is about, for who gave it: the tool, and
// what narrows or widens the answer.
func grantText(a bots.Asked, g store.Grant) string {
	w := phrases.For(a.Locale)
	parts := []string{brief(g.Tool, 120)}
	switch g.Scope {
	case store.ForChannel:
		parts = append(parts, w.Say(phrases.GrantInChannel))
	case store.ForEveryone:
		parts = append(parts, w.Say(phrases.AlwaysForEveryone))
	}
	if g.Pattern != nil {
		parts = append(parts, w.Say(phrases.GrantOnly, brief(string(g.Pattern), 120)))
	}
	if g.Exact != "" {
		parts = append(parts, w.Say(phrases.AlwaysArgsThese))
	}
	if !g.Expires.IsZero() {
		parts = append(parts, w.Say(phrases.GrantUntil, g.Expires.In(zoneOf(a)).Format("2006-01-02 15:04 MST")))
	}
	return strings.Join(parts, w.Say(phrases.Comma))
}
