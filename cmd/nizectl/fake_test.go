package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// now is the time of every test.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fake is a daemon with its state in memory, on a real Unix socket. It keeps
// what it was asked, so that a test can compare requests.
type fake struct {
	socket string

	mu          sync.Mutex // guards all below
	asked       []asked
	servers     map[string]store.Server
	unreachable bool // nothing can be contacted
	tokens      map[string]store.Token
	credentials map[store.CredentialKey]string
	providers   map[string]api.AddProvider
	models      map[string]store.ModelName
	agents      map[string]store.Agent
	cards       map[string]store.Card
	settings    map[string]string
	call        func(id string, args json.RawMessage) (store.Call, error)
	tools       []api.ToolSchema
	events      []store.Event
	verified    *api.Verified
	reindex     []api.ReindexLine
	probe       api.Probe
	logs        []string
	held        []api.TrustView
	usage       []store.UsageRow
}

// asked is one request as it arrived.
type asked struct {
	Method, Path string
	Query        url.Values
	Body         string
}

func (a asked) String() string {
	s := a.Method + " " + a.Path
	if len(a.Query) > 0 {
		s += "?" + a.Query.Encode()
	}
	if a.Body != "" {
		s += " " + a.Body
	}
	return s
}

// shortDir is a directory for a socket, whose path has about 100 bytes at most:
// that of t.TempDir holds the test's name, which may be a whole command line.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nize")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newFake starts one with the toolbox registered.
func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		socket:      filepath.Join(shortDir(t), api.SocketName),
		servers:     map[string]store.Server{"toolbox": {Name: "toolbox", Transport: store.Stdio, Command: "/bin/nize-toolbox", Revision: 1}},
		tokens:      map[string]store.Token{},
		credentials: map[store.CredentialKey]string{},
		providers:   map[string]api.AddProvider{},
		models:      map[string]store.ModelName{},
		agents:      map[string]store.Agent{"main": {ID: "main", Default: true, SystemPrompt: "be kind"}},
		cards:       map[string]store.Card{},
		settings:    map[string]string{},
		tools: []api.ToolSchema{{
			ToolView:    api.ToolView{ID: "toolbox:convert_time", Server: "toolbox", Name: "convert_time", Description: "Convert a time between cities", Domain: "time", State: store.ToolAccepted},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"const":9007199254740993}}}`), Pin: "p1", Accepted: "p1", NeedsApproval: true, Why: "it may change something",
		}},
		probe: api.Probe{OK: true, Tools: 1, Steps: []api.ProbeStep{{Name: "spawn", TookMS: 3}, {Name: "initialize", TookMS: 12}}},
	}
	f.call = func(id string, args json.RawMessage) (store.Call, error) {
		server, tool, _ := store.SplitToolID(id)
		return store.Call{ID: "01C", Server: server, Tool: tool, Args: args, State: store.Done,
			Result: &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"14:00 in Lisbon"}]}`)}}, nil
	}
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: f}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, asked{r.Method, r.URL.EscapedPath(), r.URL.Query(), string(body)})
	mux := http.NewServeMux()
	handlers := f.handlers()
	for _, route := range api.Routes {
		key := route.Method + " " + route.Path
		if h, ok := handlers[key]; ok {
			mux.HandleFunc(key, func(w http.ResponseWriter, r *http.Request) { answer(w, r, h) })
		}
	}
	w.Header().Set(api.VersionHeader, api.Version)
	mux.ServeHTTP(w, r)
}

type handler func(r *http.Request) (any, error)

// lines is an answer that is a stream.
type lines []any

func answer(w http.ResponseWriter, r *http.Request, h handler) {
	v, err := h(r)
	enc := json.NewEncoder(w)
	if err != nil {
		e, known := api.FromError(err)
		if !known {
			e.Message = err.Error()
		}
		w.WriteHeader(e.Status())
		enc.Encode(api.Failure{Error: e})
		return
	}
	if stream, ok := v.(lines); ok {
		for _, line := range stream {
			enc.Encode(line)
		}
		return
	}
	enc.Encode(v)
}

func read[T any](r *http.Request) (T, error) {
	var v T
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("%w body: %w", store.ErrInvalid, err)
	}
	return v, nil
}

func find[T any](what, name string, m map[string]T) (T, error) {
	if v, ok := m[name]; ok {
		return v, nil
	}
	var zero T
	var names []string
	for k := range m {
		names = append(names, k)
	}
	return zero, store.Unknown(what, name, names)
}

func listed[T any](m map[string]T) api.List[T] {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	l := api.List[T]{Items: []T{}}
	for _, k := range keys {
		l.Items = append(l.Items, m[k])
	}
	return l
}

func (f *fake) view(s store.Server) api.ServerView {
	v := api.ServerView{Server: s, Health: api.Health{Name: s.Name, State: "ready", ToolCount: len(f.tools), LatencyMS: 1.5}}
	if s.Disabled {
		v.State = "disabled"
	}
	for _, t := range f.tools {
		v.Tools = append(v.Tools, t.ToolView)
	}
	return v
}

func (f *fake) handlers() map[string]handler {
	h := map[string]handler{}
	for _, part := range []map[string]handler{f.serverHandlers(), f.toolHandlers(), f.tokenHandlers(), f.modelHandlers(), f.restHandlers()} {
		for k, v := range part {
			h[k] = v
		}
	}
	return h
}

// changes returns the requests that were no GET, since the last time.
func (f *fake) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.asked {
		if a.Method != "GET" {
			out = append(out, a.String())
		}
	}
	f.asked = nil
	return out
}

// gets returns the requests that were a GET, since the last time.
func (f *fake) gets() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.asked {
		if a.Method == "GET" {
			out = append(out, a.String())
		}
	}
	f.asked = nil
	return out
}

// result is what one command line gave.
type result struct {
	code     int
	out, err string
}

// surroundings are what a command line finds at its start.
type surroundings struct {
	stdin   string
	tty     bool          // all three streams are a terminal
	hidden  string        // what is typed without echo
	tabWait time.Duration // 0 is a minute, for busy machines
	env     map[string]string
}

// nizectl runs one command line against the fake.
func (f *fake) nizectl(s surroundings, args ...string) result {
	return f.run(context.Background(), s, args...)
}

func (f *fake) run(ctx context.Context, s surroundings, args ...string) result {
	var out, errs bytes.Buffer
	a := &app{
		in: strings.NewReader(s.stdin), raw: &out, out: bufio.NewWriter(&out), err: &errs,
		inTTY: s.tty, outTTY: s.tty, errTTY: s.tty,
		env: func(k string) string {
			if k == "TZ" {
				return cmp.Or(s.env[k], "UTC")
			}
			return s.env[k]
		},
		now:     func() time.Time { return now },
		columns: func() int { return 0 },
		hidden:  func() ([]byte, error) { return []byte(s.hidden), nil },
		tabWait: cmp.Or(s.tabWait, time.Minute),
	}
	code := a.run(ctx, append([]string{"--socket", f.socket}, args...))
	return result{code, out.String(), errs.String()}
}

// provider is one that is there.
var provider = api.AddProvider{Name: "have", Kind: "openai", Key: api.NewSecret("k")}
