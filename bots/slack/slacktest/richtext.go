package slacktest

import (
	"encoding/json"
	"nize/bots/chattest"
)

// richText checks a rich_text block. Lists can't contain lists, nor quotes quotes, so
// nesting is limited.
func richText(c *chattest.Checker, at string, raw json.RawMessage) {
	inline := list(0, 1000, one(inlineKinds))
	section := object(fields{"type!": anything, "elements!": inline})
	block(fields{"elements!": list(0, 1000, one(fields{
		"rich_text_section":      section,
		"rich_text_preformatted": object(fields{"type!": anything, "elements!": inline, "border": integer(0, 10), "language": length(0, 50)}),
		"rich_text_quote":        object(fields{"type!": anything, "elements!": inline, "border": integer(0, 10)}),
		"rich_text_list": object(fields{"type!": anything, "style!": word("bullet", "ordered"), "elements!": list(0, 1000, one(fields{"rich_text_section": section})),
			"indent": integer(0, 8), "offset": integer(0, 1<<20), "border": integer(0, 10)}),
	}))})(c, at, raw)
}

var textStyle = object(fields{"bold": boolean, "italic": boolean, "strike": boolean, "code": boolean, "underline": boolean, "highlight": boolean, "client_highlight": boolean,
	"unlink": boolean})

// inlineKinds are the elements of a rich text section.
var inlineKinds = fields{
	"text":      object(fields{"type!": anything, "text!": chattest.Counted("text", 1, 12_000), "style": textStyle}),
	"link":      object(fields{"type!": anything, "url!": address(3000), "text": chattest.Counted("text", 0, 12_000), "unsafe": boolean, "style": textStyle}),
	"emoji":     object(fields{"type!": anything, "name!": length(1, 255), "unicode": length(0, 255), "skin_tone": integer(1, 6), "url": address(3000), "style": textStyle}),
	"user":      object(fields{"type!": anything, "user_id!": id, "style": textStyle}),
	"usergroup": object(fields{"type!": anything, "usergroup_id!": id, "style": textStyle}),
	"channel":   object(fields{"type!": anything, "channel_id!": id, "style": textStyle}),
	"team":      object(fields{"type!": anything, "team_id!": id, "style": textStyle}),
	"broadcast": object(fields{"type!": anything, "range!": word("here", "channel", "everyone"), "style": textStyle}),
	"color":     object(fields{"type!": anything, "value!": length(1, 20)}),
	"date":      object(fields{"type!": anything, "timestamp!": integer(0, 1<<40), "format!": length(1, 255), "url": address(3000), "fallback": length(0, 255), "style": textStyle}),
}
