package scan

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nize/store"
)

// override is the forms of words, before and after a tool's name, in which one
// tool steers the use of another. A mere mention ("see also X") is not among them.
var (
	overrideBefore = compiled(`(\b(instead of|rather than|in place of|replaces|replacing|replacement for|supersedes|overrides|(do not|don't|never|stop|avoid) (ever )?(use|using|call|calling|run|running|invoke|invoking)|(when|whenever|before|after|every time|each time|if)( you| the (model|agent|assistant))?( are| is)? (use|uses|using|call|calls|calling|run|runs|running|invoke|invokes|invoking|executing)))( the| tool| server's| old| original| native| built-in)* ["'` + "`" + `]?$`)
	overrideAfter  = compiled(`^["'` + "`" + `]?( tool| function)?( \([^)]{0,40}\))?( from [a-z0-9_-]+)? (is (deprecated|broken|unsafe|insecure|disabled|compromised|obsolete|being called|called|used)|must (not|never|be)|should (not|never)|is no longer|has been (replaced|deprecated|disabled|superseded))`)
)

// Names is the tools that exist, by every way in which a text may name them.
// It is made once for a list and never changes.
type Names struct {
	ids map[string][]string
}

// NewNames takes the ids, server:name, of all tools of all servers.
func NewNames(ids []string) *Names {
	n := &Names{ids: make(map[string][]string, 4*len(ids))}
	for _, id := range ids {
		server, name, ok := store.SplitToolID(id)
		if !ok {
			continue
		}
		forms := []string{id, server + "." + name, server + "__" + name}
		if distinctive(name) {
			forms = append(forms, name)
		}
		for _, form := range forms {
			form = strings.ToLower(form)
			n.ids[form] = append(n.ids[form], id)
		}
	}
	return n
}

// foreign returns the first tool that the text may mean, unless a tool of the
// server itself has that name.
func (n *Names) foreign(said, server string) string {
	ids := n.ids[said]
	for _, id := range ids {
		if own, _, _ := store.SplitToolID(id); own == server {
			return ""
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return slices.Min(ids)
}

// Shadow returns a finding for each tool of another server that the tool's
// text steers ("instead of github:create_issue use…", "when send_email is
// called…"). Passed over are names that the tool's own server has as well, and
// bare names that are ordinary words (no _, -, : or inner capital).
func (Gate) Shadow(instructions string, tool store.Tool, all *Names) []string {
	texts := []text{{what: "description", value: tool.Description}, {what: "server instructions", value: instructions}}
	texts = append(texts, stringsOf("input schema", tool.InputSchema)...)
	found := map[string]string{}
	for _, t := range texts {
		if len(t.value) > 12 {
			steered(t, tool.Server, all, found)
		}
	}
	if len(found) == 0 {
		return nil
	}
	out := slices.Sorted(maps.Values(found))
	return out[:min(len(out), maxFindings)]
}

// distinctive says whether a tool's name can hardly be meant as a word.
func distinctive(name string) bool {
	if len(name) < 6 {
		return false
	}
	return strings.ContainsAny(name, "_-:.") || strings.ContainsFunc(name[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' })
}

// runs yields where the runs of characters that a tool's id or name can have
// stand in s; one does not end with a mark.
func runs(s string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		start, end := -1, 0 // end is after the last that is no mark
		for i, r := range s {
			mark := r == ':' || r == '.' || r == '-'
			switch {
			case !mark && r != '_' && !unicode.IsLetter(r) && !unicode.Is(unicode.N, r):
				if start >= 0 && end > start && !yield(start, end) {
					return
				}
				start = -1
				continue
			case start < 0:
				start, end = i, i
			}
			if !mark {
				end = i + utf8.RuneLen(r)
			}
		}
		if start >= 0 && end > start {
			yield(start, end)
		}
	}
}

// steered adds to found the tools of other servers that t steers, by id.
func steered(t text, server string, all *Names, found map[string]string) {
	folded := fold(t.value)
	for start, end := range runs(folded) {
		id := all.foreign(folded[start:end], server)
		if id == "" || found[id] != "" {
			continue
		}
		before := folded[max(0, start-80):start]
		after := folded[end:min(len(folded), end+80)]
		if m := overrideBefore().FindString(before); m != "" {
			found[id] = fmt.Sprintf("%s: steers %s, a tool of another server (%q)", t.where(), id, strings.TrimSpace(m)+" "+folded[start:end])
		} else if m := overrideAfter().FindString(after); m != "" {
			found[id] = fmt.Sprintf("%s: steers %s, a tool of another server (%q)", t.where(), id, folded[start:end]+m)
		}
	}
}
