package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checker gathers what is wrong with a body, by the place of it.
type checker struct {
	list []wrongField
	ids  map[string]bool // custom ids
	n    int             // components
	text int             // characters of components v2
}

type wrongField struct{ at, code, message string }

func (c *checker) wrong(at, code, message string) {
	c.list = append(c.list, wrongField{at, code, message})
}

// length is a string of so many characters.
func (c *checker) length(at, v string, least, most int) {
	switch n := utf8.RuneCountInString(v); {
	case n == 0 && least > 0:
		c.wrong(at, "BASE_TYPE_REQUIRED", "This field is required")
	case n > most && least == 0:
		c.wrong(at, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", most))
	case n < least || n > most:
		c.wrong(at, "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between %d and %d in length.", least, most))
	}
}

func (c *checker) count(at string, n, least, most int) {
	if n < least || n > most {
		c.wrong(at, "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between %d and %d in length.", least, most))
	}
}

func (c *checker) archive(at string, minutes int) {
	if !slices.Contains([]int{60, 1440, 4320, 10080}, minutes) {
		c.wrong(at, "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
}

type fieldError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// err is Discord's form of all that is wrong: objects nested as the fields are.
func (c *checker) err() error {
	if len(c.list) == 0 {
		return nil
	}
	tree := map[string]any{}
	for _, w := range c.list {
		node := tree
		for _, p := range strings.Split(w.at, ".") {
			next, ok := node[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				node[p] = next
			}
			node = next
		}
		list, _ := node["_errors"].([]fieldError)
		node["_errors"] = append(list, fieldError{Code: w.code, Message: w.message})
	}
	return &problem{status: 400, Code: 50035, Message: "Invalid Form Body", Errors: mustJSON(tree)}
}

type embed struct {
	Title       string       `json:"title,omitempty"`
	Type        string       `json:"type,omitempty"`
	Description string       `json:"description,omitempty"`
	URL         string       `json:"url,omitempty"`
	Color       int          `json:"color,omitempty"`
	Timestamp   string       `json:"timestamp,omitempty"`
	Footer      *embedText   `json:"footer,omitempty"`
	Author      *embedText   `json:"author,omitempty"`
	Fields      []embedField `json:"fields,omitempty"`
	Image       *embedImage  `json:"image,omitempty"`
	Thumbnail   *embedImage  `json:"thumbnail,omitempty"`
}

type embedImage struct {
	URL string `json:"url"`
}

type embedText struct {
	Text string `json:"text,omitempty"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

type embedField struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Inline bool   `json:"inline,omitempty"`
}

func (c *checker) embeds(list []embed) {
	c.count("embeds", len(list), 0, 10)
	total := 0
	for i, e := range list {
		at := "embeds." + strconv.Itoa(i)
		c.length(at+".title", e.Title, 0, 256)
		c.length(at+".description", e.Description, 0, 4096)
		c.count(at+".fields", len(e.Fields), 0, 25)
		total += utf8.RuneCountInString(e.Title) + utf8.RuneCountInString(e.Description)
		for n, f := range e.Fields {
			field := at + ".fields." + strconv.Itoa(n)
			c.length(field+".name", f.Name, 1, 256)
			c.length(field+".value", f.Value, 1, 1024)
			total += utf8.RuneCountInString(f.Name) + utf8.RuneCountInString(f.Value)
		}
		if e.Footer != nil {
			c.length(at+".footer.text", e.Footer.Text, 1, 2048)
			total += utf8.RuneCountInString(e.Footer.Text)
		}
		if e.Author != nil {
			c.length(at+".author.name", e.Author.Name, 1, 256)
			total += utf8.RuneCountInString(e.Author.Name)
		}
	}
	if total > 6000 {
		c.wrong("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
}

// checkDraft checks a message as it is sent.
func checkDraft(d draft, files map[string]File, fresh bool) error {
	c := &checker{ids: map[string]bool{}}
	v2 := d.Flags != nil && *d.Flags&ComponentsV2 != 0
	content, embeds, components := "", []embed(nil), []json.RawMessage(nil)
	if d.Content != nil {
		content = *d.Content
	}
	if d.Embeds != nil {
		embeds = *d.Embeds
	}
	if d.Components != nil {
		components = *d.Components
	}
	c.length("content", content, 0, maxContent)
	c.embeds(embeds)
	if v2 {
		if content != "" {
			c.wrong("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2")
		}
		if len(embeds) > 0 {
			c.wrong("embeds", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'embeds' field cannot be used when using MessageFlags.IS_COMPONENTS_V2")
		}
	} else {
		c.count("components", len(components), 0, 5)
	}
	for i, raw := range components {
		c.component("components."+strconv.Itoa(i), raw, v2, "")
	}
	if c.n > 40 {
		c.wrong("components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", "The maximum number of components in a message is 40")
	}
	if c.text > 4000 {
		c.wrong("components", "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", "The total length of all text components must not exceed 4000 characters")
	}
	if n := strings.Trim(string(d.Nonce), `"`); len(n) > 25 {
		c.wrong("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
	}
	if a := d.Mentions; a != nil {
		for i, p := range a.Parse {
			if !slices.Contains([]string{"users", "roles", "everyone"}, p) {
				c.wrong("allowed_mentions.parse."+strconv.Itoa(i), "BASE_TYPE_CHOICES", "Value must be one of ('users', 'everyone', 'roles').")
			}
			if p == "users" && len(a.Users) > 0 || p == "roles" && len(a.Roles) > 0 {
				c.wrong("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", "parse:["+p+"] and "+p+" are mutually exclusive.")
			}
		}
		c.count("allowed_mentions.users", len(a.Users), 0, 100)
	}
	if len(files) > 10 {
		c.wrong("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	if err := c.err(); err != nil {
		return err
	}
	blank := strings.TrimSpace(content) == "" && len(embeds) == 0 && len(components) == 0 && len(files) == 0
	if blank && (fresh || d.Content != nil && d.Embeds == nil && d.Components == nil && d.Attachments == nil) {
		return errEmpty
	}
	return nil
}

// component is any component, with what those that nize may use have.
type component struct {
	Type        int               `json:"type"`
	CustomID    *string           `json:"custom_id"`
	Label       string            `json:"label"`
	Description string            `json:"description"`
	Style       int               `json:"style"`
	URL         string            `json:"url"`
	Emoji       json.RawMessage   `json:"emoji"`
	Disabled    bool              `json:"disabled"`
	Options     []selectOption    `json:"options"`
	Placeholder string            `json:"placeholder"`
	MinValues   *int              `json:"min_values"`
	MaxValues   *int              `json:"max_values"`
	MinLength   int               `json:"min_length"`
	MaxLength   *int              `json:"max_length"`
	Required    *bool             `json:"required"`
	Value       string            `json:"value"`
	Content     string            `json:"content"`
	Components  []json.RawMessage `json:"components"`
	Component   json.RawMessage   `json:"component"`
	Accessory   json.RawMessage   `json:"accessory"`
	Items       []json.RawMessage `json:"items"`
	File        *embedImage       `json:"file"`
}

type selectOption struct {
	Label       string          `json:"label"`
	Value       string          `json:"value"`
	Description string          `json:"description"`
	Emoji       json.RawMessage `json:"emoji"`
	Default     bool            `json:"default"`
}

// Types of components.
const (
	actionRow = 1 + iota
	button
	stringSelect
	textInput
	userSelect
	roleSelect
	mentionableSelect
	channelSelect
	section
	textDisplay
	thumbnail
	mediaGallery
	fileBox
	separator
	_
	_
	container
	labelBox
)

// children says which types may stand in which; "" is the message, "modal" a
// modal.
func allowedIn(parent string, v2 bool) []int {
	switch parent {
	case "":
		if v2 {
			return []int{actionRow, section, textDisplay, mediaGallery, fileBox, separator, container}
		}
		return []int{actionRow}
	case "modal":
		return []int{actionRow, labelBox, textDisplay}
	case "modal row":
		return []int{textInput}
	case "row":
		return []int{button, stringSelect, userSelect, roleSelect, mentionableSelect, channelSelect}
	case "container":
		return []int{actionRow, section, textDisplay, mediaGallery, fileBox, separator}
	case "section":
		return []int{textDisplay}
	case "accessory":
		return []int{button, thumbnail}
	case "label":
		return []int{textInput, stringSelect, userSelect, roleSelect, mentionableSelect, channelSelect}
	}
	return nil
}

func (c *checker) component(at string, raw json.RawMessage, v2 bool, parent string) {
	var p component
	if json.Unmarshal(raw, &p) != nil {
		c.wrong(at, "BASE_TYPE_BAD", "Could not interpret the component.")
		return
	}
	c.n++
	if allowed := allowedIn(parent, v2); !slices.Contains(allowed, p.Type) {
		c.wrong(at+".type", "UNION_TYPE_CHOICES", fmt.Sprintf("Value of field \"type\" must be one of %v.", allowed))
		return
	}
	each := func(list []json.RawMessage, in string) {
		for i, raw := range list {
			c.component(at+".components."+strconv.Itoa(i), raw, v2, in)
		}
	}
	switch p.Type {
	case actionRow:
		in := "row"
		if parent == "modal" {
			in = "modal row"
		}
		c.row(at, p)
		each(p.Components, in)
	case button:
		c.button(at, p)
	case stringSelect, userSelect, roleSelect, mentionableSelect, channelSelect:
		c.choice(at, p)
	case textInput:
		c.input(at, p, parent)
	case section:
		c.count(at+".components", len(p.Components), 1, 3)
		each(p.Components, "section")
		c.component(at+".accessory", p.Accessory, v2, "accessory")
	case textDisplay:
		c.length(at+".content", p.Content, 1, 4000)
		c.text += utf8.RuneCountInString(p.Content)
	case container:
		c.count(at+".components", len(p.Components), 1, 40)
		each(p.Components, "container")
	case labelBox:
		c.length(at+".label", p.Label, 1, 45)
		c.length(at+".description", p.Description, 0, 100)
		c.component(at+".component", p.Component, v2, "label")
	case mediaGallery:
		c.count(at+".items", len(p.Items), 1, 10)
	case fileBox:
		if p.File == nil || !strings.HasPrefix(p.File.URL, "attachment://") {
			c.wrong(at+".file", "BASE_TYPE_REQUIRED", "This field is required")
		}
	}
}

// row holds five buttons or one select.
func (c *checker) row(at string, p component) {
	c.count(at+".components", len(p.Components), 1, 5)
	for _, raw := range p.Components {
		var child component
		if json.Unmarshal(raw, &child) == nil && child.Type != button && len(p.Components) > 1 {
			c.wrong(at, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
		}
	}
}

func (c *checker) customID(at string, p component) {
	if p.CustomID == nil {
		c.wrong(at+".custom_id", "BASE_TYPE_REQUIRED", "This field is required")
		return
	}
	c.length(at+".custom_id", *p.CustomID, 1, 100)
	if c.ids[*p.CustomID] {
		c.wrong(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
	}
	c.ids[*p.CustomID] = true
}

func (c *checker) button(at string, p component) {
	c.length(at+".label", p.Label, 0, 80)
	if p.Label == "" && p.Emoji == nil {
		c.wrong(at, "BUTTON_COMPONENT_INVALID", "A button must have a label or an emoji.")
	}
	switch {
	case p.Style < 1 || p.Style > 5:
		c.wrong(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case p.Style == 5 && (p.CustomID != nil || p.URL == ""):
		c.wrong(at, "BUTTON_COMPONENT_INVALID_CUSTOM_ID", "A link button has a url and no custom id")
	case p.Style == 5:
		c.length(at+".url", p.URL, 1, 512)
	default:
		c.customID(at, p)
	}
}

func (c *checker) choice(at string, p component) {
	c.customID(at, p)
	c.length(at+".placeholder", p.Placeholder, 0, 150)
	least, most := 1, 1
	if p.MinValues != nil {
		least = *p.MinValues
	}
	if p.MaxValues != nil {
		most = *p.MaxValues
	}
	if least < 0 || least > 25 || most < 1 || most > 25 || least > most {
		c.wrong(at+".max_values", "NUMBER_TYPE_MAX", "int value should be between min_values and 25.")
	}
	if p.Type != stringSelect {
		return
	}
	c.count(at+".options", len(p.Options), 1, 25)
	if most > len(p.Options) {
		c.wrong(at+".max_values", "NUMBER_TYPE_MAX", fmt.Sprintf("int value should be less than or equal to %d.", len(p.Options)))
	}
	values := map[string]bool{}
	for i, o := range p.Options {
		option := at + ".options." + strconv.Itoa(i)
		c.length(option+".label", o.Label, 1, 100)
		c.length(option+".value", o.Value, 1, 100)
		c.length(option+".description", o.Description, 0, 100)
		if values[o.Value] {
			c.wrong(option+".value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
		}
		values[o.Value] = true
	}
}

func (c *checker) input(at string, p component, parent string) {
	c.customID(at, p)
	if parent == "modal row" {
		c.length(at+".label", p.Label, 1, 45)
	} else if p.Label != "" {
		c.wrong(at+".label", "BASE_TYPE_BAD", "A text input in a label has no label of its own.")
	}
	if p.Style != 1 && p.Style != 2 {
		c.wrong(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
	}
	most := 4000
	if p.MaxLength != nil {
		most = *p.MaxLength
	}
	if most < 1 || most > 4000 || p.MinLength < 0 || p.MinLength > most {
		c.wrong(at+".max_length", "NUMBER_TYPE_MAX", "int value should be between 1 and 4000.")
	}
	c.length(at+".value", p.Value, 0, most)
	c.length(at+".placeholder", p.Placeholder, 0, 100)
}

// modalDraft is a modal as the bot opens it.
type modalDraft struct {
	CustomID   string            `json:"custom_id"`
	Title      string            `json:"title"`
	Components []json.RawMessage `json:"components"`
}

func checkModal(m modalDraft) error {
	c := &checker{ids: map[string]bool{}}
	c.length("data.custom_id", m.CustomID, 1, 100)
	c.length("data.title", m.Title, 1, 45)
	c.count("data.components", len(m.Components), 1, 5)
	for i, raw := range m.Components {
		c.component("data.components."+strconv.Itoa(i), raw, true, "modal")
	}
	return c.err()
}

// numbered gives components the ids that Discord gives them.
func numbered(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	n := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if _, has := v["type"]; has {
				n++
				if v["id"] == nil {
					v["id"] = n
				}
			}
			for _, key := range []string{"components", "component", "accessory"} {
				walk(v[key])
			}
		}
	}
	walk(v)
	return mustJSON(v)
}

// parts are all components of a tree, outer ones first.
func parts(raw json.RawMessage) (list []component) {
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		many = []json.RawMessage{raw}
	}
	for _, one := range many {
		var p component
		if len(one) == 0 || json.Unmarshal(one, &p) != nil || p.Type == 0 {
			continue
		}
		list = append(list, p)
		for _, child := range slices.Concat(p.Components, []json.RawMessage{p.Component, p.Accessory}) {
			list = append(list, parts(child)...)
		}
	}
	return list
}

// textOf is what components say.
func textOf(raw json.RawMessage) string {
	var b strings.Builder
	for _, p := range parts(raw) {
		if p.Type == textDisplay {
			b.WriteString(p.Content + "\n")
		}
	}
	return b.String()
}
