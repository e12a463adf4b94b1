package slacktest

import (
	"encoding/json"
	"fmt"
	"nize/bots/chattest"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Limits of Block Kit.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
)

// Short names for the tables.
type (
	rule   = chattest.Rule
	fields = chattest.Fields
)

var (
	length, word, matching, address, integer = chattest.Length, chattest.Word, chattest.Matching, chattest.Address, chattest.Integer
	list, object, one, join                  = chattest.List, chattest.Object, chattest.One, chattest.Join

	boolean, anything rule = chattest.Boolean, chattest.Anything
)

// dialect has Slack's text for each flaw.
var dialect = chattest.Dialect{Words: map[chattest.Flaw]string{
	chattest.NotString: "must be a string", chattest.NotList: "must be an array", chattest.NotObject: "must be an object", chattest.NotBool: "must be a boolean",
	chattest.NotInteger: "must be an integer", chattest.Empty: "must be more than %[3]d characters", chattest.TooShort: "must be more than %[3]d characters",
	chattest.TooLong: "must be less than %[4]d characters", chattest.Exceeds: "must be less than %[4]d characters", chattest.TooFew: "no fewer than %[1]d items allowed",
	chattest.TooMany: "no more than %[2]d items allowed", chattest.OutOfRange: "must be between %[1]d and %[2]d", chattest.NoChoice: "must be one of: %s", chattest.NoMatch: "must match %s",
	chattest.NoURL: "must be a valid URL", chattest.Unknown: "invalid additional property: %s", chattest.Missing: "missing required field: %s", chattest.NoType: "missing required field: type",
	chattest.BadType: "unsupported type: %[1]s",
}}

// words is a text object of one of these kinds.
func words(least, most int, kinds ...string) rule {
	return func(c *chattest.Checker, at string, raw json.RawMessage) {
		got := c.Object(at, raw, fields{"type!": word(kinds...), "text!": length(least, most), "emoji": boolean, "verbatim": boolean})
		if got == nil {
			return
		}
		var kind, text string
		_ = json.Unmarshal(got["type"], &kind) // already reported
		_ = json.Unmarshal(got["text"], &text)
		c.Counts["text"] += utf8.RuneCountInString(text)
		if kind == "mrkdwn" && got["emoji"] != nil {
			c.Wrong(at, "emoji is of plain_text only")
		}
		if kind == "plain_text" && got["verbatim"] != nil {
			c.Wrong(at, "verbatim is of mrkdwn only")
		}
	}
}

func plain(most int) rule { return words(1, most, "plain_text") }

func anyText(most int) rule { return words(1, most, "plain_text", "mrkdwn") }

var id = length(1, 255)

var style = word("primary", "danger")

var confirm = object(fields{"title!": plain(100), "text!": anyText(300), "confirm!": plain(30), "deny!": plain(30), "style": style})

// option: Slack's reference allows a value of 150 characters, but some elements reject more
// than 75.
var option = object(fields{"text!": anyText(75), "value!": length(1, 75), "description": anyText(75), "url": address(3000)})

var optionGroup = object(fields{"label!": plain(75), "options!": list(1, 100, option)})

// action records an element's action_id among those of its block, which must be distinct.
func action(c *chattest.Checker, at string, raw json.RawMessage) {
	id(c, at, raw)
	v, ok := c.String(at, raw)
	if !ok || v == "" {
		return
	}
	if !c.Once(fmt.Sprintf("action %d %s", c.Counts["blocks"], v)) {
		c.Wrong(at, "`action_id` must be unique: %.60s", v)
	}
}

// element is an interactive element with these fields besides its type and
// action_id.
func element(f fields) rule { return object(join(fields{"type!": anything, "action_id": action}, f)) }

func input(f fields) rule {
	return element(join(fields{"placeholder": plain(150), "focus_on_load": boolean, "confirm": confirm}, f))
}

// choices has either options or option_groups.
func choices(f fields) rule {
	check := input(join(fields{"options": list(1, 100, option), "option_groups": list(1, 100, optionGroup)}, f))
	return func(c *chattest.Checker, at string, raw json.RawMessage) {
		check(c, at, raw)
		var got map[string]json.RawMessage
		_ = json.Unmarshal(raw, &got) // already reported
		if (got["options"] == nil) == (got["option_groups"] == nil) {
			c.Wrong(at, "must have either options or option_groups")
		}
		initial(c, at, got)
	}
}

// initial checks that initial_option and initial_options are among the options, with all
// their fields.
func initial(c *chattest.Checker, at string, got map[string]json.RawMessage) {
	var groups []struct {
		Options []any `json:"options"`
	}
	var all, given []any
	_ = json.Unmarshal(got["options"], &all) // already reported
	_ = json.Unmarshal(got["option_groups"], &groups)
	_ = json.Unmarshal(got["initial_options"], &given)
	for _, g := range groups {
		all = append(all, g.Options...)
	}
	if raw := got["initial_option"]; raw != nil {
		var one any
		_ = json.Unmarshal(raw, &one)
		given = append(given, one)
	}
	for _, one := range given {
		if !slices.ContainsFunc(all, func(o any) bool { return reflect.DeepEqual(o, one) }) {
			c.Wrong(at, "initial option must be one of the options")
		}
	}
}

// boxed is a list of checkboxes or buttons, some of them selected.
func boxed(f fields) rule {
	check := element(f)
	return func(c *chattest.Checker, at string, raw json.RawMessage) {
		check(c, at, raw)
		var got map[string]json.RawMessage
		_ = json.Unmarshal(raw, &got) // already reported
		initial(c, at, got)
	}
}

var image = object(fields{"type!": anything, "alt_text!": length(1, 2000), "image_url": address(3000), "slack_file": anything})

var dispatchConfig = object(fields{"trigger_actions_on": list(1, 2, word("on_enter_pressed", "on_character_entered"))})

var filter = object(fields{"include": list(1, 4, word("im", "mpim", "private", "public")), "exclude_external_shared_channels": boolean, "exclude_bot_users": boolean})

var textInput = fields{"initial_value": length(0, 3000), "multiline": boolean, "min_length": integer(0, 3000), "max_length": integer(1, 3000), "dispatch_action_config": dispatchConfig}

var boxes = fields{"options!": list(1, 10, option), "confirm": confirm, "focus_on_load": boolean}

var (
	button = element(fields{"text!": plain(75), "url": address(3000), "value": length(0, 2000), "style": style, "confirm": confirm, "accessibility_label": length(1, 75)})

	ids = list(0, 100, id)

	// selects are allowed in sections, actions and inputs.
	selects = fields{
		"static_select":        choices(fields{"initial_option": option}),
		"multi_static_select":  choices(fields{"initial_options": list(1, 100, option), "max_selected_items": integer(1, 100)}),
		"external_select":      input(fields{"initial_option": option, "min_query_length": integer(0, 100)}),
		"users_select":         input(fields{"initial_user": id}),
		"multi_users_select":   input(fields{"initial_users": ids, "max_selected_items": integer(1, 100)}),
		"conversations_select": input(fields{"initial_conversation": id, "default_to_current_conversation": boolean, "response_url_enabled": boolean, "filter": filter}),
		"multi_conversations_select": input(fields{"initial_conversations": ids, "default_to_current_conversation": boolean, "max_selected_items": integer(1, 100),
			"filter": filter}),
		"channels_select":       input(fields{"initial_channel": id, "response_url_enabled": boolean}),
		"multi_channels_select": input(fields{"initial_channels": ids, "max_selected_items": integer(1, 100)}),
		"radio_buttons":         boxed(join(fields{"initial_option": option}, boxes)),
		"checkboxes":            boxed(join(fields{"initial_options": list(1, 10, option)}, boxes)),
		"datepicker":            input(fields{"initial_date": matching(`^\d{4}-\d{2}-\d{2}$`)}),
		"timepicker":            input(fields{"initial_time": matching(`^\d{2}:\d{2}$`), "timezone": length(1, 100)}),
		"datetimepicker":        element(fields{"initial_date_time": integer(0, 1<<40), "confirm": confirm, "focus_on_load": boolean}),
	}

	pressable = join(fields{
		"button":          button,
		"overflow":        element(fields{"options!": list(1, 5, option), "confirm": confirm}),
		"workflow_button": element(fields{"text!": plain(75), "workflow!": anything, "style": style, "accessibility_label": length(1, 75)}),
	}, selects)

	inputs = join(fields{
		"plain_text_input": input(textInput),
		"email_text_input": input(fields{"initial_value": length(0, 3000), "dispatch_action_config": dispatchConfig}),
		"url_text_input":   input(fields{"initial_value": length(0, 3000), "dispatch_action_config": dispatchConfig}),
		"number_input": input(fields{"is_decimal_allowed!": boolean, "initial_value": length(0, 100), "min_value": length(0, 100), "max_value": length(0, 100),
			"dispatch_action_config": dispatchConfig}),
		"rich_text_input": input(fields{"initial_value": anything, "dispatch_action_config": dispatchConfig, "min_lines": integer(1, 100), "max_lines": integer(1, 100)}),
		"file_input":      element(fields{"filetypes": list(1, 100, length(1, 20)), "max_files": integer(1, 10)}),
	}, selects)
)

// block is a block with these fields besides its type and block_id.
func block(f fields) rule {
	return object(join(fields{"type!": anything, "block_id": length(1, 255)}, f))
}

func section(c *chattest.Checker, at string, raw json.RawMessage) {
	block(fields{"text": anyText(3000), "fields": list(1, 10, anyText(2000)), "accessory": one(join(fields{"image": image}, pressable)), "expand": boolean})(c, at, raw)
	var got map[string]json.RawMessage
	_ = json.Unmarshal(raw, &got) // already reported
	if got["text"] == nil && got["fields"] == nil {
		c.Wrong(at, "missing required field: text or fields")
	}
}

func markdown(c *chattest.Checker, at string, raw json.RawMessage) {
	got := c.Object(at, raw, fields{"type!": anything, "block_id": length(1, 255), "text!": length(1, maxMarkdown)})
	var text string
	_ = json.Unmarshal(got["text"], &text) // already reported
	c.Counts["markdown"] += utf8.RuneCountInString(text)
	c.Counts["text"] += utf8.RuneCountInString(text)
	if c.Counts["markdown"] > maxMarkdown {
		c.Wrong(at+"/text", "all markdown blocks together must be less than %d characters", maxMarkdown+1)
	}
}

func table(c *chattest.Checker, at string, raw json.RawMessage) {
	if !c.Once("table") {
		c.Wrong(at, "only_one_table_allowed")
	}
	cell := one(fields{
		"raw_text":   object(fields{"type!": anything, "text!": length(0, 3000)}),
		"raw_number": object(fields{"type!": anything, "value!": anything, "text": length(0, 3000)}),
		"rich_text":  richText,
	})
	column := object(fields{"align": word("left", "center", "right"), "is_wrapped": boolean})
	block(fields{"rows!": list(1, 100, list(1, 20, cell)), "column_settings": list(0, 20, column)})(c, at, raw)
}

// messageKinds are the blocks that chat.postMessage accepts.
var messageKinds = fields{
	"section":   section,
	"divider":   block(nil),
	"rich_text": richText,
	"header":    block(fields{"text!": plain(150)}),
	"context":   block(fields{"elements!": list(1, 10, one(fields{"image": image, "plain_text": anyText(3000), "mrkdwn": anyText(3000)}))}),
	"actions":   block(fields{"elements!": list(1, 25, one(pressable))}),
	"image":     block(fields{"alt_text!": length(1, 2000), "image_url": address(3000), "slack_file": anything, "title": plain(2000)}),
	"markdown":  markdown,
	"table":     table,
	"input": block(fields{"label!": plain(2000), "element!": one(inputs), "hint": plain(2000), "optional": boolean,
		"dispatch_action": boolean}),
	"context_actions": block(fields{"elements!": list(1, 5, one(fields{"feedback_buttons": feedback, "icon_button": iconButton}))}),
	"video": block(fields{"alt_text!": length(1, 2000), "title!": plain(200), "thumbnail_url!": address(3000), "video_url!": address(3000), "author_name": length(1, 50),
		"description": plain(200), "provider_icon_url": address(3000), "provider_name": length(1, 50), "title_url": address(3000)}),
}

var (
	feedbackButton = object(fields{"text!": plain(75), "value!": length(1, 2000), "accessibility_label": length(1, 75)})
	feedback       = element(fields{"positive_button!": feedbackButton, "negative_button!": feedbackButton})
	iconButton     = element(fields{"icon!": word("trash"), "text!": plain(75), "value": length(0, 2000), "confirm": confirm, "accessibility_label": length(1, 75),
		"visible_to_user_ids": ids})
)

// streamKinds are blocks that can only be streamed; chat.postMessage rejects them.
var streamKinds = fields{
	"card": block(fields{"hero_image": image, "icon": image, "slack_icon": anything, "title": anyText(150), "subtitle": anyText(150), "body": anyText(200),
		"subtext": anyText(150), "actions": list(1, 5, one(fields{"button": button}))}),
	"task_card": block(fields{"task_id!": length(1, 255), "title!": length(1, 255), "status": word("pending", "in_progress", "complete", "error"), "details": richText,
		"output": richText, "sources": anything, "hide_title": boolean}),
	"plan": block(fields{"title!": length(1, 255), "tasks": anything}),
}

// viewKinds are the blocks of dialogs and of App Home.
var viewKinds = []string{"section", "divider", "header", "context", "actions", "image", "input", "rich_text", "video", "markdown", "table"}

// check checks blocks of these kinds.
func check(raw json.RawMessage, at string, most int, kinds fields) *chattest.Checker {
	c := chattest.NewChecker(&dialect)
	for i, item := range c.Items(at, raw, 0, most) {
		checkBlock(c, fmt.Sprintf("%s/%d", at, i), item, kinds)
	}
	return c
}

func checkBlock(c *chattest.Checker, at string, raw json.RawMessage, kinds fields) {
	c.Counts["blocks"]++
	one(kinds)(c, at, raw)
	var head struct {
		Type    string          `json:"type"`
		BlockID json.RawMessage `json:"block_id"`
	}
	_ = json.Unmarshal(raw, &head) // already reported
	c.Counts[head.Type]++
	if head.BlockID == nil {
		return
	}
	var id string
	if json.Unmarshal(head.BlockID, &id) != nil {
		return
	}
	if !c.Once("block " + id) {
		c.Wrong(at+"/block_id", "`block_id` must be unique: %.60s", id)
	}
}

// failureOf returns the error for the flaws, if there are any.
func failureOf(code string, wrongs []chattest.Wrong) error {
	var messages []string
	for _, w := range wrongs {
		messages = append(messages, w.Text+" [json-pointer:"+w.At+"]")
	}
	if messages == nil {
		return nil
	}
	return fail(code, messages...)
}

// checkMessageBlocks is for chat.postMessage, chat.update and the like.
func checkMessageBlocks(raw json.RawMessage) error { return checkBlocksIn(raw, false) }

// checkBlocksIn is checkMessageBlocks; if bytes is set, the text of all blocks is counted
// in bytes, which Slack may do: its reference doesn't say.
func checkBlocksIn(raw json.RawMessage, bytes bool) error {
	if len(raw) == 0 || raw[0] != '[' || !json.Valid(raw) {
		return fail("invalid_blocks_format")
	}
	c := check(raw, "/blocks", maxMessageBlocks, messageKinds)
	if err := failureOf("invalid_blocks", c.Wrongs); err != nil {
		return err
	}
	if c.Counts["text"] > maxAllBlocks || bytes && len(raw) > maxAllBlocks {
		return fail("msg_blocks_too_long", strconv.Itoa(c.Counts["text"])+" characters in all blocks")
	}
	return nil
}

// checkStreamBlocks is for chunks.
func checkStreamBlocks(raw json.RawMessage) error {
	return failureOf("invalid_blocks", check(raw, "/chunks/blocks", maxMessageBlocks, join(streamKinds, messageKinds)).Wrongs)
}

// checkView is for views.open, push, update and publish.
func checkView(raw json.RawMessage) error {
	if !json.Valid(raw) {
		return fail("invalid_arguments", "failed to parse view")
	}
	c := chattest.NewChecker(&dialect)
	got := c.Object("/view", raw, fields{
		"type!": word("modal", "home"), "title": plain(24), "submit": plain(24), "close": plain(24), "blocks!": anything, "private_metadata": length(0, 3000),
		"callback_id": length(0, 255), "external_id": length(0, 255), "clear_on_close": boolean, "notify_on_close": boolean, "submit_disabled": boolean,
	})
	kinds := fields{}
	for _, k := range viewKinds {
		kinds[k] = messageKinds[k]
	}
	body := check(got["blocks"], "/view/blocks", maxViewBlocks, kinds)
	var kind string
	_ = json.Unmarshal(got["type"], &kind) // already reported
	switch {
	case kind == "modal" && got["title"] == nil:
		c.Wrong("/view", "missing required field: title")
	case kind == "modal" && got["submit"] == nil && body.Counts["input"] > 0:
		c.Wrong("/view", "submit is required when an input is within the blocks array")
	case kind == "home" && (got["title"] != nil || got["submit"] != nil || got["close"] != nil):
		c.Wrong("/view", "a home tab has no title, submit or close")
	}
	return failureOf("invalid_arguments", append(c.Wrongs, body.Wrongs...))
}

// CheckBlocks returns the error that chat.postMessage would return for blocks.
func CheckBlocks(blocks json.RawMessage) error { return checkMessageBlocks(blocks) }

// CheckView returns the error that views.open would return for a view.
func CheckView(view json.RawMessage) error { return checkView(view) }
