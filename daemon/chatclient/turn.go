package chatclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/rounds"
	"nize/store"
	"nize/store/eventstream"
	"nize/store/plan"
)

// maxBody bounds a request; a message is bounded by the conversation.
const maxBody = 1 << 20

// tell sends the client an event of a turn; it returns an error if the client has
// disconnected.
type tell func(name string, data any) error

// turnEvents are the events of a streamed turn.
var turnEvents = &openapi.Events{Name: "TurnEvent", List: []openapi.Event{
	{Name: "text.delta", Summary: "more of the assistant's text", Data: textDelta{}},
	{Name: "tool.progress", Summary: "the outcome of a call", Data: toolProgress{}},
	{Name: "tool.proposed", Summary: "a call that needs approval", Data: api.ProposedCall{}},
	{Name: "turn.finished", Summary: "the last event: the whole response", Data: api.ChatAnswer{}},
	{Name: "error", Summary: "an error that ended the stream", Data: rounds.Failure{}},
}}

// The two operations in the OpenAPI document; a test sends their examples.
var (
	chatDoc = openapi.Doc{ID: "chat", Events: turnEvents, Text: "The response is sent when the turn has ended or a call needs approval. A client that disconnects does not stop the turn.", Fails: map[int]string{
		400: "the request is invalid", 404: "the caller has no such conversation, model or server",
		409: "the conversation is held on another surface, or can't continue in its state", 429: "the caller sent too many messages, or all that their plan allows; the error says when to send the next one"},
		Examples: []openapi.Example{
			{Name: "begin", Summary: "the first message of a conversation", Value: `{"message": "What is 6*7?", "servers": ["toolbox"]}`},
			{Name: "continue", Summary: "the next one, as a stream", Value: `{"message": "And 6*8?", "conversation_id": "01K9Z3NDEKTSV4RRFFQ69G5FAX", "stream": true}`},
		}}
	runToolDoc = openapi.Doc{ID: "runTool", Events: turnEvents, Text: "A repeated decision gets the same response.", Fails: map[int]string{
		400: "the request is invalid", 404: "no call of the caller's that was proposed over HTTP has that id",
		409: "the call has a different decision, or does not match tool and digest", 410: "the call has expired"},
		Examples: []openapi.Example{
			{Name: "run", Summary: "a yes", Value: `{"call_id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "decision": "run", "tool": "toolbox.calculate"}`},
			{Name: "cancel", Summary: "a denial, with the rest of the turn as a stream", Value: `{"call_id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "decision": "cancel", "stream": true}`},
		}}
)

// handleTurn returns the route of an operation that runs a turn. The response is the turn's
// result, or server-sent events of which the last is the result. A client that disconnects
// does not stop the turn.
func handleTurn[Req api.ChatRequest | api.RunToolRequest](o Options, caller func(*http.Request) (store.Caller, error), op api.Op[Req, api.ChatAnswer], do func(context.Context, store.Caller, Req, tell) (api.ChatAnswer, error), doc openapi.Doc) openapi.Route {
	return openapi.Handle(op, doc, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(o.Closing, cancel)()
		s := &sender{w: w}
		answer, err := func() (none api.ChatAnswer, err error) {
			defer func() { // contain a panic in its request
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			by, err := caller(r)
			if err != nil {
				return none, err
			}
			leave, err := o.Listen(ctx, by, cancel)
			if err != nil {
				return none, err
			}
			defer leave()
			var req Req
			if err := decode(r, &req); err != nil {
				return none, err
			}
			switch req := any(req).(type) {
			case api.ChatRequest:
				s.stream = req.Stream
			case api.RunToolRequest:
				s.stream = req.Stream
			}
			return do(ctx, by, req, s.send)
		}()
		switch {
		case r.Context().Err() != nil: // the client has disconnected
		case err == nil && s.stream:
			_ = s.send("turn.finished", answer) // the client has disconnected
		case err == nil:
			body, _ := json.Marshal(answer) // arguments are canonical JSON
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(body, '\n')) // the client has disconnected
		default:
			if ctx.Err() != nil {
				err = &api.Error{Code: "closed", Message: "waiting for the answer has ended; read the conversation again"}
			}
			var many *bots.TooManyError
			if errors.As(err, &many) {
				err = &api.Error{Code: "rate_limited", Message: many.Text().String()}
			}
			var used *plan.UsedUpError
			if errors.As(err, &used) {
				err = &api.Error{Code: "budget", Message: err.Error()}
			}
			e, known := api.FromError(err)
			if !known {
				o.Log.Error("serving a chat client", "path", r.URL.Path, "err", err)
			}
			if !s.begun {
				rounds.Form.Write(w, e)
				return
			}
			_ = s.send("error", rounds.FailureOf(e)) // the client has disconnected
		}
	}), byToken)
}

// sender writes events, if they were requested.
type sender struct {
	w             http.ResponseWriter
	stream, begun bool
}

func (s *sender) send(name string, data any) error {
	if !s.stream {
		return nil
	}
	line, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	if !s.begun {
		s.begun = true
		eventstream.SetHeader(s.w.Header())
	}
	if _, err := s.w.Write(eventstream.Event{Name: name, Data: line}.Append(nil)); err != nil {
		return err
	}
	_ = http.NewResponseController(s.w).Flush() // harmless if it isn't supported
	return nil
}

// decode decodes the body. It rejects unknown fields, since a misspelt one must not be
// ignored silently.
func decode(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fmt.Errorf("%w request: the body must be application/json", store.ErrInvalid)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w request: the body broke off", store.ErrInvalid)
	case len(body) > maxBody:
		return fmt.Errorf("%w request: the body is longer than %d bytes", store.ErrInvalid, maxBody)
	case len(bytes.TrimSpace(body)) == 0:
		return fmt.Errorf("%w request: there is no body", store.ErrInvalid)
	}
	return api.Decode(into, r.PathValue, nil, body, true)
}

// chat sends a message in a conversation and waits until the turn ends.
func (c *Client) chat(ctx context.Context, by store.Caller, req api.ChatRequest, tell tell) (none api.ChatAnswer, err error) {
	if strings.TrimSpace(req.Message) == "" {
		return none, fmt.Errorf("%w request: message is required", store.ErrInvalid)
	}
	by.Token = "" // a call belongs to its turn, not to the token that requested it
	if req.Conversation == "" {
		th, err := c.Conversations.Start(ctx, by, api.StartConversationRequest{Model: req.Model, Servers: req.Servers})
		if err != nil {
			return none, err
		}
		req.Conversation = th.ID
	} else if err := c.change(ctx, by, req); err != nil {
		return none, err
	}
	key := store.NewID(c.Conversations.Now())
	said := func(view api.ThreadView) bool {
		return slices.ContainsFunc(view.Turns, func(t store.Turn) bool { return t.Role == store.FromUser && strings.HasSuffix(t.Key, ":"+key) })
	}
	return c.follow(ctx, by, req.Conversation, key, tell, said, func() error {
		_, err := c.Conversations.Send(ctx, by, api.SendMessageRequest{Conversation: req.Conversation, Key: key, Text: req.Message})
		return err
	})
}

// change sets the model and servers of one of the caller's conversations.
func (c *Client) change(ctx context.Context, by store.Caller, req api.ChatRequest) error {
	if _, err := c.show(ctx, by, req.Conversation); err != nil {
		return err
	}
	if req.Model == "" && req.Servers == nil {
		return nil
	}
	if req.Model != "" {
		if err := c.Models.MayAsk(ctx, by, req.Model); err != nil {
			return err
		}
	}
	for _, s := range req.Servers {
		if err := c.Servers.Check(ctx, by, s); err != nil {
			return err
		}
	}
	by.Role = store.Member // an admin may change only their own here
	return c.Conversations.Change(ctx, by, req.Conversation, func(th *store.Thread) {
		if req.Model != "" {
			th.Model = req.Model
		}
		if req.Servers != nil {
			th.Servers = req.Servers
		}
	})
}

// runTool decides on a call that was proposed over HTTP, and waits until its turn has ended
// or waits for something else. A repeated decision gets the same response as the first.
func (c *Client) runTool(ctx context.Context, by store.Caller, req api.RunToolRequest, tell tell) (none api.ChatAnswer, err error) {
	verb := map[string]store.Verb{"run": store.Approve, "cancel": store.Cancel}[req.Decision]
	switch {
	case req.CallID == "":
		return none, fmt.Errorf("%w request: call_id is required", store.ErrInvalid)
	case verb == "":
		return none, fmt.Errorf("%w request: decision must be run or cancel", store.ErrInvalid)
	}
	call, err := c.Approvals.GetCall(ctx, by, api.CallRequest{ID: req.CallID})
	if err == nil && (call.By != by.User || call.Surface != store.OnHTTP || call.Thread == "") {
		err = store.Errorf("call %q %w", req.CallID, store.ErrNotFound)
	}
	if err != nil {
		return none, err
	}
	if id := call.ToolID(); req.Tool != "" && req.Tool != id && req.Tool != strings.Replace(id, ":", ".", 1) {
		return none, store.Mark(fmt.Errorf("call %s is one of %s, not of %s", call.ID, id, store.Clip(req.Tool, 200)), store.ErrConflict)
	}
	settled := func(view api.ThreadView) bool {
		return !slices.ContainsFunc(view.Cards, func(card store.Card) bool { return card.Call == call.ID })
	}
	return c.follow(ctx, by, call.Thread, "", tell, settled, func() error {
		_, err := c.Approvals.Decide(ctx, by, api.DecideCallRequest{ID: call.ID, Verb: verb, Digest: req.Digest})
		if !errors.Is(err, store.ErrDecided) {
			return err
		}
		decided, readErr := c.Approvals.GetCall(ctx, by, api.CallRequest{ID: call.ID})
		if readErr == nil && slices.ContainsFunc(decided.Decisions, func(d store.Decision) bool { return d.By == by.User && d.Verb == verb }) {
			return nil
		}
		return err
	})
}

// errEnded stops following a conversation when its turn has ended.
var errEnded = errors.New("the turn has ended")

// follow calls begin while it follows the conversation, and returns the result of its turn.
// begun reports whether the conversation contains what begin started. Of the pending calls,
// only those proposed after an id count.
func (c *Client) follow(ctx context.Context, by store.Caller, id string, after string, tell tell, begun func(api.ThreadView) bool, begin func() error) (answer api.ChatAnswer, err error) {
	var turn turn
	look := func() error {
		view, err := c.show(ctx, by, id)
		if err != nil || !begun(view) {
			return err
		}
		if !view.Thread.Open { // Thread was read before the turns, maybe before this turn began
			if view, err = c.show(ctx, by, id); err != nil {
				return err
			}
		}
		var done bool
		if answer, done = turn.answer(view, after); done {
			return errEnded
		}
		return nil
	}
	first := true
	err = c.Conversations.Follow(ctx, by, api.ConversationRequest{ID: id}, func(e api.ChatEvent) error {
		if first { // no event after this one is missed
			first = false
			if err := begin(); err != nil {
				return err
			}
			return look()
		}
		if m := e.Message; m != nil {
			if err := turn.show(*m, tell); err != nil {
				return err
			}
		}
		if e.State != "" {
			turn.idle = e.State == api.ChatIdle
		}
		if e.State != "" || e.Message.Final {
			return look()
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnded):
		if answer.Message != nil { // events lag behind what is stored
			if err := turn.show(store.Message{Kind: store.TextMessage, ID: turn.answerID, Text: answer.Message.Content}, tell); err != nil {
				return answer, err
			}
		}
		for _, p := range answer.ProposedCalls {
			if err := tell("tool.proposed", p); err != nil {
				return answer, err
			}
		}
		return answer, nil
	case err == nil:
		err = ctx.Err()
	}
	return answer, err
}

// show returns a conversation that the caller started over HTTP or at a terminal: the
// replies of other conversations go elsewhere.
func (c *Client) show(ctx context.Context, by store.Caller, id string) (api.ThreadView, error) {
	by.Role = store.Member // the request takes no reason
	view, err := c.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: id})
	if at := view.Thread.Address.Surface; err == nil && at != store.OnTerminal && at != store.OnHTTP {
		err = store.Mark(fmt.Errorf("conversation %s is held on %s: go on with it there", id, at), store.ErrConflict)
	}
	return view, err
}

// turn is the observed state of a turn.
type turn struct {
	idle   bool
	failed string // in one sentence
	id     string // of the text that is being written
	text   string

	answerID string
}

// show sends the client a message.
func (t *turn) show(m store.Message, tell tell) error {
	switch {
	case m.Kind == store.ErrorMessage:
		t.failed = m.Text
	case m.Kind == store.ToolMessage && m.Tool != nil:
		return tell("tool.progress", toolProgress{strings.TrimPrefix(m.ID, "tool/"), m.Tool.Name, m.Tool.State})
	case m.Kind == store.TextMessage:
		text, before := strings.TrimSuffix(m.Text, m.Remark), t.text
		if m.Remark != "" {
			text = strings.TrimSuffix(text, "\n\n")
		}
		if m.ID != t.id {
			before = ""
		}
		delta, more := strings.CutPrefix(text, before)
		t.id, t.text = m.ID, text
		if more && delta == "" {
			return nil
		}
		return tell("text.delta", textDelta{m.ID, delta, !more})
	}
	return nil
}

// textDelta is an addition to a text.
type textDelta struct {
	ID    string `json:"id"`
	Delta string `json:"delta"`
	Again bool   `json:"again,omitempty" doc:"the delta replaces the text so far"`
}

// toolProgress is the state of a call.
type toolProgress struct {
	ID    string      `json:"id"`
	Tool  string      `json:"tool"`
	State store.State `json:"state"`
}

// answer returns the result of the turn; done is false if it is still running.
func (t *turn) answer(view api.ThreadView, after string) (a api.ChatAnswer, done bool) {
	a = api.ChatAnswer{Conversation: view.Thread.ID, ProposedCalls: []api.ProposedCall{}}
	for _, card := range view.Cards {
		if card.Call > after {
			a.ProposedCalls = append(a.ProposedCalls, proposedOf(card))
		}
	}
	switch {
	case view.Thread.Open && t.idle && t.failed != "":
		a.Status, a.Error = "failed", t.failed
		return a, true
	case view.Thread.Open:
		a.Status = "requires_approval"
		return a, len(a.ProposedCalls) > 0
	}
	a.Status, a.Error = "failed", t.failed
	limited := false
	for _, said := range view.Turns {
		switch said.Role {
		case store.FromUser:
			a.Status, a.Error, a.Message, a.Finish, a.Warnings, limited = "failed", t.failed, nil, "", nil, false
		case store.FromModel:
			a.Status, a.Error, a.Message, a.Finish = "completed", "", &api.ChatReply{Role: "assistant", Content: said.Text}, cmp.Or(said.Finish, store.FinishStop)
			if remark := cmp.Or(said.Said, store.FinishRemark(said.Finish)); remark != (store.Text{}) {
				a.Warnings = append(a.Warnings, strings.Trim(remark.String(), "[]"))
			}
			t.answerID = said.Thread + "/" + strconv.Itoa(said.N)
		case store.FromNize:
			switch {
			case said.Finish == store.FinishSteps:
				limited, a.Warnings = true, append(a.Warnings, said.Text)
			case said.Final:
				a.Status, a.Error, a.Message, a.Finish = "failed", said.Text, nil, ""
			}
		}
	}
	if limited && a.Status == "completed" {
		a.Status = "max_steps"
	}
	return a, true
}
