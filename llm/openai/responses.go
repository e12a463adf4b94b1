package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"nize/llm"
	"nize/store"
)

// wantsResponses reports whether a model supports functions only with the Responses API,
// which is known by its name or from an earlier error.
func (c *Client) wantsResponses(req llm.Request) bool {
	if _, ok := c.viaResponses.Load(req.Model); ok {
		return true
	}
	kind := c.opt.Provider.Kind
	return (kind == "openai" || kind == "azure") && len(req.Functions) > 0 && strings.HasPrefix(req.Model, "gpt-6")
}

// refersToResponses reports whether an error of Chat Completions asks for the Responses
// API: the library's own check, or the service's message.
func (c *Client) refersToResponses(err error) bool {
	if errors.Is(err, goopenai.ErrReasoningToolsRequireResponses) {
		return true
	}
	var pe *llm.ProviderError
	return errors.As(err, &pe) && (pe.Status == 400 || pe.Status == 404) && strings.Contains(pe.Message, "v1/responses")
}

// item is one input item of the Responses API. The pointers are fields that must be present
// for their type, even if empty.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"` // a text, or parts
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Output    *string         `json:"output,omitempty"`
}

// responseEvent is one event of a stream of the Responses API.
type responseEvent struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Message  string          `json:"message"`
	Error    json.RawMessage `json:"error"`
	Code     string          `json:"code"`
	Response *responseDoc    `json:"response"`
	// A plain JSON response is the document itself.
	Object string `json:"object"`
	responseDoc
}

type responseDoc struct {
	Status     string            `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage json.RawMessage `json:"usage"`
}

// responses generates with the Responses API. Nothing is stored at the service: the
// reasoning is returned encrypted and kept with the turn.
func (c *Client) responses(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	keep := false
	items, err := c.items(req)
	if err != nil {
		return llm.Reply{}, fmt.Errorf("building a request: %w", err)
	}
	typed := goopenai.CreateResponseRequest{
		Model: req.Model, Instructions: req.System, Input: items, Store: &keep,
		MaxOutputTokens: req.MaxTokens,
		Include:         []goopenai.ResponseInclude{goopenai.ResponseIncludeReasoningEncryptedContent},
	}
	if req.NoCalls && len(req.Functions) > 0 {
		typed.ToolChoice = "none"
	}
	extra := map[string]json.RawMessage{}
	if req.Temperature != nil && !c.reasoning(req.Model) {
		raw, err := json.Marshal(*req.Temperature)
		if err != nil {
			return llm.Reply{}, fmt.Errorf("building a request: %w", err)
		}
		extra["temperature"] = raw
	}
	var stream *goopenai.ResponseStream
	err = c.withForms(req, func(form forms) error {
		typed.Tools = nil
		for _, f := range req.Functions {
			schema, description := form.parameters(f, c.isClaude(req.Model))
			typed.Tools = append(typed.Tools, goopenai.NewResponseFunctionTool(goopenai.FunctionDefinition{Name: f.Name, Description: description, Parameters: schema}))
		}
		stream, err = c.library(&doer{c: c, extra: extra}).CreateResponseStream(ctx, typed)
		if err != nil {
			return c.providerError(ctx, err)
		}
		return nil
	})
	if err != nil {
		return llm.Reply{}, err
	}
	defer stream.Close()
	answer := responsesAnswer{c: c, text: answerText{delta: delta, hold: c.holdOf(req.Model)}}
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if err = c.providerError(ctx, err); brokeOff(err) && answer.text.Len() > 0 {
				break // buildReply marks it
			}
			answer.text.finish(false) // shows the text that was held back
			return llm.Reply{}, err
		}
		if err := answer.addEvent(raw); err != nil {
			answer.text.finish(false)
			return llm.Reply{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return llm.Reply{}, c.providerError(ctx, err)
	}
	reply, err := answer.buildReply(req)
	c.noteText(req.Model, &answer.text)
	return reply, err
}

// items returns the turns as input items of the Responses API.
func (c *Client) items(req llm.Request) ([]any, error) {
	var (
		out   []any
		wrong error
	)
	ids := c.callIDs(req.Turns)
	newest := lastUser(req.Turns)
	say := func(role, text string, pictures ...store.File) {
		body, err := content(text, pictures, responseParts)
		wrong = errors.Join(wrong, err)
		out = append(out, item{Type: "message", Role: role, Content: body})
	}
	var seen []store.File // pictures of the results so far
	for i, t := range req.Turns {
		switch t.Role {
		case store.FromUser:
			text := llm.UserText(t)
			if i == newest {
				text = withContext(req.Context, text)
			}
			say("user", text, pictures(t)...)
		case store.FromNize:
			say("user", contextNote(t.Text))
		case store.FromTool:
			text := textOrNull(t.Text)
			out = append(out, item{Type: "function_call_output", CallID: ids[t.CallID], Output: &text})
			if seen = append(seen, pictures(t)...); len(seen) > 0 && lastResult(req.Turns, i) {
				say("user", contextNote(ofResults), seen...)
				seen = nil
			}
		case store.FromModel:
			if own := c.ownOpaque(t, req.Model); len(own.Items) > 0 {
				for j := range own.Items {
					out = append(out, requestItem(own.Items[j]))
				}
				for _, tc := range t.Calls {
					ids[tc.ID] = tc.Provider // the id in the items
				}
				continue
			}
			if t.Text != "" {
				say("assistant", t.Text)
			}
			for _, tc := range t.Calls {
				args := requestArgs(tc.Args)
				out = append(out, item{Type: "function_call", CallID: ids[tc.ID], Name: requestName(tc.Name), Arguments: &args})
			}
		}
	}
	return out, wrong
}

// responsesAnswer collects one response.
type responsesAnswer struct {
	c     *Client
	text  answerText
	items []json.RawMessage
	end   *responseDoc
}

// addEvent adds one event.
func (a *responsesAnswer) addEvent(raw []byte) error {
	var e responseEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return a.c.brokenAnswer("a part of the answer is not what the protocol says", err)
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		var text string
		if json.Unmarshal(e.Delta, &text) == nil && text != "" {
			a.text.write(text)
		}
		if a.text.Len() > maxText {
			return a.c.brokenAnswer(fmt.Sprintf("it says more than %d bytes", maxText), nil)
		}
	case "response.output_item.done":
		if slices.ContainsFunc(a.items, func(it json.RawMessage) bool { return bytes.Equal(it, e.Item) }) {
			break // a repeated call would run twice
		}
		if len(a.items) == maxCalls {
			return a.c.brokenAnswer(fmt.Sprintf("over %d items in one answer", maxCalls), nil)
		}
		a.items = append(a.items, e.Item)
	case "response.completed", "response.incomplete":
		a.end = e.Response
	case "response.failed":
		if e.Response != nil {
			return a.c.streamError(e.Response.Error)
		}
		return a.c.streamError(nil)
	case "error":
		return a.c.streamError(raw)
	case "":
		return a.addPlain(e)
	}
	return nil
}

// addPlain decodes a response that is a single document, or an error that is.
func (a *responsesAnswer) addPlain(e responseEvent) error {
	switch {
	case len(e.Error) > 0 && string(e.Error) != "null":
		return a.c.streamError(e.Error)
	case e.Object == "response":
		a.items, a.end = e.Output, &e.responseDoc
	}
	return nil
}

// buildReply returns the reply after the stream ended.
func (a *responsesAnswer) buildReply(req llm.Request) (llm.Reply, error) {
	if a.end == nil {
		reply := llm.Reply{Text: a.text.finish(false), Finish: llm.FinishCut} // its calls may be incomplete
		if strings.TrimSpace(reply.Text) == "" {
			return llm.Reply{}, a.c.brokenAnswer("the answer broke off before its end", io.ErrUnexpectedEOF)
		}
		reply.Usage = llm.EstimateUsage(req, reply)
		return reply, nil
	}
	if len(a.items) == 0 {
		a.items = a.end.Output
	}
	reply := llm.Reply{Finish: "stop"}
	for _, raw := range a.items {
		var it struct {
			Type      string    `json:"type"`
			CallID    looseText `json:"call_id"`
			Name      string    `json:"name"`
			Arguments string    `json:"arguments"`
			Content   []struct {
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &it); err != nil {
			return llm.Reply{}, a.c.brokenAnswer("an item of the answer is not what the protocol says", err)
		}
		switch it.Type {
		case "function_call":
			args := it.Arguments
			if strings.TrimSpace(args) == "" {
				args = "{}"
			}
			reply.Calls = append(reply.Calls, store.ToolCall{Provider: string(it.CallID), Name: it.Name, Args: args})
			reply.Finish = "tool_calls"
		case "message":
			for _, part := range it.Content {
				reply.Text += part.Text + part.Refusal
			}
		}
	}
	if a.text.Len() == 0 { // otherwise keep what the person saw
		a.text.write(reply.Text)
	}
	reply.Text = a.text.finish(len(reply.Calls) > 0)
	if a.end.Incomplete != nil {
		reply.Finish = llm.FinishLength
		if a.end.Incomplete.Reason == llm.FinishWithheld {
			reply.Finish = llm.FinishWithheld
		}
	}
	raw, err := json.Marshal(opaque{Model: req.Model, Items: a.items})
	if err != nil {
		return llm.Reply{}, a.c.brokenAnswer("an item of the answer is not JSON", err)
	}
	reply.Opaque = raw
	if reply.Usage = responsesUsage(a.end.Usage); reply.Usage == (llm.Usage{}) {
		reply.Usage = llm.EstimateUsage(req, reply)
	}
	return reply, nil
}
