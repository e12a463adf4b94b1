package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/store"
)

// rawContent is a content item of an upstream's result, unchanged. It replaces the SDK's
// own content types, which drop fields they don't know.
type rawContent struct {
	*sdk.TextContent
	raw json.RawMessage
}

func (c rawContent) MarshalJSON() ([]byte, error) { return c.raw, nil }

// answer is the result of a meta-tool before it is encoded: content items,
// structuredContent and _meta, unchanged.
type answer struct {
	items      []json.RawMessage
	structured json.RawMessage
	meta       json.RawMessage
	isError    bool
}

// result returns the answer as the SDK's type.
func (a answer) result() *sdk.CallToolResult {
	res := &sdk.CallToolResult{IsError: a.isError, Meta: expose.MetaOf(a.meta)}
	for _, item := range a.items {
		res.Content = append(res.Content, rawContent{raw: item})
	}
	if len(a.structured) > 0 {
		res.StructuredContent = a.structured
	}
	return res
}

// take copies the fields of an upstream's raw result.
func (a *answer) take(raw json.RawMessage) {
	var up struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		Meta       json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &up) == nil {
		a.items, a.structured, a.meta = contentItems(up.Content), up.Structured, up.Meta
	}
}

// contentItems returns the items of a result's content. Clients reject a whole result if an
// item has no type, a text is not a string, or content is not a list; such content is
// returned as text instead.
func contentItems(content json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(content, &items) != nil && len(content) > 0 {
		items = []json.RawMessage{content} // one item instead of a list
	}
	out := items[:0]
	for _, item := range items {
		var form struct {
			Type *string         `json:"type"`
			Text json.RawMessage `json:"text"`
		}
		switch {
		case string(item) == "null":
		case json.Unmarshal(item, &form) != nil, form.Type == nil, *form.Type == "text" && (len(form.Text) == 0 || form.Text[0] != '"'):
			one := store.Result{Raw: mustJSON(map[string][]json.RawMessage{"content": {item}})}
			out = append(out, textItem(one.Text()))
		default:
			out = append(out, item)
		}
	}
	return out
}

// append appends the answer, encoded as a CallToolResult, to b.
func (a answer) append(b []byte) []byte {
	b = append(b, `{"content":[`...)
	for i, item := range a.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	b = append(b, ']')
	if len(a.structured) > 0 {
		b = append(append(b, `,"structuredContent":`...), a.structured...)
	}
	if len(a.meta) > 0 {
		b = append(append(b, `,"_meta":`...), a.meta...)
	}
	if a.isError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

func textItem(text string) json.RawMessage {
	return mustJSON(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
}

// executeAnswer returns the answer of execute_tool for a tool: the upstream's content items
// unchanged, or one text of ours, and {success, tool_name, result?, error?} as structured
// content.
func executeAnswer(tool string, c *store.Call, err error) answer {
	out := struct {
		Success  bool             `json:"success"`
		ToolName string           `json:"tool_name"`
		Result   json.RawMessage  `json:"result,omitempty"`
		Error    *store.CallError `json:"error,omitempty"`
		Late     bool             `json:"late,omitempty"` // its record was stored late, see [store.Result]
	}{ToolName: tool}
	if err != nil {
		out.Error = callError(err)
	} else {
		out.ToolName = c.ToolID()
		out.Error = failureOf(c)
		out.Success = out.Error == nil
		out.Late = c.Result != nil && c.Result.Late
	}
	a := answer{isError: !out.Success}
	if c != nil && c.Result != nil && len(c.Result.Raw) > 0 {
		a.take(c.Result.Passed())
		out.Result, a.structured = a.structured, nil
	}
	if len(a.items) == 0 && out.Error != nil {
		a.items = []json.RawMessage{textItem(out.Error.Message.String())}
	}
	if out.Late {
		a.items = append(a.items, textItem("It ran, and its record is pending: the disk of the machine that nize runs on is full."))
	}
	a.structured = mustJSON(out)
	return a
}

// failureOf returns the error of a call that did not succeed, or nil.
func failureOf(c *store.Call) *store.CallError {
	if c.State == store.Done {
		return nil
	}
	if c.Result != nil && c.Result.Error != nil {
		return c.Result.Error
	}
	switch c.State {
	case store.Failed:
		return &store.CallError{Code: store.CodeTool, Message: cmp.Or(c.Reason, store.Textf("the tool reported an error"))}
	case store.Refused:
		return &store.CallError{Code: store.CodeRefused, Message: cmp.Or(c.Reason, store.Textf("a person said no"))}
	case store.Expired:
		return &store.CallError{Code: store.CodeExpired, Message: store.Textf("nobody approved the call in time")}
	case store.Lost:
		return &store.CallError{Code: store.CodeUnknown, Message: cmp.Or(c.Reason, store.Textf("the outcome is unknown"))}
	}
	return &store.CallError{Code: store.CodeCancelled, Message: cmp.Or(c.Reason, store.Textf("the call was cancelled"))}
}

func nonEmpty(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// lookupAnswer returns the answer of a read-only meta-tool: the structured form, and a text
// short enough for a model's context.
func lookupAnswer(name string, r *store.Result) answer {
	if r.Error != nil {
		return answer{isError: true, items: []json.RawMessage{textItem(r.Error.Message.String())}}
	}
	var up struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
	}
	if err := json.Unmarshal(r.Raw, &up); err != nil {
		return answer{isError: true, items: []json.RawMessage{textItem("internal error")}}
	}
	if len(up.Structured) == 0 { // no hook changed the text
		return answer{isError: r.IsError, items: up.Content}
	}
	text := string(up.Structured)
	if name == Discover || name == Browse {
		text = listText(up.Structured)
	}
	return answer{structured: up.Structured, items: []json.RawMessage{textItem(text)}}
}

// listText formats a list of tools as text, one per line.
func listText(structured json.RawMessage) string {
	var list struct {
		Tools      []FoundTool `json:"tools"`
		Degraded   bool        `json:"degraded"`
		Note       string      `json:"note"`
		NextCursor string      `json:"next_cursor"`
	}
	if err := json.Unmarshal(structured, &list); err != nil {
		return string(structured)
	}
	var b strings.Builder
	for _, t := range list.Tools {
		fmt.Fprintf(&b, "%s: %s\n", t.ToolID, t.Description)
	}
	if len(list.Tools) == 0 {
		b.WriteString("no tool found\n")
	}
	if list.Note != "" {
		b.WriteString(list.Note + "\n")
	}
	if list.NextCursor != "" {
		b.WriteString("more: cursor " + list.NextCursor + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
