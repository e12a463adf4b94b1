package incoming

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A message has its text twice, in text and in blocks; some have it only in blocks or in
// attachments. Slack adds block types now and then, and programs send unusual ones: each
// block is read by itself, and of an unknown type the texts in it are read.

const (
	// maxBlockDepth is how deep nested blocks are read.
	maxBlockDepth = 8
	// maxBlockText is the maximum text read from blocks, in bytes.
	maxBlockText = 16 << 10
)

// block is a block or a part of one. Its members are decoded when they are read, so nothing
// nested deeper than the limit is decoded.
type block map[string]json.RawMessage

// readBlock decodes a block; anything but an object yields no members.
func readBlock(raw json.RawMessage) block {
	var n block
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}

// text returns a member that is a string or a number, otherwise "".
func (n block) text(key string) string {
	raw := n[key]
	var s string
	var number json.Number
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &s) == nil:
	case json.Unmarshal(raw, &number) == nil:
		return number.String()
	}
	return s
}

// list returns a member that is a list; an object counts as a list of one.
func (n block) list(key string) []json.RawMessage { return listOf(n[key]) }

func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	switch {
	case len(raw) == 0:
	case raw[0] == '{':
		return []json.RawMessage{raw}
	case json.Unmarshal(raw, &list) != nil:
		return nil
	}
	return list
}

// isCode reports whether a part of rich text is code, whose words are literal.
func (n block) isCode() bool {
	var style struct {
		Code bool `json:"code"`
	}
	return n.text("type") == "rich_text_preformatted" || len(n["style"]) > 0 && json.Unmarshal(n["style"], &style) == nil && style.Code
}

// blockMentions returns whom a message's blocks mention: people, user groups, or everybody.
// Unknown block shapes mention nobody.
func blockMentions(blocks json.RawMessage) map[string]bool {
	found := map[string]bool{}
	for _, raw := range listOf(blocks) {
		readBlock(raw).users(found, 0)
	}
	return found
}

func (n block) users(found map[string]bool, depth int) {
	if n.isCode() || depth > maxBlockDepth {
		return
	}
	switch user, group := n.text("user_id"), n.text("usergroup_id"); n.text("type") {
	case "user":
		found[user] = true
	case "usergroup":
		found[group] = true
	case "broadcast":
		found[everybody] = true
	}
	delete(found, "")
	for _, raw := range n.list("elements") {
		readBlock(raw).users(found, depth+1)
	}
	for _, row := range n.list("rows") {
		for _, cell := range listOf(row) {
			readBlock(cell).users(found, depth+1)
		}
	}
}

// MessageText returns what the author of a message wrote: its text, or its blocks or
// attachments if they have all of the text, plus its tables, which the text lacks. The
// mention of nize itself is removed.
func MessageText(m *Message, self string, name func(id string) string) string {
	text := ReadText(m.Text, self, name)
	if text == "" {
		text = blockText(m.Blocks, self, name)
		if text == "" {
			text = attachmentsText(m, self, name)
		}
		return text
	}
	r := blockReader{self: self, name: name}
	for _, raw := range listOf(m.Blocks) {
		if n := readBlock(raw); n.text("type") == "table" {
			r.block(n, 0)
			r.endLine()
		}
	}
	return strings.TrimSpace(text + "\n" + r.String())
}

// blockText returns the text of blocks.
func blockText(blocks json.RawMessage, self string, name func(string) string) string {
	r := blockReader{self: self, name: name}
	for _, raw := range listOf(blocks) {
		r.block(readBlock(raw), 0)
		r.endLine()
	}
	return r.String()
}

// blockReader renders blocks as Markdown.
type blockReader struct {
	b    strings.Builder
	self string // id whose mention is omitted; "" for none
	name func(id string) string
}

// String returns the rendered text, up to the limit.
func (r *blockReader) String() string {
	return strings.TrimSpace(strings.ReplaceAll(Cut(r.b.String(), maxBlockText), "\x00", ""))
}

// endLine ends the current line, if it has text.
func (r *blockReader) endLine() {
	if s := r.b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		r.b.WriteByte('\n')
	}
}

// line writes text as separate lines.
func (r *blockReader) line(text string) {
	r.endLine()
	r.b.WriteString(text)
	r.endLine()
}

// inner returns the text of a single part.
func (r *blockReader) inner(n block, depth int) string {
	in := blockReader{self: r.self, name: r.name}
	in.block(n, depth+1)
	return strings.Trim(in.b.String(), "\n")
}

// block writes the text of a block or of a part of one.
func (r *blockReader) block(n block, depth int) {
	if n == nil || depth > maxBlockDepth || r.b.Len() > maxBlockText {
		return
	}
	switch kind := n.text("type"); kind {
	case "text", "plain_text", "raw_text", "emoji", "user", "usergroup", "channel", "team", "broadcast", "link", "date", "color", "mrkdwn", "message_mention", "canvas":
		r.b.WriteString(r.inline(kind, n))
	case "rich_text_section":
		r.each(n, "elements", depth)
	case "rich_text_preformatted":
		if text := strings.Trim(r.elements(n, depth), "\n"); text != "" {
			r.line("```\n" + text + "\n```")
		}
	case "rich_text_quote":
		if text := strings.TrimSpace(r.elements(n, depth)); text != "" {
			r.line("> " + strings.ReplaceAll(text, "\n", "\n> "))
		}
	case "rich_text_list":
		r.items(n, depth)
	case "table":
		r.table(n, depth)
	default:
		r.any(n, depth)
	}
}

// elements returns the joined text of a part's elements.
func (r *blockReader) elements(n block, depth int) string {
	in := blockReader{self: r.self, name: r.name}
	in.each(n, "elements", depth)
	return in.b.String()
}

// each writes the parts in a list, each on its own line except for the parts of a line.
func (r *blockReader) each(n block, key string, depth int) {
	for _, raw := range n.list(key) {
		part := readBlock(raw)
		if key == "elements" && inlineTypes[part.text("type")] {
			r.block(part, depth+1)
			continue
		}
		r.endLine()
		r.block(part, depth+1)
		r.endLine()
	}
}

// inlineTypes are the types of parts within a line of rich text.
var inlineTypes = map[string]bool{"text": true, "user": true, "link": true, "emoji": true, "channel": true, "usergroup": true, "team": true, "broadcast": true, "date": true, "color": true, "message_mention": true, "canvas": true}

// inline returns the text of a part of a line.
func (r *blockReader) inline(kind string, n block) string {
	text := n.text("text")
	switch kind {
	case "mrkdwn":
		return ReadText(text, r.self, r.name)
	case "user":
		if id := n.text("user_id"); id != "" && id != r.self {
			return "@" + r.name(id)
		}
		return ""
	case "usergroup":
		return prefixed("@", n.text("usergroup_id"))
	case "channel":
		return prefixed("#", n.text("channel_id"))
	case "team":
		return prefixed("@", n.text("team_id"))
	case "broadcast":
		return prefixed("@", n.text("range"))
	case "emoji":
		if name := n.text("name"); name != "" {
			return ":" + name + ":"
		}
		return ""
	case "color":
		return n.text("value")
	case "date":
		if text = n.text("fallback"); text == "" {
			text = n.text("timestamp")
		}
		return text
	case "link", "message_mention", "canvas":
		switch url := n.text("url"); {
		case text == "", strings.HasSuffix(url, text):
			return url
		case url != "":
			return text + " (" + url + ")"
		}
	}
	if text != "" && n.isCode() && !strings.Contains(text, "`") {
		return "`" + text + "`"
	}
	return text
}

func prefixed(mark, id string) string {
	if id == "" {
		return ""
	}
	return mark + id
}

// items writes a list. Slack sends a nested list as a separate list with an indent.
func (r *blockReader) items(n block, depth int) {
	count := func(key string) int {
		i, err := strconv.Atoi(n.text(key))
		if err != nil || i < 0 || i > 1_000_000 {
			return 0
		}
		return i
	}
	indent := strings.Repeat("  ", min(count("indent"), 8))
	for i, raw := range n.list("elements") {
		mark := "- "
		if n.text("style") == "ordered" {
			mark = fmt.Sprintf("%d. ", count("offset")+i+1)
		}
		if text := r.inner(readBlock(raw), depth); strings.TrimSpace(text) != "" {
			r.line(indent + mark + strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
		}
	}
}

// table writes a table, one row per line.
func (r *blockReader) table(n block, depth int) {
	r.any(block{"title": n["title"], "caption": n["caption"]}, depth)
	for _, row := range n.list("rows") {
		cells := listOf(row)
		if wrapped := readBlock(row); wrapped != nil { // {"cells": […]}
			cells = wrapped.list("cells")
		}
		var texts []string
		for _, raw := range cells {
			cell := readBlock(raw)
			text := strings.Join(strings.Fields(r.inner(cell, depth)), " ")
			if text == "" {
				text = cell.text("value") // a number's value
			}
			texts = append(texts, text)
		}
		if strings.TrimSpace(strings.Join(texts, "")) != "" {
			r.line(strings.Join(texts, " | "))
		}
	}
}

// saying lists the members of blocks that contain words, in reading order. Objects and
// lists contain parts, as may members that are not listed here.
var saying = []string{"pretext", "title", "author_name", "label", "text", "body", "content", "message", "description", "caption", "alt_text", "hint", "fields", "elements", "blocks", "rows", "fallback"}

// any writes the text of a block's members.
func (r *blockReader) any(n block, depth int) {
	for _, key := range saying {
		raw := n[key]
		switch {
		case len(raw) == 0:
		case raw[0] == '"' && key == "fallback" && r.b.Len() > 0:
		case raw[0] == '"':
			r.line(n.text(key))
		default:
			r.each(n, key, depth)
		}
	}
	if known[n.text("type")] {
		return
	}
	others := make([]string, 0, len(n))
	for key, raw := range n {
		if !slices.Contains(saying, key) && (raw[0] == '{' || raw[0] == '[') && key != "style" {
			others = append(others, key)
		}
	}
	slices.Sort(others)
	for _, key := range others {
		r.each(n, key, depth)
	}
}

// known lists the block types whose other members are layout or data for programs: what a
// button sends, for example, is not a message text.
var known = map[string]bool{"section": true, "actions": true, "button": true, "context": true, "header": true, "image": true, "input": true, "video": true, "file": true, "rich_text": true, "divider": true, "markdown": true, "overflow": true}
