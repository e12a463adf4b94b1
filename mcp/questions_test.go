package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/store"
)

// form asks for a name and a number.
var form = taskwire.Elicit{Mode: "form", Message: "Who is it for?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","maxLength":10},"n":{"type":"integer"}},"required":["name"]}`)}

// asks makes each call one whose server asks e, and answers with what became of that.
func (f *fixture) asksPerson(e taskwire.Elicit) {
	f.runner.act = func(ctx context.Context, c *store.Call) (*store.Result, error) {
		a, err := f.gateway.AskRequester(ctx, c, e)
		if err != nil {
			return nil, err
		}
		return &store.Result{Raw: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, a.Action+" "+string(a.Content)))}, nil
	}
}

var look = &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:look", "params": map[string]any{"what": "x"}}}

// What a server asks while a call runs goes to the client that made the call, if that
// can ask its person, and its answer to the server.
func TestQuestionGoesToTheClient(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.asksPerson(form)
			var message atomic.Value
			answer := &sdk.ElicitResult{}
			s := f.client(f.token("client", time.Hour), version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				message.Store(r.Params.Message)
				return answer, nil
			}})
			for _, want := range []struct {
				answer *sdk.ElicitResult
				text   string
			}{
				{&sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann", "n": 3}}, `accept {"n":3,"name":"Ann"}`},
				{&sdk.ElicitResult{Action: "decline"}, "decline"},
				{&sdk.ElicitResult{Action: "cancel"}, "cancel"},
			} {
				answer = want.answer
				r, err := s.CallTool(t.Context(), look)
				if err != nil || r.IsError || !strings.HasPrefix(r.Content[0].(*sdk.TextContent).Text, want.text) {
					t.Errorf("%+v: %+v, %v", want.answer, r, err)
				}
			}
			if m, _ := message.Load().(string); m != "box:look asks: Who is it for?" {
				t.Errorf("the client was asked %q", m)
			}
			calls, err := f.db.ListCalls(t.Context(), store.CallQuery{})
			if err != nil || len(calls) != 3 || calls[0].State != store.Done {
				t.Errorf("%d calls, %v", len(calls), err)
			}
		})
	}
}

// Who can't be asked declines, and nobody is asked for a secret.
func TestQuestionOfNobody(t *testing.T) {
	f := newFront(t, nil)
	secret := form
	secret.Schema = json.RawMessage(`{"type":"object","properties":{"apiKey":{"type":"string"}}}`)
	f.asksPerson(secret)
	asked := f.client(f.token("client", time.Hour), "2026-07-28", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		t.Error("the client was asked for a secret")
		return nil, errors.New("no")
	}})
	r, err := asked.CallTool(t.Context(), look)
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "nizectl credentials set") {
		t.Errorf("%+v, %v", r, err)
	}
	f.asksPerson(form)
	project := store.Caller{User: f.member.User, Name: "program", Role: store.Member, Surface: store.OnHTTP}
	c, err := f.gateway.Call(t.Context(), project, store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)})
	if err != nil || !strings.Contains(c.Result.Text(), "decline") {
		t.Errorf("a program: %+v, %v", c, err)
	}
}

// question returns the question that waits for a user.
func (h *fixture) question(user string) store.Call {
	h.t.Helper()
	var found store.Call
	h.until("a question waits", func() error {
		waiting, err := h.db.ListCalls(h.t.Context(), store.CallQuery{Waiting: true, User: user})
		for _, c := range waiting {
			if c.Question != nil {
				found = c
			}
		}
		return err
	}, func() bool { return found.ID != "" })
	return found
}

// A question whose call has no client to ask waits on a card of its own, and only the
// requester of the call sees and answers it.
func TestQuestionOnCard(t *testing.T) {
	h := newFixture(t, nil)
	page := taskwire.Elicit{Mode: "url", Message: "Sign in there.", URL: "https://example.com/in?x=1"}
	for _, test := range []struct {
		name string
		asks taskwire.Elicit
		d    store.Decision
		want string // the answer that the server gets
		ends store.State
	}{
		{"answered", form, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"n":3,"name":"Ann"}`)}, `accept {"n":3,"name":"Ann"}`, store.Approved},
		{"declined", form, store.Decision{Verb: store.Deny}, "decline ", store.Refused},
		{"cancelled", form, store.Decision{Verb: store.Cancel}, "cancel ", store.Cancelled},
		{"a page", page, store.Decision{Verb: store.Approve}, "accept ", store.Approved},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.asksPerson(test.asks)
			done := make(chan *store.Call, 1)
			go func() {
				c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)})
				if err != nil {
					t.Error(err)
				}
				done <- c
			}()
			q := h.question(h.member.User)
			card, err := h.gateway.Card(t.Context(), q.ID)
			if err != nil || card.Question == nil || card.Question.Message != test.asks.Message || card.Question.URL != test.asks.URL || card.Always || card.RepeatVerb != "" {
				t.Errorf("card: %+v, %v", card, err)
			}
			if h.gateway.Policy.Sees(t.Context(), h.root, q) {
				t.Error("an admin sees another person's question")
			}
			for _, verb := range []store.Verb{store.Approve, store.Edit, store.Deny, store.Cancel} {
				if _, err := h.gateway.Decide(t.Context(), h.root, q.ID, store.Decision{Verb: verb, Args: test.d.Args}); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("an admin: %s: %v", verb, err)
				}
			}
			program := h.member
			program.Surface = store.OnMCP
			if _, err := h.gateway.Decide(t.Context(), program, q.ID, store.Decision{Verb: store.Edit, Args: test.d.Args}); err == nil {
				t.Error("a program answered for its person")
			}
			for _, wrong := range []store.Decision{
				{Verb: store.Edit, Args: json.RawMessage(`{"more":1}`)}, {Verb: store.Edit, Args: json.RawMessage(`{"name":"much too long for it"}`)}, {Verb: store.Edit, Args: json.RawMessage(`[]`)},
				{Verb: store.RunAll}, {Verb: store.Retry}, {Verb: store.Deny, Always: true}, {Verb: store.Deny, Digest: "another"},
			} {
				if _, err := h.gateway.Decide(t.Context(), h.member, q.ID, wrong); err == nil {
					t.Errorf("%+v was taken", wrong)
				}
			}
			test.d.Digest = q.Digest
			if _, err := h.gateway.Decide(t.Context(), h.member, q.ID, test.d); err != nil {
				t.Fatal(err)
			}
			if c := <-done; c.Result.Text() != test.want {
				t.Errorf("the server got %q, want %q", c.Result.Text(), test.want)
			}
			if now := h.wait(q.ID); now.State != test.ends {
				t.Errorf("the question is %s, want %s", now.State, test.ends)
			}
			if _, err := h.gateway.Decide(t.Context(), h.member, q.ID, test.d); !errors.Is(err, store.ErrDecided) {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
}

// A question ends with the call that asks it: the server's time is over, its caller
// left, nobody answered in time, or nized restarted.
func TestQuestionEndsWithItsCall(t *testing.T) {
	h := newFixture(t, nil)
	h.asksPerson(form)
	ctx, leave := context.WithCancel(t.Context())
	call := func(ctx context.Context) chan string {
		done := make(chan string, 1)
		go func() {
			c, err := h.gateway.Call(ctx, h.member, store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)})
			if err != nil {
				done <- err.Error()
				return
			}
			done <- c.Result.Text()
		}()
		return done
	}
	done := call(ctx)
	q := h.question(h.member.User)
	leave()
	<-done
	if got := h.wait(q.ID); got.State != store.Cancelled {
		t.Errorf("its caller left: %s", got.State)
	}

	done = call(t.Context())
	q = h.question(h.member.User)
	if _, err := h.db.Decide(t.Context(), store.System, q.ID, store.Decision{Verb: store.Expire, By: store.System.User, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "cancel " {
		t.Errorf("nobody answered: the server got %q", got)
	}

	stored, err := h.db.GetCall(t.Context(), q.ID)
	if err != nil {
		t.Fatal(err)
	}
	h.stop() // what follows is what a killed daemon leaves
	h.open("killed")
	left := stored
	left.ID, left.State, left.Decisions, left.Finished = store.NewID(time.Now()), store.Pending, nil, time.Time{}
	if err := h.db.Begin(t.Context(), store.System, left); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.open("second")
	h.run()
	if got := h.wait(left.ID); got.State != store.Cancelled || got.Question == nil || got.Question.Message != form.Message {
		t.Errorf("after a restart: %s, %+v", got.State, got.Question)
	}
}

// A task whose server asks waits for its client's input, and goes on with it.
func TestTaskThatAsks(t *testing.T) {
	f := newFront(t, nil)
	f.config.set("mcp.task_after", "0s")
	f.asksPerson(form)
	asks, start := f.runner.act, make(chan struct{})
	f.runner.act = func(ctx context.Context, c *store.Call) (*store.Result, error) {
		<-start // until it is a task: what is asked before that is asked at once
		return asks(ctx, c)
	}
	token := f.token("mine", time.Hour)
	both := strings.Replace(announced, `"extensions"`, `"elicitation":{},"extensions"`, 1)
	call := func(rest string) rpcAnswer {
		return answerOf(t, f.post(token, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x"}},`+rest+both+`}}`))
	}
	update := func(token, id, answers string) rpcAnswer {
		return answerOf(t, f.send(token, "2026-07-28", "tasks/update", id, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/update","params":{"taskId":%q,"inputResponses":%s,%s}}`, id, answers, both)))
	}
	made := call("")
	id, _ := made.Result["taskId"].(string)
	close(start)
	if made.Result["resultType"] != "task" {
		t.Fatalf("%+v", made)
	}
	var inputs map[string]any
	f.until("it asks", func() error {
		inputs, _ = f.task(token, "tasks/get", id).Result["inputRequests"].(map[string]any)
		return nil
	}, func() bool { return len(inputs) == 1 })
	got := f.task(token, "tasks/get", id)
	if got.Result["status"] != "input_required" || !strings.Contains(fmt.Sprint(inputs), "Who is it for?") || !strings.Contains(fmt.Sprint(inputs), "elicitation/create") {
		t.Errorf("%+v", got)
	}
	key := ""
	for key = range inputs {
	}
	if got := update(f.strangersToken(), id, fmt.Sprintf(`{%q:{"action":"accept","content":{"name":"Eve"}}}`, key)); got.Error == nil {
		t.Errorf("a stranger answered: %+v", got)
	}
	for _, wrong := range []string{`{"action":"accept","content":{}}`, `{"action":"accept","content":{"name":"much too long for it"}}`, `{"action":"accept","content":{"name":"a","more":1}}`, `{"action":"run"}`, `5`} {
		if got := update(token, id, fmt.Sprintf(`{%q:%s}`, key, wrong)); got.Error == nil || got.Error.Code != -32602 {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
	if got := update(token, id, `{"another":{"action":"accept"}}`); got.Error != nil || got.Result["resultType"] != "complete" {
		t.Errorf("a key that is none: %+v", got)
	}
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "input_required" {
		t.Errorf("after answers that don't count: %+v", got)
	}
	if got := update(token, id, fmt.Sprintf(`{%q:{"action":"accept","content":{"name":"Ann"}}}`, key)); got.Error != nil || len(got.Result) != 1 {
		t.Errorf("%+v", got)
	}
	f.wait(id)
	if got := f.task(token, "tasks/get", id); got.Result["status"] != "completed" || !strings.Contains(fmt.Sprint(got.Result["result"]), `accept {"name":"Ann"}`) {
		t.Errorf("%+v", got)
	}
}

// A call whose server has a task for it goes on after a restart, and ends once; any
// other call that was cut off stays lost.
func TestRemoteTaskGoesOn(t *testing.T) {
	f := newFront(t, nil)
	c := f.call(f.root, "box:write", `{"what":"x"}`)
	other := f.call(f.root, "box:write", `{"what":"y"}`)
	f.stop() // the worker is gone; what follows is what a killed daemon leaves
	f.open("killed")
	for _, id := range []string{c.ID, other.ID} {
		if _, err := f.db.Decide(t.Context(), f.root, id, store.Decision{Verb: store.Approve, By: f.root.User, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.db.Start(t.Context(), id, "killed"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.db.NoteRemote(t.Context(), c.ID, store.RemoteTask{ID: "far"}); err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.open("second")
	var resumed atomic.Value
	f.runner.act = func(_ context.Context, c *store.Call) (*store.Result, error) {
		resumed.Store(c.Remote.ID)
		return &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"from far"}]}`)}, nil
	}
	f.run()
	if got := f.wait(c.ID); got.State != store.Done || !strings.Contains(got.Result.Text(), "from far") || resumed.Load() != "far" {
		t.Errorf("%s (%s), resumed %v", got.State, got.Reason, resumed.Load())
	}
	if got := f.wait(other.ID); got.State != store.Lost {
		t.Errorf("the other one is %s", got.State)
	}
	if err := f.db.NoteRemote(t.Context(), c.ID, store.RemoteTask{ID: "late"}); !errors.Is(err, store.ErrDecided) {
		t.Errorf("a task of a call that has ended: %v", err)
	}
	if _, err := f.db.Resume(t.Context(), c.ID, "third"); !errors.Is(err, store.ErrDecided) {
		t.Errorf("resuming a call that has ended: %v", err)
	}
}
