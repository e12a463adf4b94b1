package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/mcp/scan"
	"nize/mcp/upstream/process"
	"nize/mcp/view"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) {
	process.GuardMain()
	os.Exit(m.Run())
}

// fixture is a folder of extensions with what loads them.
type fixture struct {
	*Extensions
	t     *testing.T
	dir   string
	db    *database.DB
	tools *native.Registry
	seen  map[string]store.ToolState
	pins  map[string]string
	shown map[string]*view.Renderer

	agents  []string // by Origin and ID, those that were brought last
	refuses error    // what is wrong with the agent "bad"
}

type refusal struct{ error }

func (refusal) Field() string { return "id" }

func (h *fixture) bringAgents(_ context.Context, all []store.Agent) (refused []error, err error) {
	h.agents, refused = nil, make([]error, len(all))
	for i, a := range all {
		if h.agents = append(h.agents, a.Origin+" "+a.ID); a.ID == "bad" {
			refused[i] = h.refuses
		}
	}
	return refused, nil
}

func newFixture(t *testing.T) *fixture {
	h := &fixture{t: t, dir: filepath.Join(t.TempDir(), "extensions"), db: databasetest.Open(t, Buckets...), shown: map[string]*view.Renderer{}}
	h.tools = native.New(native.Options{
		TeamOf: func(context.Context, store.Caller, string) (string, error) { return "team", nil },
		Publish: func(_ *store.Server, tools []*policy.Tool) {
			h.seen, h.pins = map[string]store.ToolState{}, map[string]string{}
			for _, t := range tools {
				h.seen[t.Name], h.pins[t.Name] = t.State, t.Pin
			}
		},
	})
	h.open()
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// open begins as a nized does that starts.
func (h *fixture) open() {
	h.Extensions = New(Options{Dir: h.dir, Tools: h.tools, DB: h.db, Spawn: process.SpawnDirect, Check: scan.Gate{}.Check, Agents: h.bringAgents, Show: func(tool string, r *view.Renderer) { h.shown[tool] = r }, Log: slog.New(slog.DiscardHandler)})
}

// acceptedBy returns who accepted which extension, the last one first, from the audit trail.
func (h *fixture) acceptedBy() (list []string) {
	h.t.Helper()
	events, err := h.db.Events(h.t.Context(), store.EventQuery{Kind: "extension"})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range events {
		list = append(list, e.User+" "+e.Subject)
	}
	return list
}

// write puts a file into an extension's folder; one that begins with #! can be run.
func (h *fixture) write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.dir, path)
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".new", []byte(text), mode), os.Rename(path+".new", path)); err != nil {
		h.t.Fatal(err)
	}
}

// script is an extension that runs a shell script.
func (h *fixture) script(name, text string) {
	h.write(name+"/extension.json", `{"name": "`+name+`", "description": "Does what its script does.", "inputSchema": {"type": "object"}, "timeout": "20s", "command": "./run"}`)
	h.write(name+"/run", "#!/bin/sh\n"+text+"\n")
}

// again looks as often as a change needs to count.
func (h *fixture) again() {
	h.look(h.t.Context(), false)
	h.look(h.t.Context(), false)
}

func (h *fixture) call(name, args string) (*store.Result, error) {
	c := &store.Call{Server: policy.NativeServer, Tool: name, Pin: h.pins[name], Args: json.RawMessage(args), Thread: "conversation", Agent: "helper"}
	return h.tools.Run(h.t.Context(), store.Caller{User: "ann"}, c, nil)
}

// fails is what a call is told that can't succeed.
func (h *fixture) fails(name string) string {
	h.t.Helper()
	r, err := h.call(name, "{}")
	var told *store.CallError
	if !errors.As(err, &told) {
		h.t.Fatalf("%s: %v, %+v", name, err, r)
	}
	return string(told.Code) + ": " + told.Message.String()
}

func TestCall(t *testing.T) {
	t.Setenv("NIZE_TEST_SECRET", "of-the-daemon")
	h := newFixture(t)
	h.script("echo", `read -r request
here=$(pwd)
printf '{"content":[{"type":"text","text":"in %s"}],"structuredContent":{"request":%s,"env":"%s"}}' "${here##*/}" "$request" "$(env | cut -d= -f1 | sort | tr '\n' ' ')"`)
	h.Load(t.Context())
	if p := h.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	r, err := h.call("echo", `{"place":"Tokyo"}`)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		StructuredContent struct {
			Request struct {
				Input   json.RawMessage
				Context json.RawMessage
			}
			Env string
		}
	}
	if err := json.Unmarshal(r.Raw, &got); err != nil {
		t.Fatal(err)
	}
	if r.Text() != "in echo" || string(got.StructuredContent.Request.Input) != `{"place":"Tokyo"}` {
		t.Errorf("it answered %s", r.Raw)
	}
	if want := `{"userId":"ann","teamId":"team","threadId":"conversation","agentId":"helper"}`; string(got.StructuredContent.Request.Context) != want {
		t.Errorf("its context is %s, want %s", got.StructuredContent.Request.Context, want)
	}
	for name := range strings.FieldsSeq(got.StructuredContent.Env) {
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE", "PWD", "OLDPWD", "SHLVL", "_"}, name) {
			t.Errorf("it sees %s of the environment", name)
		}
	}
	if by := h.acceptedBy(); !slices.Equal(by, []string{store.System.User + " native:echo"}) {
		t.Errorf("accepted: %v", by)
	}
}

// TestWrong is what is wrong with an extension, by file and field.
func TestWrong(t *testing.T) {
	const good = `{"name": "x", "description": "d", "inputSchema": {"type": "object"}, "command": ["./run"]}`
	agents := func(list string) string {
		return strings.Replace(good, `"command"`, `"agents": `+list+`, "command"`, 1)
	}
	for want, files := range map[string]map[string]string{
		"": {"extension.json": good},
		"extensions/x/extension.json: there is no such file":                                                                                   {},
		"extensions/x/extension.json: line 2: invalid character '}' looking for beginning of object key string":                                {"extension.json": "{\"name\": \"x\",\n}"},
		"extensions/x/look.json: title: 1: unclosed action":                                                                                    {"extension.json": strings.Replace(good, `"command"`, `"renderer": "look.json", "command"`, 1), "look.json": `{"title": "{{.x"}`},
		"extensions/x/extension.json: renderer: there is no file look.json in this folder":                                                     {"extension.json": strings.Replace(good, `"command"`, `"renderer": "look.json", "command"`, 1)},
		"extensions/x/extension.json: template: ../v.html is not in this folder":                                                               {"extension.json": strings.Replace(good, `"command"`, `"template": "../v.html", "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templates: there is no such field; there are ui/template, ui/templateFile":                      {"extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templates": "x"}, "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templateFile: there is a template already":                                                      {"extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/template": "x", "ui/templateFile": "y"}, "command"`, 1)},
		"extensions/x/v.html: it is over 1024 KiB":                                                                                             {"v.html": strings.Repeat("x", view.MaxTemplate+1), "extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templateFile": "v.html"}, "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templateFile: /etc/hosts is not in this folder":                                                 {"extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templateFile": "/etc/hosts"}, "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templateFile: there is no file v.html in this folder":                                           {"extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templateFile": "v.html"}, "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templateFile: views is a folder, and must be a file":                                            {"views/a.html": "<p>", "extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templateFile": "views"}, "command"`, 1)},
		"extensions/x/extension.json: template: . is a folder, and must be a file":                                                             {"extension.json": strings.Replace(good, `"command"`, `"template": ".", "command"`, 1)},
		"extensions/x/extension.json: template: there is no file view.htm in this folder; did you mean view.html?":                             {"view.html": "<p>", "extension.json": strings.Replace(good, `"command"`, `"template": "view.htm", "command"`, 1)},
		"extensions/x/extension.json: template: it must name a file of this folder; HTML itself belongs in _meta, as ui/template":              {"extension.json": strings.Replace(good, `"command"`, `"template": "<p>x</p>", "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/templateFile: it must name a file of this folder; HTML itself belongs in _meta, as ui/template": {"extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/templateFile": "<p>x</p>"}, "command"`, 1)},
		"extensions/x/extension.json: _meta.ui/template: it is not HTML; to name a file, use ui/templateFile":                                  {"view.html": "<p>", "extension.json": strings.Replace(good, `"command"`, `"_meta": {"ui/template": "view.html"}, "command"`, 1)},
		"extensions/x/extension.json: renderer: parts is a folder, and must be a file":                                                         {"parts/a.json": "{}", "extension.json": strings.Replace(good, `"command"`, `"renderer": "parts", "command"`, 1)},
		"extensions/x/extension.json: renderer: ../look.json is not in this folder":                                                            {"extension.json": strings.Replace(good, `"command"`, `"renderer": "../look.json", "command"`, 1)},
		"extensions/x/extension.json: it must be an object":                                                                                    {"extension.json": `[]`},
		"extensions/x/extension.json: name: it must be \"x\", as its folder":                                                                   {"extension.json": strings.Replace(good, `"x"`, `"y"`, 1)},
		"extensions/x/extension.json: name: it must be a text":                                                                                 {"extension.json": strings.Replace(good, `"x"`, `7`, 1)},
		"extensions/x/extension.json: description: it is missing":                                                                              {"extension.json": strings.Replace(good, `"description": "d", `, ``, 1)},
		"extensions/x/extension.json: describtion: there is no such field; did you mean description?":                                          {"extension.json": strings.Replace(good, `"description"`, `"describtion"`, 1)},
		"extensions/x/extension.json: inputSchema: its root must have \"type\": \"object\"":                                                    {"extension.json": strings.Replace(good, `{"type": "object"}`, `{"type": "array"}`, 1)},
		"extensions/x/extension.json: inputSchema: it must be a JSON Schema":                                                                   {"extension.json": strings.Replace(good, `{"type": "object"}`, `null`, 1)},
		"extensions/x/extension.json: timeout: it must be a duration such as \"30s\", at most 10m":                                             {"extension.json": strings.Replace(good, `"command"`, `"timeout": 30, "command"`, 1)},
		"extensions/x/extension.json: command: there is no file go in this folder":                                                             {"extension.json": strings.Replace(good, `./run`, `./go`, 1)},
		"extensions/x/extension.json: command: ../run is not in this folder":                                                                   {"extension.json": strings.Replace(good, `./run`, `../run`, 1)},
		"extensions/x/extension.json: command: nowhere is not on nized's PATH; a program of this folder is ./nowhere":                          {"extension.json": strings.Replace(good, `./run`, `nowhere`, 1)},
		"extensions/x/extension.json: command: data can't be run: chmod u+x it":                                                                {"extension.json": strings.Replace(good, `./run`, `./data`, 1), "data": "1"},
		"extensions/x/extension.json: command: word 2 looks like a key, and everybody on this machine can read a command line":                 {"extension.json": strings.Replace(good, `"./run"`, `"./run", "ghp_0123456789abcdefghijABCDEFGHIJ012345"`, 1)},
		"extensions/x/extension.json: agents: it must be a list of objects, such as [{\"id\": \"helper\", \"system_prompt\": \"Be brief.\"}]":  {"extension.json": agents(`{"id": "a"}`)},
		"extensions/x/extension.json: agents[1].systm_prompt: there is no such field; did you mean system_prompt?":                             {"extension.json": agents(`[{"id": "a"}, {"systm_prompt": "x"}]`)},
		"extensions/x/extension.json: agents[0].max_steps: it must be a whole number":                                                          {"extension.json": agents(`[{"id": "a", "max_steps": "3"}]`)},
		"extensions/x/extension.json: agents[0].allowed_tools: it must be a list of texts":                                                     {"extension.json": agents(`[{"id": "a", "allowed_tools": null}]`)},
		"extensions/x/extension.json: agents[0].id: invalid name \"\": use 1 to 63 of a-z, 0-9 and -, not starting with -":                     {"extension.json": agents(`[{"name": "a"}]`)},
		"extensions/x/extension.json: agents[1].id: agents[0] is a already":                                                                    {"extension.json": agents(`[{"id": "a"}, {"id": "a"}]`)},
	} {
		h := newFixture(t)
		h.refuses = refusal{errors.New("taken")}
		h.write("x/run", "#!/bin/sh\n")
		for path, text := range files {
			h.write("x/"+path, text)
		}
		h.Load(t.Context())
		if got := strings.Join(h.Problems(), "\n"); got != want || (want == "") != (len(h.seen) == 1) {
			t.Errorf("got  %s\nwant %s; tools %v", got, want, h.seen)
		}
	}
}

// TestOthers is code that somebody else could have placed.
func TestOthers(t *testing.T) {
	at := func(h *fixture, path string) string { return filepath.Join(h.dir, path) }
	for name, c := range map[string]struct {
		do   func(h *fixture) error
		want string
	}{
		"file":   {func(h *fixture) error { return os.Chmod(at(h, "x/run"), 0o722) }, "extensions/x: run: others may write it (0722), and so run code as nized: chmod go-w it"},
		"folder": {func(h *fixture) error { return os.Chmod(at(h, "x"), 0o770) }, "extensions/x: x: others may write it (0770), and so run code as nized: chmod go-w it"},
		"all":    {func(h *fixture) error { return os.Chmod(h.dir, 0o777) }, "extensions: it: others may write it (0777), and so run code as nized: chmod go-w it"},
		"owner": {func(h *fixture) error {
			h.owner = os.Geteuid() + 1
			if os.Geteuid() == 0 { // what is root's is anybody's to run
				return os.Chown(at(h, "x/run"), 65534, 65534)
			}
			return nil
		}, "another user, who could run code as nized: chown it"},
		"link out":    {func(h *fixture) error { return os.Symlink("/bin/sh", at(h, "x/sh")) }, "extensions/x: sh: it is a link that leads out of the folder, or is broken"},
		"linked":      {func(h *fixture) error { return os.Symlink(at(h, "x"), at(h, "y")) }, "extensions/y: it must be a folder, not a link to one"},
		"link within": {func(h *fixture) error { return os.Symlink("run", at(h, "x/other")) }, ""},
	} {
		h := newFixture(t)
		h.script("x", "exit 1")
		if err := c.do(h); err != nil {
			t.Fatal(err)
		}
		h.Load(t.Context())
		if got := strings.Join(h.Problems(), "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		if h.owner != os.Geteuid() && len(h.seen) > 0 {
			t.Errorf("%s: loaded", name)
		}
	}
}

// TestChanges is an extension that comes, changes, is accepted and goes.
func TestChanges(t *testing.T) {
	h := newFixture(t)
	h.Load(t.Context())
	h.script("x", `echo '{"content":[{"type":"text","text":"one"}]}'`)
	h.look(t.Context(), false)
	if len(h.seen) > 0 {
		t.Error("it is loaded while it may still be copied")
	}
	h.look(t.Context(), false)
	if r, err := h.call("x", "{}"); err != nil || r.Text() != "one" {
		t.Fatalf("it answered %v, %v", r, err)
	}
	h.script("x", `echo '{"content":[{"type":"text","text":"two"}]}'`)
	if got := h.fails("x"); got != "refused: native:x was not run: its files differ from the accepted ones" {
		t.Errorf("before the change was seen: %s", got)
	}
	h.again()
	held := h.Held()
	if h.seen["x"] != store.ToolQuarantined || len(held) != 1 || !slices.Equal(held[0].Findings, []string{"run changed"}) {
		t.Fatalf("%v %+v", h.seen, held)
	}
	// Neither a restart nor a removal is a way around it.
	h.open()
	h.Load(t.Context())
	if h.seen["x"] != store.ToolQuarantined {
		t.Errorf("after a restart it is %v", h.seen)
	}
	if err := os.Rename(filepath.Join(h.dir, "x"), filepath.Join(h.dir, ".x")); err != nil {
		t.Fatal(err)
	}
	h.again()
	if len(h.seen) > 0 || len(h.Problems()) > 0 {
		t.Errorf("removed, it is %v, %v", h.seen, h.Problems())
	}
	if err := os.Rename(filepath.Join(h.dir, ".x"), filepath.Join(h.dir, "x")); err != nil {
		t.Fatal(err)
	}
	h.again()
	root := store.Caller{User: "root", Role: store.Admin}
	if err := h.Trust(t.Context(), root, "x", held[0].Accepted); !errors.Is(err, store.ErrConflict) {
		t.Errorf("accepting what it was: %v", err)
	}
	if err := h.Trust(t.Context(), root, "y", held[0].Pin); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("accepting another: %v", err)
	}
	if err := h.Trust(t.Context(), root, "x", held[0].Pin); err != nil {
		t.Fatal(err)
	}
	if r, err := h.call("x", "{}"); err != nil || r.Text() != "two" || len(h.Held()) > 0 {
		t.Errorf("accepted, it answered %v, %v", r, err)
	}
	h.write("x/extension.json", "{")
	h.again()
	if len(h.seen) > 0 || len(h.Problems()) != 1 {
		t.Errorf("broken, it is %v, %v", h.seen, h.Problems())
	}
	if by := h.acceptedBy(); !slices.Equal(by, []string{"root native:x", store.System.User + " native:x"}) {
		t.Errorf("accepted: %v", by)
	}
}

// TestAgents is agents that come, are held, and go with their extensions.
func TestAgents(t *testing.T) {
	h := newFixture(t)
	brings := func(name, agents string) {
		h.script(name, "exit 1")
		h.write(name+"/extension.json", `{"name": "`+name+`", "description": "d", "inputSchema": {"type": "object"}, "command": "./run", "agents": `+agents+`}`)
	}
	brings("y", `[{"id": "last"}]`)
	brings("x", `[{"id": "good", "temperature": 0.5, "who": ["admins"]}, {"id": "bad"}]`)
	h.refuses = refusal{errors.New("taken")}
	h.Load(t.Context())
	const x, y = "extensions/x/extension.json ", "extensions/y/extension.json "
	expect := func(when, problem string, agents ...string) {
		t.Helper()
		if got := strings.Join(h.Problems(), "\n"); got != problem || !slices.Equal(h.agents, agents) || !slices.Contains(slices.Collect(maps.Keys(h.seen)), "y") {
			t.Errorf("%s: agents %q, problems %s, tools %v", when, h.agents, got, h.seen)
		}
	}
	expect("loaded", x[:len(x)-1]+": agents[1].id: taken", x+"good", x+"bad", y+"last")
	h.refuses = nil
	h.again()
	expect("when the name is free", "", x+"good", x+"bad", y+"last")
	brings("x", `[{"id": "good"}]`)
	h.again()
	expect("held", "", y+"last")
	held := h.Held()
	if err := h.Trust(t.Context(), store.Caller{User: "root", Role: store.Admin}, "x", held[0].Pin); err != nil {
		t.Fatal(err)
	}
	expect("accepted", "", x+"good", y+"last")
	h.write("x/extension.json", "[]")
	h.again()
	expect("broken", x[:len(x)-1]+": it must be an object", y+"last")
	h.open() // and one that went while nized was down
	if err := os.RemoveAll(filepath.Join(h.dir, "x")); err != nil {
		t.Fatal(err)
	}
	h.agents = []string{"of before"}
	h.Load(t.Context())
	expect("after a restart", "", y+"last")
}

// TestOrder is that extensions count in the order of their names, whenever they came:
// of what several declare, the first one's stands. nize's own tools go before all.
func TestOrder(t *testing.T) {
	h := newFixture(t)
	if err := h.tools.Put(native.Tool{Name: "own", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, native.Context, json.RawMessage) (r native.Result, err error) {
		return r, nil
	}}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"h", "own", "g", "f", "e", "d", "c", "b", "a"} {
		h.script(name, "exit 1")
		h.write(name+"/extension.json", `{"name": "`+name+`", "description": "d", "inputSchema": {"type": "object"}, "command": "./run", "agents": [{"id": "same"}]}`)
		if name != "own" {
			want = append(want, store.ExtensionOrigin(name)+" same")
		}
		if name == "d" {
			h.Load(t.Context()) // the rest comes while nized runs
		}
	}
	h.again()
	slices.Sort(want)
	if !slices.Equal(h.agents, want) {
		t.Errorf("agents are brought in the order %q, want %q", h.agents, want)
	}
	if got := strings.Join(h.Problems(), "\n"); got != "extensions/own/extension.json: name: native:own already exists" {
		t.Errorf("problems: %s", got)
	}
}

// TestMisbehaves has an extension do what it shall not; each is one sentence.
func TestMisbehaves(t *testing.T) {
	h := newFixture(t)
	pid := filepath.Join(t.TempDir(), "pid")
	h.script("hangs", `sleep 1000 & echo $! > `+pid+`; wait`)
	h.write("hangs/extension.json", `{"name": "hangs", "description": "Hangs.", "inputSchema": {"type": "object"}, "timeout": "500ms", "command": "./run"}`)
	h.script("floods", `exec yes`)
	h.script("floods-errors", `exec yes >&2`)
	h.script("dies", `echo reading >&2; echo "no such city" >&2; exit 3`)
	h.script("silent", `exit 0`)
	h.script("talks", `echo "Hello, world"`)
	h.script("empty", `echo '{}'`)
	h.script("twice", `echo '{"content":[]} {"content":[]}'`)
	h.script("kind", `echo '{"content":[{"type":"video"}]}'`)
	h.script("number", `echo '{"content":[{"type":"text","text":7}]}'`)
	h.script("lies", `echo '{"content":[],"structuredContent":{"degrees":"many"}}'`)
	h.write("lies/extension.json", `{"name": "lies", "description": "Lies.", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"degrees": {"type": "number"}}}, "command": "./run"}`)
	h.script("leaves", `sleep 1000 > /dev/null & echo $! > `+pid+`2; echo '{"content":[{"type":"text","text":"done"}]}'`)
	h.script("forks", `for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; done; wait`)
	h.Load(t.Context())
	if p := h.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	for name, want := range map[string]string{
		"hangs":         "outcome_unknown: native:hangs did not answer within 500ms and was ended: the outcome is unknown; check before you run it again",
		"floods":        "tool_error: native:floods failed: it wrote an answer of more than 8388608 bytes",
		"floods-errors": "tool_error: native:floods-errors failed: it wrote more than 4194304 bytes to standard error",
		"dies":          "tool_error: native:dies failed: it ended with exit status 3; its last words: no such city",
		"silent":        "tool_error: native:silent did not return a result: it wrote nothing to standard output",
		"talks":         `tool_error: native:talks did not return a result: its output is not one JSON object: "Hello, world"`,
		"empty":         "tool_error: native:empty did not return a result: it has neither content nor structuredContent",
		"twice":         `tool_error: native:twice did not return a result: its output is not one JSON object: "{\"content\":[]} {\"content\":[]}"`,
		"kind":          "tool_error: native:kind did not return a valid result: content[0].type must be text, image or resource",
		"number":        "tool_error: native:number did not return a result: content.text is not what it must be",
		"lies":          "tool_error: native:lies did not return a result: structuredContent is not as its outputSchema promises: /degrees must be a number, received \"many\"",
		"forks":         "tool_error: native:forks failed: it was killed: it ran 82 processes at once, over its limit of 64",
	} {
		if _, ok := process.Measure(); name == "forks" && !ok {
			continue // this system can't tell
		}
		got := h.fails(name)
		if name == "forks" {
			got = strings.Replace(got, "ran "+between(got, "ran ", " proc"), "ran 82", 1) // as many as there were
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if r, err := h.call("leaves", "{}"); err != nil || r.Text() != "done" {
		t.Errorf("%v, %v", r, err)
	}
	for _, file := range []string{pid, pid + "2"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// It was killed; how long dying takes is the system's affair.
		gone := func() bool {
			cmdline, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/cmdline")
			return err != nil || len(cmdline) == 0
		}
		for tries := 0; !gone(); tries++ {
			if tries == 12_000 {
				t.Fatalf("a child outlived its call: %s", b)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

func between(s, head, tail string) string {
	_, s, _ = strings.Cut(s, head)
	s, _, _ = strings.Cut(s, tail)
	return s
}

// FuzzDecode reads manifests and results of anybody's making.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name": "x", "description": "d", "inputSchema": {"type": "object"}, "timeout": "5s", "command": ["./run"]}`))
	f.Add([]byte(`{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"a":1}}`))
	f.Add([]byte(`{"name":null,"command":[],"command":[""]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decode("x", data); err == nil && (m.Name != "x" || len(m.Command) == 0 || m.Command[0] == "" || m.Timeout < 0) {
			t.Errorf("a manifest that can't be: %+v", m)
		}
		if r, why := (&extension{}).decode(data); why == "" && len(r.Content) == 0 && len(r.StructuredContent) == 0 {
			t.Errorf("a result of nothing: %q", data)
		}
	})
}

// TestTemplate: a view is the file's as it was accepted, and none while it is held.
func TestTemplate(t *testing.T) {
	h := newFixture(t)
	h.script("x", "echo")
	h.write("x/extension.json", `{"name": "x", "description": "d", "inputSchema": {"type": "object"}, "command": "./run", "_meta": {"ui/templateFile": "v.html"}}`)
	h.write("x/v.html", "<p>one")
	h.Load(t.Context())
	if got := h.tools.Template("x"); got != "<p>one" {
		t.Fatalf("its template: %q, %v", got, h.Problems())
	}
	h.script("y", "echo")
	h.write("y/extension.json", `{"name": "y", "description": "d", "inputSchema": {"type": "object"}, "command": "./run", "_meta": {"ui/template": "<p>here"}}`)
	h.Load(t.Context())
	if got := h.tools.Template("y"); got != "<p>here" {
		t.Errorf("a template of the manifest's own: %q, %v", got, h.Problems())
	}
	h.write("x/v.html", "<p>two")
	h.again()
	if got := h.tools.Template("x"); got != "" || h.seen["x"] != store.ToolQuarantined {
		t.Errorf("changed: %q, %s", got, h.seen["x"])
	}
}
