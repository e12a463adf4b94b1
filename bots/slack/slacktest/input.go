package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"nize/bots/chattest"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// layout is the part of a block that people act on.
type layout struct {
	Type           string            `json:"type"`
	BlockID        string            `json:"block_id"`
	Accessory      *part             `json:"accessory"`
	Element        *part             `json:"element"`
	Raw            []json.RawMessage `json:"elements"`
	Actions        []part            `json:"actions"` // of a card
	Optional       bool              `json:"optional"`
	DispatchAction bool              `json:"dispatch_action"`
}

// part is an interactive element.
type part struct {
	Type     string          `json:"type"`
	ActionID string          `json:"action_id"`
	Text     json.RawMessage `json:"text"`
	Value    string          `json:"value"`
	Style    string          `json:"style"`
	URL      string          `json:"url"`
	Options  []choice        `json:"options"`
	Groups   []struct {
		Options []choice `json:"options"`
	} `json:"option_groups"`

	InitialValue         string   `json:"initial_value"`
	InitialOption        *choice  `json:"initial_option"`
	InitialOptions       []choice `json:"initial_options"`
	InitialUser          string   `json:"initial_user"`
	InitialUsers         []string `json:"initial_users"`
	InitialChannel       string   `json:"initial_channel"`
	InitialChannels      []string `json:"initial_channels"`
	InitialConversation  string   `json:"initial_conversation"`
	InitialConversations []string `json:"initial_conversations"`
	InitialDate          string   `json:"initial_date"`
	InitialTime          string   `json:"initial_time"`

	MinLength int `json:"min_length"`
	MaxLength int `json:"max_length"`
	MaxItems  int `json:"max_selected_items"`
}

// choice is an option; raw is its form from the app.
type choice struct {
	Value string
	raw   json.RawMessage
}

func (c *choice) UnmarshalJSON(b []byte) error {
	var got struct {
		Value string `json:"value"`
	}
	err := json.Unmarshal(b, &got)
	c.Value, c.raw = got.Value, slices.Clone(b)
	return err
}

func (c choice) MarshalJSON() ([]byte, error) { return c.raw, nil }

// value is the content of an input, or the payload of a press.
type value struct {
	Type          string          `json:"type"`
	Value         json.RawMessage `json:"value,omitempty"`
	Option        json.RawMessage `json:"selected_option,omitempty"`
	Options       json.RawMessage `json:"selected_options,omitempty"`
	User          string          `json:"selected_user,omitempty"`
	Users         []string        `json:"selected_users,omitempty"`
	Channel       string          `json:"selected_channel,omitempty"`
	Channels      []string        `json:"selected_channels,omitempty"`
	Conversation  string          `json:"selected_conversation,omitempty"`
	Conversations []string        `json:"selected_conversations,omitempty"`
	Date          string          `json:"selected_date,omitempty"`
	Time          string          `json:"selected_time,omitempty"`
	DateTime      int64           `json:"selected_date_time,omitempty"`
}

func (v value) empty() bool {
	none := func(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" || string(raw) == "[]" }
	return none(v.Value) && none(v.Option) && none(v.Options) && v.User+v.Channel+v.Conversation+v.Date+v.Time == "" &&
		len(v.Users)+len(v.Channels)+len(v.Conversations) == 0 && v.DateTime == 0
}

// spot is an interactive element with its position.
type spot struct {
	part
	block    string
	input    bool // in an input block
	optional bool
	dispatch bool // an input that reports each change
}

// spots returns the interactive elements of blocks. Slack generates ids that the app left
// out; here they are derived from the position, so that they stay the same.
func spots(blocks json.RawMessage) []spot {
	var list []layout
	_ = json.Unmarshal(blocks, &list) // checked before
	var out []spot
	for i, b := range list {
		if b.BlockID == "" {
			b.BlockID = "auto-" + strconv.Itoa(i)
		}
		parts := slices.Clone(b.Actions)
		for _, raw := range b.Raw {
			var p part
			if b.Type == "actions" || b.Type == "context_actions" {
				_ = json.Unmarshal(raw, &p) // checked before
				parts = append(parts, p)
			}
		}
		if b.Accessory != nil && b.Accessory.Type != "image" {
			parts = append(parts, *b.Accessory)
		}
		if b.Element != nil {
			parts = append(parts, *b.Element)
		}
		for j, p := range parts {
			if p.ActionID == "" {
				p.ActionID = fmt.Sprintf("auto-%d-%d", i, j)
			}
			out = append(out, spot{part: p, block: b.BlockID, input: b.Type == "input", optional: b.Optional, dispatch: b.DispatchAction})
		}
	}
	return out
}

// findSpot finds an element by "block_id/action_id", by action_id, or by its text.
func findSpot(blocks json.RawMessage, name string) (spot, error) {
	list := spots(blocks)
	for _, same := range []func(spot) bool{
		func(p spot) bool { return p.block+"/"+p.ActionID == name },
		func(p spot) bool { return p.ActionID == name },
		func(p spot) bool { return labelOf(p.Text) == name && name != "" },
	} {
		if i := slices.IndexFunc(list, same); i >= 0 {
			return list[i], nil
		}
	}
	var names []string
	for _, p := range list {
		names = append(names, p.ActionID)
	}
	return spot{}, fmt.Errorf("slacktest: nothing called %q to act on; there is %s", name, strings.Join(names, ", "))
}

func labelOf(raw json.RawMessage) string {
	var t text
	_ = json.Unmarshal(raw, &t) // an element without a text has no label
	return t.Text
}

// initialState returns the initial content of the inputs.
func initialState(blocks json.RawMessage) state {
	st := state{Values: map[string]map[string]value{}}
	for _, p := range spots(blocks) {
		if p.Type == "button" || p.Type == "overflow" {
			continue
		}
		st.set(p, p.initial())
	}
	return st
}

// clone returns a copy for responses, which are written while people type.
func (st state) clone() state {
	out := state{Values: map[string]map[string]value{}}
	for block, values := range st.Values {
		out.Values[block] = maps.Clone(values)
	}
	return out
}

func (st state) set(p spot, v value) {
	if st.Values[p.block] == nil {
		st.Values[p.block] = map[string]value{}
	}
	st.Values[p.block][p.ActionID] = v
}

var null = json.RawMessage("null")

func (p part) initial() value {
	v := value{Type: p.Type}
	switch p.Type {
	case "plain_text_input", "email_text_input", "url_text_input", "number_input":
		v.Value = null
		if p.InitialValue != "" {
			v.Value = chattest.JSON(p.InitialValue)
		}
	case "static_select", "radio_buttons", "external_select":
		v.Option = null
		if p.InitialOption != nil {
			v.Option = p.InitialOption.raw
		}
	case "multi_static_select", "checkboxes":
		v.Options = json.RawMessage("[]")
		if len(p.InitialOptions) > 0 {
			v.Options = chattest.JSON(p.InitialOptions)
		}
	}
	v.User, v.Users, v.Channel, v.Channels = p.InitialUser, p.InitialUsers, p.InitialChannel, p.InitialChannels
	v.Conversation, v.Conversations, v.Date, v.Time = p.InitialConversation, p.InitialConversations, p.InitialDate, p.InitialTime
	return v
}

// fill returns the element's content after a person entered these values, or the client's
// error.
func (p part) fill(given []string) (value, error) {
	v := value{Type: p.Type}
	first := ""
	if len(given) > 0 {
		first = given[0]
	}
	var err error
	switch p.Type {
	case "plain_text_input", "email_text_input", "url_text_input", "number_input":
		n, most := utf8.RuneCountInString(first), p.MaxLength
		if most == 0 {
			most = 3000
		}
		if n > most || n < p.MinLength && n > 0 {
			return v, fmt.Errorf("slacktest: %s takes %d to %d characters, not %d", p.ActionID, p.MinLength, most, n)
		}
		v.Value = null
		if first != "" {
			v.Value = chattest.JSON(first)
		}
	case "static_select", "radio_buttons", "overflow":
		v.Option = null
		if first != "" {
			var c choice
			c, err = p.choice(first)
			v.Option = c.raw
		}
	case "multi_static_select", "checkboxes":
		picked := []choice{}
		for _, name := range given {
			var c choice
			if c, err = p.choice(name); err != nil {
				break
			}
			picked = append(picked, c)
		}
		if p.MaxItems > 0 && len(given) > p.MaxItems {
			err = fmt.Errorf("slacktest: %s takes %d items at most", p.ActionID, p.MaxItems)
		}
		v.Options = chattest.JSON(picked)
	case "users_select":
		v.User = first
	case "multi_users_select":
		v.Users = given
	case "channels_select":
		v.Channel = first
	case "multi_channels_select":
		v.Channels = given
	case "conversations_select":
		v.Conversation = first
	case "multi_conversations_select":
		v.Conversations = given
	case "datepicker":
		v.Date = first
	case "timepicker":
		v.Time = first
	case "datetimepicker":
		v.DateTime, err = strconv.ParseInt(first, 10, 64)
	default:
		err = fmt.Errorf("slacktest: %s can't be filled in here", p.Type)
	}
	return v, err
}

// choice returns an option by its value, or by a prefix that ends in *.
func (p part) choice(value string) (choice, error) {
	all := slices.Clone(p.Options)
	for _, g := range p.Groups {
		all = append(all, g.Options...)
	}
	begins, star := strings.CutSuffix(value, "*")
	for _, c := range all {
		if c.Value == value || star && strings.HasPrefix(c.Value, begins) {
			return c, nil
		}
	}
	return choice{}, fmt.Errorf("slacktest: %s has no option %q", p.ActionID, value)
}
