package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"nize/daemon"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/database/databasetest"
)

// The ids in the examples of the document.
const (
	exampleRound        = "01K9Z3NDEKTSV4RRFFQ69G5FAV"
	exampleCall         = "01K9Z3NDEKTSV4RRFFQ69G5FAW"
	exampleConversation = "01K9Z3NDEKTSV4RRFFQ69G5FAX"
	exampleDigest       = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
	exampleServer       = "https://mcp.example.com/mcp"
)

// documentTest drives a daemon by its document: each answer must be one that the
// document has, in form too, and what was seen is noted.
type documentTest struct {
	*testDaemon
	t          *testing.T
	url        string
	key, token string
	server     string // the address of the MCP server that requests bring
	late       atomic.Int64

	doc      openAPI
	compiler *jsonschema.Compiler
	seen     map[string]bool // "ID 200", and "RoundEvent text.delta"
}

type openAPI struct {
	Paths map[string]map[string]struct {
		ID   string `json:"operationId"`
		Body struct {
			Content map[string]struct {
				Examples map[string]struct{ Value json.RawMessage }
			}
		} `json:"requestBody"`
		Responses map[string]struct{ Content map[string]any }
	}
	Components struct {
		Schemas map[string]struct {
			OneOf []struct {
				Properties struct{ Event struct{ Const string } }
			}
		}
	}
}

// onceClient keeps no connection.
var onceClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const documentURL = "http://nize/openapi.json"

func openDocumented(t *testing.T) *documentTest {
	d := &documentTest{t: t, seen: map[string]bool{}}
	dir := t.TempDir()
	// One conversation is held in Slack.
	d.testDaemon = open(t, dir, nil)
	users, err := api.ListUsers.Call(t.Context(), d.Client, api.Empty{})
	if err != nil || len(users.Items) == 0 {
		t.Fatal(users, err)
	}
	d.stop()
	db := databasetest.OpenIn(t, dir)
	th := store.Thread{ID: exampleConversation, User: users.Items[0].ID, Address: store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: "1.1"}}
	if err := db.PutThread(t.Context(), store.System, th); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d.testDaemon = open(t, dir, map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"}, func(o *daemon.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(d.late.Load())) }
	})

	model := httptest.NewServer(http.HandlerFunc(callFirst))
	t.Cleanup(model.Close)
	d.server = mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "get_current_date"}}}).HTTP()
	toolbox := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "calculate"}}}).HTTP()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddProvider.Call(ctx, d.Client, api.AddProviderRequest{Name: "openai", Kind: "openai-compatible", BaseURL: model.URL + "/v1", Key: api.NewSecret("k")}))
	must(api.SetModel.Call(ctx, d.Client, api.SetModelRequest{Name: "smart", Target: "openai/gpt-4o-mini"}))
	must(api.AddServer.Call(ctx, d.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Transport: store.HTTP, URL: toolbox, Visibility: []string{"all"}, Approvers: "requester"}}))
	must(api.AddServer.Call(ctx, d.Client, api.AddServerRequest{Server: store.Server{Name: "deploy-script", Transport: store.External, Visibility: []string{"all"}}}))
	must(api.AddProject.Call(ctx, d.Client, api.AddProjectRequest{Name: "sales"}))
	must(api.PutCredential.Call(ctx, d.Client, api.PutCredentialRequest{CredentialKey: store.CredentialKey{Scope: "project", Owner: "sales", Service: "Mon MCP", Name: "MCP_TOKEN"}, Secret: api.NewSecret("s3cret-of-the-project")}))
	key, err := api.CreateProjectKey.Call(ctx, d.Client, api.CreateProjectKeyRequest{Project: "sales"})
	must(key, err)
	token, err := api.CreateToken.Call(ctx, d.Client, api.CreateTokenRequest{Name: "web", Audience: string(store.ForAPI)})
	must(token, err)
	d.key, d.token = key.Secret.Reveal(), token.Secret.Reveal()
	addr, err := os.ReadFile(filepath.Join(dir, "nized.addr"))
	must(addr, err)
	d.url = "http://" + strings.TrimSpace(string(addr))
	d.load()
	return d
}

// callFirst is a model service: it calls the first tool that it is offered, or the
// one that runs others, and says done to its result.
func callFirst(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	call := func(name, args string) {
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}]}`+"\n\n", name, args)
	}
	switch {
	case len(req.Tools) == 0 || req.Messages[len(req.Messages)-1].Role == "tool":
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Done."},"finish_reason":"stop"}]}`+"\n\n")
	case slices.ContainsFunc(req.Tools, func(t struct{ Function struct{ Name string } }) bool { return t.Function.Name == "execute_tool" }):
		call("execute_tool", `{"tool_id":"toolbox:calculate","params":{"expression":"6*7"}}`)
	default:
		call(req.Tools[0].Function.Name, `{"order":17}`)
	}
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
}

// load reads the document, and holds it against the schema of OpenAPI 3.1
// (spec.openapis.org/oas/3.1/schema, Apache-2.0).
func (d *documentTest) load() {
	d.t.Helper()
	resp, err := onceClient.Get(d.url + "/openapi.json") // without a token
	if err != nil {
		d.t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || json.Unmarshal(raw, &d.doc) != nil {
		d.t.Fatalf("%s, %v", raw, err)
	}
	official, err := os.ReadFile(filepath.Join("testdata", "openapi-3.1.schema.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	read := func(raw []byte) any {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			d.t.Fatal(err)
		}
		return v
	}
	whole := read(raw)
	d.compiler = jsonschema.NewCompiler()
	if err := d.compiler.AddResource("http://nize/official", read(official)); err != nil {
		d.t.Fatal(err)
	}
	if err := d.schema("http://nize/official").Validate(whole); err != nil {
		d.t.Fatalf("the document is not OpenAPI 3.1: %v", err)
	}
	closeObjects(whole.(map[string]any)["components"])
	whole.(map[string]any)["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	if err := d.compiler.AddResource(documentURL, whole); err != nil {
		d.t.Fatal(err)
	}
}

// closeObjects forbids in every schema what it does not name: an answer may have more
// one day, but not today.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

func (d *documentTest) schema(at string) *jsonschema.Schema {
	d.t.Helper()
	s, err := d.compiler.Compile(at)
	if err != nil {
		d.t.Fatalf("%s: %v", at, err)
	}
	return s
}

// valid holds JSON against a schema of the document.
func (d *documentTest) valid(what, at, text string) {
	d.t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = d.schema(documentURL + "#" + at).Validate(v)
	}
	if err != nil {
		d.t.Errorf("%s: %s: %v", what, text, err)
	}
}

// ask sends a request of an operation and checks its answer.
func (d *documentTest) ask(id, param, body string, change ...func(*http.Request)) (status int, text string) {
	d.t.Helper()
	path, method := d.find(id)
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	for _, name := range []string{"{id}", "{key}"} {
		path = strings.Replace(path, name, param, 1)
	}
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/api/") {
		req.Header.Set("Authorization", "Bearer "+d.token)
	} else {
		req.Header.Set("x-api-key", d.key)
	}
	for _, f := range change {
		f(req)
	}
	resp, err := onceClient.Do(req)
	if err != nil {
		d.t.Fatalf("%s: %v", id, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatalf("%s: %v", id, err)
	}
	d.check(id, resp, string(raw))
	return resp.StatusCode, string(raw)
}

func (d *documentTest) find(id string) (path, method string) {
	for path, methods := range d.doc.Paths {
		for method, op := range methods {
			if op.ID == id {
				return path, strings.ToUpper(method)
			}
		}
	}
	d.t.Fatalf("the document has no operation %s", id)
	return
}

// check holds an answer against what the document says of it.
func (d *documentTest) check(id string, resp *http.Response, text string) {
	d.t.Helper()
	path, method := d.find(id)
	what := fmt.Sprintf("%s %d", id, resp.StatusCode)
	d.seen[what] = true
	documented, ok := d.doc.Paths[path][strings.ToLower(method)].Responses[fmt.Sprint(resp.StatusCode)]
	form, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	_, formOK := documented.Content[form]
	switch {
	case !ok:
		d.t.Errorf("%s: %s: the document does not have that status", what, text)
		return
	case len(documented.Content) == 0 && text == "":
		return
	case !formOK:
		d.t.Errorf("%s: %q is not a form of it: %s", what, form, text)
		return
	}
	pointer := func(s string) string {
		return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(s)
	}
	at := fmt.Sprintf("/paths/%s/%s/responses/%d/content/%s/schema", pointer(path), strings.ToLower(method), resp.StatusCode, pointer(form))
	if form != "text/event-stream" {
		d.valid(what, at, text)
		return
	}
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		event := map[string]any{}
		for line := range strings.SplitSeq(block, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok && name == "data" {
				event[name] = json.RawMessage(value)
			} else if ok {
				event[name] = value
			}
		}
		raw, err := json.Marshal(event)
		if err != nil {
			d.t.Fatalf("%s: %s: %v", what, block, err)
		}
		d.valid(what, at+"/contentSchema", string(raw))
		d.seen[fmt.Sprint(id, " ", event["event"])] = true
	}
}

// came is what an answer says of what comes next.
type came struct {
	ID           string
	Conversation string `json:"conversation_id"`
	Status       string
	Proposed     []struct{ ID, Digest string } `json:"proposed_calls"`
}

// first are the examples whose answers others go on with.
var first = map[string][2]string{
	"runRound approve": {"runRound", "mcp"}, "runRound output": {"runRound", "function"}, "runRound look": {"runRound", "mcp"}, "runRound continue": {"runRound", "plain"},
	"streamRound approve": {"runRound", "mcp"}, "streamRound output": {"runRound", "function"}, "streamRound look": {"runRound", "mcp"}, "streamRound continue": {"runRound", "plain"},
	"chat continue": {"chat", "begin"}, "runTool run": {"chat", "begin"}, "runTool cancel": {"chat", "begin"},
}

// send sends an example, behind the one that it goes on with.
func (d *documentTest) send(id, name string) (c came) {
	d.t.Helper()
	path, method := d.find(id)
	text := string(d.doc.Paths[path][strings.ToLower(method)].Body.Content["application/json"].Examples[name].Value)
	d.valid("the example "+name, "/paths/"+strings.ReplaceAll(path, "/", "~1")+"/"+strings.ToLower(method)+"/requestBody/content/application~1json/schema", text)
	if before, ok := first[id+" "+name]; ok {
		was := d.send(before[0], before[1])
		text = strings.NewReplacer(exampleRound, was.ID, exampleConversation, was.Conversation).Replace(text)
		if strings.Contains(text, exampleCall) {
			if len(was.Proposed) != 1 {
				d.t.Fatalf("%v proposed %+v", before, was)
			}
			text = strings.NewReplacer(exampleCall, was.Proposed[0].ID, exampleDigest, was.Proposed[0].Digest).Replace(text)
		}
	}
	text = strings.ReplaceAll(text, exampleServer, d.server)
	status, answer := d.ask(id, "language", text)
	if status != http.StatusOK || strings.Contains(answer, `"status":"failed"`) || strings.Contains(answer, "event: error") {
		d.t.Errorf("the example %s of %s: %d %s", name, id, status, answer)
	}
	_ = json.Unmarshal([]byte(answer), &c) // a stream has none
	return c
}

// TestDocument: the document is one of OpenAPI 3.1, its examples work, and each
// operation answers with each status that the document has, and with no other.
func TestDocument(t *testing.T) {
	t.Parallel()
	d := openDocumented(t)
	for path, methods := range d.doc.Paths {
		for method, op := range methods {
			for name := range op.Body.Content["application/json"].Examples {
				d.send(op.ID, name)
			}
			param := exampleRound
			if strings.Contains(path, "{key}") {
				param = "language"
			}
			body := map[bool]string{true: "{}"}[method == "post" || method == "put"]
			d.ask(op.ID, param, body, func(r *http.Request) { r.Header.Del("x-api-key"); r.Header.Del("Authorization") })
			d.ask(op.ID, param, body, func(r *http.Request) { r.Host = "evil.example" })
		}
	}
	expect := func(status int, id, param, body string, change ...func(*http.Request)) {
		t.Helper()
		if got, text := d.ask(id, param, body, change...); got != status {
			t.Errorf("%s: %d %s, want %d", id, got, text, status)
		}
	}
	const nobody = "01K9Z3NDEKTSV4RRFFQ69G5FAA"
	last := func(id string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Last-Event-ID", id) }
	}

	waits := d.send("runRound", "mcp")
	wrong := fmt.Sprintf(`{"round_id":%q,"approvals":[{"id":%q,"digest":"0","approve":true}]}`, waits.ID, waits.Proposed[0].ID)
	for _, id := range []string{"runRound", "streamRound"} {
		expect(400, id, "", `{"model":"smart","messages":[{"role":"user","content":"x"}],"tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.example.com","require_approval":"auto"}]}`)
		if _, text := d.ask(id, "", `{"model":"smart","messages":[{"role":7}]}`); !strings.Contains(text, `"message":"messages[0].role must be a string","param":"messages[0].role"`) {
			t.Errorf("a field of another type: %s", text)
		}
		expect(404, id, "", `{"model":"nothing","messages":[{"role":"user","content":"x"}]}`)
		expect(409, id, "", wrong)
	}
	if _, err := api.AddServer.Call(t.Context(), d.Client, api.AddServerRequest{Server: store.Server{Name: "limited", Transport: store.External, Visibility: []string{"all"}, RateLimit: store.Rate{Calls: 1, Per: store.Duration(time.Hour)}}}); err != nil {
		t.Fatal(err)
	}
	asked := func(status int, change string) (ask api.Ask) {
		t.Helper()
		got, text := d.ask("ask", "", `{"source":"deploy-script","tool":"Bash","arguments":{"command":"ls"}`+change+`}`)
		if got != status {
			t.Errorf("ask: %d %s, want %d", got, text, status)
		}
		_ = json.Unmarshal([]byte(text), &ask) // an error has none
		return ask
	}
	if _, err := api.PutSetting.Call(t.Context(), d.Client, api.PutSettingRequest{Key: "approvals.max_pending", Value: "100"}); err != nil {
		t.Fatal(err)
	}
	one := asked(200, `,"key":"k"`)
	if again := asked(200, `,"key":"k","wait":"1ms"`); again.ID != one.ID || again.State != "pending" {
		t.Errorf("%+v and %+v", one, again)
	}
	asked(400, `,"wait":"soon"`)
	expect(409, "ask", "", `{"source":"deploy-script","tool":"Bash","arguments":{"command":"rm"},"key":"k"}`)
	expect(404, "ask", "", `{"source":"nothing","tool":"Bash"}`)
	expect(200, "ask", "", `{"source":"limited","tool":"Bash"}`)
	expect(429, "ask", "", `{"source":"limited","tool":"Bash"}`)
	expect(200, "getAsk", one.ID, "")
	expect(404, "getAsk", nobody, "")
	if got, text := d.ask("getAsk", one.ID+"?wait=x", ""); got != 400 {
		t.Errorf("getAsk: %d %s", got, text)
	}
	expect(200, "cancelAsk", one.ID, "")
	expect(404, "cancelAsk", nobody, "")
	for _, id := range []string{"getRound", "followRound", "cancelRound"} {
		expect(404, id, nobody, "")
	}
	expect(200, "getRound", waits.ID, "")
	expect(200, "getRound", waits.ID, "", func(r *http.Request) { // a member with a token
		r.Header.Del("x-api-key")
		r.Header.Set("Authorization", "Bearer "+d.token)
		r.Header.Set("x-project-id", "sales")
	})
	expect(200, "followRound", waits.ID, "", last("1"))
	expect(204, "followRound", waits.ID, "", last("999"))
	expect(400, "followRound", waits.ID, "", last("x"))
	for _, most := range []string{"0", "128"} {
		if _, err := api.PutSetting.Call(t.Context(), d.Client, api.PutSettingRequest{Key: "limits.user.requests", Value: most}); err != nil {
			t.Fatal(err)
		}
		if most == "0" {
			expect(429, "followRound", waits.ID, "", last("1"))
			expect(429, "chat", "", `{"message":"Hi"}`)
		}
	}
	expect(204, "cancelRound", waits.ID, "")

	if _, err := api.PutSetting.Call(t.Context(), d.Client, api.PutSettingRequest{Key: "limits.project.rounds", Value: "0"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"runRound", "streamRound"} {
		expect(429, id, "", `{"model":"smart","messages":[{"role":"user","content":"x"}]}`)
	}

	for _, id := range []string{"listModels", "listServers", "listConversations", "listSettings"} {
		expect(200, id, "", "")
	}
	expect(200, "unsetSetting", "language", "")
	expect(404, "unsetSetting", "languages", "")
	expect(400, "unsetSetting", "log.level", "")
	expect(400, "putSetting", "language", `{"value":""}`)
	expect(404, "putSetting", "languages", `{"value":"en"}`)

	chat := d.send("chat", "begin")
	expect(200, "getConversation", chat.Conversation, "")
	expect(404, "getConversation", nobody, "")
	expect(400, "chat", "", "{}")
	expect(404, "chat", "", `{"message":"Hi","model":"nothing"}`)
	expect(409, "chat", "", `{"message":"Hi","conversation_id":"`+exampleConversation+`"}`)
	expect(400, "runTool", "", `{"call_id":"x","decision":"walk"}`)
	expect(404, "runTool", "", `{"call_id":"`+nobody+`","decision":"run"}`)
	run := fmt.Sprintf(`{"call_id":%q,"decision":"run","stream":true`, chat.Proposed[0].ID)
	expect(409, "runTool", "", run+`,"tool":"toolbox.other"}`)
	expect(200, "runTool", "", run+`}`)
	chat = d.send("chat", "begin")
	d.late.Store(int64(30 * 24 * time.Hour)) // the token holds 90 days
	expect(410, "runTool", "", fmt.Sprintf(`{"call_id":%q,"decision":"run"}`, chat.Proposed[0].ID))
	if _, err := api.PutSetting.Call(t.Context(), d.Client, api.PutSettingRequest{Key: "limits.user.messages", Value: "1/1h"}); err != nil {
		t.Fatal(err)
	}
	expect(200, "chat", "", `{"message":"Hi","stream":true}`)
	expect(429, "chat", "", `{"message":"Hi"}`)

	for _, methods := range d.doc.Paths {
		for _, op := range methods {
			for status := range op.Responses {
				if status != "default" && !d.seen[op.ID+" "+status] {
					t.Errorf("%s: nothing made it answer with %s", op.ID, status)
				}
			}
		}
	}
	for _, events := range [][3]string{{"RoundEvent", "streamRound", "followRound"}, {"TurnEvent", "chat", "runTool"}} {
		for _, e := range d.doc.Components.Schemas[events[0]].OneOf {
			if name := e.Properties.Event.Const; name != "error" && !d.seen[events[1]+" "+name] && !d.seen[events[2]+" "+name] {
				t.Errorf("no stream had an event %s", name)
			}
		}
	}
}

// What is not in the document is refused in its form, and the page that shows it is
// for everybody.
func TestOutsideTheDocument(t *testing.T) {
	t.Parallel()
	r := open(t, t.TempDir(), nil)
	addr, err := os.ReadFile(filepath.Join(r.dir, "nized.addr"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+strings.TrimSpace(string(addr))+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := onceClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(raw)
	}
	for _, c := range []struct{ request, want, allow string }{
		{"GET /api/nothing", `404 {"error":{"type":"not_found",`, ""},
		{"POST /llm-exec/", `404 {"error":{"type":"not_found",`, ""},
		{"PUT /api/chat", `405 {"error":{"type":"invalid_request",`, "POST"},
		{"POST /llm-exec/rounds/x", `405 {"error":{"type":"invalid_request",`, "DELETE, GET, HEAD"},
		{"GET /api/models?token=x", `401 {"error":{"type":"authentication",`, ""},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		resp, text := ask(method, path)
		if got := fmt.Sprint(resp.StatusCode, " ", text); !strings.HasPrefix(got, c.want) || resp.Header.Get("Allow") != c.allow || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %v, want %s", c.request, got, resp.Header, c.want)
		}
	}
	resp, page := ask("GET", "/docs")
	if policy := resp.Header.Get("Content-Security-Policy"); resp.StatusCode != 200 || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "script-src") || strings.Contains(page, "<script") {
		t.Errorf("/docs: %s, %s", resp.Status, policy)
	}
	for _, want := range []string{`id="streamRound"`, `href="#schema-MCPTool"`, "&#34;type&#34;: &#34;mcp&#34;", `id="schema-RoundEvent"`} {
		if !strings.Contains(page, want) {
			t.Errorf("/docs lacks %s", want)
		}
	}
}
