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
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// now is the time of every test.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// double is a control socket without a daemon: it keeps what it was asked and
// answers as it was told to, else with an empty object. What the daemon makes of
// a request, the scripts in testdata show.
type double struct {
	socket string

	mu      sync.Mutex // guards all below
	asked   []asked
	answers map[string]any
	fails   error // of every request, if set
}

// asked is one request as it arrived.
type asked struct{ method, text string }

// lines is an answer that is a stream.
type lines []any

// answer tells the double what to answer to the requests of a pattern: a value,
// [lines], an error, or a func(*http.Request) any that returns one of these.
func (d *double) answer(pattern string, v any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[pattern] = v
}

// answerWith answers to every command that shows something, with that text
// wherever a server, a model or a person may write one.
func (d *double) answerWith(text string) {
	raw, _ := json.Marshal(map[string]string{text: text, "description": text})
	result, _ := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}})
	server := api.ServerView{Health: api.Health{Name: "toolbox", State: text, LatencyMS: 1.5, LastError: text}, Server: store.Server{Name: "toolbox", Transport: store.Stdio, Command: text, Description: text, Cwd: text,
		Env: map[string]store.Value{"A": {Text: text}}, Visibility: []string{text}, AllowedTools: []string{text}}}
	tool := api.ToolSchema{ToolView: api.ToolView{ID: "toolbox:" + text, Server: text, Name: text, Title: text, Description: text, Domain: text,
		State: store.ToolState(text), Findings: []string{text}}, InputSchema: raw, OutputSchema: raw, Pin: text, NeedsApproval: true, Why: text}
	server.Tools = []api.ToolView{tool.ToolView}
	card := store.Card{Call: "01A", Tool: text, Title: text, Description: text, Server: text, Where: text, By: text, RunsAs: text, Why: text, Args: raw,
		Warnings: []string{text}, Digest: text + text, State: store.State(text), DecidedBy: text, Outcome: text}
	agent := store.Agent{ID: "main", Name: text, Model: text, SystemPrompt: text, Approval: text, AllowedTools: []string{text}}
	setting := api.Setting{Key: store.Key{Name: "agent.tools.systemPrompt"}, Value: text, Source: text}
	for pattern, v := range map[string]any{
		"GET /v1/status":                 api.Status{Version: text, Listen: text, Servers: []api.Health{server.Health}, You: store.Caller{Name: text}},
		"GET /v1/servers":                api.List[api.ServerView]{Items: []api.ServerView{server}},
		"GET /v1/servers/toolbox":        server,
		"GET /v1/servers/{name}":         fmt.Errorf("server %q %w", text, store.ErrNotFound),
		"POST /v1/servers/toolbox/test":  api.Probe{Steps: []api.ProbeStep{{Name: text, Error: text, Hint: text}}, Stderr: text},
		"GET /v1/servers/toolbox/logs":   lines{api.LogLine{Text: text}},
		"GET /v1/servers/toolbox/trust":  api.List[api.TrustView]{Items: []api.TrustView{{Tool: text, State: store.ToolState(text), Pin: text, Accepted: text, Findings: []string{text}, Diff: text}, {Tool: text, Description: text}}},
		"POST /v1/servers/toolbox/trust": api.List[api.ToolView]{Items: server.Tools},
		"GET /v1/tools":                  api.List[api.ToolView]{Items: server.Tools},
		"GET /v1/tools/search":           api.Found{Tools: []api.FoundTool{{ID: tool.ID, Name: text, Description: text, Score: .87}}, Note: text},
		"GET /v1/tools/{id}":             tool,
		"POST /v1/tools/{id}/call":       store.Call{Server: "toolbox", Tool: text, State: store.Done, Result: &store.Result{Raw: result}},
		"GET /v1/domains":                api.List[api.Domain]{Items: []api.Domain{{ID: text}}},
		"GET /v1/domains/{id}":           api.DomainTools{Items: server.Tools},
		"GET /v1/audit":                  lines{store.Event{At: now, Kind: text, Subject: text, UserName: text, Surface: store.Surface(text), Tool: text, Outcome: store.State(text)}},
		"GET /v1/audit/verify":           lines{api.VerifyLine{Result: &api.Verified{OK: true, Checkpoints: []api.Checkpoint{{Why: "erasure", Subject: text}, {Why: text}}, ExportKey: text}}},
		"POST /v1/reindex":               lines{api.ReindexLine{Server: text, Added: []string{text}}, api.ReindexLine{Server: text, Error: text}, api.ReindexLine{Summary: &api.ReindexSummary{}}},
		"GET /v1/approvals":              api.List[store.Card]{Items: []store.Card{card}},
		"GET /v1/approvals/01A":          card,
		"GET /v1/agents":                 api.List[store.Agent]{Items: []store.Agent{agent}},
		"GET /v1/providers":              api.List[store.Provider]{Items: []store.Provider{{Name: text, Kind: text, BaseURL: text, HasKey: true, Enabled: true}}},
		"GET /v1/models":                 api.List[api.ModelView]{Items: []api.ModelView{{ModelName: store.ModelName{Name: "m", Target: text, Fallbacks: []string{text}}, Why: text}}},
		"GET /v1/prices/{model}":         api.PriceView{Price: store.Price{Model: text}, Known: true, Source: text},
		"GET /v1/tokens":                 api.List[api.TokenView]{Items: []api.TokenView{{Token: store.Token{Name: "t", Prefix: text, Expires: now.Add(time.Hour)}, State: text, UserName: text}}},
		"POST /v1/tokens":                created,
		"GET /v1/credentials":            api.List[store.Credential]{Items: []store.Credential{{CredentialKey: store.CredentialKey{Service: text, Name: text}}}},
		"GET /v1/users":                  api.List[store.User]{Items: []store.User{{ID: "01U", Name: text, Role: store.Admin, State: store.Active, Identities: []string{text}}}},
		"GET /v1/config":                 api.List[api.Setting]{Items: []api.Setting{setting}},
		"GET /v1/config/{key}":           api.Explanation{Setting: setting},
	} {
		d.answer(pattern, v)
	}
	d.usage([]store.UsageRow{{Key: text, Calls: 1}})
}

var created = api.CreatedToken{Token: store.Token{Name: "x", Expires: now.Add(90 * 24 * time.Hour)}, Secret: api.NewSecret("nize_abcdefghijklmnopqrstuvwxyz")}

// usage answers with what the daemon makes of rows.
func (d *double) usage(rows []store.UsageRow) {
	d.answer("GET /v1/usage", func(r *http.Request) any {
		since, _ := time.Parse(time.RFC3339Nano, r.FormValue("since"))
		report := store.UsageReport{By: r.FormValue("by"), Since: since, Zone: "UTC", Rows: rows, Total: store.UsageRow{Key: "all"}}
		for _, row := range rows {
			report.Total = report.Total.Plus(row)
			if row.Unpriced > 0 {
				report.Unpriced = append(report.Unpriced, row.Key)
			}
		}
		return report
	})
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

func newDouble(t *testing.T) *double {
	t.Helper()
	d := &double{socket: filepath.Join(shortDir(t), api.SocketName), answers: map[string]any{}}
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: d}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return d
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	text := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		text += "?" + r.URL.RawQuery
	}
	if len(body) > 0 {
		text += " " + string(body)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, asked{r.Method, text})
	w.Header().Set(api.VersionHeader, api.Version)
	if d.fails != nil {
		respond(w, r, d.fails)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { respond(w, r, api.Empty{}) })
	for pattern, v := range d.answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { respond(w, r, v) })
	}
	mux.ServeHTTP(w, r)
}

func respond(w http.ResponseWriter, r *http.Request, v any) {
	enc := json.NewEncoder(w)
	switch v := v.(type) {
	case func(*http.Request) any:
		respond(w, r, v(r))
	case error:
		e, _ := api.FromError(v)
		w.WriteHeader(e.Status())
		enc.Encode(api.Failure{Error: e})
	case lines:
		for _, line := range v {
			enc.Encode(line)
		}
	default:
		enc.Encode(v)
	}
}

// changes returns the requests that were no GET, since the last time.
func (d *double) changes() []string {
	return d.requests(func(method string) bool { return method != "GET" })
}

// gets returns the requests that were a GET, since the last time.
func (d *double) gets() []string {
	return d.requests(func(method string) bool { return method == "GET" })
}

func (d *double) requests(of func(method string) bool) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if of(a.method) {
			out = append(out, a.text)
		}
	}
	d.asked = nil
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

// nizectl runs one command line against the double.
func (d *double) nizectl(s surroundings, args ...string) result {
	return d.run(context.Background(), s, args...)
}

func (d *double) run(ctx context.Context, s surroundings, args ...string) result {
	var out, errs bytes.Buffer
	a := &command.App{
		In: strings.NewReader(s.stdin), Raw: &out, Out: bufio.NewWriter(&out), Err: &errs,
		InTTY: s.tty, OutTTY: s.tty, ErrTTY: s.tty,
		Env: func(k string) string {
			if k == "TZ" {
				return cmp.Or(s.env[k], "UTC")
			}
			return s.env[k]
		},
		Now:     func() time.Time { return now },
		Columns: func() int { return 0 },
		Hidden:  func() ([]byte, error) { return []byte(s.hidden), nil },
		TabWait: cmp.Or(s.tabWait, time.Minute),
	}
	code := run(ctx, a, append([]string{"--socket", d.socket}, args...))
	return result{code, out.String(), errs.String()}
}
