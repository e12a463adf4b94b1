package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"nize/bots/chattest"
)

// The valid forms of bodies, as tables.

type (
	rule    = chattest.Rule
	fields  = chattest.Fields
	checker = chattest.Checker
)

var (
	length, word, matching, integer, number = chattest.Length, chattest.Word, chattest.Matching, chattest.Integer, chattest.Number
	list, object, one, all, join, counted   = chattest.List, chattest.Object, chattest.One, chattest.All, chattest.Join, chattest.Counted

	boolean, anything rule = chattest.Boolean, chattest.Anything
)

// dialect has Discord's code and text for each flaw.
var dialect = chattest.Dialect{Lenient: true, Words: map[chattest.Flaw]string{
	chattest.NotString: "BASE_TYPE_BAD Could not interpret as string.", chattest.NotList: "BASE_TYPE_BAD Only iterables may be used in a ListType",
	chattest.NotObject: "BASE_TYPE_BAD Only dictionaries may be used in a DictType", chattest.NotBool: "BASE_TYPE_BAD Must be either true or false.",
	chattest.NotInteger: "BASE_TYPE_BAD Value is not int.", chattest.NoType: "BASE_TYPE_REQUIRED This field is required", chattest.Empty: "BASE_TYPE_REQUIRED This field is required",
	chattest.Missing: "BASE_TYPE_REQUIRED This field is required", chattest.Exceeds: "BASE_TYPE_MAX_LENGTH Must be %[2]d or fewer in length.",
	chattest.TooShort: "BASE_TYPE_BAD_LENGTH Must be between %[1]d and %[2]d in length.", chattest.TooLong: "BASE_TYPE_BAD_LENGTH Must be between %[1]d and %[2]d in length.",
	chattest.TooFew: "BASE_TYPE_BAD_LENGTH Must be between %[1]d and %[2]d in length.", chattest.TooMany: "BASE_TYPE_BAD_LENGTH Must be between %[1]d and %[2]d in length.",
	chattest.OutOfRange: "NUMBER_TYPE_MAX int value should be between %[1]d and %[2]d.", chattest.NoChoice: "BASE_TYPE_CHOICES Value must be one of {%[1]s}.",
	chattest.Unknown: "BASE_TYPE_CHOICES Value must be one of those known, and not %[1]s.", chattest.NoMatch: "STRING_TYPE_REGEX String value did not match validation regex.",
	chattest.BadType: "UNION_TYPE_CHOICES Value of field \"type\" must be one of (%[2]s).",
}}

// check returns the flaws in Discord's form, in which objects are nested like the fields.
func check(shape rule, at string, raw json.RawMessage) error {
	c := chattest.NewChecker(&dialect)
	shape(c, at, raw)
	if len(c.Wrongs) == 0 {
		return nil
	}
	return formError(c.Wrongs...)
}

type fieldError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func formError(list ...chattest.Wrong) error {
	tree := map[string]any{}
	for _, w := range list {
		node := tree
		for _, p := range strings.FieldsFunc(w.At, func(r rune) bool { return r == '/' }) {
			next, ok := node[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				node[p] = next
			}
			node = next
		}
		code, message, _ := strings.Cut(w.Text, " ")
		had, _ := node["_errors"].([]fieldError)
		node["_errors"] = append(had, fieldError{Code: code, Message: message})
	}
	return &problem{status: errBadForm.status, Code: errBadForm.Code, Message: errBadForm.Message, Errors: chattest.JSON(tree)}
}

const maxContent = 2000

// draftShape is a message to be sent, without its possible flags.
func draftShape(flags int) rule { return all(draftFields, layouts(flags)) }

var draftFields = object(fields{
	"content": length(0, maxContent), "tts": boolean, "flags": integer(0, 1<<31), "enforce_nonce": boolean, "nonce": checkNonce, "embeds": list(0, 10, embedShape), "components": anything,
	"allowed_mentions":  all(object(fields{"parse": list(0, 3, word("users", "roles", "everyone")), "users": list(0, 100, length(1, 20)), "roles": list(0, 100, length(1, 20)), "replied_user": boolean}), chattest.About(checkExclusive)),
	"message_reference": object(fields{"message_id": length(0, 20), "channel_id": length(0, 20), "fail_if_not_exists": boolean}),
	"attachments":       list(0, 10, object(fields{"filename": length(0, 1024), "description": length(0, 1024)})),
})

func checkNonce(c *checker, at string, raw json.RawMessage) {
	if len(strings.Trim(string(raw), `"`)) > 25 {
		c.Wrong(at, "NONCE_TYPE_TOO_LONG Must be 25 or fewer in length.")
	}
}

// checkExclusive checks that a kind of mention is allowed either as a whole or
// individually.
func checkExclusive(c *checker, at string, a allowedMentions) {
	for kind, named := range map[string][]string{"users": a.Users, "roles": a.Roles} {
		if slices.Contains(a.Parse, kind) && len(named) > 0 {
			c.Wrong(at, "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE parse:[%s] and %s are mutually exclusive.", kind, kind)
		}
	}
}

var embedShape = object(fields{
	"title": counted("embeds", 0, 256), "url": length(0, 2048), "description": counted("embeds", 0, 4096), "footer": object(fields{"text!": counted("embeds", 1, 2048)}),
	"author": object(fields{"name!": counted("embeds", 1, 256)}), "fields": list(0, 25, object(fields{"name!": counted("embeds", 1, 256), "value!": counted("embeds", 1, 1024), "inline": boolean})),
})

// layouts checks components according to the flag of components v2, with which a message
// consists only of them, and the totals over a message.
func layouts(flags int) rule {
	return chattest.About(func(c *checker, at string, d draft) {
		rows := list(0, 5, one(messageKinds))
		if d.Flags != nil {
			flags |= *d.Flags
		}
		if flags&ComponentsV2 != 0 {
			rows = list(0, 1000, one(layoutKinds))
			for field, there := range map[string]bool{"content": d.Content != nil && *d.Content != "", "embeds": d.Embeds != nil && len(*d.Embeds) > 0} {
				if there {
					c.Wrong(at+"/"+field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2 The '%s' field cannot be used when using MessageFlags.IS_COMPONENTS_V2", field)
				}
			}
		}
		if d.Components != nil {
			rows(c, at+"/components", chattest.JSON(d.Components))
		}
		for _, m := range []struct {
			kind, at, words string
			most            int
		}{
			{"embeds", "/embeds", "MAX_EMBED_SIZE_EXCEEDED Embed size exceeds maximum size of", 6000},
			{"components", "/components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED The maximum number of components in a message is", 40},
			{"text", "/components", "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED The characters of all text components must not exceed", 4000},
		} {
			if c.Counts[m.kind] > m.most {
				c.Wrong(at+m.at, "%s %d", m.words, m.most)
			}
		}
	})
}

// component is a component with these fields, and further rules.
func component(f fields, more ...rule) rule {
	return all(append([]rule{func(c *checker, _ string, _ json.RawMessage) { c.Counts["components"]++ }, object(f)}, more...)...)
}

func customID(c *checker, at string, raw json.RawMessage) {
	length(1, 100)(c, at, raw)
	if !c.Once(string(raw)) {
		c.Wrong(at, "COMPONENT_CUSTOM_ID_DUPLICATED Component custom id cannot be duplicated")
	}
}

// Types of components.
const (
	actionRow    = 1
	button       = 2
	stringSelect = 3
	textInput    = 4
	textDisplay  = 10
	separator    = 14
	labelBox     = 18
)

var (
	option = object(fields{"label!": length(1, 100), "value!": length(1, 100), "description": length(0, 100), "default": boolean})

	buttonShape = component(fields{"style!": number(1, 2, 3, 4, 5), "label": length(0, 80), "custom_id": customID, "url": length(0, 512), "disabled": boolean}, chattest.About(func(c *checker, at string, p Component) {
		if p.Label == "" && p.Emoji == nil {
			c.Wrong(at, "BUTTON_COMPONENT_INVALID A button must have a label or an emoji.")
		}
		switch link := p.Style == 5; {
		case link && (p.ID != "" || p.URL == ""):
			c.Wrong(at, "BUTTON_COMPONENT_INVALID_CUSTOM_ID A link button has a url and no custom id")
		case !link && p.ID == "":
			c.Wrong(at+"/custom_id", "BASE_TYPE_REQUIRED This field is required")
		}
	}))

	selectFields = fields{"custom_id!": customID, "placeholder": length(0, 150), "min_values": integer(0, 25), "max_values": integer(1, 25), "disabled": boolean, "required": boolean}
	selectShape  = component(selectFields, chattest.About(checkPicks))
	selects      = fields{"3": component(join(selectFields, fields{"options!": list(1, 25, option)}), chattest.About(checkPicks), chattest.About(checkDistinct)), "5": selectShape, "6": selectShape, "7": selectShape, "8": selectShape}

	inputFields = fields{"custom_id!": customID, "style!": number(1, 2), "min_length": integer(0, 4000), "max_length": integer(1, 4000), "value": length(0, 4000), "placeholder": length(0, 100), "required": boolean}
	inputShape  = func(label fields) rule {
		return component(join(inputFields, label), chattest.About(func(c *checker, at string, p Component) {
			if most := p.most(); p.MinLength > most || utf8.RuneCountInString(p.Value) > most {
				c.Wrong(at+"/value", "BASE_TYPE_BAD_LENGTH Must be between %d and %d in length.", p.MinLength, most)
			}
		}))
	}

	textShape    = component(fields{"content!": counted("text", 1, 4000)})
	messageKinds = fields{"1": component(fields{"components!": list(1, 5, one(join(selects, fields{"2": buttonShape})))}, chattest.About(checkWidth))}
	innerKinds   = join(messageKinds, fields{
		"9":  component(fields{"components!": list(1, 3, one(fields{"10": textShape})), "accessory!": one(fields{"2": buttonShape, "11": component(nil)})}),
		"10": textShape, "12": component(fields{"items!": list(1, 10, anything)}), "14": component(nil),
		"13": component(fields{"file!": object(fields{"url!": matching(`^attachment://`)})}),
	})
	layoutKinds = join(innerKinds, fields{"17": component(fields{"components!": list(1, 40, one(innerKinds))})})

	modalShape = object(fields{"custom_id!": length(1, 100), "title!": length(1, 45), "components!": list(1, 5, one(fields{
		"1":  component(fields{"components!": list(1, 1, one(fields{"4": inputShape(fields{"label!": length(1, 45)})}))}),
		"10": textShape,
		"18": component(fields{"label!": length(1, 45), "description": length(0, 100), "component!": all(object(fields{"disabled": notInModal}), one(join(selects, fields{"4": inputShape(fields{"label": length(0, 0)})})))}),
	}))})
)

// notInModal is a field that is valid in messages only, whatever its value is.
func notInModal(c *checker, at string, _ json.RawMessage) {
	c.Wrong(at, "COMPONENT_DISABLED_NOT_ALLOWED The disabled field is not allowed in modals.")
}

// checkPicks checks that the numbers of choices leave a valid range, and don't exceed a
// list's own options.
func checkPicks(c *checker, at string, p Component) {
	least, most := 1, 1
	if p.MinValues != nil {
		least = *p.MinValues
	}
	if p.MaxValues != nil {
		most = *p.MaxValues
	}
	if least > most || p.Type == stringSelect && most > len(p.Options) {
		c.Wrong(at+"/max_values", "NUMBER_TYPE_MAX int value should be between min_values and the number of options.")
	}
}

func checkDistinct(c *checker, at string, p Component) {
	values := map[string]bool{}
	for i, o := range p.Options {
		if values[o.Value] {
			c.Wrong(at+"/options/"+strconv.Itoa(i)+"/value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED The specified option value is already used")
		}
		values[o.Value] = true
	}
}

// checkWidth checks that a row has at most five buttons or one select.
func checkWidth(c *checker, at string, p Component) {
	for _, child := range p.Components {
		if child.Type != button && len(p.Components) > 1 {
			c.Wrong(at, "COMPONENT_LAYOUT_WIDTH_EXCEEDED The specified component exceeds the maximum width")
		}
	}
}

// Component is any component, with the fields of those that nize may use.
type Component struct {
	Type        int             `json:"type"`
	ID          string          `json:"custom_id"`
	Label       string          `json:"label"`
	Description string          `json:"description"`
	Style       int             `json:"style"`
	URL         string          `json:"url"`
	Emoji       json.RawMessage `json:"emoji"`
	Disabled    bool            `json:"disabled"`
	Options     []SelectOption  `json:"options"`
	Placeholder string          `json:"placeholder"`
	MinValues   *int            `json:"min_values"`
	MaxValues   *int            `json:"max_values"`
	MinLength   int             `json:"min_length"`
	MaxLength   int             `json:"max_length"`
	Required    *bool           `json:"required"`
	Value       string          `json:"value"`
	Content     string          `json:"content"`
	Components  []Component     `json:"components"`
	Component   *Component      `json:"component"`
	Accessory   *Component      `json:"accessory"`
	labelled    bool            // has a label
}

// SelectOption is an option of a list.
type SelectOption struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Default bool   `json:"default"`
}

func (p *Component) most() int {
	if p.MaxLength == 0 {
		return 4000
	}
	return p.MaxLength
}

// parts returns all components of a tree, outer ones first.
func parts(raw json.RawMessage) (list []Component) {
	var roots []Component
	_ = json.Unmarshal(raw, &roots) // checked before; missing ones count as none
	return flatten(roots)
}

func flatten(roots []Component) (list []Component) {
	for _, p := range roots {
		inner := p.Components
		for _, one := range []*Component{p.Component, p.Accessory} {
			if one != nil {
				inner = append(slices.Clip(inner), *one)
			}
		}
		list = append(append(list, p), flatten(inner)...)
	}
	return list
}

// commandShape is a list of commands registered by the bot.
var commandShape = list(0, 130, all(object(fields{
	"type": number(1, 2, 3), "name!": length(1, 32), "name_localizations": localized(length(1, 32)), "description": length(0, 100), "description_localizations": localized(length(0, 100)),
	"options": optionsShape(0), "default_member_permissions": length(0, 20), "dm_permission": boolean, "contexts": list(0, 3, integer(0, 2)), "nsfw": boolean,
}), chattest.About(checkCommand)))

// optionsShape are parameters, subcommands or groups of those, nested up to depth.
func optionsShape(depth int) rule {
	name := all(length(1, 32), checkName)
	inner, types := anything, []int{3, 4, 5, 6, 7, 8, 9, 10, 11}
	if depth < 2 {
		inner, types = optionsShape(depth+1), append(types, 1)
	}
	if depth == 0 {
		types = append(types, 2)
	}
	return all(list(0, 25, object(fields{
		"type!": number(types...), "name!": name, "name_localizations": localized(name), "description!": length(1, 100), "description_localizations": localized(length(1, 100)),
		"required": boolean, "autocomplete": boolean, "choices": list(0, 25, choiceShape), "options": inner, "min_length": integer(0, 6000), "max_length": integer(1, 6000),
	})), chattest.About(checkOptions))
}

var choiceShape = object(fields{"name!": length(1, 100), "name_localizations": localized(length(1, 100)), "value!": func(c *checker, at string, raw json.RawMessage) {
	if raw[0] == '"' {
		length(1, 100)(c, at, raw)
	}
}})

var (
	nameForm = matching(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)
	locales  = strings.Fields("id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR ro fi sv-SE vi tr cs el bg ru uk hi th zh-CN ja zh-TW ko")
)

func checkName(c *checker, at string, raw json.RawMessage) {
	nameForm(c, at, raw)
	if strings.ToLower(string(raw)) != string(raw) {
		c.Wrong(at, "APPLICATION_COMMAND_INVALID_NAME Command name is invalid")
	}
}

func localized(of rule) rule {
	return chattest.Dictionary(func(locale string) bool { return slices.Contains(locales, locale) }, of)
}

// checkCommand checks that commands on users and messages have only a name, and that typed
// ones have lower-case names.
func checkCommand(c *checker, at string, cmd Command) {
	switch {
	case cmd.Type > 1 && (cmd.Description != "" || len(cmd.Options) > 0):
		c.Wrong(at+"/description", "APPLICATION_COMMAND_DESCRIPTION_INVALID Context menu commands have no description and no options")
	case cmd.Type <= 1:
		checkName(c, at+"/name", chattest.JSON(cmd.Name))
		c.Length(at+"/description", cmd.Description, 1, 100)
	}
	if !c.Once(fmt.Sprint(max(cmd.Type, 1), cmd.Name)) {
		c.Wrong(at+"/name", "APPLICATION_COMMANDS_DUPLICATE_NAME Application command names must be unique")
	}
	if cmd.size() > 8000 {
		c.Wrong(at, "APPLICATION_COMMAND_TOO_LARGE Command exceeds maximum size (8000)")
	}
}

func checkOptions(c *checker, at string, list []Option) {
	names, optional := map[string]bool{}, false
	for i, o := range list {
		wrong := func(text string) { c.Wrong(at+"/"+strconv.Itoa(i), "%s", text) }
		switch {
		case o.sub() != list[0].sub():
			wrong("APPLICATION_COMMAND_OPTIONS_TYPE_INVALID Sub-command and sub-command group option types are mutually exclusive to all other types")
		case o.Required && optional:
			wrong("APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID Required options must be placed before non-required options")
		case o.Autocomplete && (len(o.Choices) > 0 || !slices.Contains([]int{3, 4, 10}, o.Type)):
			wrong("APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_INVALID Autocomplete may not be set to true if choices are present")
		case names[o.Name]:
			wrong("APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS Option name already exists")
		}
		names[o.Name] = true
		optional = optional || !o.Required && !o.sub()
	}
}
