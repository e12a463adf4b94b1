package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// notice is a message that a server sends by itself.
type notice struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Task          string         `json:"taskId"`
		Status        string         `json:"status"`
		Message       string         `json:"statusMessage"`
		Text          string         `json:"message"`
		Result        map[string]any `json:"result"`
		Inputs        map[string]any `json:"inputRequests"`
		Progress      float64        `json:"progress"`
		Meta          map[string]any `json:"_meta"`
		Notifications struct {
			Tasks []string `json:"taskIds"`
			Tools bool     `json:"toolsListChanged"`
		} `json:"notifications"`
	} `json:"params"`
}

// notices reads what a server sends until one matches, and returns it. It fails if a
// notification names another task than those allowed.
type notices struct {
	t       *testing.T
	next    func() ([]byte, error)
	allowed []string
}

func (n *notices) until(what string, matches func(notice) bool) notice {
	n.t.Helper()
	var seen []string
	for {
		raw, err := n.next()
		if err != nil {
			n.t.Fatalf("%s: %v after %s", what, err, strings.Join(seen, "\n"))
		}
		var got notice
		if err := json.Unmarshal(raw, &got); err != nil {
			n.t.Fatalf("%s: %v", raw, err)
		}
		seen = append(seen, string(raw))
		if strings.HasPrefix(got.Method, "notifications/tasks") && !slices.Contains(n.allowed, got.Params.Task) {
			n.t.Fatalf("a notification of another's task: %s", raw)
		}
		if matches(got) {
			return got
		}
	}
}

func (n *notices) status(method, task, status, message string) notice {
	n.t.Helper()
	return n.until(fmt.Sprintf("%s of %s: %s %q", method, task, status, message), func(got notice) bool {
		return got.Method == method && got.Params.Task == task && got.Params.Status == status && strings.Contains(got.Params.Message, message)
	})
}

// events reads the messages of an event stream.
func events(body io.Reader) func() ([]byte, error) {
	lines := bufio.NewReader(body)
	return func() ([]byte, error) {
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			if data, ok := strings.CutPrefix(string(line), "data:"); ok && strings.TrimSpace(data) != "" {
				return []byte(data), nil
			}
		}
	}
}

// open opens a stream at the server.
func (f *front) stream(method, token, version, session, rpc, body string) io.ReadCloser {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	f.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", version)
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if rpc != "" {
		req.Header.Set("Mcp-Method", rpc)
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("%s: %s", resp.Status, b)
	}
	return resp.Body
}

func listenFor(id string, meta string, tasks ...string) string {
	b, _ := json.Marshal(tasks)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"taskIds":%s},%s}}`, id, b, meta)
}

func approve(t *testing.T, f *front, id string) {
	t.Helper()
	approveAs(t, f, f.root, id)
}

func approveAs(t *testing.T, f *front, by store.Caller, id string) {
	t.Helper()
	c, err := f.db.GetCall(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.press(by, &c, store.Approve); err != nil {
		t.Fatal(err)
	}
}

// A client of 2026-07-28 subscribes to its tasks: it is acknowledged those that it may
// read, gets the state of each and every change of it, with progress and the result, also
// for a call that a person edited. Tasks of others stay silent.
func TestTaskSubscription(t *testing.T) {
	f := newFront(t, nil)
	f.runner.hold = make(chan struct{})
	token := f.token("mine", time.Hour)
	first := f.write(token, "first").Result["taskId"].(string)
	second := f.write(token, "second").Result["taskId"].(string)
	other := f.write(f.strangersToken(), "hers").Result["taskId"].(string)

	plain := strings.Replace(announced, `"io.modelcontextprotocol/tasks":{}`, ``, 1)
	if got := answerOf(t, f.send(token, "2026-07-28", "subscriptions/listen", "", listenFor("1", plain, first))); got.Error == nil || got.Error.Code != -32021 || got.Status != "400 Bad Request" {
		t.Errorf("a client without the extension: %+v", got)
	}
	body := f.stream("POST", token, "2026-07-28", "", "subscriptions/listen", listenFor("9007199254740993", announced, first, second, first, other, "01NONE"))
	n := &notices{t, events(body), []string{first, second}}
	ack := n.until("the acknowledgement", func(notice) bool { return true })
	if ack.Method != "notifications/subscriptions/acknowledged" || !slices.Equal(ack.Params.Notifications.Tasks, []string{first, second}) || !ack.Params.Notifications.Tools {
		t.Fatalf("the first message: %+v", ack)
	}
	got := n.status("notifications/tasks", first, "working", "waiting for approval by root")
	if id := got.Params.Meta["io.modelcontextprotocol/subscriptionId"]; fmt.Sprint(id) != fmt.Sprint(ack.Params.Meta["io.modelcontextprotocol/subscriptionId"]) || id == nil {
		t.Errorf("subscription %v, acknowledged as %v", id, ack.Params.Meta)
	}
	n.status("notifications/tasks", second, "working", "waiting for approval")

	approveAs(t, f, f.member, other)
	f.runner.hold <- struct{}{} // ends that of the other person
	f.wait(other)
	approve(t, f, first)
	n.status("notifications/tasks", first, "working", "running: 1 of 2, half way")
	f.runner.hold <- struct{}{}
	if got := n.status("notifications/tasks", first, "completed", ""); got.Params.Result["content"] == nil || got.Params.Result["resultType"] != "complete" {
		t.Errorf("the end: %+v", got)
	}

	c, err := f.db.GetCall(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.gateway.Decide(t.Context(), f.root, second, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"what":"edited"}`)}); err != nil {
		t.Fatal(err)
	}
	n.status("notifications/tasks", second, "working", "running")
	f.runner.hold <- struct{}{}
	if got := n.status("notifications/tasks", second, "completed", ""); !strings.Contains(fmt.Sprint(got.Params.Result), "edited") {
		t.Errorf("the end of the edited call: %+v", got)
	}

	// One that ended before: its state comes at once.
	late := &notices{t, events(f.stream("POST", token, "2026-07-28", "", "subscriptions/listen", listenFor(`"late"`, announced, first))), []string{first}}
	if got := late.status("notifications/tasks", first, "completed", ""); got.Params.Meta["io.modelcontextprotocol/subscriptionId"] != "late" {
		t.Errorf("%+v", got)
	}
}

// A revoked token ends its subscription, and nothing more is sent on it.
func TestTaskSubscriptionEndsWithItsToken(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("mine", time.Hour)
	id := f.write(token, "a").Result["taskId"].(string)
	n := &notices{t, events(f.stream("POST", token, "2026-07-28", "", "subscriptions/listen", listenFor("1", announced, id))), []string{id}}
	n.status("notifications/tasks", id, "working", "")
	if _, err := f.db.RevokeTokens(t.Context(), f.root, f.root.User, "mine"); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := n.next(); err != nil {
			return
		}
	}
}

// A client of 2025-11-25 that listens is told of the tasks that its session made, and of
// the progress for which it gave a token with the call. Another session hears nothing.
func TestLegacyTaskNotifications(t *testing.T) {
	f := newFront(t, nil)
	f.runner.hold = make(chan struct{})
	token := f.token("mine", time.Hour)
	session, silent := f.session(token), f.session(token)
	n := &notices{t, events(f.stream("GET", token, "2025-11-25", session, "", "")), nil}
	quiet := f.stream("GET", token, "2025-11-25", silent, "", "")
	call := f.stream("POST", token, "2025-11-25", session, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"a"}},"task":{},"_meta":{"progressToken":"p"}}}`)
	raw, err := io.ReadAll(call)
	if err != nil {
		t.Fatal(err)
	}
	made := answerOf(t, "200\n"+string(raw))
	task, _ := made.Result["task"].(map[string]any)
	id, _ := task["taskId"].(string)
	n.allowed = []string{id}
	approve(t, f, id)
	n.status("notifications/tasks/status", id, "working", "running: 1 of 2, half way")
	f.runner.hold <- struct{}{}
	n.status("notifications/tasks/status", id, "completed", "")
	_ = quiet.Close()
	rest, _ := io.ReadAll(quiet)
	if strings.Contains(string(rest), id) {
		t.Errorf("another session was told: %s", rest)
	}

	f.runner.hold = nil
	// A quick call is a task that has ended: there is nothing to notify of, but its progress
	// was sent.
	_ = f.stream("POST", token, "2025-11-25", session, "", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"a"}},"task":{},"_meta":{"progressToken":"q"}}}`)
}

// A client on a connection of its own is notified in both forms.
func TestTaskNotificationsOverAConnection(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.runner.hold = make(chan struct{})
			ours, theirs := net.Pipe()
			ended := make(chan error, 1) // the one result of ServeConn
			go func() { ended <- f.server.ServeConn(t.Context(), f.root, theirs) }()
			lines := bufio.NewScanner(ours)
			n := &notices{t: t, next: func() ([]byte, error) {
				if !lines.Scan() {
					return nil, fmt.Errorf("no more: %v", lines.Err())
				}
				return lines.Bytes(), nil
			}}
			send := func(line string) {
				if _, err := io.WriteString(ours, line+"\n"); err != nil {
					t.Error(err)
				}
			}
			answer := func() map[string]any {
				t.Helper()
				for {
					raw, err := n.next()
					if err != nil {
						t.Fatal(err)
					}
					if a := answerOf(t, "\n"+string(raw)); a.Result != nil {
						return a.Result
					}
				}
			}
			method, id := "notifications/tasks", ""
			if version == "2025-11-25" {
				method = "notifications/tasks/status"
				go send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
				answer()
				send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				go send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"a"}},"task":{},"_meta":{"progressToken":"p"}}}`)
				task, _ := answer()["task"].(map[string]any)
				id, _ = task["taskId"].(string)
			} else {
				go send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"a"}},` + announced + `}}`)
				id, _ = answer()["taskId"].(string)
				go send(listenFor(`"l"`, announced, id))
			}
			n.allowed = []string{id}
			if version == "2026-07-28" {
				n.status(method, id, "working", "waiting for approval")
			}
			approve(t, f, id)
			progress, status := version == "2026-07-28", false // a request's progress ends with its response
			n.until("the progress, in either order", func(got notice) bool {
				progress = progress || got.Method == "notifications/progress" && got.Params.Progress == 1
				status = status || got.Method == method && got.Params.Message == "running: 1 of 2, half way"
				return progress && status
			})
			f.runner.hold <- struct{}{}
			n.status(method, id, "completed", "")
			ours.Close()
			<-ended
		})
	}
}

// A task of 2025-11-25 whose server asks is input_required, and its client is asked over the
// session that made it. If the session can't be asked, its person gets a card.
func TestLegacyTaskThatAsks(t *testing.T) {
	for _, listens := range []bool{true, false} {
		t.Run(fmt.Sprintf("listens=%v", listens), func(t *testing.T) {
			f := newFront(t, nil)
			f.asksPerson(form)
			token := f.token("mine", time.Hour)
			session := f.sessionWith(token, `{"elicitation":{}}`)
			var n *notices
			if listens {
				n = &notices{t: t, next: events(f.stream("GET", token, "2025-11-25", session, "", ""))}
			}
			post := func(body string) rpcAnswer {
				t.Helper()
				raw, err := io.ReadAll(f.stream("POST", token, "2025-11-25", session, "", body))
				if err != nil {
					t.Fatal(err)
				}
				return answerOf(t, "200\n"+string(raw))
			}
			made := post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"a"}},"task":{}}}`)
			task, _ := made.Result["task"].(map[string]any)
			id, _ := task["taskId"].(string)
			want := `accept {"name":"Ann"}`
			post(fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":%q}}`, id)) // it knows its task
			if listens {
				n.allowed = []string{id}
				asked := n.until("the question", func(got notice) bool { return got.Method == "elicitation/create" })
				if of, _ := asked.Params.Meta["io.modelcontextprotocol/related-task"].(map[string]any); of["taskId"] != id || asked.Params.Text != "box:look asks: Who is it for?" {
					t.Errorf("asked %+v", asked)
				}
				if got := post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q}}`, id)); got.Result["status"] != "input_required" || got.Result["inputRequests"] != nil {
					t.Errorf("while it asks: %+v", got)
				}
				f.reply(token, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Ann"}}}`, asked.ID))
			} else {
				card := f.waiting()
				if card.Question == nil || card.Question.Of != id {
					t.Fatalf("the card: %+v", card)
				}
				if _, err := f.gateway.Decide(t.Context(), f.root, card.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"name":"Ann"}`)}); err != nil {
					t.Fatal(err)
				}
			}
			f.wait(id)
			if got := post(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":%q}}`, id)); !strings.Contains(fmt.Sprint(got.Result["content"]), want) {
				t.Errorf("the result: %+v", got)
			}
		})
	}
}

// reply sends a response to a request of the server.
func (f *front) reply(token, session, body string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		f.t.Errorf("a response: %s", resp.Status)
	}
}
