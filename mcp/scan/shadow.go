package scan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"nize/store"
)

// override is the forms of words, before and after a tool's name, in which one
// tool steers the use of another. A mere mention ("see also X") is not among them.
var (
	overrideBefore = regexp.MustCompile(`(\b(instead of|rather than|in place of|replaces|replacing|replacement for|supersedes|overrides|(do not|don't|never|stop|avoid) (ever )?(use|using|call|calling|run|running|invoke|invoking)|(when|whenever|before|after|every time|each time|if)( you| the (model|agent|assistant))?( are| is)? (use|uses|using|call|calls|calling|run|runs|running|invoke|invokes|invoking|executing)))( the| tool| server's| old| original| native| built-in)* ["'` + "`" + `]?$`)
	overrideAfter  = regexp.MustCompile(`^["'` + "`" + `]?( tool| function)?( \([^)]{0,40}\))?( from [a-z0-9_-]+)? (is (deprecated|broken|unsafe|insecure|disabled|compromised|obsolete|being called|called|used)|must (not|never|be)|should (not|never)|is no longer|has been (replaced|deprecated|disabled|superseded))`)
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
	texts := []text{{where: "description", value: tool.Description}, {where: "server instructions", value: instructions}}
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

// word is a run of characters that a tool's id or name can have.
var word = regexp.MustCompile(`[\p{L}\p{N}_:.-]*[\p{L}\p{N}_]`)

// steered adds to found the tools of other servers that t steers, by id.
func steered(t text, server string, all *Names, found map[string]string) {
	folded := fold(t.value)
	for _, span := range word.FindAllStringIndex(folded, -1) {
		id := all.foreign(folded[span[0]:span[1]], server)
		if id == "" || found[id] != "" {
			continue
		}
		before := folded[max(0, span[0]-80):span[0]]
		after := folded[span[1]:min(len(folded), span[1]+80)]
		if m := overrideBefore.FindString(before); m != "" {
			found[id] = fmt.Sprintf("%s: steers %s, a tool of another server (%q)", t.where, id, strings.TrimSpace(m)+" "+folded[span[0]:span[1]])
		} else if m := overrideAfter.FindString(after); m != "" {
			found[id] = fmt.Sprintf("%s: steers %s, a tool of another server (%q)", t.where, id, folded[span[0]:span[1]]+m)
		}
	}
}
