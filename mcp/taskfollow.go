package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/reply"
	"nize/mcp/taskwire"
	"nize/store"
	"nize/store/eventstream"
)

// A client is notified of changes of its tasks, so that it doesn't have to poll. A client
// of 2026-07-28 names the tasks in subscriptions/listen; a client of 2025-11-25 is notified
// of the tasks that its session made. Notifications are a convenience: one that can't be
// delivered is dropped, and tasks/get has the same state.
//
// The SDK can't send these notifications. They are written to the stream on which the SDK
// sends its own, between two of its events.

// taskFollower notifies one client of changes of tasks.
type taskFollower struct {
	server *Server
	by     store.Caller
	legacy bool
	send   func(method string, params json.RawMessage)

	mu     sync.Mutex
	tasks  map[string]*followedTask // by id
	due    []string                 // ids of tasks that changed
	busy   bool
	closed bool
	work   sync.WaitGroup
}

// followedTask is one task of a follower, guarded by its lock.
type followedTask struct {
	stops map[string]func() // by call id: ends the watch; several if people edited the call
	sent  string            // the last notification
	ended bool
}

func (s *Server) newTaskFollower(by store.Caller, legacy bool, send func(method string, params json.RawMessage)) *taskFollower {
	return &taskFollower{server: s, by: by, legacy: legacy, send: send, tasks: map[string]*followedTask{}}
}

// follow begins to notify the client of a task. known is the notification of the state that
// the client knows, "" if it knows none.
func (f *taskFollower) follow(task, known string) {
	f.mu.Lock()
	f.tasks[task] = &followedTask{stops: map[string]func(){}, sent: known}
	f.watchLocked(task, task)
	f.mu.Unlock()
	f.setDue(task) // it may have changed before
}

// watchLocked watches the call that a task is now. f.mu must be held.
func (f *taskFollower) watchLocked(task, call string) {
	one := f.tasks[task]
	if f.closed || one.ended || one.stops[call] != nil {
		return
	}
	one.stops[call] = f.server.opt.Gateway.waiters.watch(call, func() { f.setDue(task) })
}

// setDue notifies the client of a task in the background. It doesn't block.
func (f *taskFollower) setDue(task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.tasks[task].ended {
		return
	}
	if !slices.Contains(f.due, task) {
		f.due = append(f.due, task)
	}
	if !f.busy {
		f.busy = true
		f.work.Go(f.notifyAll)
	}
}

func (f *taskFollower) notifyAll() {
	for {
		f.mu.Lock()
		if f.closed || len(f.due) == 0 {
			f.busy = false
			f.mu.Unlock()
			return
		}
		task := f.due[0]
		f.due = f.due[1:]
		f.mu.Unlock()
		f.notify(task)
	}
}

// notify sends the state of a task if it changed.
func (f *taskFollower) notify(task string) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyPatience)
	defer cancel()
	s := f.server
	c, err := s.findTask(ctx, f.by, task)
	if err != nil {
		return // the caller may no longer read it
	}
	t := s.taskOf(ctx, c, task, f.legacy)
	method, params := f.message(t)
	f.mu.Lock()
	one := f.tasks[task]
	f.watchLocked(task, c.ID) // the call that replaced it, if a person edited it
	same := one.sent == string(params)
	one.sent = string(params)
	if taskwire.Ended(t.status) {
		one.end()
	}
	f.mu.Unlock()
	if !same {
		f.send(method, params)
	}
}

// message returns the notification of a state.
func (f *taskFollower) message(t task) (method string, params json.RawMessage) {
	if f.legacy {
		return taskwire.LegacyNotification, mustJSON(t.legacy())
	}
	return taskwire.Notification, mustJSON(t.detailed(""))
}

// notifyPatience limits the time that one notification may take.
const notifyPatience = 10 * time.Second

// end stops the watches. The follower's lock must be held.
func (t *followedTask) end() {
	t.ended, t.sent = true, ""
	for _, stop := range t.stops {
		stop()
	}
	t.stops = nil
}

// close ends all notifications. It waits for one that is being sent.
func (f *taskFollower) close() {
	f.mu.Lock()
	f.closed = true
	for _, t := range f.tasks {
		t.end()
	}
	f.mu.Unlock()
	f.work.Wait()
}

// taskListen is a subscriptions/listen that names tasks.
type taskListen struct {
	tasks []string // ids of those that the caller may read
	id    json.RawMessage
	write func(jsonrpc.Message) error
	acked chan struct{} // closed when the client got the list of its subscriptions
}

// listenKey is the context key of the *taskListen of a request, and its key in
// [auth.TokenInfo.Extra].
type listenKey struct{}

const (
	listenParam  = "task listen"
	methodListen = "subscriptions/listen"
)

// newTaskListen returns the tasks of a subscriptions/listen, or nil if it names none.
func (s *Server) newTaskListen(ctx context.Context, by store.Caller, id json.RawMessage, r tasksCall, write func(jsonrpc.Message) error) (*taskListen, error) {
	if len(r.Params.Notifications.Tasks) == 0 {
		return nil, nil
	}
	if _, ok := r.Params.Meta.Client.Extensions[taskwire.Extension]; !ok {
		return nil, errNoTasks()
	}
	l := &taskListen{id: id, write: write, tasks: []string{}, acked: make(chan struct{})}
	for _, task := range r.Params.Notifications.Tasks {
		if _, err := s.findTask(ctx, by, task); err == nil && !slices.Contains(l.tasks, task) {
			l.tasks = append(l.tasks, task)
		}
	}
	return l, nil
}

// listenOf returns the tasks that a request subscribes to.
func listenOf(method string, req sdk.Request) (l *taskListen, by store.Caller, ok bool) {
	if method != methodListen {
		return nil, by, false
	}
	by, known := callerOf(req)
	if !known {
		return nil, by, false
	}
	l, ok = req.GetExtra().TokenInfo.Extra[listenParam].(*taskListen)
	return l, by, ok
}

// listenOverHTTP prepares a subscriptions/listen for the SDK if it names tasks. It reports
// whether it answered the request.
func (s *Server) listenOverHTTP(w http.ResponseWriter, r *http.Request, by store.Caller, id json.RawMessage, req tasksCall) (answered bool) {
	stream := &notificationStream{ResponseWriter: w}
	l, err := s.newTaskListen(r.Context(), by, id, req, stream.notify)
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		(&reply.Reply{W: w, ID: id}).SendProblem(wireError(err))
		return true
	}
	if l == nil {
		return false
	}
	defer stream.close()
	auth.TokenInfoFromContext(r.Context()).Extra[listenParam] = l
	s.stateless.ServeHTTP(stream, r)
	return true
}

// send sends a notification of the subscription.
func (l *taskListen) send(method string, params json.RawMessage) {
	meta := mustJSON(map[string]json.RawMessage{sdk.MetaKeySubscriptionID: l.id})
	_ = l.write(&jsonrpc.Request{Method: method, Params: setField(params, "_meta", meta)}) // the client has left
}

// listen serves a subscriptions/listen that names tasks. The SDK serves the rest of it. The
// client first gets the current state of each task, in case it changed before.
func (s *Server) listen(ctx context.Context, by store.Caller, l *taskListen, next func(context.Context) (sdk.Result, error)) (sdk.Result, error) {
	f := s.newTaskFollower(by, false, l.send)
	defer f.close()
	go func() {
		select {
		case <-l.acked:
		case <-ctx.Done():
			return
		}
		for _, task := range l.tasks {
			f.follow(task, "")
		}
	}()
	res, err := next(context.WithValue(ctx, listenKey{}, l))
	if err == nil && len(l.tasks) > 0 {
		<-ctx.Done()
	}
	return res, err
}

// ackedTasks are the parameters of notifications/subscriptions/acknowledged, with tasks.
type ackedTasks struct {
	*sdk.SubscriptionsAcknowledgedParams
	tasks []string
}

func (a *ackedTasks) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(a.SubscriptionsAcknowledgedParams)
	if err != nil {
		return nil, err
	}
	honoured := setField(mustJSON(a.Notifications), "taskIds", mustJSON(a.tasks))
	return setField(b, "notifications", honoured), nil
}

// acknowledgeTasks adds the tasks to the acknowledgement of a subscriptions/listen.
func (s *Server) acknowledgeTasks(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		l, ok := ctx.Value(listenKey{}).(*taskListen)
		p, is := req.GetParams().(*sdk.SubscriptionsAcknowledgedParams)
		ss, of := req.GetSession().(*sdk.ServerSession)
		if !ok || !is || !of {
			return next(ctx, method, req)
		}
		defer close(l.acked)
		return next(ctx, method, &sdk.ServerRequest[*ackedTasks]{Session: ss, Params: &ackedTasks{p, l.tasks}})
	}
}

// followLegacy notifies a client of 2025-11-25 of a task that its session made.
func (s *Server) followLegacy(by store.Caller, info *auth.TokenInfo, made task) {
	write, ok := info.Extra[sessionWriter].(func(jsonrpc.Message) error)
	if !ok || taskwire.Ended(made.status) {
		return
	}
	f := s.newTaskFollower(by, true, func(method string, params json.RawMessage) {
		_ = write(&jsonrpc.Request{Method: method, Params: params}) // the client doesn't listen now
	})
	_, known := f.message(made)
	f.follow(made.id, string(known))
}

// sessionWriter is the key in [auth.TokenInfo.Extra] of a function that sends a message to
// the client of a session.
const sessionWriter = "session writer"

// notificationStream is an event stream of the SDK, to which notifications are written
// between its events. The SDK writes each event at once.
type notificationStream struct {
	http.ResponseWriter

	mu     sync.Mutex
	status int // of the head, 0 before it is written
	closed bool
}

func (n *notificationStream) WriteHeader(status int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = cmp.Or(n.status, status)
	n.ResponseWriter.WriteHeader(status)
}

func (n *notificationStream) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = cmp.Or(n.status, http.StatusOK)
	return n.ResponseWriter.Write(b)
}

func (n *notificationStream) Flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = cmp.Or(n.status, http.StatusOK)
	_ = http.NewResponseController(n.ResponseWriter).Flush()
}

var errNoStream = errors.New("the client has no stream open")

// notify writes a message as an event.
func (n *notificationStream) notify(m jsonrpc.Message) error {
	doc, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a notification: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.status != http.StatusOK || n.closed {
		return errNoStream
	}
	c := http.NewResponseController(n.ResponseWriter)
	_ = c.SetWriteDeadline(time.Now().Add(notifyPatience)) // not supported by every writer
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	if _, err := n.ResponseWriter.Write(eventstream.Event{Name: "message", Data: doc}.Append(nil)); err != nil {
		return err
	}
	return c.Flush()
}

// close ends the notifications, because the request has ended.
func (n *notificationStream) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}

// sessionStreams holds the streams of each session whose client listens. There may be several
// for a moment: the SDK refuses a second one, and accepts the next one before the handler of
// the last one has ended.
type sessionStreams struct {
	mu   sync.Mutex
	open map[string][]*notificationStream
}

// enter adds a stream of a session until leave is called.
func (ss *sessionStreams) enter(session string, w http.ResponseWriter) (n *notificationStream, leave func()) {
	n = &notificationStream{ResponseWriter: w}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = map[string][]*notificationStream{}
	}
	ss.open[session] = append(ss.open[session], n)
	return n, func() {
		n.close()
		ss.mu.Lock()
		defer ss.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(ss.open[session]), func(o *notificationStream) bool { return o == n })
		if ss.open[session] = left; len(left) == 0 {
			delete(ss.open, session)
		}
	}
}

// notify sends a message to the client of a session.
func (ss *sessionStreams) notify(session string, m jsonrpc.Message) error {
	ss.mu.Lock()
	streams := ss.open[session]
	ss.mu.Unlock()
	err := errNoStream // the client may listen later
	for _, n := range slices.Backward(streams) {
		if err = n.notify(m); err == nil {
			return nil
		}
	}
	return err
}
