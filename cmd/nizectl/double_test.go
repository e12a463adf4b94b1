package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/daemon/mux"
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
	answers map[string]func(*mux.Mux) // mounts an operation, by its pattern
	fails   error                     // of every request, if set
}

// asked is one request as it arrived.
type asked struct{ method, text string }

// answer makes the double answer an operation with a value.
func answer[Req, Res any](d *double, op api.Op[Req, Res], res Res) {
	answerBy(d, op, func(Req) (Res, error) { return res, nil })
}

// refuse makes the double answer an operation with an error.
func refuse[Req, Res any](d *double, op api.Op[Req, Res], err error) {
	answerBy(d, op, func(Req) (res Res, _ error) { return res, err })
}

// answerBy makes the double answer an operation by a function.
func answerBy[Req, Res any](d *double, op api.Op[Req, Res], do func(Req) (Res, error)) {
	d.mount(api.Spec(op), func(m *mux.Mux) {
		mux.Handle(m, op, func(_ context.Context, _ store.Caller, req Req) (Res, error) { return do(req) })
	})
}

// answerLines makes the double answer a stream with lines.
func answerLines[Req, Line any](d *double, op api.Stream[Req, Line], lines ...Line) {
	d.mount(api.Spec(op), func(m *mux.Mux) {
		mux.HandleStream(m, op, func(_ context.Context, _ store.Caller, _ Req, send func(Line) error) error {
			for _, line := range lines {
				if err := send(line); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (d *double) mount(op api.Spec, on func(*mux.Mux)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[op.Method+" "+op.Path] = on
}

// answerWith answers to every command that shows something, with that text
// wherever there is any.
func (d *double) answerWith(text string) {
	for _, fill := range []func(*double, string){
		op(api.GetStatus), op(api.ListServers), op(api.TestServer), op(api.ListUntrusted),
		op(api.TrustTools), op(api.ListTools), op(api.SearchTools), op(api.GetTool), op(api.ExplainTool),
		op(api.ListUnmetRequests), op(api.ListDomains), op(api.GetUsage), op(api.ListBudgets), op(api.ListApprovals),
		op(api.GetApproval), op(api.ListGrants), op(api.ListAlerts), op(api.Doctor), op(api.ListBots), op(api.ListChannels),
		op(api.ListConversations), op(api.ShowConversation), op(api.ListProviders), op(api.ListModels),
		op(api.GetPrice), op(api.ListTokens), op(api.CreateToken), op(api.ListCredentials), op(api.ListUsers), op(api.GetUser),
		op(api.ListGroups), op(api.GetGroup), op(api.ExplainSetting), stream(api.ServerLogs), stream(api.ReadAudit),
	} {
		fill(d, text)
	}
	answerBy(d, api.GetServer, func(req api.ServerRequest) (api.ServerView, error) {
		if strings.HasPrefix(req.Name, "missing") {
			return api.ServerView{}, store.Unknown("server", req.Name, []string{text})
		}
		return filled[api.ServerView](text), nil
	})
	agents := filled[api.List[store.Agent]](text)
	agents.Items[0].ID = "main"
	answer(d, api.ListAgents, agents)
	settings := filled[api.List[api.Setting]](text)
	settings.Items[0].Name = "agent.tools.systemPrompt"
	answer(d, api.ListSettings, settings)
	domain := filled[api.DomainTools](text)
	domain.NextCursor = ""
	answer(d, api.BrowseDomain, domain)
	call := filled[store.Call](text)
	call.State = store.Done
	answer(d, api.CallTool, call)
	answerLines(d, api.Reindex, filled[api.ReindexLine](text), api.ReindexLine{Summary: &api.ReindexSummary{}})
	verified := filled[api.Verified](text)
	verified.Checkpoints[0].Why = "erasure"
	answerLines(d, api.VerifyAudit, api.VerifyLine{Result: &verified})
}

// op and stream answer an operation with a filled value.
func op[Req, Res any](op api.Op[Req, Res]) func(*double, string) {
	return func(d *double, text string) { answer(d, op, filled[Res](text)) }
}

func stream[Req, Line any](op api.Stream[Req, Line]) func(*double, string) {
	return func(d *double, text string) { answerLines(d, op, filled[Line](text)) }
}

// filled is a value of an operation's answer with that text in every string of
// it, and one element in every list.
func filled[T any](text string) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), text, 0)
	return v
}

func fill(v reflect.Value, text string, depth int) {
	if depth > 8 {
		return // a type that holds itself
	}
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = now
		return
	case *json.RawMessage:
		*x, _ = json.Marshal(map[string]string{text: text, "description": text})
		return
	case *store.Result:
		x.Raw, _ = json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}})
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Int64:
		v.SetInt(int64(time.Second)) // durations are of this kind
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text, depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, depth+1)
		fill(value, text, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text, depth+1)
			}
		}
	}
}

// usage answers with what the daemon makes of rows.
func (d *double) usage(rows []store.UsageRow) {
	answerBy(d, api.GetUsage, func(req api.GetUsageRequest) (store.UsageReport, error) {
		report := store.UsageReport{By: req.By, Since: req.Since, Zone: "UTC", Rows: rows, Total: store.UsageRow{Key: "all"}}
		for _, row := range rows {
			report.Total = report.Total.Plus(row)
			if row.Unpriced > 0 {
				report.Unpriced = append(report.Unpriced, row.Key)
			}
		}
		return report, nil
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
	d := &double{socket: filepath.Join(shortDir(t), api.SocketName), answers: map[string]func(*mux.Mux){}}
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
	d.asked = append(d.asked, asked{r.Method, text})
	fails, answers := d.fails, maps.Clone(d.answers)
	d.mu.Unlock() // one request may wait for another one
	w.Header().Set(api.VersionHeader, api.Version)
	fail := func(w http.ResponseWriter, e *api.Error) {
		w.WriteHeader(e.Status())
		json.NewEncoder(w).Encode(api.Failure{Error: e})
	}
	if e, _ := api.FromError(fails); fails != nil {
		fail(w, e)
		return
	}
	on := http.NewServeMux()
	on.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "{}") })
	m := mux.New(on, mux.Options{
		Caller:  func(*http.Request) (store.Caller, error) { return store.Caller{Role: store.Admin}, nil },
		Fail:    fail,
		Listen:  func(context.Context, store.Caller, context.CancelFunc) (func(), error) { return func() {}, nil },
		Closing: context.Background(),
		Log:     slog.New(slog.DiscardHandler),
	})
	for _, mount := range answers {
		mount(m)
	}
	on.ServeHTTP(w, r)
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
	columns int // of the terminal
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
		Columns: func() int { return s.columns },
		Hidden:  func() ([]byte, error) { return []byte(s.hidden), nil },
		TabWait: cmp.Or(s.tabWait, time.Minute),
	}
	code := run(ctx, a, append([]string{"--socket", d.socket}, args...))
	return result{code, out.String(), errs.String()}
}
