package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/mcp/mcptest"
	"nize/mcp/upstream/process"
	"nize/store"
)

func TestMain(m *testing.M) {
	process.GuardMain()
	mcptest.ChildMain()
	// These tests mostly wait for child processes and pauses, so more of them run in
	// parallel than there are cores.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// admin is an admin at the CLI.
var admin = store.Caller{User: "u-admin", Role: store.Admin, Surface: store.OnCLI}

// member is somebody who calls tools.
var member = store.Caller{User: "u-member", Role: store.Member, Surface: store.OnMCP}

// memory is an in-memory store.
type memory struct {
	mu      sync.Mutex
	servers map[string]store.Server
	tools   map[string][]store.Tool
	creds   map[store.CredentialKey]store.Credential
	puts    int
	changes uint64 // the last revision; revisions are never reused
}

var (
	_ store.Servers     = (*memory)(nil)
	_ store.Tools       = (*memory)(nil)
	_ store.Credentials = (*memory)(nil)
)

func newMemory() *memory {
	return &memory{servers: map[string]store.Server{}, tools: map[string][]store.Tool{}, creds: map[store.CredentialKey]store.Credential{}}
}

func (m *memory) PutServer(_ context.Context, _ store.Caller, s store.Server, _ uint64) (store.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	s.Revision = m.changes
	m.servers[s.Name] = s
	return s, nil
}

func (m *memory) DeleteServer(_ context.Context, _ store.Caller, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, name)
	delete(m.tools, name)
	return nil
}

func (m *memory) GetServer(_ context.Context, name string) (store.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.servers[name]
	if !ok {
		return s, store.ErrNotFound
	}
	return s, nil
}

func (m *memory) ListServers(context.Context) ([]store.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Server
	for _, s := range m.servers {
		all = append(all, s)
	}
	return all, nil
}

func (m *memory) PutTools(_ context.Context, _ store.Caller, server string, tools []store.Tool) (store.ToolDiff, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var diff store.ToolDiff
	old := map[string]store.Tool{}
	for _, t := range m.tools[server] {
		old[t.Name] = t
	}
	for _, t := range tools {
		was, ok := old[t.Name]
		switch {
		case !ok:
			diff.Added = append(diff.Added, t.ID())
		case was.Pin != t.Pin:
			diff.Changed = append(diff.Changed, t.ID())
		}
		if t.State != store.ToolAccepted {
			diff.Held = append(diff.Held, t.ID())
		}
		delete(old, t.Name)
	}
	for _, t := range old {
		diff.Removed = append(diff.Removed, t.ID())
	}
	m.tools[server] = slices.Clone(tools)
	m.puts++
	return diff, nil
}

func (m *memory) GetTool(_ context.Context, id string) (store.Tool, error) {
	server, name, _ := store.SplitToolID(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tools[server] {
		if t.Name == name {
			return t, nil
		}
	}
	return store.Tool{}, store.ErrNotFound
}

func (m *memory) ListTools(_ context.Context, server string) ([]store.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if server == "" {
		return slices.Concat(slices.Collect(maps.Values(m.tools))...), nil
	}
	return slices.Clone(m.tools[server]), nil
}

func (m *memory) AcceptTool(_ context.Context, _ store.Caller, id, pin string) error {
	server, name, _ := store.SplitToolID(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, t := range m.tools[server] {
		if t.Name == name && t.Pin == pin {
			t.Accepted, t.State, t.Findings = pin, store.ToolAccepted, nil
			m.tools[server][i] = t
			return nil
		}
	}
	return store.ErrConflict
}

func (m *memory) PutCredential(_ context.Context, _ store.Caller, c store.Credential) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.creds[c.CredentialKey] = c
	return nil
}

func (m *memory) GetCredential(_ context.Context, key store.CredentialKey) (store.Credential, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.creds[key]
	if !ok {
		return c, store.ErrNotFound
	}
	return c, nil
}

func (m *memory) ListCredentials(context.Context) ([]store.Credential, error) { return nil, nil }
func (m *memory) DeleteCredential(_ context.Context, _ store.Caller, key store.CredentialKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.creds, key)
	return nil
}

// strictGate refuses schemas with the word BADSCHEMA and reports IGNORE in descriptions.
// Its pin covers the same fields as that of mcp/scan.
type strictGate struct{}

func (strictGate) Check(t store.Tool) error {
	if strings.Contains(string(t.InputSchema), "BADSCHEMA") {
		return errors.New("the schema is bad")
	}
	return nil
}

func (strictGate) Pin(s store.Server, instructions string, t store.Tool) (string, []string) {
	raw, err := json.Marshal([]any{s.Where(), instructions, t.Name, t.Title, t.Description, string(t.InputSchema), string(t.OutputSchema), t.Annotations, string(t.Meta), string(t.Icons)})
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(raw)
	var findings []string
	if strings.Contains(t.Description+instructions, "IGNORE") {
		findings = []string{"it speaks to the model"}
	}
	return hex.EncodeToString(sum[:]), findings
}

// bench is a pool with its dependencies.
type bench struct {
	*Pool
	t   *testing.T
	db  *memory
	log *logBuffer

	mu   sync.Mutex
	told map[string][]store.Tool // the last tools passed to OnTools
}

// logBuffer is a log that can be searched.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBench makes a pool that is closed and awaited at the end of the test.
func newBench(t *testing.T, guard *process.Guard) *bench {
	t.Helper()
	b := &bench{t: t, db: newMemory(), log: &logBuffer{}, told: map[string][]store.Tool{}}
	b.Pool = New(Options{Log: slog.New(slog.NewTextHandler(b.log, nil)), Servers: b.db, Tools: b.db, Credentials: b.db,
		Gate: strictGate{}, Guard: guard, OnTools: func(_ context.Context, server string, tools []store.Tool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.told[server] = tools
		}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.Pool.Close(ctx); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
		if t.Failed() {
			t.Log(b.log.String())
		}
	})
	return b
}

// put stores a record.
func (b *bench) put(s store.Server) store.Server {
	b.t.Helper()
	s, err := b.db.PutServer(b.t.Context(), admin, s, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// register stores a record and syncs it as an admin.
func (b *bench) register(s store.Server) store.ToolDiff {
	b.t.Helper()
	b.put(s)
	diff, err := b.Sync(b.t.Context(), admin, s.Name)
	if err != nil {
		b.t.Fatalf("registering %s: %v\n%s", s.Name, err, b.log)
	}
	return diff
}

// stdio is the record of a fake as a child process.
func stdio(m *mcptest.Server) store.Server {
	path, env := m.Command()
	s := store.Server{Name: "child", Transport: store.Stdio, Command: path, Env: map[string]store.Value{}}
	for k, v := range env {
		s.Env[k] = store.Value{Text: v}
	}
	return s
}

// remote is the record of a fake over HTTP.
func remote(url string) store.Server {
	return store.Server{Name: "far", Transport: store.HTTP, URL: url}
}

// tool reads a stored tool.
func (b *bench) tool(id string) store.Tool {
	b.t.Helper()
	t, err := b.db.GetTool(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("tool %s: %v", id, err)
	}
	return t
}

// call is a call of the tool as it is stored now.
func (b *bench) call(id, args string) *store.Call {
	b.t.Helper()
	t := b.tool(id)
	return &store.Call{ID: store.NewID(time.Now()), Server: t.Server, Tool: t.Name, Args: json.RawMessage(args), Pin: t.Pin, By: member.User}
}

// run runs the tool as it is stored now.
func (b *bench) run(ctx context.Context, id, args string) (*store.Result, error) {
	b.t.Helper()
	return b.Run(ctx, member, b.call(id, args), nil)
}

// late runs a tool that does not answer and expects an unknown outcome. It repeats the call
// if, on a busy machine, the time was over before it was sent.
func (b *bench) late(id string, words ...string) {
	b.t.Helper()
	_, err := b.run(b.t.Context(), id, `{}`)
	var ce *store.CallError
	for n := 0; n < 20 && errors.As(err, &ce) && ce.Code == store.CodeTimeout; n++ {
		_, err = b.run(b.t.Context(), id, `{}`)
	}
	fails(b.t, err, store.CodeUnknown, words...)
}

// good runs the tool and expects this text.
func (b *bench) good(id, args, want string) {
	b.t.Helper()
	res, err := b.run(b.t.Context(), id, args)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", id, err, b.log)
	}
	if got := res.Text(); got != want {
		b.t.Fatalf("%s answered %q, want %q", id, got, want)
	}
}

// fails expects an error with this code and these words.
func fails(t *testing.T, err error, code store.Code, words ...string) {
	t.Helper()
	var ce *store.CallError
	if !errors.As(err, &ce) {
		t.Fatalf("error %v is no *store.CallError; want %s", err, code)
	}
	if ce.Code != code {
		t.Fatalf("code %s (%s), want %s", ce.Code, ce.Message, code)
	}
	for _, w := range words {
		if !strings.Contains(ce.Message.String(), w) {
			t.Fatalf("message %q lacks %q", ce.Message, w)
		}
	}
}

// patience is the time limit for background work, enough for a very busy machine.
const patience = 2 * time.Minute

// eventually waits for a condition that another process or goroutine fulfills.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// seen reports whether the fake received a header with this value.
func seen(m *mcptest.Server, name, value string) bool {
	return slices.ContainsFunc(m.Headers(), func(h http.Header) bool { return h.Get(name) == value })
}
