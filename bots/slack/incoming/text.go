package incoming

import (
	"regexp"
	"strings"

	"nize/store"
)

// Slack's text escapes & < > and has everything special in angle brackets: <@U1>,
// <#C1|name>, <!here>, <https://x|label>.
var special = regexp.MustCompile(`<([^<>]*)>`)

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// Escape escapes text for a field that Slack reads as mrkdwn.
func Escape(s string) string { return escaper.Replace(s) }

// Mentions reports whether a message mentions a user, in its text or only in a block.
func Mentions(m *Message, user string) bool {
	text := codeSpan.ReplaceAllString(m.Text, " ")
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|") || blockMentions(m.Blocks)[user]
}

// codeSpan matches code, in which mentions don't count.
var codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// Broadcasts reports whether the message is for everybody in the channel.
func Broadcasts(m *Message) bool {
	for _, word := range []string{"channel", "here", "everyone"} {
		if strings.Contains(m.Text, "<!"+word) {
			return true
		}
	}
	_, found := blockMentions(m.Blocks)[everybody]
	return found
}

// Others reports whether the message mentions someone other than user.
func Others(m *Message, user string) bool {
	for _, found := range special.FindAllStringSubmatch(codeSpan.ReplaceAllString(m.Text, " "), -1) {
		switch id, ok := strings.CutPrefix(found[1], "@"); {
		case ok:
			id, _, _ = strings.Cut(id, "|")
			if id != user {
				return true
			}
		case strings.HasPrefix(found[1], "!subteam^"):
			return true
		}
	}
	for id := range blockMentions(m.Blocks) {
		if id != user {
			return true
		}
	}
	return false
}

// everybody stands for the mention of a whole channel.
const everybody = "everybody"

// ReadText converts Slack's text to what the person wrote: it removes the mention of nize
// itself and turns other mentions into @name and links into their URL.
func ReadText(text, self string, name func(id string) string) string {
	out := special.ReplaceAllStringFunc(text, func(found string) string {
		inner := found[1 : len(found)-1]
		target, label, labelled := strings.Cut(inner, "|")
		switch {
		case target == "": // not Slack's syntax
			return found
		case target == "@"+self:
			return ""
		case target[0] == '@':
			if labelled {
				return "@" + label
			}
			return "@" + name(target[1:])
		case target[0] == '#':
			if labelled && label != "" {
				return "#" + label
			}
			return target
		case target[0] == '!':
			if labelled {
				return label
			}
			return "@" + target[1:]
		case labelled && label != target && !strings.HasSuffix(target, label):
			return label + " (" + target + ")"
		case labelled:
			return label
		}
		return target
	})
	if self != "" && strings.HasPrefix(strings.TrimSpace(text), "<@"+self) {
		out = nameEnd.ReplaceAllString(out, "")
	}
	return strings.TrimSpace(strings.ReplaceAll(unescaper.Replace(out), "\x00", ""))
}

// nameEnd matches the separator after a name, as in "nize: help"; a smiley is not one.
var nameEnd = regexp.MustCompile(`^[\s\p{Zs}]*(?:[,:;](?:[\s\p{Zs}]|$)|[，：；、])`)

// Harmless returns a model's Markdown without anything that Slack would turn into a
// mention.
func Harmless(markdown string) string {
	return pings.ReplaceAllString(markdown, "&lt;$1")
}

var pings = regexp.MustCompile(`<([!@#])`)

// Cut returns the beginning of text, at most n bytes, never with half a character, and
// ending at a line end if it is long.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head := store.Head(text, n)
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		return head[:i+1]
	}
	return head
}
