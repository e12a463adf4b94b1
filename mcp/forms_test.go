package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// rawClient posts raw requests and returns the raw answers.
type rawClient struct {
	f              *front
	token, session string
	version        string
	accept         []string // nil sends no Accept header
}

func (c *rawClient) post(body string) (*http.Response, string) {
	c.f.t.Helper()
	req, err := http.NewRequestWithContext(c.f.t.Context(), http.MethodPost, c.f.url, strings.NewReader(body))
	if err != nil {
		c.f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header["Accept"] = c.accept
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version != "" {
		req.Header.Set("MCP-Protocol-Version", c.version)
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal([]byte(body), &m) == nil {
			req.Header.Set("Mcp-Method", m.Method)
			if m.Params.Name != "" {
				req.Header.Set("Mcp-Name", m.Params.Name)
			}
		}
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		c.f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.f.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return resp, string(text)
}

const (
	sayHello    = `{"jsonrpc":"2.0","id":ID,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	sayReady    = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	sayList     = `{"jsonrpc":"2.0","id":ID,"method":"tools/list"}`
	sayCall     = `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"list_tool_domains","arguments":{}}}`
	sayProgress = `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"list_tool_domains","arguments":{},"_meta":{"progressToken":ID}}}`
	sayPing     = `{"jsonrpc":"2.0","id":ID,"method":"ping"}`
	sayNothing  = `{"jsonrpc":"2.0","id":ID,"method":"no/such"}`
)

func withID(message, id string) string { return strings.ReplaceAll(message, "ID", id) }

// TestAnswersHaveTheFormThatIsAccepted: every request is answered with a JSON document or
// an event stream, as the client accepts.
func TestAnswersHaveTheFormThatIsAccepted(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("client", time.Hour)
	for name, c := range map[string]struct {
		accept []string
		media  string // "" accepts either
	}{
		"both":               {[]string{"application/json, text/event-stream"}, ""},
		"both, in two lines": {[]string{"application/json", "text/event-stream"}, ""},
		"anything":           {[]string{"*/*"}, "application/json"},
		"JSON, or anything":  {[]string{"application/json, text/plain, */*"}, "application/json"},
		"a stream, or any":   {[]string{"text/event-stream", "*/*;q=0.1"}, "text/event-stream"},
		"all that there is":  {[]string{"application/json, text/event-stream, */*"}, ""},
		"all but JSON":       {[]string{"application/json;q=0, */*"}, "text/event-stream"},
		"as a browser asks":  {[]string{"text/html, */*;q=0.8"}, "application/json"},
		"JSON":               {[]string{"application/json"}, "application/json"},
		"JSON with more":     {[]string{"Application/JSON; charset=utf-8, text/html;q=0.5"}, "application/json"},
		"any application":    {[]string{"application/*"}, "application/json"},
		"no streams":         {[]string{"application/json, text/event-stream;q=0"}, "application/json"},
		"streams":            {[]string{"text/event-stream"}, "text/event-stream"},
		"any text":           {[]string{"text/*"}, "text/event-stream"},
		"none":               {nil, "application/json"},
		"an empty one":       {[]string{""}, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &rawClient{f: f, token: token, accept: c.accept}
			for at, say := range []string{sayHello, sayReady, sayList, sayCall, sayProgress, sayPing} {
				resp, text := client.post(withID(say, "7"))
				if say == sayReady {
					if resp.StatusCode != http.StatusAccepted || text != "" {
						t.Errorf("a notification: %d %q", resp.StatusCode, text)
					}
					continue
				}
				media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
				if resp.StatusCode != 200 || c.media != "" && media != c.media {
					t.Fatalf("message %d: %d in %q: %s", at, resp.StatusCode, media, text)
				}
				doc := text
				if media == "text/event-stream" {
					events := strings.Split(strings.TrimSpace(text), "\n\n")
					_, doc, _ = strings.Cut(events[len(events)-1], "data: ")
				}
				var m struct {
					ID     json.RawMessage
					Result json.RawMessage
				}
				if err := json.Unmarshal([]byte(doc), &m); err != nil || string(m.ID) != "7" || len(m.Result) == 0 {
					t.Errorf("message %d: %s (%v)", at, text, err)
				}
			}
			if client.session == "" {
				t.Error("there is no session")
			}
		})
	}
	// The standing stream is an event stream, also without an Accept header.
	for accept, want := range map[string]int{"": 200, "text/event-stream": 200, "*/*": 200, "application/json": 400} {
		client := &rawClient{f: f, token: token}
		client.post(withID(sayHello, "1"))
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Mcp-Session-Id", client.session)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if media := resp.Header.Get("Content-Type"); resp.StatusCode != want || (media == "text/event-stream") != (want == 200) {
			t.Errorf("the stream with Accept %q: %d in %q", accept, resp.StatusCode, media)
		}
		cancel()
		resp.Body.Close()
	}
	// Likewise in the newer protocol version, whose notification stream is never a
	// document.
	modern := `{"jsonrpc":"2.0","id":7,"method":"METHOD","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for accept, want := range map[string]string{"application/json": "application/json", "text/event-stream": "text/event-stream"} {
		client := &rawClient{f: f, token: token, accept: []string{accept}, version: "2026-07-28"}
		resp, text := client.post(strings.ReplaceAll(modern, "METHOD", "tools/list"))
		if media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); resp.StatusCode != 200 || media != want || !strings.Contains(text, "execute_tool") {
			t.Errorf("%s: %d in %q: %.200s", accept, resp.StatusCode, media, text)
		}
	}
	for name, c := range map[string]struct{ accept, method, words string }{
		"a page":               {"text/html", "tools/list", "Accept header"},
		"neither":              {"application/json;q=0, text/event-stream;q=0.0", "tools/list", "Accept header"},
		"a stream as document": {"application/json", "subscriptions/listen", "subscriptions/listen is a stream"},
	} {
		client := &rawClient{f: f, token: token, accept: []string{c.accept}, version: "2026-07-28"}
		if resp, text := client.post(strings.ReplaceAll(modern, "METHOD", c.method)); resp.StatusCode != http.StatusNotAcceptable || !strings.Contains(text, c.words) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
}

// approveNext approves the next waiting call.
func (f *front) approveNext() {
	f.t.Helper()
	var waiting []store.Call
	f.until("a call waits", func() (err error) {
		waiting, err = f.db.ListCalls(f.t.Context(), store.CallQuery{Waiting: true})
		return err
	}, func() bool { return len(waiting) == 1 })
	if _, err := f.gateway.Decide(f.t.Context(), f.root, waiting[0].ID, store.Decision{Verb: store.Approve, Digest: waiting[0].Digest}); err != nil {
		f.t.Fatal(err)
	}
}

// TestDocumentWaitsForAPerson: a client that accepts only documents can't be asked during a
// call. Its call waits like any other, and its answer is a document.
func TestDocumentWaitsForAPerson(t *testing.T) {
	f := newFront(t, nil)
	hello := strings.Replace(sayHello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	for _, asked := range []string{"false", "true"} {
		f.config.set("approvals.elicitation", asked)
		client := &rawClient{f: f, token: f.token("client "+asked, time.Hour), accept: []string{"application/json"}}
		client.post(withID(hello, "1"))
		client.post(sayReady)
		for _, meta := range []string{``, `,"_meta":{"progressToken":"p"}`} {
			done := make(chan string)
			go func() {
				resp, text := client.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"x"}}` + meta + `}}`)
				done <- resp.Header.Get("Content-Type") + " " + text
			}()
			f.approveNext()
			if text := <-done; !strings.HasPrefix(text, `application/json {"jsonrpc":"2.0","id":2,`) || !strings.Contains(text, `"success":true`) {
				t.Errorf("asked %s: %s", asked, text)
			}
		}
	}
}

// TestIDsComeBackAsTheyWere: request IDs are returned exactly as sent, in both forms of
// answer, from the SDK as well as from nize's own code.
func TestIDsComeBackAsTheyWere(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("client", time.Hour)
	for _, id := range []string{`1`, `0`, `-7`, `9007199254740992`, `"text"`, `""`, `"1"`,
		`1.5`, `1.0`, `-0`, `1e3`, `1E5`, `-1.5e-7`, `1e400`, `"1.5"`, `9007199254740993.0`, `0.1`, `9007199254740993`, `-9007199254740993`, `123456789012345678901234567890`, `"nize:held:312e35"`} {
		for _, accept := range []string{"application/json, text/event-stream", "application/json", "text/event-stream"} {
			client := &rawClient{f: f, token: token, accept: []string{accept}}
			for _, say := range []string{sayHello, sayReady, sayList, sayCall, sayProgress, sayPing} {
				resp, text := client.post(withID(say, id))
				if say != sayReady && (resp.StatusCode != 200 || !strings.Contains(text, `"id":`+id+`,`)) {
					t.Errorf("id %s to %s: %d %.200s", id, say, resp.StatusCode, text)
				}
				if strings.Contains(text, "nize:held") && !strings.Contains(id, "nize:held") {
					t.Errorf("id %s: %.200s", id, text)
				}
			}
			if resp, text := client.post(withID(sayNothing, id)); resp.StatusCode < 400 && !strings.Contains(text, `"id":`+id+`,`) || strings.Contains(text, "nize:held") && !strings.Contains(id, "nize:held") {
				t.Errorf("id %s to an unknown method: %.200s", id, text)
			}
		}
	}
	client := &rawClient{f: f, token: token, accept: []string{"application/json, text/event-stream"}}
	client.post(withID(sayHello, "1"))
	client.post(sayReady)
	for _, id := range []string{`true`, `{}`, `[1]`, `1.`, `01`, `NaN`, `--1`, `1.5.5`} {
		if resp, text := client.post(withID(sayList, id)); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("id %s: %d %.200s", id, resp.StatusCode, text)
		}
	}
}

// TestProgressTokensComeBackAsTheyWere: the same holds for progress tokens.
func TestProgressTokensComeBackAsTheyWere(t *testing.T) {
	f := newFront(t, nil)
	for _, number := range []string{`1.5`, `9007199254740993`, `5`} {
		client := &rawClient{f: f, token: f.token("client"+number, time.Hour), accept: []string{"text/event-stream, application/json"}}
		client.post(withID(sayHello, "1"))
		client.post(sayReady)
		done := make(chan string)
		go func() {
			_, text := client.post(withID(`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"x"}},"_meta":{"progressToken":ID}}}`, number))
			done <- text
		}()
		f.approveNext()
		if text := <-done; !strings.Contains(text, `"progressToken":`+number) || !strings.Contains(text, `"id":`+number+`,`) {
			t.Errorf("token %s: %s", number, text)
		}
	}
}

// TestIDsOnAConnectionOfItsOwn: the same holds on a separate connection.
func TestIDsOnAConnectionOfItsOwn(t *testing.T) {
	f := newFront(t, nil)
	ours, theirs := net.Pipe()
	ended := make(chan error, 1) // buffered for the single result of ServeConn
	go func() { ended <- f.server.ServeConn(t.Context(), f.root, theirs) }()
	in := bufio.NewScanner(ours)
	in.Buffer(nil, 1<<20)
	for _, id := range []string{`1`, `"text"`, `1.5`, `2.0`, `1e3`, `-0`, `9007199254740993`, `123456789012345678901234567890`, `"nize:held:312e35"`} {
		say := sayPing
		if id == `1` {
			say = sayHello
		}
		if _, err := io.WriteString(ours, withID(say, id)+"\n"); err != nil {
			t.Fatal(err)
		}
		if !in.Scan() || !strings.Contains(in.Text(), `"id":`+id+`,`) {
			t.Errorf("id %s: %s (%v)", id, in.Text(), in.Err())
		}
	}
	ours.Close()
	<-ended // the error at the end of a pipe varies
}

// TestErrorsAreJSONRPC: the answer to every malformed request is valid JSON-RPC. An unknown
// method does not end the session, and an unknown notification is accepted because
// notifications have no answer.
func TestErrorsAreJSONRPC(t *testing.T) {
	f := newFront(t, nil)
	token := f.token("client", time.Hour)
	const both, document, stream = "application/json, text/event-stream", "application/json", "text/event-stream"
	for name, c := range map[string]struct {
		version, accept, say string
		status, code         int // 0: there is no body
		id                   string
	}{
		"an unknown method":                        {"", both, `{"jsonrpc":"2.0","id":7,"method":"no/such"}`, 200, -32601, `7`},
		"with parameters":                          {"2025-06-18", both, `{"jsonrpc":"2.0","id":7,"method":"no/such","params":{"x":1}}`, 200, -32601, `7`},
		"by a name":                                {"2025-11-25", both, `{"jsonrpc":"2.0","id":"a \"b\"","method":"logging/no \"such\""}`, 200, -32601, `"a \"b\""`},
		"to a client that takes documents":         {"2025-11-25", document, `{"jsonrpc":"2.0","id":1.5,"method":"no/such"}`, 200, -32601, `1.5`},
		"to a client that takes streams":           {"2025-11-25", stream, `{"jsonrpc":"2.0","id":7,"method":"no/such"}`, 200, -32601, `7`},
		"without a name":                           {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":""}`, 200, -32601, `7`},
		"of the newer wire alone":                  {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{}}`, 200, -32601, `7`},
		"completion, which nize has not":           {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}}`, 200, -32601, `7`},
		"an unknown method on the newer wire":      {"2026-07-28", both, `{"jsonrpc":"2.0","id":7,"method":"no/such"}`, 404, -32601, `7`},
		"an unknown notification":                  {"2025-11-25", both, `{"jsonrpc":"2.0","method":"notifications/no"}`, 202, 0, ``},
		"one that a server sends":                  {"", both, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, 202, 0, ``},
		"an unknown notification on the newer one": {"2026-07-28", both, `{"jsonrpc":"2.0","method":"notifications/no"}`, 202, 0, ``},
		"no parameters":                            {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, 400, -32602, `7`},
		"no id":                                    {"2025-11-25", both, `{"jsonrpc":"2.0","method":"tools/list"}`, 400, -32600, `null`},
		"an id that is null":                       {"2025-11-25", both, `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, 400, -32600, `null`},
		"an id for a notification":                 {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}`, 400, -32600, `7`},
		"no version":                               {"2025-11-25", both, `{"id":7,"method":"tools/list"}`, 400, -32600, `7`},
		"a method that is a number":                {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":5}`, 400, -32600, `null`},
		"a batch":                                  {"2025-11-25", document, `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, 400, -32600, `null`},
		"an empty batch":                           {"", both, `[]`, 400, -32600, `null`},
		"no JSON":                                  {"2025-11-25", both, `nonsense`, 400, -32700, `null`},
		"half of it":                               {"2025-11-25", document, `{"jsonrpc":"2.0","id":7,`, 400, -32700, `null`},
		"nothing":                                  {"2025-11-25", both, ``, 400, -32600, `null`},
		"too much":                                 {"2025-11-25", both, `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, 413, -32600, `null`},
	} {
		client := &rawClient{f: f, token: token, accept: []string{both}}
		if c.version < "2026" {
			client.post(withID(sayHello, "1"))
			client.post(sayReady)
		}
		client.version, client.accept = c.version, []string{c.accept}
		resp, text := client.post(c.say)
		if resp.StatusCode != c.status || c.code == 0 && text != "" {
			t.Errorf("%s: %d %.200s", name, resp.StatusCode, text)
		}
		if c.code != 0 {
			if _, data, isStream := strings.Cut(text, "data: "); isStream {
				text = data
			}
			var m struct {
				Version string `json:"jsonrpc"`
				ID      json.RawMessage
				Error   struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal([]byte(text), &m); err != nil || m.Version != "2.0" || string(m.ID) != c.id || m.Error.Code != c.code || m.Error.Message == "" {
				t.Errorf("%s: %v, %.200s", name, err, text)
			}
			if media := resp.Header.Get("Content-Type"); !strings.HasPrefix(media, document) && !strings.HasPrefix(media, stream) {
				t.Errorf("%s: an answer of the type %q", name, media)
			}
		}
		if client.session == "" {
			continue
		}
		client.version, client.accept = "", []string{both}
		if resp, text := client.post(withID(sayPing, "8")); resp.StatusCode != 200 || !strings.Contains(text, `"result"`) {
			t.Errorf("%s: after it: %d %.200s", name, resp.StatusCode, text)
		}
	}
	ended := &rawClient{f: f, token: token, accept: []string{both}, session: "ended"}
	for _, say := range []string{sayPing, sayNothing} { // this tells a client to begin a new session
		if resp, text := ended.post(withID(say, "7")); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, `"id":7,"error":{"code":-32001,`) {
			t.Errorf("in a session that ended: %d %s", resp.StatusCode, text)
		}
	}
}
