package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// announced is the _meta of a client of 2026-07-28 that understands tasks.
const announced = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// rpcAnswer is what comes back for one request.
type rpcAnswer struct {
	Status string         `json:"-"`
	Result map[string]any `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func answerOf(t *testing.T, text string) rpcAnswer {
	t.Helper()
	status, body, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			body = data
		}
	}
	a := rpcAnswer{Status: status}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

// write calls box:write as a client that understands tasks.
func (f *front) write(token, what string) rpcAnswer {
	f.t.Helper()
	return answerOf(f.t, f.post(token, "2026-07-28", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":%q}},%s}}`, what, announced)))
}

func (f *front) task(token, method, id string) rpcAnswer {
	f.t.Helper()
	return answerOf(f.t, f.send(token, "2026-07-28", method, id, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"taskId":%q,%s}}`, method, id, announced)))
}

// A call that waits is a task at once; its result is there after the press, also after
// a restart and for a client that was gone, and for its owner alone.
func TestTaskOfAWaitingCall(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)
	made := f.write(token, "a")
	id, _ := made.Result["taskId"].(string)
	if made.Result["resultType"] != "task" || made.Result["status"] != "working" || id == "" || !strings.Contains(fmt.Sprint(made.Result["statusMessage"]), "waiting for approval by root") {
		t.Fatalf("%+v", made)
	}
	if again := f.write(token, "a"); again.Result["taskId"] != id {
		t.Errorf("the same call again is task %v, want %s", again.Result["taskId"], id)
	}
	if card, err := f.gateway.Card(t.Context(), id); err != nil || card.Gone {
		t.Errorf("its card says that nobody waits: %+v, %v", card, err)
	}
	got := f.task(token, "tasks/get", id)
	if got.Result["status"] != "working" || got.Result["resultType"] != "complete" || got.Result["result"] != nil || got.Result["ttlMs"].(float64) < 24*3600*1000 || got.Result["pollIntervalMs"].(float64) < 1000 {
		t.Errorf("%+v", got)
	}

	f.stop() // as a restart
	f.open("second")
	f.run()
	f.serve()()
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "working" {
		t.Errorf("after a restart: %+v", got)
	}
	c := f.waiting()
	if _, err := f.press(f.root, &c, store.Approve); err != nil {
		t.Fatal(err)
	}
	f.wait(id)
	for range 2 { // the result can be fetched again
		got = f.task(token, "tasks/get", id)
		result, _ := got.Result["result"].(map[string]any)
		if got.Result["status"] != "completed" || result == nil || result["isError"] != nil || result["content"] == nil {
			t.Fatalf("%+v", got)
		}
	}
	if n := f.runner.runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	for _, method := range []string{"tasks/cancel", "tasks/update"} {
		if got := f.task(token, method, id); got.Error != nil || got.Result["resultType"] != "complete" || len(got.Result) != 1 {
			t.Errorf("%s of one that has ended: %+v", method, got)
		}
	}
	if got := f.task(f.token("other", time.Hour, "tools:box:look"), "tasks/get", id); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("a token that may not use the tool: %+v", got)
	}
	if got := f.task(f.token("refreshed", time.Hour), "tasks/get", id); got.Result["status"] != "completed" {
		t.Errorf("another token of the person: %+v", got)
	}
	if got := f.task(f.strangersToken(), "tasks/get", id); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("somebody else: %+v", got)
	}
	if got := f.task(token, "tasks/get", "01NONE"); got.Error == nil || got.Error.Code != -32602 || got.Status != "400 Bad Request" {
		t.Errorf("no task: %+v", got)
	}
}

// strangersToken is a token of the member.
func (f *front) strangersToken() string {
	f.t.Helper()
	secret, made := store.NewToken(time.Now())
	_, err := f.db.CreateToken(f.t.Context(), f.root, store.Token{ID: made.ID, Name: "hers", User: f.member.User, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Created: time.Now(), Expires: time.Now().Add(time.Hour)}, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return secret.Reveal()
}

// What a person declines, or edits, is told by the task of the call.
func TestTaskAfterADecision(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)

	id := f.write(token, "declined").Result["taskId"].(string)
	c := f.waiting()
	if _, err := f.press(f.root, &c, store.Deny); err != nil {
		t.Fatal(err)
	}
	got := f.task(token, "tasks/get", id)
	if result, _ := got.Result["result"].(map[string]any); got.Result["status"] != "completed" || result["isError"] != true {
		t.Errorf("declined: %+v", got)
	}

	id = f.write(token, "edited").Result["taskId"].(string)
	c = f.waiting()
	next, err := f.gateway.Decide(t.Context(), f.root, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"what":"other"}`)})
	if err != nil {
		t.Fatal(err)
	}
	f.wait(next.ID)
	got = f.task(token, "tasks/get", id)
	if text := fmt.Sprint(got.Result["result"]); got.Result["status"] != "completed" || got.Result["taskId"] != id || !strings.Contains(text, "other") {
		t.Errorf("edited: %+v", got)
	}

	id = f.write(token, "withdrawn").Result["taskId"].(string)
	if got := f.task(token, "tasks/cancel", id); got.Error != nil {
		t.Errorf("cancelling: %+v", got)
	}
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "cancelled" {
		t.Errorf("cancelled: %+v", got)
	}
}

// A call that runs for a while is a task after mcp.task_after, with its record on
// disk, and can be cut off. One that is quick is answered at once.
func TestTaskOfALongCall(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)
	look := func() rpcAnswer {
		return answerOf(t, f.post(token, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x"}},`+announced+`}}`))
	}
	f.config.set("mcp.task_after", "1h")
	if got := look(); got.Result["resultType"] != "complete" || got.Result["content"] == nil {
		t.Errorf("a quick call: %+v", got)
	}
	f.config.set("mcp.task_after", "0s")
	f.runner.hold = make(chan struct{})
	long := look()
	id, _ := long.Result["taskId"].(string)
	if long.Result["resultType"] != "task" || f.task(token, "tasks/get", id).Result["status"] != "working" {
		t.Fatalf("a long call: %+v", long)
	}
	f.runner.hold <- struct{}{}
	f.wait(id)
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "completed" {
		t.Errorf("after its end: %+v", got)
	}
	cut := look().Result["taskId"].(string)
	if got := f.task(token, "tasks/cancel", cut); got.Error != nil {
		t.Errorf("cancelling: %+v", got)
	}
	f.wait(cut)
	if got := f.task(token, "tasks/get", cut); got.Result["status"] != "cancelled" && got.Result["status"] != "completed" {
		t.Errorf("after it was cut off: %+v", got)
	}
	f.config.set("mcp.task_ttl", "10m")
	f.ahead.Store(int64(9 * time.Minute))
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "completed" {
		t.Errorf("before its time is over: %+v", got)
	}
	f.ahead.Store(int64(11 * time.Minute))
	if got := f.task(token, "tasks/get", id); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("after its time: %+v", got)
	}
}

// A client that does not say that it understands tasks gets none, and is told what it
// lacks if it asks for one; headers that don't match are refused.
func TestTasksOnlyForThoseWhoSaySo(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)
	plain := strings.Replace(announced, `"io.modelcontextprotocol/tasks":{}`, ``, 1)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		got := answerOf(t, f.send(token, "2026-07-28", method, "x", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"taskId":"x",%s}}`, method, plain)))
		if got.Error == nil || got.Error.Code != -32021 || got.Status != "400 Bad Request" || !strings.Contains(string(got.Error.Data), "io.modelcontextprotocol/tasks") {
			t.Errorf("%s: %+v", method, got)
		}
	}
	for _, method := range []string{"tasks/result", "tasks/list"} {
		got := answerOf(t, f.send(token, "2026-07-28", method, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"taskId":"x",%s}}`, method, announced)))
		if got.Error == nil || got.Error.Code != -32601 {
			t.Errorf("%s: %+v", method, got)
		}
	}
	id := f.write(token, "a").Result["taskId"].(string)
	got := answerOf(t, f.send(token, "2026-07-28", "tasks/get", "wrong", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q,%s}}`, id, announced)))
	if got.Error == nil || got.Error.Code != -32020 || got.Status != "400 Bad Request" {
		t.Errorf("another name in the header: %+v", got)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	s := f.client(token, "2026-07-28", nil)
	done := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "sync"}}})
		done <- err
	}()
	waiting := 0
	f.until("both wait", func() error {
		list, err := f.db.ListCalls(t.Context(), store.CallQuery{Waiting: true})
		waiting = len(list)
		return err
	}, func() bool { return waiting == 2 })
	select {
	case err := <-done:
		t.Errorf("a client without tasks was answered before the press: %v", err)
	default:
	}
}

// session begins a session of 2025-11-25 and returns its id.
func (f *front) session(token string) string {
	f.t.Helper()
	return f.sessionWith(token, `{}`)
}

func (f *front) sessionWith(token, capabilities string) string {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url, strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Mcp-Session-Id")
}

// A client of 2025-11-25 gets a task for the task parameter, over HTTP and over a
// connection of its own, and finds the server's word that it can.
func TestLegacyTasks(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)
	session := f.session(token)
	n := 0
	post := func(method, params string) rpcAnswer {
		n++
		req, err := http.NewRequestWithContext(t.Context(), "POST", f.url, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, n, method, params)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		req.Header.Set("Mcp-Session-Id", session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answerOf(t, resp.Status+"\n"+string(body))
	}
	list := post("tools/list", `{}`)
	if !strings.Contains(fmt.Sprint(list.Result), "taskSupport:optional") {
		t.Errorf("tools/list: %+v", list)
	}
	made := post("tools/call", `{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"a"}},"task":{"ttl":60000}}`)
	task, _ := made.Result["task"].(map[string]any)
	id, _ := task["taskId"].(string)
	if task["status"] != "working" || task["ttl"] == nil || task["createdAt"] == nil || id == "" {
		t.Fatalf("%+v", made)
	}
	if got := post("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)); got.Result["status"] != "working" || got.Result["taskId"] != id {
		t.Errorf("%+v", got)
	}
	if got := post("tasks/list", `{}`); !strings.Contains(fmt.Sprint(got.Result["tasks"]), id) {
		t.Errorf("%+v", got)
	}
	results := make(chan rpcAnswer, 1)
	go func() { results <- post("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)) }()
	c := f.waiting()
	if _, err := f.press(f.root, &c, store.Approve); err != nil {
		t.Fatal(err)
	}
	got := <-results
	if got.Result["content"] == nil || !strings.Contains(fmt.Sprint(got.Result["_meta"]), id) {
		t.Errorf("tasks/result: %+v", got)
	}
	if got := post("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)); got.Result["status"] != "completed" {
		t.Errorf("%+v", got)
	}
	if got := post("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("cancelling what has ended: %+v", got)
	}
	if got := post("tools/call", `{"name":"execute_tool","arguments":{"tool_id":"box:none","params":{}},"task":{}}`); got.Error == nil {
		t.Errorf("a call that never came to be: %+v", got)
	}
	quick := post("tools/call", `{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"a"}},"task":{}}`)
	if task, _ := quick.Result["task"].(map[string]any); task == nil {
		t.Errorf("a quick call: %+v", quick)
	}
}

// A client on a connection of its own has tasks in both forms.
func TestTasksOverAConnection(t *testing.T) {
	f := newFront(t, nil)
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- f.server.ServeConn(t.Context(), f.root, theirs) }()
	lines := bufio.NewScanner(ours)
	send := func(line string) {
		if _, err := io.WriteString(ours, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	ask := func(line string) rpcAnswer {
		t.Helper()
		go send(line)
		for lines.Scan() {
			if a := answerOf(t, "\n"+lines.Text()); a.Result != nil || a.Error != nil { // no notification
				return a
			}
		}
		t.Fatalf("no answer: %v", lines.Err())
		return rpcAnswer{}
	}
	if got := ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); !strings.Contains(fmt.Sprint(got.Result["capabilities"]), "tasks:map[cancel:") {
		t.Errorf("%+v", got)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	made := ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"a"}},"task":{}}}`)
	task, _ := made.Result["task"].(map[string]any)
	id, _ := task["taskId"].(string)
	if got := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q}}`, id)); got.Result["status"] != "working" {
		t.Errorf("%+v of %+v", got, made)
	}
	if got := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":%q}}`, id)); got.Result["status"] != "cancelled" {
		t.Errorf("%+v", got)
	}
	ours.Close()
	<-ended
}
