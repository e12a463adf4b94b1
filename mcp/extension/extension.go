// Package extension runs programs of the operator's own as native tools: a folder
// of the data directory with a file extension.json, which says what the tool is, and
// an executable in any language. For each call it is started, reads one JSON
// document from its standard input, {"input", "context"}, writes one result of MCP
// to its standard output, and ends.
//
//   - They come, change and go while nized runs. The folder is polled, as the file
//     of --mcp-config is: a look twice a second costs nothing, works on network file
//     systems and bind mounts, and is needed before a call anyhow. A change counts
//     once two looks have seen the same, so that half a copy is not read.
//   - They are code that runs as nized. So all of a folder must belong to the user
//     of the data directory or root, and be writable by nobody else, without links
//     out of it. Who could place a file there could replace the database, too:
//     a new extension is accepted by being there, and an event says so.
//   - Accepted is a hash of the definition and of every file of the folder. Another
//     one, while nized ran or not, is held until an admin accepts it (nizectl servers
//     trust native NAME), also where the folder was gone in between. Before each call
//     the files are read again: what runs is what was accepted.
//   - A child gets a process group of its own, a clean environment, and bounds of
//     time, memory, processes and output. What it writes is checked as a result.
//   - An extension may bring agents. They are there while it is loaded and not held;
//     one that can't be, because its name is taken or its model is unknown, is tried
//     again with each look.
//   - What is wrong is told by file and field, in the log once, and in nizectl tools
//     list, status and doctor for as long as it is wrong. The tool is not there then.
package extension

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

	"nize/mcp/native"
	"nize/mcp/renderer"
	"nize/mcp/schema"
	"nize/mcp/upstream/process"
	"nize/mcp/view"
	"nize/store"
	"nize/store/toolschema"
	"nize/store/trust"
)

// every is the time between two looks at the folders.
const every = 500 * time.Millisecond

// Registry is where the tools go; *[native.Registry] is one.
type Registry interface {
	Put(native.Tool) error
	Remove(name string)
}

// Options of a [Loader]. All of them are required.
type Options struct {
	Dir   string // the folder of the folders
	Tools Registry
	Store trust.Store
	Spawn func(process.Command) (process.Child, error)
	// Show has results of a tool shown by its renderer; nil takes that away.
	Show func(tool string, r *renderer.Renderer)
	// Check says why a definition can't be used.
	Check func(store.Tool) error
	// Agents makes agents those that extensions bring, by their Origin, and says of
	// each why it can't be. A refusal with a method Field says at which field. The
	// second error is for all of them.
	Agents func(ctx context.Context, all []store.Agent) ([]error, error)
	Log    *slog.Logger
}

// Loader keeps the extensions of one folder. It is safe for concurrent use.
type Loader struct {
	opt   Options
	owner int

	looking sync.Mutex // one look at a time; before mu
	mu      sync.Mutex
	loaded  map[string]*extension
	prints  map[string]string // by name, what the last look saw
	tried   map[string]string // by name, what was loaded last, or found wrong
	wrong   map[string]string // by name, NAME/agents, or "" for the folder itself
	settled bool              // there are no agents to bring, and none to remove
}

// extension is one that is loaded.
type extension struct {
	manifest
	dir    string
	folder folder
	tool   native.Tool
	was    map[string]string  // its files when it was accepted
	output *schema.Validator  // nil: none was declared
	shown  *renderer.Renderer // nil: none was declared
}

// New returns a loader that has looked at nothing yet.
func New(opt Options) *Loader {
	return &Loader{opt: opt, owner: os.Geteuid(), loaded: map[string]*extension{}, prints: map[string]string{}, tried: map[string]string{}, wrong: map[string]string{}}
}

// Run keeps the extensions as the folder has them until ctx ends.
func (l *Loader) Run(ctx context.Context) error {
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

// Load looks once and takes what it finds.
func (l *Loader) Load(ctx context.Context) { l.look(ctx, true) }

// Problems are what is wrong now, one line each.
func (l *Loader) Problems() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.wrong)) {
		lines = append(lines, l.wrong[name])
	}
	return lines
}

// look compares the folders with what was loaded, by name.
func (l *Loader) look(ctx context.Context, first bool) {
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
			now = err.Error() // and nothing of it was loaded
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

// ofAgents stands after the name of an extension whose agents something is wrong with.
const ofAgents = "/agents"

// bring has the agents be there of the extensions that are loaded and not held, in
// the order of their names, after all tools, which they may be allowed. looking is
// held. At the first time, what was brought before nized ended may go.
func (l *Loader) bring(ctx context.Context) {
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
		return // nothing is wrong but that nized ends
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

// folders lists the extensions that are there, by name.
func (l *Loader) folders() (list []string, err error) {
	info, err := os.Lstat(l.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it must be a folder, and no link to one")
	}
	if err == nil {
		err = owned("it", info, l.owner)
	}
	if err != nil {
		return nil, clean(err)
	}
	entries, err := os.ReadDir(l.opt.Dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") { // an editor's, or a copy on its way
			list = append(list, e.Name())
		}
	}
	return list, clean(err)
}

// say keeps what is wrong with one extension, and logs what is new of it.
func (l *Loader) say(name string, err error) {
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

func (l *Loader) drop(name string) {
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

// load reads one extension whole and offers its tool.
func (l *Loader) load(ctx context.Context, name string) error {
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

// check says what of a manifest can't be.
func (e *extension) check(gate func(store.Tool) error) (err error) {
	if err := gate(store.Tool{Name: e.Name, InputSchema: e.InputSchema}); err != nil {
		return wrong("inputSchema", "%s", gateWords(err, "input"))
	}
	if !toolschema.IsObject(e.InputSchema) { // strict: its author can mend it
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
		return wrong("_meta.ui/template", "it is no HTML; a file with it is named by ui/templateFile")
	}
	if e.TemplateFile != "" {
		if strings.Contains(e.TemplateFile, "<") {
			return wrong(e.templateField, "it must name a file of this folder; HTML itself stands in _meta, as ui/template")
		}
		raw, path, err := inFolder(e.templateField, e.TemplateFile, view.MaxTemplate)
		if err == nil && (!utf8.Valid(raw) || len(bytes.TrimSpace(raw)) == 0) {
			err = &fieldError{path, "", "it is no HTML in UTF-8"}
		}
		if err != nil {
			return err
		}
		e.Template = string(raw)
	}
	if e.Renderer != "" {
		raw, path, err := inFolder("renderer", e.Renderer, renderer.MaxFile)
		if err != nil {
			return err
		}
		if e.shown, err = renderer.Parse(raw); err != nil {
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

// noFile says why a path names no file of the folder.
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

// gateWords is what a gate says, without what is said before it.
func gateWords(err error, which string) string {
	return strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+" "+which+" schema: ")
}

func (e *extension) timeout() time.Duration { return cmp.Or(time.Duration(e.Timeout), defaultTimeout) }

// file reads one of the folder's files, which is there and not too long.
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

// placedByOwner is who accepts an extension that is seen for the first time.
var placedByOwner = store.Caller{User: store.System.User, Name: "extensions", Role: store.Admin, Surface: store.OnCLI}

// offer puts a tool in its place: accepted, or held.
func (l *Loader) offer(ctx context.Context, e *extension) error {
	pin := e.tool.Pin()
	was, err := l.opt.Store.GetAccepted(ctx, e.Name)
	if errors.Is(err, store.ErrNotFound) {
		was = trust.Extension{Name: e.Name, Pin: pin, Files: e.folder.files}
		err = l.opt.Store.PutAccepted(ctx, placedByOwner, was)
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

// Held is an extension that is not as it was accepted.
type Held struct {
	Name, Description string
	Pin, Accepted     string
	Changes           []string // file by file
}

// Held lists the extensions that wait for an admin.
func (l *Loader) Held() (list []Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.loaded)) {
		e := l.loaded[name]
		if pin := e.tool.Pin(); pin != e.tool.Accepted {
			list = append(list, Held{name, e.Description, pin, e.tool.Accepted, e.folder.changes(e.was)})
		}
	}
	return list
}

// Count is how many extensions are loaded, those that are held among them.
func (l *Loader) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.loaded)
}

// Trust accepts an extension as an admin saw it, by its pin. ErrConflict if it is
// another one by now.
func (l *Loader) Trust(ctx context.Context, by store.Caller, name, pin string) error {
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
	if err := l.opt.Store.PutAccepted(ctx, by, trust.Extension{Name: name, Pin: pin, Files: e.folder.files}); err != nil {
		return err
	}
	next := *e // who runs the old one goes on with it
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

func (l *Loader) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.loaded))
}
