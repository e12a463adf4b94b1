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

// override matches the phrases, before and after a tool's name, with which one tool
// influences the use of another. A mere mention ("see also X") doesn't match.
var (
	overrideBefore = compiled(`(\b(instead of|rather than|in place of|replaces|replacing|replacement for|supersedes|overrides|(do not|don't|never|stop|avoid) (ever )?(use|using|call|calling|run|running|invoke|invoking)|(when|whenever|before|after|every time|each time|if)( you| the (model|agent|assistant))?( are| is)? (use|uses|using|call|calls|calling|run|runs|running|invoke|invokes|invoking|executing)))( the| tool| server's| old| original| native| built-in)* ["'` + "`" + `]?$`)
	overrideAfter  = compiled(`^["'` + "`" + `]?( tool| function)?( \([^)]{0,40}\))?( from [a-z0-9_-]+)? (is (deprecated|broken|unsafe|insecure|disabled|compromised|obsolete|being called|called|used)|must (not|never|be)|should (not|never)|is no longer|has been (replaced|deprecated|disabled|superseded))`)
)

// Names holds all existing tools, by every form in which a text may name them. It is built
// once per list and immutable.
type Names struct {
	ids map[string][]string
}

// NewNames returns the Names for the ids, server:name, of all tools of all servers.
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

// foreign returns the first tool of another server that the text may name, unless the
// server itself has a tool with that name.
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

// Shadow returns a finding for each tool of another server whose use the tool's text tries
// to influence ("instead of github:create_issue use…", "when send_email is called…"). It
// ignores names that the tool's own server also has, and bare names that are ordinary words
// (no _, -, : or inner capital).
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

// distinctive reports whether a tool's name is unlikely to be an ordinary word.
func distinctive(name string) bool {
	if len(name) < 6 {
		return false
	}
	return strings.ContainsAny(name, "_-:.") || strings.ContainsFunc(name[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' })
}

// runs yields the ranges of s that consist of characters allowed in a tool's id or name,
// without trailing punctuation.
func runs(s string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		start, end := -1, 0 // end is after the last character that is not punctuation
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

// steered adds the tools of other servers whose use t tries to influence to found, by id.
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
