// Package extensions runs the operator's own programs as native tools.
//
// An extension is a folder of the data directory with a file extension.json, which
// describes the tool, and an executable in any language. For each call the executable is
// started, reads one JSON document from its standard input, {"input", "context"}, writes
// one MCP result to its standard output, and exits.
//
//   - Extensions can be added, changed and removed while nized runs. The folder is polled, like the
//     file of --mcp-config: polling twice a second costs nothing, works on network file
//     systems and bind mounts, and is needed before a call anyhow. A change counts
//     once two polls have seen it, so that a partial copy is not read.
//   - They are code that runs as nized. So everything in a folder must belong to the user
//     of the data directory or root, be writable by no other user, and contain no links
//     out of it. A user who can write a file there could also replace the database, so
//     a new extension is accepted automatically, and an event records it.
//   - The accepted state is a hash of the definition and of every file of the folder. If it changes,
//     while nized runs or not, the extension is held until an admin accepts it (nizectl servers
//     trust native NAME), even if the folder was missing in between. Before each call
//     the files are read again, so only the accepted files run.
//   - A child gets its own process group, a clean environment, and limits of
//     time, memory, processes and output. Its output is checked as a result.
//   - An extension may provide agents. They exist while it is loaded and not held;
//     an agent that can't be created, because its name is taken or its model is unknown, is retried
//     at each poll.
//   - Errors are reported by file and field, in the log once, and in nizectl tools
//     list, status and doctor while they persist. The tool doesn't exist in the meantime.
package extensions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nize/daemon/api"
	"nize/daemon/module"
	"nize/mcp/native"
	"nize/mcp/policy"
	"nize/mcp/schema"
	"nize/mcp/upstream/process"
	"nize/mcp/view"
	"nize/store"
	"nize/store/kv"
	"nize/store/toolschema"
)

// every is the polling interval of the folders.
const every = 500 * time.Millisecond

// Options configures a [Extensions]. All fields are required.
type Options struct {
	Dir   string // the directory that contains the extensions' folders
	Tools *native.Registry
	DB    kv.DB // opened with [Buckets]
	Spawn func(process.Command) (process.Child, error)
	// Show sets the renderer of a tool's results; nil removes it.
	Show func(tool string, r *view.Renderer)
	// Check returns an error if a definition can't be used.
	Check func(store.Tool) error
	// Agents replaces the agents of extensions, identified by their Origin, and returns for
	// each why it can't be created. An error with a method Field names the field. The
	// second error is about all of them.
	Agents func(ctx context.Context, all []store.Agent) ([]error, error)
	Log    *slog.Logger
}

// Extensions loads the extensions of one directory. It is safe for concurrent use.
type Extensions struct {
	opt   Options
	owner int

	looking sync.Mutex // held during a poll; locked before mu
	mu      sync.Mutex
	loaded  map[string]*extension
	prints  map[string]string // by name: state at the last poll
	tried   map[string]string // by name: state that was loaded last, or failed to load
	wrong   map[string]string // by name, NAME/agents, or "" for the directory itself
	settled bool              // no agents to create or remove
}

// extension is a loaded extension.
type extension struct {
	manifest
	dir    string
	folder folder
	tool   native.Tool
	was    map[string]string // its files when it was accepted
	output *schema.Validator // nil if none was declared
	shown  *view.Renderer    // nil if none was declared
}

// New returns extensions that have not been polled yet.
func New(opt Options) *Extensions {
	return &Extensions{opt: opt, owner: os.Geteuid(), loaded: map[string]*extension{}, prints: map[string]string{}, tried: map[string]string{}, wrong: map[string]string{}}
}

// Module returns the module.
func (l *Extensions) Module() module.Module {
	return module.Module{Name: "extensions", Buckets: Buckets, Run: l.poll}
}

// poll polls the directory and applies changes until ctx ends.
func (l *Extensions) poll(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.look(ctx, false)
		}
	}
}

// Load polls once and applies the current state immediately.
func (l *Extensions) Load(ctx context.Context) { l.look(ctx, true) }

// Problems returns the current errors, one line each.
func (l *Extensions) Problems() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.wrong)) {
		lines = append(lines, l.wrong[name])
	}
	return lines
}

// look compares the folders with the loaded extensions, by name.
func (l *Extensions) look(ctx context.Context, first bool) {
	l.looking.Lock()
	defer l.looking.Unlock()
	found, err := l.folders()
	l.say("", err)
	for name := range l.tried {
		if !slices.Contains(found, name) {
			l.drop(name)
			l.say(name, nil)
			delete(l.tried, name)
			delete(l.prints, name)
		}
	}
	for _, name := range found {
		seen, err := read(filepath.Join(l.opt.Dir, name), l.owner, false)
		now := seen.print
		if err != nil {
			now = err.Error() // the folder is unusable, so it isn't loaded
		}
		before, known := l.prints[name]
		l.prints[name] = now
		if !first && (!known || before != now) || l.tried[name] == now && now != "" {
			continue
		}
		l.tried[name] = now
		if err == nil {
			err = l.load(ctx, name)
		}
		if err != nil {
			l.drop(name)
		}
		l.say(name, err)
	}
	l.bring(ctx)
}

// ofAgents is the suffix of an extension's name for errors about its agents.
const ofAgents = "/agents"

// bring creates the agents of the extensions that are loaded and not held, in the order of
// their names, after all tools, because agents may be restricted to them. looking must be
// held. At the first poll, it may remove agents that were created before nized restarted.
func (l *Extensions) bring(ctx context.Context) {
	type place struct {
		name string
		at   int
	}
	var all []store.Agent
	var places []place
	l.mu.Lock()
	names := slices.Sorted(maps.Keys(l.loaded))
	for _, name := range names {
		e := l.loaded[name]
		if e.tool.Pin() != e.tool.Accepted {
			continue
		}
		for i, agent := range e.Agents {
			agent.Origin = store.ExtensionOrigin(name)
			all, places = append(all, agent), append(places, place{name, i})
		}
	}
	l.mu.Unlock()
	if l.settled && len(all) == 0 {
		return
	}
	refused, err := l.opt.Agents(ctx, all)
	if ctx.Err() != nil {
		return // nized is stopping; not an error
	}
	l.settled = err == nil && len(all) == 0
	found := map[string]error{}
	for i, err := range refused {
		if p := places[i]; err != nil && found[p.name] == nil {
			field := fmt.Sprintf("agents[%d]", p.at)
			var of interface{ Field() string }
			if errors.As(err, &of) {
				field += "." + of.Field()
			}
			found[p.name] = wrong(field, "%v", err)
		}
	}
	l.say(ofAgents, err)
	for _, name := range names {
		l.say(name+ofAgents, found[name])
	}
}

// folders returns the names of the existing extensions, sorted.
func (l *Extensions) folders() (list []string, err error) {
	info, err := os.Lstat(l.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it must be a folder, not a link to one")
	}
	if err == nil {
		err = owned("it", info, l.owner)
	}
	if err != nil {
		return nil, clean(err)
	}
	entries, err := os.ReadDir(l.opt.Dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") { // hidden names belong to editors and unfinished copies
			list = append(list, e.Name())
		}
	}
	return list, clean(err)
}

// say records the error of one extension, and logs it if it is new.
func (l *Extensions) say(name string, err error) {
	line := ""
	if err != nil {
		of := strings.TrimSuffix(name, ofAgents)
		line = strings.TrimSuffix("extensions/"+of, "/") + ": " + store.Line(err.Error())
		var field *fieldError
		if errors.As(err, &field) {
			line = "extensions/" + of + "/" + store.Line(field.Error())
		}
	}
	l.mu.Lock()
	before := l.wrong[name]
	if l.wrong[name] = line; line == "" {
		delete(l.wrong, name)
	}
	l.mu.Unlock()
	if line != "" && line != before {
		l.opt.Log.Warn("extension", "problem", line)
	}
}

func (l *Extensions) drop(name string) {
	l.mu.Lock()
	_, had := l.loaded[name]
	delete(l.loaded, name)
	l.mu.Unlock()
	if had {
		l.say(name+ofAgents, nil)
		l.opt.Tools.Remove(name)
		l.opt.Show(toolOf(name), nil)
		l.opt.Log.Info("extension removed", "extension", name)
	}
}

// load reads one extension and offers its tool.
func (l *Extensions) load(ctx context.Context, name string) error {
	e := &extension{dir: filepath.Join(l.opt.Dir, name)}
	var err error
	if e.folder, err = read(e.dir, l.owner, true); err != nil {
		return err
	}
	raw, err := e.file(manifestFile, maxManifest)
	if err != nil {
		return err
	}
	if e.manifest, err = decode(name, raw); err != nil {
		return err
	}
	if err := e.check(l.opt.Check); err != nil {
		return err
	}
	e.tool = native.Tool{
		Name: name, Title: e.Title, Description: e.Description, InputSchema: e.InputSchema, OutputSchema: e.OutputSchema,
		Template: e.Template, CredentialID: e.CredentialID, Timeout: e.timeout() + stopTime, Code: e.folder.hash(),
		Run: func(ctx context.Context, of native.Context, input json.RawMessage) (native.Result, error) {
			return l.run(ctx, e, of, input)
		},
	}
	return l.offer(ctx, e)
}

// check returns an error for an invalid manifest.
func (e *extension) check(gate func(store.Tool) error) (err error) {
	if err := gate(store.Tool{Name: e.Name, InputSchema: e.InputSchema}); err != nil {
		return wrong("inputSchema", "%s", gateWords(err, "input"))
	}
	if !toolschema.IsObject(e.InputSchema) { // strict, because the author can correct it
		return wrong("inputSchema", `its root must have "type": "object"`)
	}
	if _, err := schema.CompileOutput(e.InputSchema); err != nil {
		return wrong("inputSchema", "%v", err)
	}
	if e.OutputSchema != nil {
		if err := gate(store.Tool{Name: e.Name, InputSchema: e.InputSchema, OutputSchema: e.OutputSchema}); err != nil {
			return wrong("outputSchema", "%s", gateWords(err, "output"))
		}
		if e.output, err = schema.CompileOutput(e.OutputSchema); err != nil {
			return wrong("outputSchema", "%v", err)
		}
	}
	inFolder := func(field, name string, most int64) ([]byte, string, error) {
		path := filepath.Clean(name)
		if !filepath.IsLocal(path) {
			return nil, path, wrong(field, "%s is not in this folder", name)
		}
		if _, ok := e.folder.files[path]; !ok {
			return nil, path, wrong(field, "%s", e.noFile(path))
		}
		raw, err := e.file(path, most)
		return raw, path, err
	}
	if e.Template != "" && !strings.Contains(e.Template, "<") {
		return wrong("_meta.ui/template", "it is not HTML; to name a file, use ui/templateFile")
	}
	if e.TemplateFile != "" {
		if strings.Contains(e.TemplateFile, "<") {
			return wrong(e.templateField, "it must name a file of this folder; HTML itself belongs in _meta, as ui/template")
		}
		raw, path, err := inFolder(e.templateField, e.TemplateFile, view.MaxTemplate)
		if err == nil && (!utf8.Valid(raw) || len(bytes.TrimSpace(raw)) == 0) {
			err = &fieldError{path, "", "it is not HTML in UTF-8"}
		}
		if err != nil {
			return err
		}
		e.Template = string(raw)
	}
	if e.Renderer != "" {
		raw, path, err := inFolder("renderer", e.Renderer, view.MaxRenderer)
		if err != nil {
			return err
		}
		if e.shown, err = view.ParseRenderer(raw); err != nil {
			return &fieldError{path, "", err.Error()}
		}
	}
	program := e.Command[0]
	if !strings.Contains(program, "/") {
		if _, err := exec.LookPath(program); err != nil {
			return wrong("command", "%s is not on nized's PATH; a program of this folder is ./%s", program, program)
		}
		return nil
	}
	path := filepath.Clean(program)
	switch what, ok := e.folder.files[path]; {
	case !filepath.IsLocal(path):
		return wrong("command", "%s is not in this folder", program)
	case !ok:
		return wrong("command", "%s", e.noFile(path))
	case strings.HasPrefix(what, "false "):
		return wrong("command", "%s can't be run: chmod u+x it", path)
	}
	return nil
}

// noFile returns why a path is not a file of the folder, or "".
func (e *extension) noFile(path string) string {
	for name := range e.folder.files {
		if path == "." || strings.HasPrefix(name, path+string(filepath.Separator)) {
			return path + " is a folder, and must be a file"
		}
	}
	names := slices.Sorted(maps.Keys(e.folder.files))
	if near := store.Nearest(path, names); near != "" {
		return fmt.Sprintf("there is no file %s in this folder; did you mean %s?", path, near)
	}
	return fmt.Sprintf("there is no file %s in this folder", path)
}

// gateWords returns a gate's error without its prefix.
func gateWords(err error, which string) string {
	return strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+" "+which+" schema: ")
}

func (e *extension) timeout() time.Duration { return cmp.Or(time.Duration(e.Timeout), defaultTimeout) }

// file reads one of the folder's files, which must exist and be at most most bytes long.
func (e *extension) file(name string, most int64) ([]byte, error) {
	if _, ok := e.folder.files[name]; !ok {
		return nil, &fieldError{name, "", "there is no such file"}
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return nil, clean(err)
	}
	defer root.Close()
	file, err := root.Open(name)
	if err != nil {
		return nil, clean(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(raw)) > most {
		err = &fieldError{name, "", fmt.Sprintf("it is over %d KiB", most>>10)}
	}
	return raw, clean(err)
}

// placedByOwner is the caller that accepts an extension that is seen for the first time.
var placedByOwner = store.Caller{User: store.System.User, Name: "extensions", Role: store.Admin, Surface: store.OnCLI}

// offer registers a tool as accepted or held.
func (l *Extensions) offer(ctx context.Context, e *extension) error {
	pin := e.tool.Pin()
	was, err := l.accepted(ctx, e.Name)
	if errors.Is(err, store.ErrNotFound) {
		was = acceptance{Name: e.Name, Pin: pin, Files: e.folder.files}
		err = l.accept(ctx, placedByOwner, was)
	}
	if err != nil {
		return fmt.Errorf("reading what was accepted: %w", err)
	}
	e.tool.Accepted, e.was = was.Pin, was.Files
	if err := l.opt.Tools.Put(e.tool); err != nil {
		return wrong("name", "%v", err)
	}
	l.opt.Show(toolOf(e.Name), e.shown)
	l.mu.Lock()
	l.loaded[e.Name] = e
	l.mu.Unlock()
	if was.Pin != pin {
		l.opt.Log.Warn("extension is held", "extension", e.Name, "changes", e.folder.changes(was.Files))
	} else {
		l.opt.Log.Info("extension loaded", "extension", e.Name)
	}
	return nil
}

func toolOf(name string) string { return "native:" + name }

// Held returns the tools of extensions that differ from their accepted state and wait for an
// admin. Their findings are the changes, file by file.
func (l *Extensions) Held() (list []store.Tool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.loaded)) {
		e := l.loaded[name]
		if pin := e.tool.Pin(); pin != e.tool.Accepted {
			list = append(list, store.Tool{Server: policy.NativeServer, Name: name, Description: e.Description, Pin: pin, Accepted: e.tool.Accepted, Findings: e.folder.changes(e.was)})
		}
	}
	return list
}

// Health returns the state of the extensions as one server; ok is false if there are none.
func (l *Extensions) Health() (h api.Health, ok bool) {
	l.mu.Lock()
	count := len(l.loaded)
	l.mu.Unlock()
	problems := l.Problems()
	h = api.Health{Name: policy.NativeServer, State: "ready", ToolCount: l.opt.Tools.Count(), Held: len(l.Held())}
	if len(problems) > 0 {
		h.LastError = problems[0]
	}
	return h, count+len(problems) > 0
}

// Untrusted returns the extensions that wait for an admin: all, or that of a tool.
func (l *Extensions) Untrusted(tool string) (out []api.TrustView, err error) {
	if tool != "" {
		if err := l.opt.Tools.CheckPattern(policy.NativeServer + ":" + tool); err != nil {
			return nil, err
		}
	}
	for _, h := range l.Held() {
		if tool == "" || tool == h.Name {
			out = append(out, api.TrustView{Tool: h.ID(), State: store.ToolQuarantined, Pin: h.Pin, Accepted: h.Accepted, Findings: h.Findings, Description: h.Description})
		}
	}
	return out, nil
}

// Trust accepts an extension in the state that an admin saw, identified by its pin. It
// returns ErrConflict if it has changed since.
func (l *Extensions) Trust(ctx context.Context, by store.Caller, name, pin string) error {
	l.looking.Lock()
	defer l.looking.Unlock()
	l.mu.Lock()
	e := l.loaded[name]
	l.mu.Unlock()
	if e == nil {
		return store.Unknown("tool", name, l.names())
	}
	if e.tool.Pin() != pin {
		return store.Mark(fmt.Errorf("native:%s changed again; look at it once more", name), store.ErrConflict)
	}
	if err := l.accept(ctx, by, acceptance{Name: name, Pin: pin, Files: e.folder.files}); err != nil {
		return err
	}
	next := *e // running calls continue with the old one
	next.tool.Accepted, next.was = pin, e.folder.files
	next.tool.Run = func(ctx context.Context, of native.Context, input json.RawMessage) (native.Result, error) {
		return l.run(ctx, &next, of, input)
	}
	if err := l.opt.Tools.Put(next.tool); err != nil {
		return err
	}
	l.mu.Lock()
	l.loaded[name] = &next
	l.mu.Unlock()
	l.bring(ctx)
	return nil
}

func (l *Extensions) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.loaded))
}
