package scan

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"nize/store"
)

// override is the forms of words, before and after a tool's name, in which one
// tool steers the use of another. A mere mention ("see also X") is not among them.
var (
	overrideBefore = regexp.MustCompile(`(\b(instead of|rather than|in place of|replaces|replacing|replacement for|supersedes|overrides|(do not|don't|never|stop|avoid) (ever )?(use|using|call|calling|run|running|invoke|invoking)|(when|whenever|before|after|every time|each time|if)( you| the (model|agent|assistant))?( are| is)? (use|uses|using|call|calls|calling|run|runs|running|invoke|invokes|invoking|executing)))( the| tool| server's| old| original| native| built-in)* ["'` + "`" + `]?$`)
	overrideAfter  = regexp.MustCompile(`^["'` + "`" + `]?( tool| function)?( \([^)]{0,40}\))?( from [a-z0-9_-]+)? (is (deprecated|broken|unsafe|insecure|disabled|compromised|obsolete|being called|called|used)|must (not|never|be)|should (not|never)|is no longer|has been (replaced|deprecated|disabled|superseded))`)
)

// Shadow returns a finding for each tool of another server that the tool's
// text steers ("instead of github:create_issue use…", "when send_email is
// called…"). others are tool ids, server:name; those of the tool's own server
// and names that the own server has as well are passed over, and so are names
// that are ordinary words (no _, -, : or inner capital).
func (Gate) Shadow(instructions string, tool store.Tool, others []string) []string {
	own := map[string]bool{tool.Name: true}
	names := map[string]string{} // what the text may say → id
	for _, id := range others {
		server, name, ok := store.SplitToolID(id)
		if ok && server == tool.Server {
			own[name] = true
		}
	}
	for _, id := range others {
		server, name, ok := store.SplitToolID(id)
		if !ok || server == tool.Server {
			continue
		}
		names[strings.ToLower(id)] = id
		names[strings.ToLower(server+"."+name)] = id
		names[strings.ToLower(server+"__"+name)] = id
		if !own[name] && distinctive(name) {
			names[strings.ToLower(name)] = id
		}
	}
	if len(names) == 0 {
		return nil
	}
	texts := []text{{where: "description", value: tool.Description}, {where: "server instructions", value: instructions}}
	texts = append(texts, stringsOf("input schema", tool.InputSchema)...)
	found := map[string]string{}
	for _, t := range texts {
		if len(t.value) > 12 {
			steered(t, names, found)
		}
	}
	out := make([]string, 0, len(found))
	for _, finding := range found {
		out = append(out, finding)
	}
	sort.Strings(out)
	if len(out) == 0 {
		return nil
	}
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

// steered adds to found the tools among names that t steers.
func steered(t text, names map[string]string, found map[string]string) {
	folded := fold(t.value)
	for _, span := range word.FindAllStringIndex(folded, -1) {
		id, ok := names[folded[span[0]:span[1]]]
		if !ok || found[id] != "" {
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
