package page

import (
	"cmp"
	"encoding/json"

	"nize/bots/chattest"
	"nize/bots/discord/discordtest"
)

// block is a block that the page draws.
type block struct {
	Type     string    `json:"type"`
	ID       string    `json:"block_id,omitempty"`
	Text     any       `json:"text,omitempty"` // Markdown, or an object
	Elements []element `json:"elements,omitempty"`
	Label    *label    `json:"label,omitempty"`
	Hint     *label    `json:"hint,omitempty"`
	Element  *element  `json:"element,omitempty"`
	Optional bool      `json:"optional,omitempty"`
}

type element struct {
	Type        string   `json:"type"`
	Action      string   `json:"action_id,omitempty"`
	Text        *label   `json:"text,omitempty"`
	Style       string   `json:"style,omitempty"`
	URL         string   `json:"url,omitempty"`
	Options     []option `json:"options,omitempty"`
	First       *option  `json:"initial_option,omitempty"`
	Placeholder *label   `json:"placeholder,omitempty"`
	Multiline   bool     `json:"multiline,omitempty"`
	Value       string   `json:"initial_value,omitempty"`
	MaxLength   int      `json:"max_length,omitempty"`
}

type label struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type option struct {
	Text  label  `json:"text"`
	Value string `json:"value"`
}

func plain(text string) *label { return &label{Type: "plain_text", Text: text} }

func markdown(text string) block { return block{Type: "markdown", Text: text} }

// Blocks returns a message with its embeds and components.
func Blocks(m discordtest.Message) json.RawMessage {
	list := []block{}
	if m.Loading {
		list = append(list, markdown("*nize is thinking…*"))
	}
	if m.Content != "" {
		list = append(list, markdown(m.Content))
	}
	if text := m.EmbedText(); text != "" {
		list = append(list, markdown(text))
	}
	for _, p := range m.Parts() {
		switch {
		case p.Content != "":
			list = append(list, markdown(p.Content))
		case p.Type == 14: // a separator
			list = append(list, block{Type: "divider"})
		case p.Type == 1: // a row
			list = append(list, block{Type: "actions", ID: "c"})
		case p.Disabled: // it can't be pressed
			list = append(list, markdown("*"+p.Label+"*"))
		case p.Type == 2 || p.Type == 3:
			if len(list) == 0 || list[len(list)-1].Type != "actions" {
				list = append(list, block{Type: "actions", ID: "c"})
			}
			row := &list[len(list)-1]
			row.Elements = append(row.Elements, elementOf(p))
		}
	}
	return chattest.JSON(list)
}

func elementOf(p discordtest.Component) element {
	if p.URL != "" {
		return element{Type: "link_button", Text: plain(p.Label), URL: p.URL}
	}
	if p.Options == nil {
		return element{Type: "button", Action: p.ID, Text: plain(p.Label), Style: map[int]string{1: "primary", 3: "primary", 4: "danger"}[p.Style]}
	}
	e := element{Type: "static_select", Action: p.ID, Placeholder: plain(p.Placeholder)}
	for _, o := range p.Options {
		e.Options = append(e.Options, option{Text: *plain(o.Label), Value: o.Value})
	}
	return e
}

// fields returns the fields of a dialog.
func fields(list []discordtest.Component) json.RawMessage {
	out := []block{}
	for _, f := range list {
		if f.Content != "" {
			out = append(out, markdown(f.Content))
			continue
		}
		e := element{Type: "plain_text_input", Action: f.ID, Multiline: f.Style == 2, Value: f.Value, MaxLength: cmp.Or(f.MaxLength, 4000)}
		if f.Options != nil {
			e = element{Type: "static_select", Action: f.ID}
			for _, o := range f.Options {
				one := option{Text: *plain(o.Label), Value: o.Value}
				e.Options = append(e.Options, one)
				if o.Default {
					e.First = &one
				}
			}
		}
		b := block{Type: "input", ID: "f", Label: plain(f.Label), Element: &e, Optional: !f.Needed()}
		if f.Description != "" {
			b.Hint = plain(f.Description)
		}
		out = append(out, b)
	}
	return chattest.JSON(out)
}
