// Package mcptest is a fake upstream with real behaviour: a real MCP server of the SDK.
//
// It runs on an in-memory transport, over Streamable HTTP (stateful or stateless), over the
// older SSE, or as a child process. It misbehaves on request and counts the calls of each
// tool.
//
// An interceptor precedes the SDK's server. It handles the calls of tools that have a raw
// Result, a Do or a Fault, so that it can send bytes which the SDK would not write (unknown
// content types, integers over 2^53, broken JSON); the SDK handles everything else.
//
// A child process is the test binary again: TestMain must call [ChildMain] first.
package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fault is a kind of misbehaviour.
type Fault string

// Faults of a call: set as Tool.Fault.
const (
	Die      Fault = "die"      // the process exits, or the connection is closed, during the call
	Hang     Fault = "hang"     // no answer ever
	Wedge    Fault = "wedge"    // stops reading standard input; over HTTP as Hang
	Noise    Fault = "noise"    // 5 lines on standard output that are not JSON, then the answer
	Flood    Fault = "flood"    // 1,100 such lines
	BigLine  Fault = "bigline"  // an answer of 17 MiB, with a known length over HTTP
	BigBody  Fault = "bigbody"  // an answer of 200 MiB without a known length
	Trickle  Fault = "trickle"  // a byte every 20 ms, endlessly
	HTML     Fault = "html"     // a web page instead of JSON
	Broken   Fault = "broken"   // JSON that ends in the middle
	Progress Fault = "progress" // three progress notifications, then the answer
	Ask      Fault = "ask"      // a request to the client (elicitation), whose response is the answer
	Env      Fault = "env"      // the answer is the environment
	Fork     Fault = "fork"     // starts a grandchild that ignores signals, and answers with its pid
	Escape   Fault = "escape"   // the same, in its own session
	Swap     Fault = "swap"     // changes its own description, then answers
	Polled   Fault = "polled"   // a stream that ends before the answer and must be resumed
)

// Faults of the whole server: set with SetFault, or in Options.
const (
	Unauthorized Fault = "401"
	ServerError  Fault = "500"
	Unavailable  Fault = "503"
	TooMany      Fault = "429"
	Redirect     Fault = "redirect" // to the recorder at Options.Target
	Pages        Fault = "pages"    // a list of tools that never ends
	SameCursor   Fault = "cursor"   // a list that repeats its cursor
	Twice        Fault = "twice"    // the first tool is listed twice
	Storm        Fault = "storm"    // continuous list_changed
	Deaf         Fault = "deaf"     // a child that never answers initialize
	Dead         Fault = "dead"     // a child that prints the reason and exits 3 immediately
	Stubborn     Fault = "stubborn" // a child that ignores the end of its input and SIGTERM
)

// Tool is one tool of the fake.
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage `json:",omitempty"` // {"type":"object"} if nil
	Annotations              *sdk.ToolAnnotations
	Meta                     json.RawMessage `json:",omitempty"`
	Icons                    []sdk.Icon      `json:",omitempty"`
	// Result is returned verbatim; without Result, Do and Fault the SDK's server returns
	// the arguments as one text.
	Result json.RawMessage `json:",omitempty"`
	// Do runs in the test's process; not for child processes.
	Do    func(ctx context.Context, args json.RawMessage) json.RawMessage `json:"-"`
	Fault Fault
}

// Options configures the fake.
type Options struct {
	Name         string
	Title        string
	Instructions string
	Tools        []Tool
	Features     bool // provide a prompt, a resource and a template of resources
	Stateless    bool // serve the 2026-07-28 protocol too
	JSON         bool // respond with JSON instead of event streams
	Fault        Fault
	Target       string // target of Redirect
	Log          string // a line for standard error at the start of a child
	CountFile    string // file to which a child writes its calls; set by Command
}

// Server is a running fake. It is safe for concurrent use.
type Server struct {
	t    testing.TB
	opt  Options
	real *sdk.Server

	mu      sync.Mutex
	tools   map[string]Tool
	calls   map[string]int
	headers []http.Header
	lists   int
	fault   Fault
	times   int // remaining uses of fault; -1 means unlimited
	http    *httptest.Server
	kept    *os.File // while http is stopped: a socket bound to its port that does not listen
	asked   map[string]chan json.RawMessage
}

// New returns a fake that ends with the test.
func New(t testing.TB, opt Options) *Server {
	t.Helper()
	s := build(opt)
	s.t = t
	if opt.CountFile == "" {
		s.opt.CountFile = filepath.Join(t.TempDir(), "calls")
	}
	t.Cleanup(s.end)
	return s
}

func build(opt Options) *Server {
	if opt.Name == "" {
		opt.Name = "fake"
	}
	s := &Server{opt: opt, tools: map[string]Tool{}, calls: map[string]int{}, asked: map[string]chan json.RawMessage{}, fault: opt.Fault, times: -1}
	s.real = sdk.NewServer(&sdk.Implementation{Name: opt.Name, Title: opt.Title, Version: "1.0.0"}, &sdk.ServerOptions{
		Instructions: opt.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	for _, t := range opt.Tools {
		s.SetTool(t)
	}
	if opt.Features {
		s.addFeatures()
	}
	return s
}

// addFeatures adds the prompt greet, the resource memo:first and the template memo:{name}.
func (s *Server) addFeatures() {
	s.SetPrompt("greet", "Greets somebody.")
	s.SetResource("memo:first", "The first memo.")
	s.real.AddResourceTemplate(&sdk.ResourceTemplate{Name: "memo", URITemplate: "memo:{name}", Description: "A memo."}, s.readMemo)
}

// SetResource adds or changes a resource; the SDK notifies the clients.
func (s *Server) SetResource(uri, description string) {
	s.real.AddResource(&sdk.Resource{Name: "a memo", URI: uri, Description: description, MIMEType: "text/plain", Size: 7}, s.readMemo)
}

func (s *Server) readMemo(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	s.count(req.Params.URI)
	if req.Params.URI == "memo:none" {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: "memo of " + req.Params.URI}}}, nil
}

// View is HTML that shows the results of tools whose meta contains its address.
type View struct {
	URI, MIMEType, Text string
	Meta, Listed        json.RawMessage // _meta of the content, and of the list's entry
}

// SetView adds or changes a view; the SDK notifies the clients.
func (s *Server) SetView(v View) {
	s.real.AddResource(&sdk.Resource{Meta: metaOf(v.Listed), Name: "a view", URI: v.URI, MIMEType: v.MIMEType}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		s.count(v.URI)
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Meta: metaOf(v.Meta), URI: v.URI, MIMEType: v.MIMEType, Text: v.Text}}}, nil
	})
}

// RemoveView removes a view.
func (s *Server) RemoveView(uri string) { s.real.RemoveResources(uri) }

func metaOf(raw json.RawMessage) (m sdk.Meta) {
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil {
		panic("mcptest: a meta that is no object: " + string(raw))
	}
	return m
}

// SetPrompt adds or changes a prompt with the argument who; the SDK notifies the clients.
func (s *Server) SetPrompt(name, description string) {
	s.real.AddPrompt(&sdk.Prompt{Name: name, Title: "Greeting", Description: description, Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			s.count(name)
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Greet " + req.Params.Arguments["who"]}}}}, nil
		})
}

// SetTool adds or changes a tool; the SDK notifies the clients.
func (s *Server) SetTool(t Tool) {
	if t.Schema == nil {
		t.Schema = json.RawMessage(`{"type":"object"}`)
	}
	s.mu.Lock()
	s.tools[t.Name] = t
	s.mu.Unlock()
	s.real.AddTool(&sdk.Tool{Meta: metaOf(t.Meta), Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Schema, Annotations: t.Annotations, Icons: t.Icons},
		func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			s.count(req.Params.Name)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
}

// RemoveTool removes a tool.
func (s *Server) RemoveTool(name string) {
	s.mu.Lock()
	delete(s.tools, name)
	s.mu.Unlock()
	s.real.RemoveTools(name)
}

// SetFault makes the whole server misbehave for a number of requests, or always (-1). An
// empty fault ends that.
func (s *Server) SetFault(f Fault, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.times = f, times
}

// strikes returns the current fault if it is one of these, and counts its use.
func (s *Server) strikes(among ...Fault) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range among {
		if s.fault == f && s.times != 0 {
			if s.times > 0 {
				s.times--
			}
			return f
		}
	}
	return ""
}

// count counts a call; a child writes it to a file for the test to read.
func (s *Server) count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
	if s.t == nil && s.opt.CountFile != "" {
		f, err := os.OpenFile(s.opt.CountFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Fprintln(f, name)
		f.Close()
	}
}

// Calls returns how often a tool was run, in this process and in its children.
func (s *Server) Calls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[name]
	b, err := os.ReadFile(s.opt.CountFile)
	if err != nil {
		return n // no child has run anything
	}
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) == name {
			n++
		}
	}
	return n
}

// Lists returns how often the tools were listed over HTTP.
func (s *Server) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// Headers returns the headers of each request over HTTP so far.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.headers...)
}

// MCP returns the SDK's server behind the fake.
func (s *Server) MCP() *sdk.Server { return s.real }

// Transport connects the fake to one end of an in-memory pipe and returns the
// other.
func (s *Server) Transport() sdk.Transport {
	s.t.Helper()
	server, client := sdk.NewInMemoryTransports()
	ss, err := s.real.Connect(context.Background(), &interceptor{Transport: server, server: s}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { ss.Close() })
	return client
}

// reply returns a tool's own answer, or ok false if the SDK must answer. write sends
// further messages first.
func (s *Server) reply(ctx context.Context, id jsonrpc.ID, params json.RawMessage, write func(jsonrpc.Message) error) (result json.RawMessage, fault Fault, ok bool) {
	var p struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
		Meta struct {
			Token any `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, "", false
	}
	s.mu.Lock()
	t, known := s.tools[p.Name]
	s.mu.Unlock()
	if !known || t.Result == nil && t.Do == nil && t.Fault == "" {
		return nil, "", false
	}
	s.count(p.Name)
	for i := 1; i <= 3 && t.Fault == Progress && p.Meta.Token != nil; i++ {
		s.notify(write, "notifications/progress", map[string]any{"progressToken": p.Meta.Token, "progress": i, "total": 3, "message": fmt.Sprint("step ", i)})
	}
	result = t.Result
	if t.Do != nil {
		result = t.Do(ctx, p.Args)
	}
	if result == nil {
		result = Text(string(p.Args))
	}
	switch t.Fault {
	case Ask:
		result = Text(string(s.ask(ctx, id, write)))
	case Env:
		result = Text(strings.Join(os.Environ(), "\n"))
	case Fork, Escape:
		result = Text(fmt.Sprint(fork(t.Fault == Escape)))
	case Swap:
		next := t
		next.Description += " (changed)"
		next.Fault = ""
		s.SetTool(next)
	}
	return result, t.Fault, true
}

func (s *Server) notify(write func(jsonrpc.Message) error, method string, params any) {
	raw, err := json.Marshal(params)
	if err == nil {
		err = write(&jsonrpc.Request{Method: method, Params: raw})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
	}
}

// ask sends the client a request and returns its whole response.
func (s *Server) ask(ctx context.Context, call jsonrpc.ID, write func(jsonrpc.Message) error) json.RawMessage {
	name := fmt.Sprint("ask-", call.Raw())
	id, err := jsonrpc.MakeID(name)
	if err != nil {
		return []byte(err.Error())
	}
	answer := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.asked[name] = answer
	s.mu.Unlock()
	if err := write(&jsonrpc.Request{ID: id, Method: "elicitation/create", Params: json.RawMessage(`{"message":"sure?"}`)}); err != nil {
		return []byte(err.Error())
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		return []byte(ctx.Err().Error())
	case <-time.After(10 * time.Second):
		return []byte("nobody answered")
	}
}

// answered handles a client's response to ask.
func (s *Server) answered(r *jsonrpc.Response) bool {
	name, ok := r.ID.Raw().(string)
	if !ok {
		return false
	}
	s.mu.Lock()
	ch := s.asked[name]
	delete(s.asked, name)
	s.mu.Unlock()
	if ch == nil {
		return false
	}
	raw, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		raw = []byte(err.Error())
	}
	ch <- raw
	return true
}

// Text returns a result with one text.
func Text(s string) json.RawMessage {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: a string always encodes
	}
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(quoted) + `}]}`)
}
