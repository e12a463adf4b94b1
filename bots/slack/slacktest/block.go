package slacktest

import (
	"encoding/json"
	"fmt"
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

// words is a text object of these kinds.
func words(least, most int, kinds ...string) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		got := fieldsOf(c, at, raw, map[string]rule{"type!": word(kinds...), "text!": length(least, most), "emoji": boolean, "verbatim": boolean})
		if got == nil {
			return
		}
		var kind, text string
		_ = json.Unmarshal(got["type"], &kind) // what is wrong was said
		_ = json.Unmarshal(got["text"], &text)
		c.text += utf8.RuneCountInString(text)
		if kind == "mrkdwn" && got["emoji"] != nil {
			c.wrong(at, "emoji is of plain_text only")
		}
		if kind == "plain_text" && got["verbatim"] != nil {
			c.wrong(at, "verbatim is of mrkdwn only")
		}
	}
}

func plain(most int) rule { return words(1, most, "plain_text") }

func anyText(most int) rule { return words(1, most, "plain_text", "mrkdwn") }

var id = length(1, 255)

var style = word("primary", "danger")

var confirm = object(map[string]rule{"title!": plain(100), "text!": anyText(300), "confirm!": plain(30), "deny!": plain(30), "style": style})

// option: Slack's reference allows a value of 150 characters, some elements
// refuse more than 75.
var option = object(map[string]rule{"text!": anyText(75), "value!": length(1, 75), "description": anyText(75), "url": address(3000)})

var optionGroup = object(map[string]rule{"label!": plain(75), "options!": list(1, 100, option)})

// action puts an element's action_id among those of its block, which must
// differ.
func action(c *checker, at string, raw json.RawMessage) {
	id(c, at, raw)
	v, ok := readString(c, at, raw)
	if !ok || v == "" {
		return
	}
	if c.actions[v] {
		c.wrong(at, "`action_id` must be unique: %.60s", v)
	}
	c.actions[v] = true
}

// element is an interactive element with these fields besides its type and
// action_id.
func element(fields map[string]rule) rule {
	all := map[string]rule{"type!": anything, "action_id": action}
	for k, v := range fields {
		all[k] = v
	}
	return object(all)
}

func input(fields map[string]rule) rule {
	all := map[string]rule{"placeholder": plain(150), "focus_on_load": boolean, "confirm": confirm}
	for k, v := range fields {
		all[k] = v
	}
	return element(all)
}

// choices has options or option_groups, not both and not neither.
func choices(fields map[string]rule) rule {
	all := map[string]rule{"options": list(1, 100, option), "option_groups": list(1, 100, optionGroup)}
	for k, v := range fields {
		all[k] = v
	}
	check := input(all)
	return func(c *checker, at string, raw json.RawMessage) {
		check(c, at, raw)
		var got map[string]json.RawMessage
		_ = json.Unmarshal(raw, &got) // what is wrong was said
		if (got["options"] == nil) == (got["option_groups"] == nil) {
			c.wrong(at, "must have either options or option_groups")
		}
		initial(c, at, got)
	}
}

// initial holds initial_option and initial_options against the options: each must
// be one of them, whole.
func initial(c *checker, at string, got map[string]json.RawMessage) {
	var groups []struct {
		Options []any `json:"options"`
	}
	var all, given []any
	_ = json.Unmarshal(got["options"], &all) // what is wrong was said
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
			c.wrong(at, "initial option must be one of the options")
		}
	}
}

// boxed is a list of boxes or buttons, some of them chosen.
func boxed(fields map[string]rule) rule {
	check := element(fields)
	return func(c *checker, at string, raw json.RawMessage) {
		check(c, at, raw)
		var got map[string]json.RawMessage
		_ = json.Unmarshal(raw, &got) // what is wrong was said
		initial(c, at, got)
	}
}

var image = object(map[string]rule{"type!": anything, "alt_text!": length(1, 2000), "image_url": address(3000), "slack_file": anything})

var dispatchConfig = object(map[string]rule{"trigger_actions_on": list(1, 2, word("on_enter_pressed", "on_character_entered"))})

var filter = object(map[string]rule{"include": list(1, 4, word("im", "mpim", "private", "public")), "exclude_external_shared_channels": boolean, "exclude_bot_users": boolean})

var textInput = map[string]rule{"initial_value": length(0, 3000), "multiline": boolean, "min_length": integer(0, 3000), "max_length": integer(1, 3000), "dispatch_action_config": dispatchConfig}

func with(more map[string]rule, fields map[string]rule) map[string]rule {
	all := map[string]rule{}
	for k, v := range fields {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

var boxes = map[string]rule{"options!": list(1, 10, option), "confirm": confirm, "focus_on_load": boolean}

var (
	button = element(map[string]rule{"text!": plain(75), "url": address(3000), "value": length(0, 2000), "style": style, "confirm": confirm, "accessibility_label": length(1, 75)})

	ids = list(0, 100, id)

	// selects may stand in sections, actions and inputs.
	selects = map[string]rule{
		"static_select":        choices(map[string]rule{"initial_option": option}),
		"multi_static_select":  choices(map[string]rule{"initial_options": list(1, 100, option), "max_selected_items": integer(1, 100)}),
		"external_select":      input(map[string]rule{"initial_option": option, "min_query_length": integer(0, 100)}),
		"users_select":         input(map[string]rule{"initial_user": id}),
		"multi_users_select":   input(map[string]rule{"initial_users": ids, "max_selected_items": integer(1, 100)}),
		"conversations_select": input(map[string]rule{"initial_conversation": id, "default_to_current_conversation": boolean, "response_url_enabled": boolean, "filter": filter}),
		"multi_conversations_select": input(map[string]rule{"initial_conversations": ids, "default_to_current_conversation": boolean, "max_selected_items": integer(1, 100),
			"filter": filter}),
		"channels_select":       input(map[string]rule{"initial_channel": id, "response_url_enabled": boolean}),
		"multi_channels_select": input(map[string]rule{"initial_channels": ids, "max_selected_items": integer(1, 100)}),
		"radio_buttons":         boxed(with(map[string]rule{"initial_option": option}, boxes)),
		"checkboxes":            boxed(with(map[string]rule{"initial_options": list(1, 10, option)}, boxes)),
		"datepicker":            input(map[string]rule{"initial_date": matching(`^\d{4}-\d{2}-\d{2}$`)}),
		"timepicker":            input(map[string]rule{"initial_time": matching(`^\d{2}:\d{2}$`), "timezone": length(1, 100)}),
		"datetimepicker":        element(map[string]rule{"initial_date_time": integer(0, 1<<40), "confirm": confirm, "focus_on_load": boolean}),
	}

	pressable = with(map[string]rule{
		"button":          button,
		"overflow":        element(map[string]rule{"options!": list(1, 5, option), "confirm": confirm}),
		"workflow_button": element(map[string]rule{"text!": plain(75), "workflow!": anything, "style": style, "accessibility_label": length(1, 75)}),
	}, selects)

	inputs = with(map[string]rule{
		"plain_text_input": input(textInput),
		"email_text_input": input(map[string]rule{"initial_value": length(0, 3000), "dispatch_action_config": dispatchConfig}),
		"url_text_input":   input(map[string]rule{"initial_value": length(0, 3000), "dispatch_action_config": dispatchConfig}),
		"number_input": input(map[string]rule{"is_decimal_allowed!": boolean, "initial_value": length(0, 100), "min_value": length(0, 100), "max_value": length(0, 100),
			"dispatch_action_config": dispatchConfig}),
		"rich_text_input": input(map[string]rule{"initial_value": anything, "dispatch_action_config": dispatchConfig, "min_lines": integer(1, 100), "max_lines": integer(1, 100)}),
		"file_input":      element(map[string]rule{"filetypes": list(1, 100, length(1, 20)), "max_files": integer(1, 10)}),
	}, selects)
)

// block is a block with these fields besides its type and block_id.
func block(fields map[string]rule) rule {
	return object(with(map[string]rule{"type!": anything, "block_id": length(1, 255)}, fields))
}

func section(c *checker, at string, raw json.RawMessage) {
	block(map[string]rule{"text": anyText(3000), "fields": list(1, 10, anyText(2000)), "accessory": one(with(map[string]rule{"image": image}, pressable)), "expand": boolean})(c, at, raw)
	var got map[string]json.RawMessage
	_ = json.Unmarshal(raw, &got) // what is wrong was said
	if got["text"] == nil && got["fields"] == nil {
		c.wrong(at, "missing required field: text or fields")
	}
}

func markdown(c *checker, at string, raw json.RawMessage) {
	got := fieldsOf(c, at, raw, map[string]rule{"type!": anything, "block_id": length(1, 255), "text!": length(1, maxMarkdown)})
	var text string
	_ = json.Unmarshal(got["text"], &text) // what is wrong was said
	c.markdown += utf8.RuneCountInString(text)
	c.text += utf8.RuneCountInString(text)
	if c.markdown > maxMarkdown {
		c.wrong(at+"/text", "all markdown blocks together must be less than %d characters", maxMarkdown+1)
	}
}

func table(c *checker, at string, raw json.RawMessage) {
	if c.tables++; c.tables > 1 {
		c.wrong(at, "only_one_table_allowed")
	}
	cell := one(map[string]rule{
		"raw_text":   object(map[string]rule{"type!": anything, "text!": length(0, 3000)}),
		"raw_number": object(map[string]rule{"type!": anything, "value!": anything, "text": length(0, 3000)}),
		"rich_text":  richText,
	})
	column := object(map[string]rule{"align": word("left", "center", "right"), "is_wrapped": boolean})
	block(map[string]rule{"rows!": list(1, 100, list(1, 20, cell)), "column_settings": list(0, 20, column)})(c, at, raw)
}

// messageKinds are the blocks that chat.postMessage takes.
var messageKinds = map[string]rule{
	"section":   section,
	"divider":   block(nil),
	"rich_text": richText,
	"header":    block(map[string]rule{"text!": plain(150)}),
	"context":   block(map[string]rule{"elements!": list(1, 10, one(map[string]rule{"image": image, "plain_text": anyText(3000), "mrkdwn": anyText(3000)}))}),
	"actions":   block(map[string]rule{"elements!": list(1, 25, one(pressable))}),
	"image":     block(map[string]rule{"alt_text!": length(1, 2000), "image_url": address(3000), "slack_file": anything, "title": plain(2000)}),
	"markdown":  markdown,
	"table":     table,
	"input": block(map[string]rule{"label!": plain(2000), "element!": one(inputs), "hint": plain(2000), "optional": boolean,
		"dispatch_action": boolean}),
	"context_actions": block(map[string]rule{"elements!": list(1, 5, one(map[string]rule{"feedback_buttons": feedback, "icon_button": iconButton}))}),
	"video": block(map[string]rule{"alt_text!": length(1, 2000), "title!": plain(200), "thumbnail_url!": address(3000), "video_url!": address(3000), "author_name": length(1, 50),
		"description": plain(200), "provider_icon_url": address(3000), "provider_name": length(1, 50), "title_url": address(3000)}),
}

var (
	feedbackButton = object(map[string]rule{"text!": plain(75), "value!": length(1, 2000), "accessibility_label": length(1, 75)})
	feedback       = element(map[string]rule{"positive_button!": feedbackButton, "negative_button!": feedbackButton})
	iconButton     = element(map[string]rule{"icon!": word("trash"), "text!": plain(75), "value": length(0, 2000), "confirm": confirm, "accessibility_label": length(1, 75),
		"visible_to_user_ids": ids})
)

// streamKinds may also be streamed; chat.postMessage refuses these.
var streamKinds = map[string]rule{
	"card": block(map[string]rule{"hero_image": image, "icon": image, "slack_icon": anything, "title": anyText(150), "subtitle": anyText(150), "body": anyText(200),
		"subtext": anyText(150), "actions": list(1, 5, one(map[string]rule{"button": button}))}),
	"task_card": block(map[string]rule{"task_id!": length(1, 255), "title!": length(1, 255), "status": word("pending", "in_progress", "complete", "error"), "details": richText,
		"output": richText, "sources": anything, "hide_title": boolean}),
	"plan": block(map[string]rule{"title!": length(1, 255), "tasks": anything}),
}

// viewKinds are the blocks of dialogs and of App Home.
var viewKinds = []string{"section", "divider", "header", "context", "actions", "image", "input", "rich_text", "video", "markdown", "table"}

// check goes over blocks of these kinds.
func check(raw json.RawMessage, at string, most int, kinds map[string]rule) *checker {
	c := &checker{blockIDs: map[string]bool{}}
	for i, item := range readList(c, at, raw, 0, most) {
		c.block(fmt.Sprintf("%s/%d", at, i), item, kinds)
	}
	return c
}

func (c *checker) block(at string, raw json.RawMessage, kinds map[string]rule) {
	c.actions = map[string]bool{}
	one(kinds)(c, at, raw)
	var head struct {
		Type    string          `json:"type"`
		BlockID json.RawMessage `json:"block_id"`
	}
	_ = json.Unmarshal(raw, &head) // what is wrong was said
	c.kinds = append(c.kinds, head.Type)
	if head.BlockID == nil {
		return
	}
	var id string
	if json.Unmarshal(head.BlockID, &id) != nil {
		return
	}
	if c.blockIDs[id] {
		c.wrong(at+"/block_id", "`block_id` must be unique: %.60s", id)
	}
	c.blockIDs[id] = true
}

func (c *checker) failure(code string) error {
	if len(c.errors) > 0 {
		return fail(code, c.errors...)
	}
	return nil
}

// checkMessageBlocks is for chat.postMessage, chat.update and the like.
func checkMessageBlocks(raw json.RawMessage) error { return checkBlocksIn(raw, false) }

// checkBlocksIn is checkMessageBlocks; bytes counts the text of all blocks in
// bytes, which Slack may do: its reference does not say.
func checkBlocksIn(raw json.RawMessage, bytes bool) error {
	if len(raw) == 0 || raw[0] != '[' || !json.Valid(raw) {
		return fail("invalid_blocks_format")
	}
	c := check(raw, "/blocks", maxMessageBlocks, messageKinds)
	if err := c.failure("invalid_blocks"); err != nil {
		return err
	}
	if c.text > maxAllBlocks || bytes && len(raw) > maxAllBlocks {
		return fail("msg_blocks_too_long", strconv.Itoa(c.text)+" characters in all blocks")
	}
	return nil
}

// checkStreamBlocks is for chunks.
func checkStreamBlocks(raw json.RawMessage) error {
	return check(raw, "/chunks/blocks", maxMessageBlocks, with(streamKinds, messageKinds)).failure("invalid_blocks")
}

// checkView is for views.open, push, update and publish.
func checkView(raw json.RawMessage) error {
	if !json.Valid(raw) {
		return fail("invalid_arguments", "failed to parse view")
	}
	c := &checker{}
	got := fieldsOf(c, "/view", raw, map[string]rule{
		"type!": word("modal", "home"), "title": plain(24), "submit": plain(24), "close": plain(24), "blocks!": anything, "private_metadata": length(0, 3000),
		"callback_id": length(0, 255), "external_id": length(0, 255), "clear_on_close": boolean, "notify_on_close": boolean, "submit_disabled": boolean,
	})
	kinds := map[string]rule{}
	for _, k := range viewKinds {
		kinds[k] = messageKinds[k]
	}
	body := check(got["blocks"], "/view/blocks", maxViewBlocks, kinds)
	var kind string
	_ = json.Unmarshal(got["type"], &kind) // what is wrong was said
	switch {
	case kind == "modal" && got["title"] == nil:
		c.wrong("/view", "missing required field: title")
	case kind == "modal" && got["submit"] == nil && slices.Contains(body.kinds, "input"):
		c.wrong("/view", "submit is required when an input is within the blocks array")
	case kind == "home" && (got["title"] != nil || got["submit"] != nil || got["close"] != nil):
		c.wrong("/view", "a home tab has no title, submit or close")
	}
	c.errors = append(c.errors, body.errors...)
	return c.failure("invalid_arguments")
}

// CheckBlocks says what chat.postMessage would say of blocks.
func CheckBlocks(blocks json.RawMessage) error { return checkMessageBlocks(blocks) }

// CheckView says what views.open would say of a view.
func CheckView(view json.RawMessage) error { return checkView(view) }
