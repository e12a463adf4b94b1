package slacktest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Effects are a message's effects besides being read, which text from outside must never
// have. Each list is sorted and without duplicates.
type Effects struct {
	Users     []string // users who would be notified
	Groups    []string // user groups that would be notified
	Broadcast []string // here, channel, everyone
	Links     []string // clickable ones, explicit or detected by Slack
	Unfurls   bool     // links would be unfurled
	Format    []string // formatting in the text: bold, italic, strike, code, pre, quote
	Emoji     []string
}

// Pings reports whether anyone would be notified.
func (e Effects) Pings() bool { return len(e.Users)+len(e.Groups)+len(e.Broadcast) > 0 }

// Effects returns the effects of the message's blocks, or of its text if it has none,
// because the text beside blocks is only used for notifications (but its mentions count).
func (m Message) Effects() Effects {
	var e Effects
	if m.Mrkdwn {
		e.mrkdwn(m.Text, !m.Plain, len(m.Blocks) == 0)
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Blocks, &blocks) // invalid blocks count as none
	for _, b := range blocks {
		e.walk(b)
	}
	for _, list := range []*[]string{&e.Users, &e.Groups, &e.Broadcast, &e.Links, &e.Emoji} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	e.Unfurls = m.Unfurl && len(e.Links) > 0
	return e
}

// node is anything within blocks.
type node struct {
	Type     string            `json:"type"`
	Text     json.RawMessage   `json:"text"`
	Verbatim bool              `json:"verbatim"`
	Fields   []json.RawMessage `json:"fields"`
	Elements []json.RawMessage `json:"elements"`
	Rows     [][]json.RawMessage
	Body     json.RawMessage `json:"body"`
	Title    json.RawMessage `json:"title"`
	User     string          `json:"user_id"`
	Group    string          `json:"usergroup_id"`
	Range    string          `json:"range"`
	URL      string          `json:"url"`
	Name     string          `json:"name"`
	Style    struct {
		Bold   bool `json:"bold"`
		Italic bool `json:"italic"`
		Strike bool `json:"strike"`
		Code   bool `json:"code"`
	} `json:"style"`
}

func (e *Effects) walk(raw json.RawMessage) {
	var n node
	// A style may be a string (of a button) or an object (of rich text).
	if json.Unmarshal(raw, &n) != nil && n.Type == "" {
		return
	}
	switch n.Type {
	case "mrkdwn":
		e.mrkdwn(asText(n.Text), !n.Verbatim, true)
		return
	case "markdown":
		e.markdown(asText(n.Text))
		return
	case "user":
		e.Users = append(e.Users, n.User)
	case "usergroup":
		e.Groups = append(e.Groups, n.Group)
	case "broadcast":
		e.Broadcast = append(e.Broadcast, n.Range)
	case "link":
		e.Links = append(e.Links, n.URL)
	case "emoji":
		e.Emoji = append(e.Emoji, n.Name)
	case "rich_text_preformatted":
		e.format("pre")
	case "rich_text_quote":
		e.format("quote")
	}
	for name, on := range map[string]bool{"bold": n.Style.Bold, "italic": n.Style.Italic, "strike": n.Style.Strike, "code": n.Style.Code} {
		if on {
			e.format(name)
		}
	}
	for _, row := range n.Rows {
		for _, cell := range row {
			e.walk(cell)
		}
	}
	for _, in := range slices.Concat(n.Fields, n.Elements, []json.RawMessage{n.Text, n.Body, n.Title}) {
		if len(in) > 0 && in[0] == '{' {
			e.walk(in)
		}
	}
}

func asText(raw json.RawMessage) string {
	var v string
	_ = json.Unmarshal(raw, &v) // an object is not a text
	return v
}

func (e *Effects) format(name string) {
	if !slices.Contains(e.Format, name) {
		e.Format = append(e.Format, name)
		slices.Sort(e.Format)
	}
}

var (
	angle    = regexp.MustCompile(`<([^<>]*)>`)
	bareURL  = regexp.MustCompile(`https?://[^\s<>|]+`)
	emojiRef = regexp.MustCompile(`:([a-z0-9_+'-]+):`)
	fence    = regexp.MustCompile("(?s)```.+?```")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	quoted   = regexp.MustCompile(`(?m)^&gt;`)
	spans    = map[string]*regexp.Regexp{
		"bold":   regexp.MustCompile(`(?:^|[^\w*])\*[^\s*][^*\n]*\*(?:[^\w*]|$)`),
		"italic": regexp.MustCompile(`(?:^|[^\w_])_[^\s_][^_\n]*_(?:[^\w_]|$)`),
		"strike": regexp.MustCompile(`(?:^|[^\w~])~[^\s~][^~\n]*~(?:[^\w~]|$)`),
	}
)

// mrkdwn parses Slack's markup. linked: bare URLs become links too; seen: people see this
// text, so its formatting counts.
func (e *Effects) mrkdwn(text string, linked, seen bool) {
	// References work within code too; formatting doesn't.
	for _, m := range angle.FindAllStringSubmatch(text, -1) {
		e.reference(m[1])
	}
	if !seen {
		return
	}
	if fence.MatchString(text) {
		e.format("pre")
	}
	text = fence.ReplaceAllString(text, " ")
	if codeSpan.MatchString(text) {
		e.format("code")
	}
	text = codeSpan.ReplaceAllString(text, " ")
	rest := angle.ReplaceAllString(text, " ")
	if linked {
		e.Links = append(e.Links, bareURL.FindAllString(rest, -1)...)
	}
	if quoted.MatchString(rest) {
		e.format("quote")
	}
	for name, re := range spans {
		if re.MatchString(rest) {
			e.format(name)
		}
	}
	for _, m := range emojiRef.FindAllStringSubmatch(rest, -1) {
		e.Emoji = append(e.Emoji, m[1])
	}
}

// reference handles the text between < and >.
func (e *Effects) reference(ref string) {
	target, _, _ := strings.Cut(ref, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		e.Users = append(e.Users, target[1:])
	case strings.HasPrefix(target, "!subteam^"):
		e.Groups = append(e.Groups, strings.TrimPrefix(target, "!subteam^"))
	case target == "!here", target == "!channel", target == "!everyone", target == "!group":
		e.Broadcast = append(e.Broadcast, target[1:])
	case strings.HasPrefix(target, "#"), strings.HasPrefix(target, "!date^"), target == "":
	case strings.Contains(target, ":"):
		e.Links = append(e.Links, target)
	}
}

var (
	mdLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	mdFormats = map[string]*regexp.Regexp{
		"bold":   regexp.MustCompile(`\*\*[^\s*][^\n]*?\*\*|__[^\s_][^\n]*?__`),
		"italic": regexp.MustCompile(`(?:^|[^\w*\\])\*[^\s*][^*\n]*\*(?:[^\w*]|$)|(?:^|[^\w_\\])_[^\s_][^_\n]*_(?:[^\w_]|$)`),
		"strike": regexp.MustCompile(`~~[^\s~][^\n]*?~~`),
		"quote":  regexp.MustCompile(`(?m)^ {0,3}>`),
		"header": regexp.MustCompile(`(?m)^ {0,3}#{1,6} `),
		"list":   regexp.MustCompile(`(?m)^\s*(?:[-*+]|\d+[.)]) `),
	}
)

// markdown parses a markdown block: standard Markdown, in which Slack's references work
// too.
func (e *Effects) markdown(text string) {
	for _, m := range angle.FindAllStringSubmatch(text, -1) {
		e.reference(m[1])
	}
	if fence.MatchString(text) {
		e.format("pre")
	}
	text = fence.ReplaceAllString(text, " ")
	if codeSpan.MatchString(text) {
		e.format("code")
	}
	text = codeSpan.ReplaceAllString(text, " ")
	for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
		e.Links = append(e.Links, m[1])
	}
	e.Links = append(e.Links, bareURL.FindAllString(mdLink.ReplaceAllString(angle.ReplaceAllString(text, " "), " "), -1)...)
	for name, re := range mdFormats {
		if re.MatchString(text) {
			e.format(name)
		}
	}
	for _, m := range emojiRef.FindAllStringSubmatch(text, -1) {
		e.Emoji = append(e.Emoji, m[1])
	}
}

// mentions reports whether m mentions a user, in its text or only in its blocks.
func mentions(m *Message, user string) bool {
	found := *m
	found.Mrkdwn = true
	return slices.Contains(found.Effects().Users, user)
}

// Typed returns what Slack's client makes of typed text: & < > are escaped; @name,
// #channel, @here and URLs become references. wrap puts bare URLs in angle brackets.
func (s *Server) Typed(typed string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(typed)
	out = bareURL.ReplaceAllStringFunc(out, func(u string) string {
		u = strings.TrimSuffix(u, "&gt;")
		return "<" + u + ">"
	})
	return nameRef.ReplaceAllStringFunc(out, func(ref string) string {
		name := ref[1:]
		switch {
		case ref[0] == '@' && slices.Contains([]string{"here", "channel", "everyone"}, name):
			return "<!" + name + ">"
		case ref[0] == '@':
			for _, u := range s.world.users {
				if u.Name == name {
					return "<@" + u.ID + ">"
				}
			}
			for _, g := range s.world.groups {
				if g.Handle == name {
					return "<!subteam^" + g.ID + ">"
				}
			}
		default:
			for _, c := range s.world.channels {
				if c.Name == name && !c.IM {
					return "<#" + c.ID + ">"
				}
			}
		}
		return ref
	})
}

var nameRef = regexp.MustCompile(`[@#][a-z0-9_.-]*[a-z0-9]`)
