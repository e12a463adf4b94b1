package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// newFake starts one with the toolbox registered.
func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		socket:      filepath.Join(t.TempDir(), api.SocketName),
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

func (f *fake) serverHandlers() map[string]handler {
	one := func(r *http.Request, do func(store.Server) (any, error)) (any, error) {
		s, err := find("server", r.PathValue("name"), f.servers)
		if err != nil {
			return nil, err
		}
		return do(s)
	}
	return map[string]handler{
		"GET /v1/servers": func(r *http.Request) (any, error) {
			l := api.List[api.ServerView]{}
			for _, s := range listed(f.servers).Items {
				v := f.view(s)
				v.Tools = nil
				l.Items = append(l.Items, v)
			}
			return l, nil
		},
		"POST /v1/servers": func(r *http.Request) (any, error) {
			a, err := read[api.AddServer](r)
			if err != nil {
				return nil, err
			}
			if _, taken := f.servers[a.Server.Name]; taken {
				return nil, fmt.Errorf("server %q %w: choose another name, or remove it first", a.Server.Name, store.ErrExists)
			}
			if f.unreachable && !a.Force {
				return nil, fmt.Errorf("connecting to %s: %w", a.Server.Name, api.ErrUnavailable)
			}
			f.servers[a.Server.Name] = a.Server
			v := f.view(a.Server)
			v.Unreachable = f.unreachable
			return v, nil
		},
		"GET /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { return f.view(s), nil })
		},
		"PATCH /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) {
				p, err := read[api.PatchServer](r)
				if err != nil {
					return nil, err
				}
				applyPatch(&s, p)
				set(&s.Disabled, p.Disabled)
				set(&s.Visibility, p.Visibility)
				f.servers[s.Name] = s
				return f.view(s), nil
			})
		},
		"DELETE /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { delete(f.servers, s.Name); return api.Empty{}, nil })
		},
		"POST /v1/servers/{name}/test": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) { return f.probe, nil })
		},
		"POST /v1/servers/{name}/restart": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { return f.view(s), nil })
		},
		"GET /v1/servers/{name}/trust": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) { return api.List[api.TrustView]{Items: f.held}, nil })
		},
		"POST /v1/servers/{name}/trust": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) {
				a, err := read[api.Accept](r)
				if err != nil {
					return nil, err
				}
				l := api.List[api.ToolView]{}
				for _, t := range a.Tools {
					l.Items = append(l.Items, api.ToolView{ID: t.Tool, State: store.ToolAccepted})
				}
				return l, nil
			})
		},
		"GET /v1/servers/{name}/logs": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) {
				out := lines{}
				for _, text := range f.logs {
					out = append(out, api.LogLine{Text: text})
				}
				return out, nil
			})
		},
	}
}

func (f *fake) toolHandlers() map[string]handler {
	one := func(r *http.Request) (api.ToolSchema, error) {
		m := map[string]api.ToolSchema{}
		for _, t := range f.tools {
			m[t.ID] = t
		}
		return find("tool", r.PathValue("id"), m)
	}
	views := func() []api.ToolView {
		return each(f.tools, func(t api.ToolSchema) api.ToolView { return t.ToolView })
	}
	return map[string]handler{
		"GET /v1/tools": func(r *http.Request) (any, error) { return api.List[api.ToolView]{Items: views()}, nil },
		"GET /v1/tools/search": func(r *http.Request) (any, error) {
			found := api.Found{}
			for _, t := range f.tools {
				if strings.Contains(strings.ToLower(t.Description), "time") && strings.Contains(r.FormValue("q"), "time") {
					found.Tools = append(found.Tools, api.FoundTool{ID: t.ID, Name: t.Name, Description: t.Description, Score: .87})
				}
			}
			return found, nil
		},
		"GET /v1/tools/{id}": func(r *http.Request) (any, error) { return one(r) },
		"POST /v1/tools/{id}/call": func(r *http.Request) (any, error) {
			t, err := one(r)
			if err != nil {
				return nil, err
			}
			c, err := read[api.CallTool](r)
			if err != nil {
				return nil, err
			}
			return f.call(t.ID, c.Args)
		},
		"GET /v1/domains": func(r *http.Request) (any, error) {
			return api.List[api.Domain]{Items: []api.Domain{{ID: "time", ToolCount: len(f.tools)}}}, nil
		},
		"GET /v1/domains/{id}": func(r *http.Request) (any, error) {
			if r.FormValue("cursor") == "" {
				return api.DomainTools{Items: views(), NextCursor: "2"}, nil
			}
			return api.DomainTools{Items: []api.ToolView{{ID: "toolbox:second", State: store.ToolAccepted}}}, nil
		},
	}
}

func (f *fake) tokenHandlers() map[string]handler {
	create := func(name string, expires time.Time) api.CreatedToken {
		t := store.Token{ID: "01T", Name: name, User: "01U", Prefix: "nize_ab", Audience: "mcp", Created: now, Expires: expires}
		f.tokens[name] = t
		return api.CreatedToken{Token: t, Secret: api.NewSecret("nize_abcdefghijklmnopqrstuvwxyz")}
	}
	return map[string]handler{
		"GET /v1/tokens": func(r *http.Request) (any, error) {
			l := api.List[api.TokenView]{}
			for _, t := range listed(f.tokens).Items {
				l.Items = append(l.Items, api.TokenView{Token: t, State: t.State(now), UserName: "ada"})
			}
			return l, nil
		},
		"POST /v1/tokens": func(r *http.Request) (any, error) {
			c, err := read[api.CreateToken](r)
			if err != nil {
				return nil, err
			}
			if t, ok := f.tokens[c.Name]; ok && t.State(now) == "active" && !c.Overwrite {
				return nil, fmt.Errorf("token %q %w: add --overwrite to replace it", c.Name, store.ErrExists)
			}
			return create(c.Name, now.Add(90*24*time.Hour)), nil
		},
		"POST /v1/tokens/{name}/rotate": func(r *http.Request) (any, error) {
			if _, err := find("token", r.PathValue("name"), f.tokens); err != nil {
				return nil, err
			}
			return create(r.PathValue("name"), now.Add(time.Hour)), nil
		},
		"DELETE /v1/tokens/{name}": func(r *http.Request) (any, error) {
			t, err := find("token", r.PathValue("name"), f.tokens)
			delete(f.tokens, t.Name)
			return api.Revoked{Revoked: 1}, err
		},
		"DELETE /v1/tokens": func(r *http.Request) (any, error) {
			n := len(f.tokens)
			clear(f.tokens)
			return api.Revoked{Revoked: n}, nil
		},
		"GET /v1/credentials": func(r *http.Request) (any, error) {
			l := api.List[store.Credential]{}
			for k := range f.credentials {
				l.Items = append(l.Items, store.Credential{CredentialKey: k, Updated: now})
			}
			return l, nil
		},
		"PUT /v1/credentials": func(r *http.Request) (any, error) {
			p, err := read[api.PutCredential](r)
			if err == nil {
				f.credentials[p.CredentialKey] = p.Secret.Reveal()
			}
			return api.Empty{}, err
		},
		"DELETE /v1/credentials": func(r *http.Request) (any, error) {
			q := r.URL.Query()
			key := store.CredentialKey{Scope: q.Get("scope"), Owner: q.Get("owner"), Service: q.Get("service"), Name: q.Get("name")}
			if _, ok := f.credentials[key]; !ok {
				return nil, fmt.Errorf("credential %w", store.ErrNotFound)
			}
			delete(f.credentials, key)
			return api.Empty{}, nil
		},
	}
}

func (f *fake) modelHandlers() map[string]handler {
	provider := func(name string, enabled bool) (store.Provider, error) {
		p, err := find("provider", name, f.providers)
		return store.Provider{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, HasKey: !p.Key.IsZero(), Enabled: enabled}, err
	}
	change := func(r *http.Request, do func(*store.ModelName) error) (any, error) {
		m, err := find("model name", r.PathValue("logical"), f.models)
		if err == nil {
			err = do(&m)
		}
		if err == nil {
			f.models[m.Name] = m
		}
		return m, err
	}
	return map[string]handler{
		"GET /v1/providers": func(r *http.Request) (any, error) {
			l := api.List[store.Provider]{}
			for _, p := range listed(f.providers).Items {
				v, _ := provider(p.Name, true)
				l.Items = append(l.Items, v)
			}
			return l, nil
		},
		"POST /v1/providers": func(r *http.Request) (any, error) {
			p, err := read[api.AddProvider](r)
			if err != nil {
				return nil, err
			}
			f.providers[p.Name] = p
			return provider(p.Name, true)
		},
		"POST /v1/providers/{name}/test": func(r *http.Request) (any, error) {
			if _, err := provider(r.PathValue("name"), true); err != nil {
				return nil, err
			}
			return api.ProviderTest{Error: "401 from the service", Hint: "give it a new key with nizectl providers add openai"}, nil
		},
		"POST /v1/providers/{name}/enable":  func(r *http.Request) (any, error) { return provider(r.PathValue("name"), true) },
		"POST /v1/providers/{name}/disable": func(r *http.Request) (any, error) { return provider(r.PathValue("name"), false) },
		"DELETE /v1/providers/{name}": func(r *http.Request) (any, error) {
			p, err := provider(r.PathValue("name"), true)
			delete(f.providers, p.Name)
			return api.Empty{}, err
		},
		"GET /v1/models": func(r *http.Request) (any, error) {
			l := api.List[api.ModelView]{}
			for _, m := range listed(f.models).Items {
				l.Items = append(l.Items, api.ModelView{ModelName: m, Available: true})
			}
			return l, nil
		},
		"PUT /v1/models/{logical}": func(r *http.Request) (any, error) {
			s, err := read[api.SetModel](r)
			m := store.ModelName{Name: r.PathValue("logical"), Target: s.Target, Default: len(f.models) == 0}
			f.models[m.Name] = m
			return m, err
		},
		"POST /v1/models/{logical}/default": func(r *http.Request) (any, error) {
			return change(r, func(m *store.ModelName) error { m.Default = true; return nil })
		},
		"PUT /v1/models/{logical}/fallbacks": func(r *http.Request) (any, error) {
			return change(r, func(m *store.ModelName) error {
				s, err := read[api.SetFallbacks](r)
				m.Fallbacks = s.Fallbacks
				return err
			})
		},
		"DELETE /v1/models/{logical}": func(r *http.Request) (any, error) {
			_, err := find("model name", r.PathValue("logical"), f.models)
			delete(f.models, r.PathValue("logical"))
			return api.Empty{}, err
		},
		"GET /v1/agents": func(r *http.Request) (any, error) { return listed(f.agents), nil },
		"PUT /v1/agents/{id}": func(r *http.Request) (any, error) {
			a, err := read[store.Agent](r)
			f.agents[a.ID] = a
			return a, err
		},
		"DELETE /v1/agents/{id}": func(r *http.Request) (any, error) {
			_, err := find("agent", r.PathValue("id"), f.agents)
			delete(f.agents, r.PathValue("id"))
			return api.Empty{}, err
		},
	}
}

func (f *fake) restHandlers() map[string]handler {
	return map[string]handler{
		"GET /v1/status": func(r *http.Request) (any, error) {
			return api.Status{Version: "0.1.0", PID: 7, Started: now.Add(-time.Hour), Listen: "127.0.0.1:19560", Tools: len(f.tools),
				You: store.Caller{Name: "ada", Role: store.Admin}, Servers: []api.Health{{Name: "toolbox", State: "ready", ToolCount: 1}}}, nil
		},
		"GET /v1/approvals":      func(r *http.Request) (any, error) { return listed(f.cards), nil },
		"GET /v1/approvals/{id}": func(r *http.Request) (any, error) { return find("call", r.PathValue("id"), f.cards) },
		"POST /v1/approvals/{id}": func(r *http.Request) (any, error) {
			card, err := find("call", r.PathValue("id"), f.cards)
			if err != nil {
				return nil, err
			}
			d, err := read[api.Decide](r)
			if err != nil {
				return nil, err
			}
			if card.State != store.Pending {
				return nil, fmt.Errorf("call %s was %w by bob", card.Call, store.ErrDecided)
			}
			if d.Digest != card.Digest {
				return nil, fmt.Errorf("call %s %w", card.Call, store.ErrConflict)
			}
			card.State = map[store.Verb]store.State{store.Approve: store.Running, store.Deny: store.Refused, store.Cancel: store.Cancelled}[d.Verb]
			f.cards[card.Call] = card
			return store.Call{ID: card.Call, Server: "toolbox", Tool: "roll", State: card.State}, nil
		},
		"GET /v1/calls/{id}": func(r *http.Request) (any, error) {
			return store.Call{ID: r.PathValue("id"), Server: "toolbox", Tool: "convert_time", State: store.Done,
				Result: &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"at last"}]}`)}}, nil
		},
		"GET /v1/grants": func(r *http.Request) (any, error) {
			return api.List[store.Grant]{Items: []store.Grant{{ID: "01G", User: "01U", Tool: "toolbox:roll", Deny: true, Created: now}}}, nil
		},
		"DELETE /v1/grants/{id}": func(r *http.Request) (any, error) { return api.Empty{}, nil },
		"GET /v1/usage":          func(r *http.Request) (any, error) { return api.List[store.UsageRow]{Items: f.usage}, nil },
		"GET /v1/audit": func(r *http.Request) (any, error) {
			out := lines{}
			for _, e := range f.events {
				out = append(out, e)
			}
			return out, nil
		},
		"GET /v1/audit/verify": func(r *http.Request) (any, error) { return api.Verified{OK: true, Events: 3}, nil },
		"POST /v1/reindex": func(r *http.Request) (any, error) {
			if _, err := read[api.Reindex](r); err != nil {
				return nil, err
			}
			out := lines{}
			for _, l := range f.reindex {
				out = append(out, l)
			}
			return out, nil
		},
		"GET /v1/config": func(r *http.Request) (any, error) {
			l := api.List[api.Setting]{}
			for _, k := range store.Keys {
				l.Items = append(l.Items, f.setting(k))
			}
			return l, nil
		},
		"PUT /v1/config/{key}": func(r *http.Request) (any, error) {
			k, err := store.FindKey(r.PathValue("key"))
			if err != nil {
				return nil, err
			}
			p, err := read[api.PutSetting](r)
			if err != nil {
				return nil, err
			}
			if f.settings[k.Name], err = k.Check(p.Value); err != nil {
				delete(f.settings, k.Name)
				return nil, err
			}
			return f.setting(k), nil
		},
		"DELETE /v1/config/{key}": func(r *http.Request) (any, error) {
			k, err := store.FindKey(r.PathValue("key"))
			delete(f.settings, k.Name)
			return f.setting(k), err
		},
		"GET /v1/users": func(r *http.Request) (any, error) {
			return api.List[store.User]{Items: []store.User{{ID: "01U", Name: "ada", Role: store.Admin, State: store.Active, Identities: []string{"local:0"}}}}, nil
		},
	}
}

func (f *fake) setting(k store.Key) api.Setting {
	if v, ok := f.settings[k.Name]; ok {
		return api.Setting{Key: k, Value: v, Source: "system"}
	}
	return api.Setting{Key: k, Value: k.Default, Source: "default"}
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
	stdin  string
	tty    bool   // all three streams are a terminal
	hidden string // what is typed without echo
	env    map[string]string
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
		env:    func(k string) string { return s.env[k] },
		now:    func() time.Time { return now },
		hidden: func() ([]byte, error) { return []byte(s.hidden), nil },
	}
	code := a.run(ctx, append([]string{"--socket", f.socket}, args...))
	return result{code, out.String(), errs.String()}
}

// provider is one that is there.
var provider = api.AddProvider{Name: "have", Kind: "openai", Key: api.NewSecret("k")}
