package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/reply"
	"nize/mcp/sessions"
	"nize/mcp/taskwire"
	"nize/store"
)

// A call that waits for a person, or runs for a while, is a task for a client that
// says it understands tasks: it gets the task's id at once, and comes back for the
// result, also after its connection, its session or nized has ended. The task is the
// call's record; there is no other state.
//
// Two forms are served over the same records: the extension
// io.modelcontextprotocol/tasks of 2026-07-28 (SEP-2663), where the server decides
// what becomes a task, and the task parameter of 2025-11-25. The SDK has neither, so
// its methods (tasks/get and so on) are answered here, before it; see also
// [Server.serveTasksOverHTTP] and [ownConn].

// How often a client is asked to poll.
const (
	pollRunning = time.Second
	pollWaiting = 5 * time.Second
)

// taskRequest is how the client of a call asked for a task.
type taskRequest struct {
	legacy  bool        // by the task parameter of 2025-11-25, which always gets one
	call    *store.Call // what became a task; nil: the call was answered at once
	refused string      // why there is no call
}

// taskKey is the key of the *taskRequest of a request.
type taskKey struct{}

// taskParam is the key in [auth.TokenInfo.Extra] of a request with a task parameter.
const taskParam = "task"

// offerTasks lets calls become tasks for the clients that can handle them, and tells
// clients of 2025-11-25 which tools can.
func (s *Server) offerTasks(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		r, ok := req.(*sdk.CallToolRequest)
		if l, by, listens := listenOf(method, req); listens {
			return s.listen(ctx, by, l, func(ctx context.Context) (sdk.Result, error) { return next(ctx, method, req) })
		}
		if !ok {
			res, err := next(ctx, method, req)
			if err != nil {
				return res, err
			}
			return withLegacyTasks(req, res), nil
		}
		legacy := r.Extra != nil && r.Extra.TokenInfo != nil && r.Extra.TokenInfo.Extra[taskParam] != nil
		if !legacy && !announcesTasks(r) {
			if fixtureNeedsTask(r.Params.Name) {
				return nil, errNoTasks()
			}
			return next(ctx, method, req)
		}
		ask := &taskRequest{legacy: legacy}
		res, err := next(context.WithValue(ctx, taskKey{}, ask), method, req)
		if err != nil || ask.call == nil {
			if legacy && err == nil && ask.refused != "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: ask.refused}
			}
			return res, err
		}
		made := s.taskOf(ctx, ask.call, ask.call.ID, ask.legacy)
		if by, ok := callerOf(req); legacy && ok {
			s.followLegacy(by, r.Extra.TokenInfo, made)
		}
		return rawResult{new(sdk.CallToolResult), made.answer(legacy)}, nil
	}
}

// announcesTasks reports whether the request says that its client has the extension.
func announcesTasks(req *sdk.CallToolRequest) bool {
	can := req.ClientCapabilities()
	if can == nil {
		return false
	}
	return can.Extensions[taskwire.Extension] != nil
}

// rawResult is a result whose form the SDK doesn't have.
type rawResult struct {
	sdk.Result
	raw json.RawMessage
}

func (r rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// withLegacyTasks adds to a result of 2025-11-25 what says that calls can be tasks.
func withLegacyTasks(req sdk.Request, res sdk.Result) sdk.Result {
	switch r := res.(type) {
	case *sdk.InitializeResult:
		if r.ProtocolVersion < legacyTasks || r.Capabilities == nil || r.Capabilities.Tools == nil {
			return res
		}
		return rawResult{res, setField(mustJSON(r), "capabilities", setField(mustJSON(r.Capabilities), "tasks", json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)))}
	case *sdk.ListToolsResult:
		lists, ok := req.(*sdk.ListToolsRequest)
		if !ok || lists.ProtocolVersion() != legacyTasks {
			return res
		}
		tools := make([]json.RawMessage, len(r.Tools))
		for i, t := range r.Tools {
			if tools[i] = mustJSON(t); t.Name == Execute || !isMeta(t.Name) {
				tools[i] = setField(tools[i], "execution", json.RawMessage(`{"taskSupport":"optional"}`))
			}
		}
		return rawResult{res, setField(mustJSON(r), "tools", mustJSON(tools))}
	}
	return res
}

// legacyTasks is the protocol version in which tasks are part of the core.
const legacyTasks = "2025-11-25"

// setField returns a JSON object with one field set.
func setField(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(object, &fields) != nil {
		return object
	}
	fields[name] = value
	return mustJSON(fields)
}

// execute runs a use of a tool, as a task if the client asked for one.
func (s *Server) execute(ctx context.Context, by store.Caller, req store.Request, w *waiter) (*store.Call, error) {
	ask, ok := ctx.Value(taskKey{}).(*taskRequest)
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, store.GetSpan(s.opt.Config, "", "mcp.wait"))
		defer cancel()
		return s.opt.Gateway.execute(ctx, by, req, w)
	}
	timer := time.NewTimer(s.patience(ask))
	defer timer.Stop()
	w.late = timer.C
	c, err := s.opt.Gateway.launch(ctx, by, req, w, true)
	switch {
	case err != nil:
		ask.refused = callError(err).Message.String()
	case ask.legacy || !c.State.Final():
		ask.call = c
	}
	return c, err
}

// patience is how long a client waits for a result before it gets a task.
func (s *Server) patience(ask *taskRequest) time.Duration {
	if ask.legacy {
		return 0
	}
	return store.GetSpan(s.opt.Config, "", "mcp.task_after")
}

// launch is [Gateway.begin] for a client that does not wait for the call's end alone.
// It returns the call when it has ended, when it waits for a person, when its server
// asks what the client is to ask its person, or when the client's patience is over
// (w.late); then the call goes on by itself. A task is nobody's to attend; of another
// call that waits, the caller is attached and has to await it or to detach.
func (g *Gateway) launch(ctx context.Context, by store.Caller, req store.Request, w *waiter, task bool) (*store.Call, error) {
	req.Task = task
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	type ended struct {
		call *store.Call
		err  error
	}
	began, end := make(chan string, 1), make(chan ended, 1)
	g.worker.tasks.Running.Go(func() {
		defer cancel()
		id := ""
		inner := &waiter{progress: w.progress, began: func(c *store.Call) {
			id = c.ID
			g.waiters.setCancel(id, cancel)
			if w.made != nil {
				w.made(id)
			}
			began <- id
		}}
		c, err := g.begin(run, by, req, inner)
		if id != "" {
			g.waiters.setCancel(id, nil)
		}
		if task && err == nil && !c.State.Final() {
			g.waiters.detach(c.ID, false)
			if w.made != nil {
				w.made(c.ID)
			}
			g.keepProgress(run, c.ID, w.progress)
		}
		end <- ended{c, err}
	})
	var id string
	var woken chan struct{}
	defer func() {
		if id != "" {
			g.waiters.unsubscribe(id, woken)
		}
	}()
	late := false
	for {
		if id != "" && (late || w.asks && len(g.questions.of(id)) > 0) {
			c, err := g.calls.GetCall(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("call %s: %w", id, err)
			}
			return &c, nil
		}
		select {
		case e := <-end:
			return e.call, e.err
		case <-w.late:
			late = true
		case id = <-began:
			woken = g.waiters.subscribe(id, nil)
		case <-woken:
		case <-ctx.Done(): // the client doesn't know the call's id
			cancel()
			return nil, ctx.Err()
		}
	}
}

// keepProgress sends the progress of a task to the client that made it, until the task ends.
// It also drops what was noted about a task that has ended already.
func (g *Gateway) keepProgress(ctx context.Context, id string, progress store.ProgressFunc) {
	if progress != nil {
		g.waiters.keepProgress(id, progress)
	}
	if c, err := g.calls.GetCall(ctx, id); err == nil && c.State.Final() { // it ended before
		g.waiters.notify(id)
	}
}

// findTask returns the call that is a task of the caller, by its id: the one that
// replaced it if a person edited it. The error is for the client.
func (s *Server) findTask(ctx context.Context, by store.Caller, id string) (*store.Call, error) {
	unknown := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("no task %q: it does not exist, is another's, or its time is over", store.Clip(id, 100))}
	g := s.opt.Gateway
	for {
		c, err := g.calls.GetCall(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, unknown
		case err != nil:
			return nil, internalError(ctx, s.opt.Log, "reading a task", err)
		case !c.Task || c.By != by.User:
			return nil, unknown
		case c.Token != by.Token && !s.mayRead(ctx, by, c):
			return nil, unknown
		case c.State.Final() && s.opt.Now().After(c.Finished.Add(s.taskTTL())):
			return nil, unknown
		case c.State == store.Cancelled && c.Successor != "":
			id = c.Successor
			continue
		}
		return &c, nil
	}
}

// mayRead reports whether another token of the person may be given the result: one
// that may use the tool, as the token has that a client gets when it refreshes.
func (s *Server) mayRead(ctx context.Context, by store.Caller, c store.Call) bool {
	if by.Token == "" || c.Token == "" {
		return by.Token == ""
	}
	v, err := s.opt.Gateway.Policy.View(ctx, by, store.Scope{})
	if err != nil {
		return false
	}
	tool, ok := s.opt.Gateway.Catalog.Get(c.ToolID())
	return ok && v.Usable(tool)
}

func (s *Server) taskTTL() time.Duration {
	return store.GetSpan(s.opt.Config, "", "mcp.task_ttl")
}

// task is the state of a task in the terms of both forms.
type task struct {
	id, status, message string
	created, updated    time.Time
	ttl, poll           time.Duration
	result              json.RawMessage           // of a completed one
	failure             *jsonrpc.Error            // of a failed one
	inputs              map[string]taskwire.Input // of one that waits for its client
}

// taskOf describes a call as a task of that id. legacy is the form of 2025-11-25,
// in which a result that is an error is a failed task.
func (s *Server) taskOf(ctx context.Context, c *store.Call, id string, legacy bool) task {
	t := task{id: id, created: c.Created, updated: c.Created, ttl: s.taskTTL(), poll: pollRunning, status: taskwire.Working}
	for _, d := range c.Decisions {
		t.updated = later(t.updated, d.At)
	}
	t.updated = later(later(later(t.updated, c.Approved), c.Started), c.Finished)
	if !c.Expires.IsZero() {
		t.ttl += c.Expires.Sub(c.Created)
	}
	switch {
	case c.Waiting():
		t.poll = pollWaiting
		t.message = fmt.Sprintf("waiting for approval: nizectl approvals show %s", c.ID)
		if card, err := s.opt.Gateway.Card(ctx, c.ID); err == nil {
			t.message = fmt.Sprintf("waiting for approval by %s (call %s)", deciders(card), c.ID)
		}
	case !c.State.Final() && c.State != store.Running:
		t.message = "approved, about to run"
	case !c.State.Final():
		report := s.opt.Gateway.waiters.reportOf(c.ID)
		if t.message = "running"; report.String() != "" {
			t.message += ": " + report.String()
		}
		t.updated = later(t.updated, report.at)
		if inputs := s.opt.Gateway.inputs(c); len(inputs) > 0 {
			t.status, t.message = taskwire.InputRequired, "its server asks something"
			if !legacy { // such a client is asked over its session
				t.inputs = inputs
			}
		}
	case c.State == store.Cancelled:
		t.status, t.message = taskwire.Cancelled, c.Reason.String()
	case c.State == store.Lost:
		t.status, t.failure = taskwire.Failed, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failureOf(c).Message.String()}
		t.message = t.failure.Message
	case !c.ByMeta && c.State == store.Failed && c.Result != nil && c.Result.Error != nil && c.Result.Error.Code == store.CodeTool:
		// Its server answered with an error of the protocol, not of the tool.
		t.status, t.failure = taskwire.Failed, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: c.Result.Error.Message.String()}
		t.message = t.failure.Message
	default:
		version := modern
		if legacy {
			version = legacyTasks
		}
		a := namedAnswer(c, nil, version)
		if c.ByMeta {
			a = executeAnswer(c.ToolID(), c, nil)
		}
		t.status, t.result = taskwire.Completed, a.append(nil)
		if a.isError {
			if legacy {
				t.status = taskwire.Failed
			}
			t.message = failureOf(c).Message.String()
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// deciders names who can decide a card that waits.
func deciders(card store.Card) string {
	var names []string
	for _, a := range card.Approvers {
		switch {
		case a.Kind == "group":
			names = append(names, "the group "+strings.Join(a.Names, ", "))
		case len(a.Names) > 0:
			names = append(names, strings.Join(a.Names, ", "))
		default:
			names = append(names, strings.ReplaceAll(a.Kind, "-", " of the ")) // admins, channel
		}
	}
	text := strings.Join(names, ", ")
	if text == "" {
		if text = "admins"; card.Policy == store.ByRequester {
			text = card.By
		}
	}
	if card.Need > 1 {
		text = fmt.Sprintf("%d people of: %s", card.Need, text)
	}
	return text
}

func (t task) form() taskwire.Form {
	return taskwire.Form{ID: t.id, Status: t.status, Message: t.message, Created: taskwire.Stamp(t.created), Updated: taskwire.Stamp(t.updated)}
}

// modern is the task in the form of the extension, without what only tasks/get has.
func (t task) modern(resultType string) taskwire.Task {
	return taskwire.Task{ResultType: resultType, Form: t.form(), TTL: t.ttl.Milliseconds(), Poll: t.poll.Milliseconds()}
}

// detailed is the task as tasks/get and notifications have it.
func (t task) detailed(resultType string) taskwire.Task {
	out := t.modern(resultType)
	out.Inputs = t.inputs
	if t.failure != nil {
		out.Error = &taskwire.Error{Code: t.failure.Code, Message: t.failure.Message}
	}
	if t.result != nil {
		out.Result = setField(t.result, "resultType", json.RawMessage(`"complete"`))
	}
	return out
}

// legacy is the task in the form of 2025-11-25.
func (t task) legacy() taskwire.Legacy {
	return taskwire.Legacy{Form: t.form(), TTL: t.ttl.Milliseconds(), Poll: t.poll.Milliseconds()}
}

// answer is the answer of a call that became the task.
func (t task) answer(legacy bool) json.RawMessage {
	if legacy {
		return mustJSON(struct {
			Task taskwire.Legacy `json:"task"`
		}{t.legacy()})
	}
	return mustJSON(t.modern("task"))
}

// tasksCall is a request of one of the methods tasks/….
type tasksCall struct {
	Method string `json:"method"`
	Params struct {
		Task    string                     `json:"taskId"`
		Cursor  string                     `json:"cursor"`
		Answers map[string]json.RawMessage `json:"inputResponses"`
		// Notifications are the subscriptions of a subscriptions/listen.
		Notifications struct {
			Tasks []string `json:"taskIds"`
		} `json:"notifications"`
		Meta struct {
			Client struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// serves reports whether the method is answered here, in the form of that version.
func (r tasksCall) serves(version string) bool {
	switch r.Method {
	case taskwire.MethodGet, taskwire.MethodCancel:
		return true
	case taskwire.MethodUpdate:
		return version >= modern
	case taskwire.MethodResult, taskwire.MethodList:
		return version < modern
	}
	return false
}

// serveTasks answers a method that [tasksCall.serves] of that version. waits is
// called once if the answer takes a while. The error is a *jsonrpc.Error.
func (s *Server) serveTasks(ctx context.Context, by store.Caller, r tasksCall, version string, waits func()) (json.RawMessage, error) {
	legacy := version < modern
	if _, ok := r.Params.Meta.Client.Extensions[taskwire.Extension]; !legacy && !ok {
		return nil, errNoTasks()
	}
	if r.Method == taskwire.MethodList {
		return s.listTasks(ctx, by, r.Params.Cursor)
	}
	c, err := s.findTask(ctx, by, r.Params.Task)
	if err != nil {
		return nil, err
	}
	if legacy {
		s.opt.Gateway.waiters.taskNamed(r.Params.Task)
	}
	switch r.Method {
	case taskwire.MethodResult:
		return s.taskResult(ctx, by, r.Params.Task, c, waits)
	case taskwire.MethodCancel:
		if c.State.Final() && legacy {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the task has ended: it is " + s.taskOf(ctx, c, r.Params.Task, true).status}
		}
		if c, err = s.cancelTask(ctx, by, c); err != nil {
			return nil, err
		}
		if legacy {
			return mustJSON(s.taskOf(ctx, c, r.Params.Task, true).legacy()), nil
		}
		return json.RawMessage(`{"resultType":"complete"}`), nil
	case taskwire.MethodUpdate:
		for key, raw := range r.Params.Answers {
			a, err := taskwire.ReadAnswer(raw)
			if s.opt.Gateway.questions.of(c.ID)[key] == nil {
				continue // it is answered, or never was one
			}
			if err == nil {
				err = s.opt.Gateway.questions.answer(c.ID, key, a)
			}
			if err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
		}
		return json.RawMessage(`{"resultType":"complete"}`), nil
	}
	t := s.taskOf(ctx, c, r.Params.Task, legacy)
	if legacy {
		return mustJSON(t.legacy()), nil
	}
	return mustJSON(t.detailed("complete")), nil
}

// errNoTasks refuses what only a client with tasks can have.
func errNoTasks() error {
	return &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "this needs a client with the extension " + taskwire.Extension,
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + taskwire.Extension + `":{}}}}`)}
}

// taskResult waits for the end of a task and returns its result.
func (s *Server) taskResult(ctx context.Context, by store.Caller, id string, c *store.Call, waits func()) (json.RawMessage, error) {
	for !c.State.Final() {
		if waits != nil {
			waits()
			waits = nil
		}
		if _, err := s.opt.Gateway.Wait(ctx, c.ID); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: callError(err).Message.String()}
		}
		var err error
		if c, err = s.findTask(ctx, by, id); err != nil { // it may have been edited
			return nil, err
		}
	}
	t := s.taskOf(ctx, c, id, true)
	switch {
	case t.failure != nil:
		return nil, t.failure
	case t.result == nil:
		t.result = namedAnswer(c, nil, legacyTasks).append(nil) // it was cancelled
	}
	var has struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(t.result, &has) // it is ours
	if len(has.Meta) == 0 {
		has.Meta = json.RawMessage(`{}`)
	}
	return setField(t.result, "_meta", setField(has.Meta, relatedTask, mustJSON(map[string]string{"taskId": id}))), nil
}

// relatedTask is the key in _meta of messages about a task of 2025-11-25.
const relatedTask = "io.modelcontextprotocol/related-task"

// tasksPage is how many tasks a page of tasks/list has.
const tasksPage = 100

// listTasks lists the newest tasks of the caller's token.
func (s *Server) listTasks(ctx context.Context, by store.Caller, cursor string) (json.RawMessage, error) {
	calls, err := s.opt.Gateway.calls.ListCalls(ctx, store.CallQuery{User: by.User, Limit: 10 * tasksPage})
	if err == nil && len(calls) == 10*tasksPage { // older ones may still wait
		var waiting []store.Call
		waiting, err = s.opt.Gateway.calls.ListCalls(ctx, store.CallQuery{User: by.User, Waiting: true, Limit: noLimit})
		oldest := calls[len(calls)-1]
		for _, c := range waiting {
			if c.Created.Before(oldest.Created) {
				calls = append(calls, c)
			}
		}
	}
	if err != nil {
		return nil, internalError(ctx, s.opt.Log, "listing tasks", err)
	}
	page := struct {
		Tasks []taskwire.Legacy `json:"tasks"`
		Next  string            `json:"nextCursor,omitempty"`
	}{Tasks: []taskwire.Legacy{}}
	for _, c := range calls { // newest first
		gone := c.State.Final() && s.opt.Now().After(c.Finished.Add(s.taskTTL()))
		if !c.Task || c.Token != by.Token || c.Replaces != "" || gone || cursor != "" && c.ID >= cursor {
			continue
		}
		if len(page.Tasks) == tasksPage {
			page.Next = page.Tasks[tasksPage-1].ID
			break
		}
		last, err := s.findTask(ctx, by, c.ID)
		if err != nil {
			continue // it ended this moment
		}
		page.Tasks = append(page.Tasks, s.taskOf(ctx, last, c.ID, true).legacy())
	}
	return mustJSON(page), nil
}

// cancelTask withdraws a task that waits and cuts off one that runs, if it hasn't
// ended. It returns the call as it is then.
func (s *Server) cancelTask(ctx context.Context, by store.Caller, c *store.Call) (*store.Call, error) {
	if c.State.Final() {
		return c, nil
	}
	g := s.opt.Gateway
	if c.Waiting() {
		now, err := g.calls.Decide(ctx, by, c.ID, store.Decision{Verb: store.Cancel, By: by.User, Name: by.Name, Surface: by.Surface, At: g.now(), Reason: store.Textf("its client cancelled the task")})
		switch {
		case err == nil:
			return &now, nil
		case !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired):
			return nil, internalError(ctx, s.opt.Log, "cancelling a task", err)
		}
	}
	told := g.waiters.subscribe(c.ID, nil)
	defer g.waiters.unsubscribe(c.ID, told)
	if g.waiters.cancelRun(c.ID) {
		settles, stop := context.WithTimeout(ctx, cancelPatience)
		defer stop()
		select {
		case <-told:
		case <-settles.Done(): // it goes on for now, and ends as its server says
		}
	}
	now, err := g.calls.GetCall(ctx, c.ID)
	if err != nil {
		return nil, internalError(ctx, s.opt.Log, "cancelling a task", err)
	}
	return &now, nil
}

// cancelPatience is how long the answer to a cancellation waits for the call's end.
const cancelPatience = 2 * time.Second

// serveTasksOverHTTP answers the methods tasks/… of a request; ok is false if it is
// none of those, and then its body can be read again.
func (s *Server) serveTasksOverHTTP(w http.ResponseWriter, r *http.Request) (ok bool) {
	version := r.Header.Get("MCP-Protocol-Version")
	named := r.Header.Get("Mcp-Method")
	if r.Method != http.MethodPost || version >= modern && named != "" && named != methodListen && !strings.HasPrefix(named, "tasks/") {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if err != nil || len(body) > maxRequest || !bytes.Contains(body, []byte("task")) {
		return false // the SDK says what is wrong
	}
	var req struct {
		ID json.RawMessage `json:"id"`
		tasksCall
	}
	if json.Unmarshal(body, &req) != nil {
		return false
	}
	info := auth.TokenInfoFromContext(r.Context())
	session := r.Header.Get("Mcp-Session-Id")
	if req.Method == "tools/call" && version < modern && hasTaskParam(body) {
		info.Extra[taskParam] = true
		info.Extra[sessionWriter] = func(m jsonrpc.Message) error { return s.fast.streams.notify(session, m) }
		return false
	}
	by, known := info.Extra["caller"].(store.Caller)
	if req.Method == methodListen && version >= modern && known && len(req.ID) > 0 {
		return s.listenOverHTTP(w, r, by, req.ID, req.tasksCall)
	}
	if len(req.ID) == 0 || !known || !req.serves(version) {
		return false
	}
	if version < modern {
		if session == "" {
			return false // the SDK says what is wrong
		}
		leave, found, _ := s.sessions.Enter(session, info.UserID, sessions.Asks)
		if !found {
			return false
		}
		defer leave()
	}
	out := &reply.Reply{W: w, ID: req.ID}
	fail := func(e *jsonrpc.Error) {
		if version >= modern {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
		}
		out.SendProblem(e)
	}
	if name := r.Header.Get("Mcp-Name"); version >= modern && (named != "" && named != req.Method || name != "" && name != req.Params.Task) {
		fail(&jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "the headers Mcp-Method and Mcp-Name do not match the request's method and taskId"})
		return true
	}
	result, err := s.serveTasks(r.Context(), by, req.tasksCall, version, out.StartStream)
	if err != nil {
		fail(wireError(err))
		return true
	}
	out.SendDocument(append(append(append(out.Head(), `"result":`...), result...), '}'))
	return true
}

// taskParams are the parameters of a call with the task parameter of 2025-11-25.
type taskParams struct {
	Task map[string]json.RawMessage `json:"task"`
}

// hasTaskParam reports whether a request has the task parameter.
func hasTaskParam(request []byte) bool {
	var r struct {
		Params taskParams `json:"params"`
	}
	return json.Unmarshal(request, &r) == nil && r.Params.Task != nil
}

// serveTasksOverConn answers the methods tasks/… of a client that has a connection of
// its own, in the background, and notes a task parameter; ok is false if the request is
// for the SDK.
func (s *Server) serveTasksOverConn(ctx context.Context, own *ownConn, by store.Caller, m *jsonrpc.Request) (ok bool) {
	if !m.IsCall() || m.Method != "tools/call" && m.Method != methodListen && !strings.HasPrefix(m.Method, "tasks/") {
		return false
	}
	req := tasksCall{Method: m.Method}
	if json.Unmarshal(m.Params, &req.Params) != nil {
		return false // the SDK says what is wrong
	}
	version := cmp.Or(req.Params.Meta.Version, legacyTasks)
	if m.Method == "tools/call" {
		var p taskParams
		if version < modern && json.Unmarshal(m.Params, &p) == nil && p.Task != nil {
			own.note(m, taskParam, true)
			own.note(m, sessionWriter, own.notify)
		}
		return false
	}
	if m.Method == methodListen {
		l, err := s.newTaskListen(ctx, by, mustJSON(m.ID.Raw()), req, own.notify)
		if err != nil {
			_ = own.Write(ctx, &jsonrpc.Response{ID: m.ID, Error: wireError(err)}) // the client has left
			return true
		}
		if l != nil {
			own.note(m, listenParam, l)
		}
		return false
	}
	if !req.serves(version) {
		return false
	}
	go func() {
		answer := &jsonrpc.Response{ID: m.ID}
		if answer.Result, answer.Error = s.serveTasks(ctx, by, req, version, nil); answer.Error != nil {
			answer.Error = wireError(answer.Error)
		}
		_ = own.Write(ctx, answer) // the client has left: nothing to do
	}()
	return true
}

// wireError is an error of [Server.serveTasks] as a client sees it.
func wireError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		e = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	return e
}
