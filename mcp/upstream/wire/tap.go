package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/mcp/view"
)

// Every request but tools/call is sent by the SDK's session, which encodes it, adds the
// _meta and the headers of the protocol version, and waits for the answer. The session would
// decode the result into its own types, which changes numbers and drops unknown fields. So
// the answer is tapped below the session, and the session gets an empty result.
//
// A tapped request gets one of our ids, since those of the SDK are the same for every
// connection (newFirstID). The session's cancellations are not sent but replaced by ours: it
// would end for a server that refuses one.
//
// The session's own methods ([sdk.ClientSession.ListTools] and the others) are not used.
// Since 2026-07-28 they keep an entry for each cursor and URI as long as the session lives,
// so a server could fill the memory, and GetPrompt omits empty arguments, without which
// servers of the TypeScript SDK refuse a prompt whose arguments are all optional.

// params are the parameters of a request that the SDK's session sends.
type params struct {
	sdk.ParamsBase
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`
	Task      string          `json:"taskId,omitempty"`
	Answers   json.RawMessage `json:"inputResponses,omitempty"`
}

// senders are the requests that the SDK's session sends. The type argument is the SDK's
// result type, which stays empty.
var senders = map[string]func(context.Context, *sdk.ClientSession, string, *params) error{
	MethodList:            sendCustom[*sdk.ListToolsResult],
	MethodPrompts:         sendCustom[*sdk.ListPromptsResult],
	MethodPrompt:          sendCustom[*sdk.GetPromptResult],
	MethodResources:       sendCustom[*sdk.ListResourcesResult],
	MethodTemplates:       sendCustom[*sdk.ListResourceTemplatesResult],
	MethodRead:            sendCustom[*sdk.ReadResourceResult],
	taskwire.MethodGet:    sendCustom[*taskResult],
	taskwire.MethodUpdate: sendCustom[*taskResult],
	taskwire.MethodCancel: sendCustom[*taskResult],
	taskwire.MethodResult: sendCustom[*taskResult],
}

// taskResult is the result of a request about a task, which the SDK does not support.
type taskResult struct{ sdk.ResultBase }

func sendCustom[R sdk.Result](ctx context.Context, cs *sdk.ClientSession, method string, p *params) error {
	_, err := sdk.CallCustomMethod[*params, R](ctx, cs, method, p)
	return err
}

// NewClient returns an SDK client whose sessions can carry the connections of this package.
func NewClient(info *sdk.Implementation, opt *sdk.ClientOptions) *sdk.Client {
	opt.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true} // the pool asks the person of the call
	c := sdk.NewClient(info, opt)
	for _, method := range []string{taskwire.MethodGet, taskwire.MethodUpdate, taskwire.MethodCancel, taskwire.MethodResult} {
		if err := sdk.AddSendingCustomMethod[*params, *taskResult](c, method); err != nil {
			panic(fmt.Sprintf("wire: %v", err))
		}
	}
	return c
}

// sendBySession sends a request with the SDK's session, which has to be tapped. id is the
// id that the tap gives it.
func sendBySession(ctx context.Context, cs *sdk.ClientSession, r *Request, id uint64) error {
	send := senders[r.Method]
	if send == nil {
		return &RPCError{Code: CodeMethodNotFound, Message: "nize does not send " + r.Method}
	}
	p := &params{Name: r.Name, Arguments: r.Args, URI: r.URI, Cursor: r.Cursor, Task: r.Task, Answers: r.Answers}
	if r.Name != "" && len(r.Args) == 0 {
		p.Arguments = json.RawMessage("{}")
	}
	p.Meta = sdk.Meta{}
	if r.Progress != nil {
		p.Meta["progressToken"] = id
	}
	if r.Traceparent != "" {
		p.Meta["traceparent"] = r.Traceparent
	}
	if cs.InitializeResult().ProtocolVersion >= VersionModern {
		can := view.Capabilities
		if r.Task != "" {
			can = callCapabilities(r.Ask != nil)
		}
		p.Meta[sdk.MetaKeyClientCapabilities] = json.RawMessage(can)
	}
	return send(ctx, cs, r.Method, p)
}

// tapKey is the key under which the context of a request of the SDK's session has its tap: a
// *tap over HTTP, a *waiter over a stream.
type tapKey struct{}

// tap sends a request of the SDK's session over HTTP like one of ours, and keeps the answer.
type tap struct {
	conn    *HTTPConn
	request *Request
	id      uint64
	sent    bool
	result  json.RawMessage
	err     error
}

// bySession sends a request with the SDK's session, and returns the tapped answer.
func (w *HTTPConn) bySession(ctx context.Context, r *Request) (json.RawMessage, error) {
	t := &tap{conn: w, request: r, id: w.ids.Add(1)}
	err := sendBySession(context.WithValue(ctx, tapKey{}, t), w.session, r, t.id)
	switch {
	case t.sent: // whatever the session makes of it
		if t.err != nil && ctx.Err() != nil && AsFault(t.err).Reach != Answered {
			w.abandon(ctx, t.id)
		}
		return t.result, t.err
	case ctx.Err() != nil:
		return nil, &Fault{Reach: Never, Err: ctx.Err()}
	}
	return nil, &Fault{Reach: Never, Drop: true, Err: err}
}

// roundTrip serves a request of the session. It runs in the goroutine of bySession.
func (t *tap) roundTrip(req *http.Request, sent envelope) (*http.Response, error) {
	t.sent = true
	t.result, t.err = t.serve(req, sent)
	return answerWith(req, nil, envelopeOf(sent.id, "result", emptyResult)), nil
}

func (t *tap) serve(req *http.Request, sent envelope) (json.RawMessage, error) {
	req = req.Clone(req.Context())
	if err := t.conn.trip.addHeaders(req); err != nil {
		return nil, &Fault{Reach: Never, Err: err}
	}
	// The SDK doesn't name tasks, nor prompts whose arguments are not all strings.
	if r := t.request; t.conn.modern && cmp.Or(r.Name, r.URI, r.Task) != "" {
		req.Header.Set(headerName, cmp.Or(r.Name, r.URI, r.Task))
	}
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, t.id, sent.method, sent.params)
	return t.conn.serve(req.Context(), req.Header, body, t.id, t.request)
}

// emptyResult is the result that the SDK's session gets of a request that was tapped.
var emptyResult = json.RawMessage("{}")
