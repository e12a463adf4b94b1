package incoming

import (
	"encoding/json"
	"regexp"
	"strings"

	"nize/store"
)

// Slack's text has & < > escaped and everything special between angle
// brackets: <@U1>, <#C1|name>, <!here>, <https://x|label>.
var special = regexp.MustCompile(`<([^<>]*)>`)

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// Escape makes text stand for itself in a field that Slack reads as mrkdwn.
func Escape(s string) string { return escaper.Replace(s) }

// Mentions says whether somebody is addressed by name in a message: in its
// text, or in a block only.
func Mentions(m *Message, user string) bool {
	text := codeSpan.ReplaceAllString(m.Text, " ")
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|") || blockMentions(m.Blocks)[user]
}

// codeSpan is what stands for itself in a text: nobody is addressed in it.
var codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// Broadcasts says whether the message is for everybody in the channel.
func Broadcasts(m *Message) bool {
	for _, word := range []string{"channel", "here", "everyone"} {
		if strings.Contains(m.Text, "<!"+word) {
			return true
		}
	}
	_, found := blockMentions(m.Blocks)[everybody]
	return found
}

// Others says whether the message addresses somebody by name who is not user.
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

// everybody is the mention of a whole channel.
const everybody = "everybody"

// blockMentions are whom a message's blocks mention: people, user groups, or
// everybody. Blocks of a shape that is not known mention nobody.
func blockMentions(blocks json.RawMessage) map[string]bool {
	found := map[string]bool{}
	if len(blocks) == 0 {
		return found
	}
	var nodes []blockNode
	if json.Unmarshal(blocks, &nodes) != nil {
		return found
	}
	for _, n := range nodes {
		n.users(found, 0)
	}
	return found
}

// blockNode is a part of a rich text, or another block.
type blockNode struct {
	Type     string          `json:"type"`
	User     string          `json:"user_id"`
	Group    string          `json:"usergroup_id"`
	Text     json.RawMessage `json:"text"` // a string, or an object that has one
	URL      string          `json:"url"`
	Style    json.RawMessage `json:"style"` // how it looks, or the name of a look
	Elements []blockNode     `json:"elements"`
	Fields   []blockNode     `json:"fields"`
	Rows     [][]blockNode   `json:"rows"` // of a table: its cells
}

const (
	// maxBlockDepth is how deep blocks are looked into.
	maxBlockDepth = 8
	// maxBlockText is how many bytes of text are read of blocks.
	maxBlockText = 16 << 10
)

func (n blockNode) users(found map[string]bool, depth int) {
	var style struct {
		Code bool `json:"code"`
	}
	if n.Type == "rich_text_preformatted" || len(n.Style) > 0 && json.Unmarshal(n.Style, &style) == nil && style.Code {
		return // code addresses nobody
	}
	switch {
	case n.Type == "user" && n.User != "":
		found[n.User] = true
	case n.Type == "usergroup" && n.Group != "":
		found[n.Group] = true
	case n.Type == "broadcast":
		found[everybody] = true
	}
	if depth > maxBlockDepth {
		return
	}
	for _, e := range n.Elements {
		e.users(found, depth+1)
	}
	for _, row := range n.Rows {
		for _, cell := range row {
			cell.users(found, depth+1)
		}
	}
}

// MessageText is what the author of a message wrote: its text, or its blocks if all of
// it is there; and its tables, which the text does not have. The mention of nize itself
// goes.
func MessageText(m *Message, self string, name func(id string) string) string {
	text := ReadText(m.Text, self, name)
	var nodes []blockNode
	if len(m.Blocks) == 0 || json.Unmarshal(m.Blocks, &nodes) != nil {
		return text
	}
	var b strings.Builder
	for _, n := range nodes {
		if text != "" && n.Type != "table" {
			continue
		}
		n.without(self).write(&b, name, 0)
		b.WriteByte('\n')
	}
	return strings.TrimSpace(text + "\n" + Cut(b.String(), maxBlockText))
}

// without returns a rich text without the mentions of somebody.
func (n blockNode) without(user string) blockNode {
	var kept []blockNode
	for _, e := range n.Elements {
		if e.Type != "user" || e.User != user {
			kept = append(kept, e.without(user))
		}
	}
	n.Elements = kept
	return n
}

// blockText is what blocks say, for messages that have no text of their own.
func blockText(blocks json.RawMessage, name func(string) string) string {
	var nodes []blockNode
	if len(blocks) == 0 || json.Unmarshal(blocks, &nodes) != nil {
		return ""
	}
	var b strings.Builder
	for _, n := range nodes {
		n.write(&b, name, 0)
		b.WriteByte('\n')
	}
	return strings.TrimSpace(Cut(b.String(), maxBlockText))
}

func (n blockNode) write(b *strings.Builder, name func(string) string, depth int) {
	if depth > maxBlockDepth || b.Len() > maxBlockText {
		return
	}
	var text string
	if len(n.Text) > 0 && json.Unmarshal(n.Text, &text) != nil {
		var inner blockNode
		if json.Unmarshal(n.Text, &inner) == nil {
			inner.write(b, name, depth+1)
		}
	}
	switch {
	case n.Type == "user" && n.User != "":
		text = "@" + name(n.User)
	case n.Type == "mrkdwn":
		text = ReadText(text, "", name)
	case text == "" && n.Type == "link":
		text = n.URL
	}
	b.WriteString(text)
	for _, row := range n.Rows {
		for i, cell := range row {
			var in strings.Builder
			cell.write(&in, name, depth+1)
			if i > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(strings.Join(strings.Fields(in.String()), " "))
		}
		b.WriteByte('\n')
	}
	for _, part := range [][]blockNode{n.Elements, n.Fields} {
		for _, e := range part {
			e.write(b, name, depth+1)
			if !inline[e.Type] {
				b.WriteByte('\n')
			}
		}
	}
}

// inline are the parts of a line of rich text.
var inline = map[string]bool{"text": true, "user": true, "link": true, "emoji": true, "channel": true, "usergroup": true, "broadcast": true, "date": true, "color": true}

// ReadText turns Slack's text into what the person wrote: the mention of nize
// itself goes, other people become @name, links their address.
func ReadText(text, self string, name func(id string) string) string {
	out := special.ReplaceAllStringFunc(text, func(found string) string {
		inner := found[1 : len(found)-1]
		target, label, labelled := strings.Cut(inner, "|")
		switch {
		case target == "": // no form of Slack's
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

// nameEnd is what stands between somebody's name and what they are told, as in
// "nize: help"; a smiley is none.
var nameEnd = regexp.MustCompile(`^[\s\p{Zs}]*(?:[,:;](?:[\s\p{Zs}]|$)|[，：；、])`)

// Harmless lets a model's Markdown through but for what Slack would turn into
// a mention.
func Harmless(markdown string) string {
	return pings.ReplaceAllString(markdown, "&lt;$1")
}

var pings = regexp.MustCompile(`<([!@#])`)

// Cut is the first piece of text, at most n bytes and never half a character,
// ending with a line where it is long.
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
