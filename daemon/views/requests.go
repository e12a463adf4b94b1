package views

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/store"
)

// A view's requests arrive here from the page that shows it. A tool runs as if the viewer
// had requested it, through the gateway with all its rules, and only if it belongs to the
// view's own server and is meant for views. Each request is recorded as an event of the
// call, including those that the page answers or rejects itself.

const (
	maxCalls = 20 // tool calls per minute and view
	maxOpen  = 5  // concurrent tool calls, running or pending
	maxNoted = 20 // requests of each method that are recorded individually, per minute and view
)

// Ask is the operation with which a page forwards a view's request.
var Ask = api.Op[AskRequest, Answer]{Method: "POST", Path: "/v1/frames/{call}/requests", Summary: "handle a view's request"}

// Outcome is the operation that returns the outcome of a tool call that a view requested,
// or of the call that it shows.
var Outcome = api.Op[OutcomeRequest, Answer]{Method: "GET", Path: "/v1/frames/{call}/calls/{id}", Summary: "show the outcome of a view's call"}

// AskRequest is one request of the view of a call.
type AskRequest struct {
	Call   string          `path:"call" json:"-"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	Answer string          `json:"answer,omitempty"` // the page's own answer, which is only recorded
}

// OutcomeRequest names a call that another call's view requested, or that call itself.
type OutcomeRequest struct {
	Call string `path:"call" json:"-"`
	ID   string `path:"id" json:"-"`
}

// Answer is the response for the view: a result, an error, or that the call is pending, in
// which case the page asks again.
type Answer struct {
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Refusal        `json:"error,omitempty"`
	Pending string          `json:"pending,omitempty"`
}

// Refusal is a JSON-RPC error.
type Refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// JSON-RPC error codes.
const (
	unknownMethod = -32601
	invalidParams = -32602
	refused       = -32000
)

func refuse(code int, message string) Answer { return Answer{Error: &Refusal{code, message}} }

// Ask handles one request.
func (v *Views) Ask(ctx context.Context, by store.Caller, req AskRequest) (out Answer, err error) {
	c, tool, err := v.callOf(ctx, by, req.Call)
	if err != nil {
		return out, err
	}
	var p struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		URL  string `json:"url"`
		told
		State json.RawMessage `json:"state"`
	}
	said := map[string]string{"method": store.Clip(req.Method, 100)}
	if req.Answer != "" {
		said["answer"] = store.Clip(req.Answer, 200)
		v.note(by, c, req.Method, said)
		return Answer{Result: json.RawMessage("{}")}, nil
	}
	if len(req.Params) > 0 && json.Unmarshal(req.Params, &p) != nil {
		v.note(by, c, req.Method, said)
		return refuse(invalidParams, "the parameters are not in the form of the protocol"), nil
	}
	switch req.Method {
	case "tools/call":
		said["tool"] = store.Clip(p.Name, 200)
		key := by.User + " " + c.ID
		if !v.called.Take(key, v.Now()) {
			out = refuse(refused, "a view may call 20 tools a minute")
		} else if leave, ok := v.enter(ctx, by, key); !ok {
			out = refuse(refused, "five calls of this view are already running or pending")
		} else {
			out, said["call"] = v.callTool(ctx, by, c, p.Name, req.Params)
			leave(out.Pending)
		}
	case "tools/list":
		out, err = v.listTools(ctx, by, c)
	case "resources/read":
		said["uri"] = store.Clip(p.URI, 200)
		out = v.readResource(ctx, by, c, tool, p.URI)
	case "ui/open-link":
		if to, err := url.Parse(p.URL); err == nil {
			said["host"] = store.Clip(to.Host, 200) // the rest of the URL may contain anything
		}
		out.Result = json.RawMessage("{}")
	case "ui/update-model-context":
		out = v.tell(ctx, by, c, tool, p.told)
	case "nize/set-widget-state": // from window.openai; there is no standard method for it
		out = v.keep(ctx, by, c, p.State)
	case "ui/message", "ui/download-file", "ui/request-display-mode":
		out.Result = json.RawMessage("{}") // the page asks the person
	default:
		out = refuse(unknownMethod, "method not found")
	}
	v.note(by, c, req.Method, said)
	return out, err
}

// methods are the methods that a view may request.
var methods = []string{
	"ui/initialize", "ping", "tools/call", "tools/list", "resources/read", "ui/message", "ui/update-model-context",
	"ui/open-link", "ui/download-file", "ui/request-display-mode", "nize/set-widget-state",
}

// note records a request as an event. If a view sends many of one kind, only one further
// event records that there were more, so that the view can neither fill the trail nor hide
// its other requests.
func (v *Views) note(by store.Caller, c store.Call, method string, said map[string]string) {
	if !slices.Contains(methods, method) {
		method = ""
	}
	switch n := v.noted.Count(by.User+" "+c.ID+" "+method, v.Now()); {
	case n == maxNoted+1:
		said = map[string]string{"method": said["method"], "more": "more came in this minute"}
	case n > maxNoted:
		return
	}
	v.event(by, c, "view.request", said)
}

// enter reports whether the view may make another call. leave takes the id of the call if
// it is then still pending, else "".
func (v *Views) enter(ctx context.Context, by store.Caller, key string) (leave func(id string), ok bool) {
	v.mu.Lock()
	before := slices.Collect(maps.Keys(v.open[key]))
	v.mu.Unlock()
	var over []string
	for _, id := range before {
		if id[0] == '-' {
			continue // it is running
		}
		if c, err := v.Calls.GetCall(ctx, by, api.CallRequest{ID: id}); err != nil || c.State != store.Pending {
			over = append(over, id)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range over {
		delete(v.open[key], id)
	}
	if len(v.open[key]) >= maxOpen {
		return nil, false
	}
	if v.open[key] == nil {
		v.open[key] = map[string]bool{}
	}
	begun := "-" + random()
	v.open[key][begun] = true
	return func(id string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.open[key], begun)
		if id != "" {
			v.open[key][id] = true
		}
		if len(v.open[key]) == 0 {
			delete(v.open, key)
		}
	}, true
}

// failed returns the answer for an error.
func failed(err error) Answer {
	e, known := api.FromError(err)
	switch {
	case known && (e.Code == string(store.CodeInvalid) || e.Code == string(store.CodeNotFound)):
		return refuse(invalidParams, e.Message)
	case known:
		return refuse(refused, e.Message)
	}
	return refuse(refused, "internal error")
}

// callTool calls a tool on behalf of the viewer of a call.
func (v *Views) callTool(ctx context.Context, by store.Caller, of store.Call, name string, params json.RawMessage) (out Answer, id string) {
	tool := of.Server + ":" + name
	if t, ok := v.Tools.Get(tool); !ok || !feature.IsTool(name) || t.View().NotApp {
		return refuse(invalidParams, "the server has no such tool for views"), ""
	}
	c, err := v.Gateway.CallByParams(ctx, by, store.Request{Tool: tool, Thread: of.Thread, Agent: of.Agent, Asked: store.Asked{InPrivateTurn: of.InPrivateTurn || of.Private, View: of.ToolID()}}, params)
	if err != nil {
		if _, known := api.FromError(err); !known {
			v.Log.Error("a call of a view", "tool", tool, "err", err)
		}
		return failed(err), ""
	}
	return outcomeOf(*c), c.ID
}

// outcomeOf returns the answer for a call that a view requested.
func outcomeOf(c store.Call) Answer {
	switch {
	case !c.State.Final():
		return Answer{Pending: c.ID}
	case c.Result != nil && c.Result.Error == nil && len(c.Result.Passed()) > 0:
		return Answer{Result: resultOf(c)}
	case c.Result != nil && c.Result.Error != nil:
		return refuse(refused, c.Result.Error.Message.String())
	}
	return refuse(refused, c.State.Word().String()+": "+c.Reason.String())
}

// Outcome returns the outcome of a call that another call's view requested, or of that call
// itself.
func (v *Views) Outcome(ctx context.Context, by store.Caller, req OutcomeRequest) (none Answer, err error) {
	of, _, err := v.requested(ctx, by, req.Call)
	if err != nil {
		return none, err
	}
	if req.ID == of.ID {
		return outcomeOf(of), nil
	}
	for id := req.ID; ; {
		c, err := v.Calls.GetCall(ctx, by, api.CallRequest{ID: id})
		if err != nil {
			return none, err
		}
		if c.By != by.User || c.View != of.ToolID() || c.Thread != of.Thread {
			return none, errNoView(of.ToolID())
		}
		if c.Successor == "" || c.Successor == id {
			return outcomeOf(c), nil
		}
		id = c.Successor // it was edited, and its successor runs instead
	}
}

// listTools returns the tools of a view's server that the view may call.
func (v *Views) listTools(ctx context.Context, by store.Caller, of store.Call) (none Answer, err error) {
	found, err := v.Rights.Listed(ctx, by, of)
	if err != nil {
		return none, err
	}
	list := []Tool{}
	for _, t := range found {
		if feature.IsTool(t.Name) && !t.View().NotApp {
			list = append(list, toolOf(t))
		}
	}
	raw, err := json.Marshal(map[string][]Tool{"tools": list})
	return Answer{Result: raw}, err
}

// readResource reads a resource of a view's server: one of its views, or a listed one,
// which is a call like every read of it.
func (v *Views) readResource(ctx context.Context, by store.Caller, of store.Call, tool *policy.Tool, uri string) Answer {
	if t, ok := v.Tools.Get(of.Server + ":" + feature.Resource + ":" + uri); ok && t.Server == of.Server {
		c, err := v.Resources.Read(ctx, by, store.Request{Tool: t.ID(), Args: json.RawMessage("{}"), Thread: of.Thread, Agent: of.Agent, Asked: store.Asked{InPrivateTurn: of.InPrivateTurn || of.Private, View: of.ToolID()}})
		if err != nil {
			return failed(err)
		}
		if !c.State.Final() {
			return refuse(refused, "an admin requires approval for each read of it")
		}
		return outcomeOf(*c)
	}
	if !strings.HasPrefix(uri, "ui://") || of.Server == policy.NativeServer {
		return refuse(invalidParams, "the server lists no such resource")
	}
	of.Pin = tool.Accepted
	raw, err := v.Resource(ctx, by, of, uri)
	if err != nil {
		return failed(err)
	}
	return Answer{Result: raw}
}

// maxKept bounds a view's context for the model, and its state, in bytes.
const maxKept = 8 << 10

// told is a view's context for the model.
type told struct {
	Content    json.RawMessage `json:"content"` // a list of content blocks, or one block
	Structured json.RawMessage `json:"structuredContent"`
}

// text returns it as text for the model; ok is false if its form is not supported.
func (t told) text() (string, bool) {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var blocks []block
	var one block
	if len(t.Content) > 0 && json.Unmarshal(t.Content, &blocks) != nil {
		if json.Unmarshal(t.Content, &one) != nil {
			return "", false
		}
		blocks = []block{one}
	}
	var parts []string
	for _, b := range blocks {
		if b.Type != "text" {
			return "", false
		}
		parts = append(parts, b.Text)
	}
	if s := string(t.Structured); s != "" && s != "null" {
		if s[0] != '{' {
			return "", false
		}
		parts = append(parts, s)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"))
	return text, len(text) <= maxKept
}

// tell stores a view's context for the viewer's next message to the model.
func (v *Views) tell(ctx context.Context, by store.Caller, c store.Call, tool *policy.Tool, t told) Answer {
	text, ok := t.text()
	switch {
	case !ok:
		return refuse(invalidParams, "the model gets text blocks and an object, of at most 8 KiB together")
	case c.Thread == "":
		return refuse(refused, "the call is not part of a conversation")
	}
	return v.kept(v.Kept.PutViewContext(ctx, c.Thread, store.ViewContext{
		Call: c.ID, Tool: c.ToolID(), User: by.User, Text: store.RedactText(text),
		Private: c.Private || c.InPrivateTurn, Untrusted: c.Taints || tool.Record.UntrustedOutput,
	}))
}

// keep stores the state of a view for its viewer.
func (v *Views) keep(ctx context.Context, by store.Caller, c store.Call, state json.RawMessage) Answer {
	switch {
	case len(state) > maxKept:
		return refuse(invalidParams, "a view can store at most 8 KiB")
	case c.Thread == "":
		return refuse(refused, "the call is not part of a conversation")
	case len(state) == 0:
		state = json.RawMessage("null")
	}
	return v.kept(v.Kept.PutViewState(ctx, c.Thread, c.ID, by.User, state))
}

// kept returns the answer for a request to store something.
func (v *Views) kept(err error) Answer {
	switch {
	case errors.Is(err, store.ErrConflict):
		return refuse(refused, "a message can carry the context of at most eight views")
	case err != nil:
		if _, known := api.FromError(err); !known {
			v.Log.Error("keeping what a view says", "err", err)
		}
		return failed(err)
	}
	return Answer{Result: json.RawMessage("{}")}
}
