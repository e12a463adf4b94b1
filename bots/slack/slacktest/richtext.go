package slacktest

import "encoding/json"

// richText checks a rich_text block. Lists may not hold lists, and quotes no
// quotes, so it has no depth.
func richText(c *checker, at string, raw json.RawMessage) {
	inline := list(0, 1000, one(inlineKinds))
	section := object(map[string]rule{"type!": anything, "elements!": inline})
	block(map[string]rule{"elements!": list(0, 1000, one(map[string]rule{
		"rich_text_section":      section,
		"rich_text_preformatted": object(map[string]rule{"type!": anything, "elements!": inline, "border": integer(0, 10), "language": length(0, 50)}),
		"rich_text_quote":        object(map[string]rule{"type!": anything, "elements!": inline, "border": integer(0, 10)}),
		"rich_text_list": object(map[string]rule{"type!": anything, "style!": word("bullet", "ordered"), "elements!": list(0, 1000, one(map[string]rule{"rich_text_section": section})),
			"indent": integer(0, 8), "offset": integer(0, 1<<20), "border": integer(0, 10)}),
	}))})(c, at, raw)
}

var textStyle = object(map[string]rule{"bold": boolean, "italic": boolean, "strike": boolean, "code": boolean, "underline": boolean, "highlight": boolean, "client_highlight": boolean,
	"unlink": boolean})

// inlineKinds are the elements of a rich text section.
var inlineKinds = map[string]rule{
	"text":      object(map[string]rule{"type!": anything, "text!": together(length(1, 12_000), countText), "style": textStyle}),
	"link":      object(map[string]rule{"type!": anything, "url!": address(3000), "text": together(length(0, 12_000), countText), "unsafe": boolean, "style": textStyle}),
	"emoji":     object(map[string]rule{"type!": anything, "name!": length(1, 255), "unicode": length(0, 255), "skin_tone": integer(1, 6), "url": address(3000), "style": textStyle}),
	"user":      object(map[string]rule{"type!": anything, "user_id!": id, "style": textStyle}),
	"usergroup": object(map[string]rule{"type!": anything, "usergroup_id!": id, "style": textStyle}),
	"channel":   object(map[string]rule{"type!": anything, "channel_id!": id, "style": textStyle}),
	"team":      object(map[string]rule{"type!": anything, "team_id!": id, "style": textStyle}),
	"broadcast": object(map[string]rule{"type!": anything, "range!": word("here", "channel", "everyone"), "style": textStyle}),
	"color":     object(map[string]rule{"type!": anything, "value!": length(1, 20)}),
	"date":      object(map[string]rule{"type!": anything, "timestamp!": integer(0, 1<<40), "format!": length(1, 255), "url": address(3000), "fallback": length(0, 255), "style": textStyle}),
}

func countText(c *checker, at string, raw json.RawMessage) {
	if v, ok := readString(c, at, raw); ok {
		c.text += len([]rune(v))
	}
}
