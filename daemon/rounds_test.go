package daemon_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/eventstream"
)

// programs is a daemon with a project, as a program sees it, and a model service:
// to "use NAME ARGS" it calls a function, once, and then says what came of it; to
// "loop NAME ARGS" it calls it again and again; to "double NAME" it calls it three
// times under one id, twice with the same arguments; to "wait" it says "one " and then
// waits; to "break" it breaks off; what else it is told it repeats. It refuses what is
// not one result for each call.
type programs struct {
	*testDaemon
	t    testing.TB
	url  string
	key  string
	http *http.Client

	release chan struct{} // lets one waiting answer go on
	gone    chan struct{} // gets one for each request that was cut off
	said    chan struct{} // gets one when "one " was said

	mu      sync.Mutex // guards what follows
	summed  int        // how often it was to sum up
	prompt  string     // what it was given last that it was to answer
	summary string     // everything that it was to sum up
}

var programsEnv = map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1", "NIZE_APPROVALS_MODE": "none", "NIZE_BUDGETS_USER_DAILY": "0"}

func openPrograms(t testing.TB) *programs { return openProgramsIn(t, programsEnv) }

func openProgramsIn(t testing.TB, env map[string]string, change ...func(*daemon.Options)) *programs {
	p := &programs{testDaemon: open(t, t.TempDir(), env, change...), t: t,
		release: make(chan struct{}), gone: make(chan struct{}, 16), said: make(chan struct{}, 16)} // more than any test lets wait
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	p.http = &http.Client{Transport: transport}
	web := httptest.NewServer(http.HandlerFunc(p.model))
	t.Cleanup(web.Close)
	ctx := t.Context()
	if _, err := api.AddProvider.Call(ctx, p.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: web.URL + "/v1", Key: api.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProject.Call(ctx, p.Client, api.AddProjectRequest{Name: "sales"}); err != nil {
		t.Fatal(err)
	}
	key, err := api.CreateProjectKey.Call(ctx, p.Client, api.CreateProjectKeyRequest{Project: "sales"})
	if err != nil {
		t.Fatal(err)
	}
	p.key = key.Secret.Reveal()
	p.findURL()
	return p
}

func (p *programs) findURL() {
	p.t.Helper()
	addr, err := os.ReadFile(filepath.Join(p.dir, "nized.addr"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.url = "http://" + strings.TrimSpace(string(addr))
}

// restart stops the daemon and starts another one on its directory.
func (p *programs) restart() {
	p.t.Helper()
	p.stop()
	p.testDaemon = open(p.t, p.dir, programsEnv)
	p.findURL()
}

// asked is how often the model was to sum up, and what it was to answer last.
func (p *programs) asked() (summed int, prompt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summed, p.prompt
}

// summedUp reports whether a text was in what the model summarized.
func (p *programs) summedUp(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.summary, text)
}

func (p *programs) model(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct {
			Role, Content string
			CallID        string                `json:"tool_call_id"`
			Calls         []struct{ ID string } `json:"tool_calls"`
		}
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if pictures := strings.Count(string(raw), `"image_url":{`); pictures > 0 {
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":"saw %d"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", pictures)
		return
	}
	if err := json.Unmarshal(raw, &req); err != nil {
		return
	}
	if strings.HasPrefix(req.Messages[0].Content, "You name conversations") {
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"About parrots"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		return
	}
	open, seen := map[string]bool{}, map[string]bool{}
	for _, m := range req.Messages {
		if m.Role == "tool" {
			if !open[m.CallID] {
				http.Error(w, "a result of no call", http.StatusBadRequest)
			}
			delete(open, m.CallID)
		}
		for _, c := range m.Calls {
			if seen[c.ID] {
				http.Error(w, "a call is there twice", http.StatusBadRequest)
			}
			open[c.ID], seen[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		http.Error(w, "a call without a result", http.StatusBadRequest)
	}
	last := req.Messages[len(req.Messages)-1]
	p.mu.Lock()
	if strings.HasPrefix(req.Messages[0].Content, "You sum up") {
		p.summed++
		p.summary += last.Content
		last.Content = fmt.Sprintf("SUMMARY %d.", p.summed)
		if strings.Contains(string(raw), "4711") {
			last.Content += " The code is 4711."
		}
	} else {
		p.prompt = string(raw)
	}
	p.mu.Unlock()
	if _, said, ok := strings.Cut(last.Content, "</context>\n\n"); ok { // an agent's
		last.Content = said
	}
	if first := req.Messages[0].Content; last.Role == "tool" && strings.HasPrefix(first, "loop ") {
		last.Role, last.Content = "user", first
	}
	word, rest, _ := strings.Cut(last.Content, " ")
	w.Header().Set("Content-Type", "text/event-stream")
	text := func(s, finish string) {
		raw, _ := json.Marshal(s) // a string always encodes
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%s}%s}]}`+"\n\n", raw, finish)
	}
	const stop = `,"finish_reason":"stop"`
	switch {
	case last.Role == "tool":
		text("said: "+last.Content, stop)
	case word == "use" || word == "loop":
		name, args, _ := strings.Cut(rest, " ")
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}]}`+"\n\n", name, args)
	case word == "twice":
		const one = `{"index":%d,"id":"c%[1]d","function":{"name":%[2]q,"arguments":"{\"n\":%[1]d}"}}`
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[%s,%s]},"finish_reason":"tool_calls"}]}`+"\n\n", fmt.Sprintf(one, 0, rest), fmt.Sprintf(one, 1, rest))
	case word == "double":
		const one = `{"index":%d,"id":"c","function":{"name":%q,"arguments":"{\"n\":%d}"}}`
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[%s,%s,%s]},"finish_reason":"tool_calls"}]}`+"\n\n", fmt.Sprintf(one, 0, rest, 1), fmt.Sprintf(one, 1, rest, 1), fmt.Sprintf(one, 2, rest, 2))
	case word == "wait":
		text("one ", "")
		w.(http.Flusher).Flush()
		p.said <- struct{}{}
		select {
		case <-p.release:
			text("two", stop)
		case <-r.Context().Done():
			p.gone <- struct{}{}
		}
	case word == "break":
		text("one", "")
	default:
		text(last.Content, stop)
	}
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
}

// send sends a request; the error is that of the connection.
func (p *programs) send(ctx context.Context, method, path, last string, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-api-key", p.key)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	return p.http.Do(req)
}

type roundAnswer struct {
	ID           string
	Conversation string `json:"conversation_id"`
	Status       string
	Message      struct{ Content string }
	Error        struct{ Type, Message string }
	Finish       string `json:"finish_reason"`
	Warnings     []string
	Usage        struct {
		PromptTokens int64 `json:"prompt_tokens"`
	}
	Proposed []struct {
		ID, Tool, Digest string
		Arguments        json.RawMessage
	} `json:"proposed_calls"`
}

// round makes a request that is answered at once.
func (p *programs) round(ctx context.Context, body any) (a roundAnswer, err error) {
	resp, err := p.send(ctx, "POST", "/llm-exec/round", "", body)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return a, err
}

// sse is one event of a stream.
type sse struct{ id, name, data string }

func (e sse) delta() string {
	var d struct{ Delta string }
	_ = json.Unmarshal([]byte(e.data), &d) // others have none
	return d.Delta
}

// follow opens a stream; next returns false at its end.
func (p *programs) follow(method, path, last string, body any) (round string, next func() (sse, bool), leave func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	resp, err := p.send(ctx, method, path, last, body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %+v, %v", method, path, resp, err)
	}
	in := eventstream.NewReader(resp.Body, 16<<20)
	return resp.Header.Get("X-Round-Id"), func() (sse, bool) {
			e, err := in.Next()
			if err != nil {
				resp.Body.Close()
				return sse{}, false
			}
			return sse{e.ID, e.Name, string(e.Data)}, true
		}, func() {
			cancel()
			resp.Body.Close()
		}
}

func message(text string) []map[string]string {
	return []map[string]string{{"role": "user", "content": text}}
}

func asking(text string) map[string]any {
	return map[string]any{"model": "parrots/parrot", "messages": message(text)}
}

func within(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// A caller who leaves ends what is done for them, and their conversation goes on
// with the next message.
func TestRoundsLeft(t *testing.T) {
	t.Parallel()
	p := openPrograms(t)
	first, err := p.round(t.Context(), asking("hello"))
	if err != nil || first.Message.Content != "hello" {
		t.Fatalf("%+v, %v", first, err)
	}
	in := func(text string) map[string]any {
		return map[string]any{"model": "parrots/parrot", "conversation_id": first.Conversation, "messages": message(text)}
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := p.round(ctx, in("wait")); ended <- err }()
	within(t, "the model's first word", p.said)
	leave()
	within(t, "the end of the request to the model", p.gone)
	if err := <-ended; err == nil {
		t.Error("who left has an answer")
	}
	if a, err := p.round(t.Context(), in("and now?")); err != nil || a.Message.Content != "and now?" {
		t.Errorf("after it was left: %+v, %v", a, err)
	}

	// The same within a tool.
	started, cut := make(chan struct{}, 4), make(chan struct{}, 4) // more than are called
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "hang", Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		started <- struct{}{}
		<-ctx.Done()
		cut <- struct{}{}
		return mcptest.Text("never")
	}}}})
	tools := []map[string]any{{"type": "mcp", "server_label": "up", "server_url": up.HTTP(), "allowed_tools": []string{}, "require_approval": "auto"}}
	hang := in("use hang {}")
	hang["tools"] = tools
	ctx, leave = context.WithCancel(t.Context())
	go func() { _, err := p.round(ctx, hang); ended <- err }()
	within(t, "the call", started)
	leave()
	within(t, "the end of the call", cut)
	<-ended
	if a, err := p.round(t.Context(), in("still there?")); err != nil || a.Message.Content != "still there?" {
		t.Errorf("after a call was left: %+v, %v", a, err)
	}
	if n := up.Calls("hang"); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}

	// A stream tells of a call that takes a while, and DELETE ends it.
	hang = asking("use hang {}")
	hang["tools"] = tools
	id, next, _ := p.follow("POST", "/llm-exec/round/stream", "", hang)
	var names []string
	for e, ok := next(); ok; e, ok = next() {
		names = append(names, e.name)
		if e.name == "tool.started" {
			resp, err := p.send(t.Context(), "DELETE", "/llm-exec/rounds/"+id, "", nil)
			if err != nil || resp.StatusCode != http.StatusNoContent {
				t.Fatalf("DELETE: %+v, %v", resp, err)
			}
			resp.Body.Close()
		}
	}
	if got := strings.Join(names, " "); got != "usage tool.started tool.finished round.finished" {
		t.Errorf("events %s", got)
	}
	within(t, "the end of the call", cut)
	if _, next, _ = p.follow("GET", "/llm-exec/rounds/"+id+"/events", "3", nil); true {
		e, ok := next()
		if !ok || e.name != "round.finished" || !strings.Contains(e.data, `"status":"failed"`) || !strings.Contains(e.data, "the round was cancelled") {
			t.Errorf("after DELETE: %+v", e)
		}
	}
}

// A client that comes back goes on at the very place.
func TestStreamsResume(t *testing.T) {
	t.Parallel()
	p := openPrograms(t)
	id, next, leave := p.follow("POST", "/llm-exec/round/stream", "", asking("wait"))
	e, ok := next()
	if !ok || e.delta() != "one " || e.id != "1.4" {
		t.Fatalf("the first event is %+v", e)
	}
	leave()
	_, next, _ = p.follow("GET", "/llm-exec/rounds/"+id+"/events", e.id, nil)
	p.release <- struct{}{}
	text, seen := e.delta(), []string{e.id}
	var last sse
	for e, ok := next(); ok; e, ok = next() {
		text += e.delta()
		if slices.Contains(seen, e.id) {
			t.Errorf("%s came twice", e.id)
		}
		seen = append(seen, e.id)
		last = e
	}
	if text != "one two" || last.name != "round.finished" || !strings.Contains(last.data, `"content":"one two"`) {
		t.Errorf("it said %q, and last %+v", text, last)
	}

	// Nobody comes back: it stops, and its id goes on with it.
	if _, err := api.PutSetting.Call(t.Context(), p.Client, api.PutSettingRequest{Key: "http.resume_grace", Value: "1s"}); err != nil {
		t.Fatal(err)
	}
	id, next, leave = p.follow("POST", "/llm-exec/round/stream", "", asking("wait"))
	next()
	leave()
	within(t, "the end of the request to the model", p.gone)
	for ctx := t.Context(); ; {
		_, next, _ = p.follow("GET", "/llm-exec/rounds/"+id+"/events", "1.4", nil)
		e, ok = next()
		if ctx.Err() != nil || ok {
			break
		}
	}
	if e.name != "error" || !strings.Contains(e.data, "continue it by its round_id") {
		t.Errorf("a round that stopped: %+v", e)
	}
	_, next, _ = p.follow("POST", "/llm-exec/round/stream", "", map[string]any{"round_id": id})
	p.release <- struct{}{}
	text = ""
	var names []string
	for e, ok := next(); ok; e, ok = next() {
		text += e.delta()
		names = append(names, e.name)
	}
	if text != "one two" || names[0] != "error" || names[len(names)-1] != "round.finished" {
		t.Errorf("gone on with: %q, %v", text, names)
	}
}

// The deltas of a stream add up to its message, also if the answer broke off, which
// is said beside it.
func TestStreamsAddUp(t *testing.T) {
	t.Parallel()
	p := openPrograms(t)
	for asked, want := range map[string]string{"hello": "hello", "break": "one"} {
		_, next, _ := p.follow("POST", "/llm-exec/round/stream", "", asking(asked))
		text, last := "", ""
		for e, ok := next(); ok; e, ok = next() {
			text, last = text+e.delta(), e.data
		}
		var a roundAnswer
		if err := json.Unmarshal([]byte(last), &a); err != nil || text != want || a.Message.Content != want {
			t.Errorf("%s: the deltas say %q and the message %q, want %q; %v", asked, text, a.Message.Content, want, err)
		}
	}
}

// What an admin made of a call before they approved it is what the model gets, as the
// one result of that call.
func TestRoundsGetEditedCalls(t *testing.T) {
	t.Parallel()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "echo"}}})
	p, ctx := openPrograms(t), t.Context()
	all, admins, always := []string{"all"}, store.ByAdmins, store.ApproveAlways
	if _, err := api.AddServer.Call(ctx, p.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PatchServer.Call(ctx, p.Client, api.PatchServerRequest{Name: "box", Visibility: &all, Approvers: &admins, Approval: &always}); err != nil {
		t.Fatal(err)
	}
	body := asking(`use echo {"text":"one"}`)
	body["tools"] = []map[string]any{{"type": "callable", "callable_id": "box:echo"}}
	a, err := p.round(ctx, body)
	if err != nil || a.Status != "requires_approval" || len(a.Proposed) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	edited, err := api.DecideCall.Call(ctx, p.Client, api.DecideCallRequest{ID: a.Proposed[0].ID, Verb: store.Edit, Digest: a.Proposed[0].Digest, Args: json.RawMessage(`{"text":"two"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if a, err = p.round(ctx, map[string]any{"round_id": a.ID}); err != nil || a.Status != "completed" || !strings.Contains(a.Message.Content, "two") || up.Calls("echo") != 1 {
		t.Errorf("%d calls, %+v, edited as %+v, %v", up.Calls("echo"), a, edited, err)
	}
	if shown, err := api.ShowConversation.Call(ctx, p.Client, api.ShowConversationRequest{ID: a.Conversation, Reason: "a test"}); err != nil || len(shown.Turns) != 4 {
		t.Errorf("%d turns, want the round's own 4: %v", len(shown.Turns), err)
	}
}

// The calls of one step run at the same time, and each has its one result.
func TestRoundsCallInParallel(t *testing.T) {
	t.Parallel()
	p := openPrograms(t)
	var here atomic.Int64
	both := make(chan struct{})
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "meet", Do: func(context.Context, json.RawMessage) json.RawMessage {
		if here.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-time.After(patience):
			t.Error("it runs alone")
		}
		return mcptest.Text("met")
	}}}})
	body := asking("twice meet")
	body["tools"] = []map[string]any{{"type": "mcp", "server_label": "up", "server_url": up.HTTP(), "allowed_tools": []string{}, "require_approval": "never"}}
	_, next, _ := p.follow("POST", "/llm-exec/round/stream", "", body)
	ended, last := map[string]bool{}, ""
	for e, ok := next(); ok; e, ok = next() {
		var data struct{ ID string }
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			t.Fatal(err)
		}
		if last = e.data; e.name == "tool.finished" {
			if ended[data.ID] {
				t.Errorf("%s ended twice", data.ID)
			}
			ended[data.ID] = true
		}
	}
	if len(ended) != 2 || up.Calls("meet") != 2 || !strings.Contains(last, `"status":"completed"`) {
		t.Errorf("%d ended, %d calls; %s", len(ended), up.Calls("meet"), last)
	}
}

// A conversation that is longer than the model's window is summed up: once, which a
// restart keeps, and paid for by its project. What is stored stays whole.
func TestRoundsAreSummedUp(t *testing.T) {
	t.Parallel()
	p, ctx, window := openPrograms(t), t.Context(), 8192
	if _, err := api.SetModel.Call(ctx, p.Client, api.SetModelRequest{Name: "small", Target: "parrots/parrot", Window: &window, Force: true}); err != nil {
		t.Fatal(err)
	}
	const rounds = 16
	body := asking("")
	body["model"] = "small"
	paid, last, summed, prompt := 0, "", 0, ""
	for i := range rounds {
		text := fmt.Sprintf("message %d %s", i, strings.Repeat("m", 1500))
		if i == 1 {
			text += " the code is 4711"
		}
		body["messages"] = message(text)
		before, _ := p.asked()
		a, err := p.round(ctx, body)
		if err != nil || a.Status != "completed" || a.Message.Content != text {
			t.Fatalf("round %d: %.200v, %v", i, a, err)
		}
		body["conversation_id"], last = a.Conversation, a.Conversation
		if summed, prompt = p.asked(); len(prompt) > 8192*4 {
			t.Errorf("round %d: a prompt of %d bytes", i, len(prompt))
		}
		if want := int64(100 * (1 + summed - before)); a.Usage.PromptTokens != want {
			t.Errorf("round %d: %d tokens are counted, want %d", i, a.Usage.PromptTokens, want)
		}
		paid += int(a.Usage.PromptTokens)
		if i == rounds/2 {
			p.restart()
		}
	}
	if summed == 0 || summed > rounds/3 || !strings.Contains(prompt, "The code is 4711.") || strings.Contains(prompt, "message 1 ") {
		t.Errorf("summed up %d times; asked at last %.600s", summed, prompt)
	}
	shown, err := api.ShowConversation.Call(ctx, p.Client, api.ShowConversationRequest{ID: last, Reason: "a test"})
	roles := map[store.TurnRole]int{}
	for _, turn := range shown.Turns {
		roles[turn.Role]++
	}
	if err != nil || roles[store.FromUser] != rounds || roles[store.FromModel] != rounds || roles[store.FromSummary] == 0 || roles[store.FromSummary] > summed {
		t.Errorf("stored %v, summed up %d times, %v", roles, summed, err)
	}
	used, err := api.GetUsage.Call(ctx, p.Client, api.GetUsageRequest{By: "team"})
	if err != nil || len(used.Rows) != 1 || used.Rows[0].Prompt != int64(paid) {
		t.Errorf("%d tokens were said, the project's usage is %+v, %v", paid, used.Rows, err)
	}
}

// What a summary does not cover stays in the prompt, also if a later summary, made when a
// prompt may be shorter, covers the earlier one.
func TestRoundsSummarizeAgain(t *testing.T) {
	t.Parallel()
	p, ctx, window := openPrograms(t), t.Context(), 8192
	if _, err := api.SetModel.Call(ctx, p.Client, api.SetModelRequest{Name: "small", Target: "parrots/parrot", Window: &window, Force: true}); err != nil {
		t.Fatal(err)
	}
	body := asking("")
	body["model"], body["max_tokens"] = "small", 1 // an answer that may be long leaves less for the prompt
	said := func(n int) string { return fmt.Sprintf("message %d %s", n, strings.Repeat("m", 350)) }
	var before []map[string]any
	const first = 60
	for n := range first {
		before = append(before, map[string]any{"role": "user", "content": said(n)}, map[string]any{"role": "assistant", "content": said(n)})
	}
	body["messages"] = append(before, map[string]any{"role": "user", "content": said(first)})
	once := 0
	for n := first; ; n++ {
		a, err := p.round(ctx, body)
		if err != nil || a.Status != "completed" {
			t.Fatalf("round %d: %.200v, %v", n, a, err)
		}
		summed, prompt := p.asked()
		for n := range n {
			if told := fmt.Sprintf("message %d ", n); !strings.Contains(prompt, told) && !p.summedUp(told) {
				t.Errorf("%sis neither in the prompt nor in a summary", told)
			}
		}
		if n == first {
			once = summed
		}
		if once == 0 || n == 2*first {
			t.Fatalf("summed up %d times in %d rounds", summed, n-first+1)
		}
		if summed > once {
			return
		}
		delete(body, "max_tokens")
		body["conversation_id"], body["messages"] = a.Conversation, message(said(n+1))
	}
}

// A round ends at the steps that its request allows, at most those that the system
// does, and what its calls came to stands in the conversation.
func TestRoundsMaxSteps(t *testing.T) {
	t.Parallel()
	p, ctx := openPrograms(t), t.Context()
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}})
	if _, err := api.PutSetting.Call(ctx, p.Client, api.PutSettingRequest{Key: "agent.tools.maxSteps", Value: "4"}); err != nil {
		t.Fatal(err)
	}
	calls, url := 0, up.HTTP()
	for asked, want := range map[int]int{1: 1, 3: 3, 4: 4, 9: 4, 0: 4} {
		body := asking(`loop echo {"text":"x"}`)
		body["tools"] = []map[string]any{{"type": "mcp", "server_label": "up", "server_url": url, "allowed_tools": []string{}, "require_approval": "never"}}
		if asked > 0 {
			body["max_steps"] = asked
		}
		resp, err := p.send(ctx, "POST", "/llm-exec/round", "", body)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		calls += want
		for _, part := range []string{`"status":"max_steps"`, fmt.Sprintf(`"steps":%d`, want), `"proposed_calls":[]`} {
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(raw), part) {
				t.Errorf("max_steps %d: %s, no %s in %s, %v", asked, resp.Status, part, raw, err)
			}
		}
		if told := strings.Contains(string(raw), "max_steps is 4, not 9"); told != (asked == 9) {
			t.Errorf("max_steps %d: told of the limit: %v", asked, told)
		}
		if up.Calls("echo") != calls {
			t.Errorf("max_steps %d: %d calls in all, want %d", asked, up.Calls("echo"), calls)
		}
		var a roundAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		body = asking("and then") // it goes on
		body["conversation_id"] = a.Conversation
		if a, err = p.round(ctx, body); err != nil || a.Status != "completed" || a.Message.Content != "and then" {
			t.Errorf("after max_steps %d: %+v, %v", asked, a, err)
		}
	}
}

// Calls of one id are one where they say the same, and each has its one result; so
// has each call of a history in which a model gave all of its calls the same id.
func TestRoundsDoubledCalls(t *testing.T) {
	t.Parallel()
	p, ctx := openPrograms(t), t.Context()
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}})
	body := asking("double echo")
	body["tools"] = []map[string]any{{"type": "mcp", "server_label": "up", "server_url": up.HTTP(), "allowed_tools": []string{}, "require_approval": "always"}}
	a, err := p.round(ctx, body)
	if err != nil || a.Status != "requires_approval" || len(a.Proposed) != 2 || a.Proposed[0].ID == a.Proposed[1].ID || string(a.Proposed[0].Arguments) == string(a.Proposed[1].Arguments) {
		t.Fatalf("%+v, %v", a, err)
	}
	say := func(approve ...bool) map[string]any {
		var list []map[string]any
		for i, yes := range approve {
			c := a.Proposed[min(i, 1)]
			list = append(list, map[string]any{"id": c.ID, "digest": c.Digest, "approve": yes})
		}
		return map[string]any{"round_id": a.ID, "approvals": list}
	}
	if _, err := p.round(ctx, say(true, true, false)); err == nil || !strings.HasPrefix(err.Error(), "409 ") || up.Calls("echo") != 0 {
		t.Errorf("a yes and a no to one call: %v, it ran %d times", err, up.Calls("echo"))
	}
	if a, err = p.round(ctx, say(true, true, true)); err != nil || a.Status != "completed" || up.Calls("echo") != 2 {
		t.Errorf("%+v, %d calls, %v", a, up.Calls("echo"), err)
	}
	call := map[string]any{"role": "assistant", "tool_calls": []map[string]any{{"id": "call_0", "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}}}}
	result := map[string]any{"role": "tool", "tool_call_id": "call_0", "content": "x"}
	body = map[string]any{"model": "parrots/parrot", "messages": []any{call, result, call, result, map[string]any{"role": "user", "content": "done"}}}
	if a, err = p.round(ctx, body); err != nil || a.Status != "completed" || a.Message.Content != "done" {
		t.Errorf("a history with one id: %+v, %v", a, err)
	}
	body = asking("double f")
	body["tools"] = []map[string]any{{"type": "function", "function": map[string]any{"name": "f"}}}
	if a, err = p.round(ctx, body); err != nil || a.Status != "requires_action" || len(a.Proposed) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	outputs := []map[string]any{{"id": a.Proposed[0].ID, "output": "1"}, {"id": a.Proposed[0].ID, "output": "2"}}
	if _, err := p.round(ctx, map[string]any{"round_id": a.ID, "tool_outputs": outputs}); err == nil || !strings.HasPrefix(err.Error(), "409 ") {
		t.Errorf("two outputs of one call: %v", err)
	}
	outputs[1]["id"] = a.Proposed[1].ID
	if a, err = p.round(ctx, map[string]any{"round_id": a.ID, "tool_outputs": outputs}); err != nil || a.Status != "completed" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Pictures in the results of tools are shown to models that take them.
func TestRoundsShowPictures(t *testing.T) {
	t.Parallel()
	p := openPrograms(t)
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "draw", Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]}`)
	}}}})
	body := asking("use draw {}")
	body["tools"] = []map[string]any{{"type": "mcp", "server_label": "up", "server_url": up.HTTP(), "allowed_tools": []string{}, "require_approval": "never"}}
	for _, seen := range []bool{false, true} {
		if seen {
			if _, err := api.PutSetting.Call(t.Context(), p.Client, api.PutSettingRequest{Key: "models.images", Value: "parrots/*"}); err != nil {
				t.Fatal(err)
			}
		}
		if a, err := p.round(t.Context(), body); err != nil || (a.Message.Content == "saw 1") != seen {
			t.Errorf("with models.images %v: %+v, %v", seen, a, err)
		}
	}
}

// manyConversations is how many there are at once: 1,000 when somebody asks.
var manyConversations = flag.Int("conversations", 50, "how many conversations TestRoundsDoNotMix has at once")

// TestRoundsDoNotMix has many conversations of five rounds at once, each with a
// word of its own that its tool and its model must meet and no other's.
func TestRoundsDoNotMix(t *testing.T) {
	t.Parallel()
	conversations := *manyConversations
	p := openPrograms(t)
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}})
	tools := []map[string]any{{"type": "mcp", "server_label": "up", "server_url": up.HTTP(), "allowed_tools": []string{"echo"}, "require_approval": "never"}}
	var working sync.WaitGroup
	var wrong atomic.Int64
	places := make(chan struct{}, 64) // requests at once, for the sake of a small machine
	for n := range conversations {
		working.Go(func() {
			canary, conversation := fmt.Sprintf("canary-%d-end", n), ""
			for i := range 5 {
				body := asking(fmt.Sprintf(`use echo {"text":"%s %d"}`, canary, i))
				body["tools"] = tools
				if conversation != "" {
					body["conversation_id"] = conversation
				}
				places <- struct{}{}
				a, err := p.round(t.Context(), body)
				<-places
				if err != nil || a.Status != "completed" || strings.Count(a.Message.Content, "canary-") != 1 || !strings.Contains(a.Message.Content, fmt.Sprintf("%s %d", canary, i)) {
					if wrong.Add(1) < 5 {
						t.Errorf("%s, round %d: %+v, %v", canary, i, a, err)
					}
					return
				}
				conversation = a.Conversation
			}
		})
	}
	working.Wait()
	if n := up.Calls("echo"); n != 5*conversations {
		t.Errorf("%d calls of the tool, want %d", n, 5*conversations)
	}
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d conversations went wrong", n)
	}
}

// A request's own server runs without a person where an admin lets the project, by the
// label or a pattern of tools, and not otherwise: what is asked for firmly still is.
func TestRoundsUnattended(t *testing.T) {
	t.Parallel()
	p, ctx := openProgramsIn(t, map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"}), t.Context()
	set := func(key, value string) {
		t.Helper()
		if _, err := api.PutSetting.Call(ctx, p.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "get_current_date"}, {Name: "drop"}}})
	upURL := up.HTTP()
	if _, err := api.AddServer.Call(ctx, p.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: upURL, Visibility: []string{"all"}}}); err != nil {
		t.Fatal(err)
	}
	rpc, err := url.Parse(upURL)
	if err != nil {
		t.Fatal(err)
	}
	rpc.Path = ""
	status := http.StatusNotFound
	mux := http.NewServeMux()
	mux.Handle("/mcp", httputil.NewSingleHostReverseProxy(rpc))
	tried := 0
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { tried++; http.Error(w, "not here", status) })
	front := httptest.NewServer(mux)
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() }) // the daemon's sessions are open still

	minimal := func(tool string, entry map[string]any) map[string]any {
		body := asking("use " + tool + " {}")
		body["tools"] = []map[string]any{entry}
		return body
	}
	system := func(approval, address string) map[string]any {
		return map[string]any{"type": "mcp", "server_label": "Mon Système", "server_url": address, "allowed_tools": []string{}, "require_approval": approval, "headers": map[string]any{}}
	}
	change := func(add, remove []string) {
		t.Helper()
		if _, err := api.PatchProject.Call(ctx, p.Client, api.PatchProjectRequest{Project: "sales", AddUnattended: add, RemoveUnattended: remove}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(what, want string, body map[string]any) roundAnswer {
		t.Helper()
		a, err := p.round(ctx, body)
		if err != nil || a.Status != want {
			t.Errorf("%s: %+v, %v, want %s", what, a, err, want)
		}
		return a
	}
	set("approvals.mode", "auto")
	a := ask("nobody allowed it", "requires_approval", minimal("get_current_date", system("never", front.URL)))
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "nizectl projects unattended sales --add mon-systeme:get_current_date") {
		t.Errorf("warnings %q", a.Warnings)
	}
	if before := tried; before == 0 {
		t.Error("the root was not tried")
	} else if ask("it is known at /mcp", "requires_approval", minimal("get_current_date", system("never", front.URL))); tried != before {
		t.Error("the root is tried again and again")
	}
	if a := ask("nobody asked for it", "requires_approval", minimal("get_current_date", system("auto", front.URL))); len(a.Warnings) != 0 {
		t.Errorf("warnings %q", a.Warnings)
	}

	change([]string{"mon-systeme:get_*", "box:get_current_date"}, nil)
	ask("the pattern", "completed", minimal("get_current_date", system("never", front.URL)))
	ask("another tool", "requires_approval", minimal("drop", system("never", front.URL)))
	ask("auto asks", "requires_approval", minimal("get_current_date", system("auto", front.URL)))
	ask("always asks", "requires_approval", minimal("get_current_date", system("always", front.URL)))
	other := system("never", front.URL)
	other["server_label"] = "Other"
	ask("another label", "requires_approval", minimal("get_current_date", other))
	ask("a registered tool", "completed", minimal("get_current_date", map[string]any{"type": "callable", "callable_id": "box:get_current_date"}))
	ask("another registered tool", "requires_approval", minimal("drop", map[string]any{"type": "callable", "callable_id": "box:drop"}))
	set("approvals.mode", "all")
	if a := ask("the mode asks", "requires_approval", minimal("get_current_date", system("never", front.URL))); len(a.Warnings) != 0 {
		t.Errorf("warnings of what no admin's word lifts: %q", a.Warnings)
	}
	set("approvals.mode", "auto")
	change([]string{"Mon Système"}, []string{"mon-systeme:get_*"})
	ask("the label", "completed", minimal("drop", system("never", front.URL)))
	change(nil, []string{"Mon Système:*"})
	ask("it was taken back", "requires_approval", minimal("drop", system("never", front.URL)))

	// Of other answers nothing is tried, and of two that fail both are told.
	status = http.StatusInternalServerError
	fresh := system("never", front.URL+"/")
	fresh["server_label"] = "fresh"
	if _, err := p.round(ctx, minimal("drop", fresh)); err == nil || strings.Contains(err.Error(), "/mcp") {
		t.Errorf("a server that fails: %v", err)
	}
	status = http.StatusMethodNotAllowed
	change([]string{"fresh"}, nil)
	ask("405", "completed", minimal("drop", fresh))
	lost := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(lost.Close)
	if _, err := p.round(ctx, minimal("drop", system("never", lost.URL))); err == nil || !strings.Contains(err.Error(), "404 Not Found") || !strings.Contains(err.Error(), "and at /mcp: it answered 404") {
		t.Errorf("no server: %v", err)
	}
}
