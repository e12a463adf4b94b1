package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"nize/mcp/policy"
	"nize/store"
)

// builtinRecord is the server record of nize's own tools.
var builtinRecord = store.Server{Name: policy.BuiltinServer, About: store.About{Description: "nize itself"}, TrustAnnotations: true}.Normal()

// ReadResult is the tool that reads more of a truncated result. The truncation marker names
// the handle to pass to it.
const ReadResult = "nize:read_result"

var readOnly = true

var builtinTools = []*policy.Tool{policy.NewTool(store.Tool{
	Server: policy.BuiltinServer, Name: "read_result", Title: "Read on in a result",
	Description: "Reads on in a tool's result that was cut, from a byte offset.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{"call":{"type":"string","description":"the call's id, as the marker names it"},"offset":{"type":"integer","minimum":0,"description":"byte to start from"},"bytes":{"type":"integer","minimum":1,"maximum":65536,"description":"how many; default 16384"}},"required":["call"],"additionalProperties":false}`),
	Annotations: store.Annotations{ReadOnly: &readOnly},
	State:       store.ToolAccepted, Pin: "built in", Accepted: "built in",
}, &builtinRecord)}

// runBuiltin runs one of nize's own tools.
func (x *executor) runBuiltin(ctx context.Context, inv *Invocation) (*store.Result, error) {
	args := struct {
		Call   string `json:"call"`
		Offset int    `json:"offset"`
		Bytes  int    `json:"bytes"`
	}{Bytes: 16 << 10}
	if err := json.Unmarshal(inv.Args, &args); err != nil {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("read_result: offset and bytes must be whole numbers")}
	}
	c, err := x.calls.GetCall(ctx, args.Call)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.By != inv.By.User {
		return nil, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("no call %q of yours", args.Call)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading call %s: %w", args.Call, err)
	}
	if err := x.mayRead(ctx, inv, &c); err != nil {
		return nil, err
	}
	inv.Call.Private = inv.Call.Private || c.Private // the result is private if it was before
	text := c.Result.Whole()
	if args.Offset > len(text) {
		return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Textf("offset %d is past the end: the result has %d bytes", args.Offset, len(text))}
	}
	start, end := args.Offset, min(args.Offset+args.Bytes, len(text))
	for start > 0 && start < len(text) && !utf8.RuneStart(text[start]) {
		start--
	}
	for end < len(text) && end > start+1 && !utf8.RuneStart(text[end]) {
		end--
	}
	page := mustJSON(struct {
		Text   string `json:"text"`
		Offset int    `json:"offset"`
		Next   int    `json:"next,omitempty"`
		Total  int    `json:"total"`
	}{text[start:end], start, nextOffset(end, len(text)), len(text)})
	return &store.Result{Raw: textResult(page)}, nil
}

// mayRead checks the rights for a stored result like those for a call of its tool: a token
// or an agent that may not use the tool can't read a result that the tool returned to
// another caller.
func (x *executor) mayRead(ctx context.Context, inv *Invocation, c *store.Call) error {
	v, err := x.policy.View(ctx, inv.By, inv.Scope)
	if err != nil {
		return err
	}
	_, err = x.policy.Find(v, c.Server+":"+c.Tool)
	return err
}

func nextOffset(end, total int) int {
	if end == total {
		return 0
	}
	return end
}
