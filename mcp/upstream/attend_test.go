package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/store"
)

// person answers the questions of servers and stores their tasks.
type person struct {
	mu     sync.Mutex
	asked  []taskwire.Elicit
	answer func(ctx context.Context, e taskwire.Elicit) (taskwire.Answer, error)
	noted  []store.RemoteTask
}

func (p *person) AskRequester(ctx context.Context, _ *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, e)
	p.mu.Unlock()
	return p.answer(ctx, e)
}

func (p *person) NoteRemote(_ context.Context, _ *store.Call, t store.RemoteTask) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted = append(p.noted, t)
	return nil
}

// asking is a server whose tool ask asks a question, by requests or by results depending on
// the protocol version, and whose tool job runs as a task. The states are the successive
// answers of tasks/get; the last one repeats.
type asking struct {
	mu     sync.Mutex
	states []string
	told   []string // the tasks/… methods received, and the content of tasks/update
	gets   chan struct{}
}

func (a *asking) start(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "asking", Version: "1"}, nil)
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: object}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r, ok := req.Params.InputResponses["who"].(*sdk.ElicitResult); ok {
			return text(fmt.Sprintf("%s %v %s", r.Action, r.Content["name"], req.Params.RequestState)), nil
		}
		return &sdk.CallToolResult{RequestState: "round 1", InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "job", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("not reached"), nil
	})
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name    string          `json:"name"`
				Answers json.RawMessage `json:"inputResponses"`
				Meta    json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		_ = json.Unmarshal(body, &m)
		result := ""
		a.mu.Lock()
		switch {
		case m.Method == "tools/call" && m.Params.Name == "job" && strings.Contains(string(m.Params.Meta), taskwire.Extension):
			result = `{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-11-27T00:00:00Z","lastUpdatedAt":"2026-11-27T00:00:00Z","ttlMs":60000,"pollIntervalMs":1}`
		case m.Method == taskwire.MethodGet:
			if result = a.states[0]; len(a.states) > 1 {
				a.states = a.states[1:]
			}
			select {
			case a.gets <- struct{}{}:
			default:
			}
		case strings.HasPrefix(m.Method, "tasks/"):
			result = `{"resultType":"complete"}`
		}
		if strings.HasPrefix(m.Method, "tasks/") && m.Method != taskwire.MethodGet {
			a.told = append(a.told, m.Method+string(m.Params.Answers))
		}
		a.mu.Unlock()
		if result != "" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// at connects the server to a pool with a person who answers.
func (a *asking) at(t *testing.T, p *person) *bench {
	t.Helper()
	a.gets = make(chan struct{}, 100)
	url := a.start(t) // before the pool, which is closed first
	b := newBench(t, nil)
	b.Pool.opt.Attendant = p
	b.put(store.Server{Name: "far", Transport: store.HTTP, URL: url})
	b.sync(admin, "far")
	return b
}

func accepts(name string) func(context.Context, taskwire.Elicit) (taskwire.Answer, error) {
	return func(context.Context, taskwire.Elicit) (taskwire.Answer, error) {
		return taskwire.Answer{Action: taskwire.Accept, Content: json.RawMessage(`{"name":"` + name + `"}`)}, nil
	}
}

// An answer to a server's question is sent with a repeated call, and a refusal to answer
// becomes the error of the call.
func TestServerAsks(t *testing.T) {
	p := &person{answer: accepts("Ann")}
	b := (&asking{}).at(t, p)
	res, err := b.run(t.Context(), "far:ask", `{}`)
	if err != nil || !strings.Contains(res.Text(), "accept Ann round 1") {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(p.asked) != 1 || p.asked[0].Message != "Who?" {
		t.Errorf("asked %+v", p.asked)
	}
	p.answer = func(context.Context, taskwire.Elicit) (taskwire.Answer, error) {
		return taskwire.Answer{}, &store.CallError{Code: store.CodeRefused, Message: store.Textf("nobody is asked for that")}
	}
	if _, err := b.run(t.Context(), "far:ask", `{}`); err == nil || !strings.Contains(err.Error(), "nobody is asked for that") {
		t.Errorf("refused: %v", err)
	}
}

// The server's timeout pauses while a person is asked, and resumes afterwards.
func TestTimeStandsStillWhileAsking(t *testing.T) {
	clock := newCallTime(t.Context(), time.Hour)
	defer clock.stop()
	resume := clock.pause()
	clock.mu.Lock()
	stopped := !clock.timer.Stop() // it was stopped before
	clock.mu.Unlock()
	if !stopped || clock.Err() != nil {
		t.Error("the time goes on while somebody is asked")
	}
	resume()
	clock.mu.Lock()
	runs := clock.timer.Stop()
	clock.mu.Unlock()
	if !runs {
		t.Error("the time stands still after the answer")
	}
	late := newCallTime(t.Context(), 0)
	<-late.Done()
	if !errors.Is(late.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(late), context.DeadlineExceeded) {
		t.Errorf("%v, %v", late.Err(), context.Cause(late))
	}
}

const done = `{"resultType":"complete","taskId":"t1","status":"completed","result":{"content":[{"type":"text","text":"done far away"}]}}`

// A task is polled until it ends, its messages become the call's progress, and its
// questions are answered.
func TestServerHasATask(t *testing.T) {
	p := &person{answer: accepts("Ann")}
	a := &asking{states: []string{
		`{"taskId":"t1","status":"working","statusMessage":"counting","pollIntervalMs":1}`,
		`{"taskId":"t1","status":"input_required","pollIntervalMs":1,"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`,
		done,
	}}
	b := a.at(t, p)
	said := ""
	res, err := b.Run(t.Context(), member, b.call("far:job", `{}`), func(_, _ float64, message string) { said += message })
	if err != nil || !strings.Contains(res.Text(), "done far away") || said != "counting" {
		t.Fatalf("%+v, %v, progress %q", res, err, said)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(p.noted) != 1 || p.noted[0].ID != "t1" || len(a.told) != 1 || a.told[0] != `tasks/update{"k":{"action":"accept","content":{"name":"Ann"}}}` {
		t.Errorf("noted %v, told %v", p.noted, a.told)
	}
}

// Other ways in which a task ends.
func TestServerTaskEnds(t *testing.T) {
	for state, want := range map[string]store.Code{
		`{"taskId":"t1","status":"failed","error":{"code":-32603,"message":"broken"}}`: store.CodeTool,
		`{"taskId":"t1","status":"cancelled"}`:                                         store.CodeCancelled,
		`{"taskId":"t1","status":"completed"}`:                                         store.CodeTool,
		`{"taskId":"t1","status":"sleeping"}`:                                          store.CodeUnknown,
	} {
		a := &asking{states: []string{state}}
		b := a.at(t, &person{})
		_, err := b.run(t.Context(), "far:job", `{}`)
		var failed *store.CallError
		if !errors.As(err, &failed) || failed.Code != want {
			t.Errorf("%s: %v, want %s", state, err, want)
		}
	}
}

// Cancelling a call cancels its task. A call that ends because nized stops leaves the task
// running, and the next nized polls it again.
func TestServerTaskIsLeft(t *testing.T) {
	for _, why := range []error{context.Canceled, taskwire.ErrStopping} {
		a := &asking{states: []string{`{"taskId":"t1","status":"working","pollIntervalMs":1}`}}
		b := a.at(t, &person{})
		ctx, cancel := context.WithCancelCause(t.Context())
		end := make(chan error, 1)
		go func() {
			_, err := b.run(ctx, "far:job", `{}`)
			end <- err
		}()
		<-a.gets
		cancel(why)
		err := <-end
		a.mu.Lock()
		told := strings.Join(a.told, " ")
		a.states = []string{done}
		a.mu.Unlock()
		var failed *store.CallError
		if why == context.Canceled {
			if !errors.As(err, &failed) || failed.Code != store.CodeCancelled || told != "tasks/cancel" {
				t.Errorf("cancelled: %v, told %q", err, told)
			}
			continue
		}
		if !errors.Is(err, taskwire.ErrStopping) || told != "" {
			t.Errorf("stopping: %v, told %q", err, told)
		}
		c := b.call("far:job", `{}`)
		c.Remote = &store.RemoteTask{ID: "t1"}
		if res, err := b.Run(t.Context(), member, c, nil); err != nil || !strings.Contains(res.Text(), "done far away") {
			t.Errorf("the next one: %+v, %v", res, err)
		}
	}
}
