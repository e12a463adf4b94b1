package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/mcp/mcptest"
	"nize/mcp/policy"
	"nize/mcp/scan"
	"nize/mcp/upstream"
	"nize/store"
	"nize/store/project"
)

// kept and credentials of a test.
type memory struct {
	project.Servers
	store.Credentials
	mu      sync.Mutex
	records map[string]json.RawMessage
	creds   map[store.CredentialKey]store.Credential
}

func (m *memory) PutTemporaryServer(_ context.Context, _, name string, record json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[name] = record
	return nil
}

func (m *memory) GetTemporaryServer(_ context.Context, name string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.records[name]; ok {
		return r, nil
	}
	return nil, store.ErrNotFound
}

func (m *memory) GetCredential(_ context.Context, key store.CredentialKey) (store.Credential, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.creds[key]; ok {
		return c, nil
	}
	return store.Credential{}, store.ErrNotFound
}

func (m *memory) PutCredential(_ context.Context, _ store.Caller, c store.Credential) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.creds[c.CredentialKey] = c
	return nil
}

// gate pins names and descriptions, and finds nothing.
type gate struct{}

func (gate) Check(store.Tool) error { return nil }
func (gate) Pin(_ store.Server, _ string, t store.Tool) (string, []string) {
	return t.Name + "=" + t.Description, nil
}

func newPool(t *testing.T, m *memory, now *time.Time) *ServerPool {
	p := NewServerPool(ServerOptions{Store: m, Credentials: m, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler), Upstream: upstream.Options{Gate: gate{}}})
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func TestServerPool(t *testing.T) {
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo", Description: "one"}}})
	url, now := up.HTTP(), time.Now()
	m := &memory{records: map[string]json.RawMessage{}, creds: map[store.CredentialKey]store.Credential{}}
	p := newPool(t, m, &now)
	sales, ops := project.Project{ID: "p1"}, project.Project{ID: "p2"}
	given := project.Server{Label: "Up", Slug: "up", URL: url, Headers: map[string]project.Header{"X-Key": {Text: store.NewSecret("a-long-secret")}}}
	open := func(p *ServerPool, of project.Project, s project.Server) store.Tool {
		t.Helper()
		list, err := p.Open(t.Context(), of, s)
		if err != nil || len(list) != 1 || list[0].State != store.ToolAccepted {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}

	// The same one is shared; another project's, or one with other headers, is not.
	first := open(p, sales, given)
	if again := open(p, sales, given); again.Server != first.Server || !strings.HasPrefix(first.Server, "temporary.up.") {
		t.Errorf("%s and then %s", first.Server, again.Server)
	}
	other := given
	other.Headers = map[string]project.Header{"X-Key": {Text: store.NewSecret("another-secret")}}
	if open(p, ops, given).Server == first.Server || open(p, sales, other).Server == first.Server {
		t.Error("what is not the same server has the same session")
	}
	if text := fmt.Sprintf("%v %+v %#v", given, p.find(first.Server), given.Headers); strings.Contains(text, "a-long-secret") {
		t.Errorf("a header is printed: %s", text)
	}
	for _, h := range up.Headers() {
		if v := h.Get("X-Key"); v != "a-long-secret" && v != "another-secret" {
			t.Errorf("a request came with %q", v)
		}
	}

	// A definition that changes is held for those who have it, and new for others.
	up.SetTool(mcptest.Tool{Name: "echo", Description: "two"})
	now = now.Add(time.Minute)
	second := open(p, sales, given)
	if second.Server == first.Server || second.Description != "two" {
		t.Errorf("after the change: %+v", second)
	}
	if tool, ok := p.FindTool(first.ID()); !ok || tool.State == store.ToolAccepted {
		t.Errorf("the old generation: %+v", tool)
	}
	call := func(p *ServerPool, tool store.Tool) error {
		_, err := p.Run(t.Context(), store.Caller{User: sales.Caller().User}, &store.Call{ID: store.NewID(now), Server: tool.Server, Tool: tool.Name, Pin: tool.Pin, Args: json.RawMessage(`{}`)}, nil)
		return err
	}
	var refused *store.CallError
	if err := call(p, first); !errors.As(err, &refused) || refused.Code != store.CodeRefused {
		t.Errorf("a call of the old definition: %v", err)
	}
	if err := call(p, second); err != nil || up.Calls("echo") != 1 {
		t.Errorf("a call: %v, %d", err, up.Calls("echo"))
	}

	// Without use it is closed, and found again by what was stored, also by another
	// process.
	now = now.Add(time.Hour)
	p.closeIdle(t.Context(), now.Add(-idleTime))
	p.mu.Lock()
	if n := len(p.byName) + len(p.newest); n > 0 {
		t.Errorf("%d are kept", n)
	}
	p.mu.Unlock()
	for _, p := range []*ServerPool{p, newPool(t, m, &now)} {
		if tool, ok := p.FindTool(second.ID()); !ok || tool.State != store.ToolAccepted || !tool.Record.SharedWith(sales.Caller(), nil) || tool.Record.SharedWith(ops.Caller(), nil) {
			t.Errorf("found again: %+v", tool)
		}
		if err := call(p, second); err != nil {
			t.Errorf("a call of one that was found again: %v", err)
		}
	}
	if _, ok := p.FindTool(policy.TemporaryName("up", "01ARZ3NDEKTSV4RRFFQ69G5FAV") + ":echo"); ok {
		t.Error("a server that never was is found")
	}
}

// A credential of the project's is sent to the host that it is bound to, and to no
// other.
func TestCredentials(t *testing.T) {
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}})
	now := time.Now()
	m := &memory{records: map[string]json.RawMessage{}, creds: map[store.CredentialKey]store.Credential{}}
	p := newPool(t, m, &now)
	of := project.Project{ID: "p1"}
	given := project.Server{Label: "Mon MCP", Slug: "mon-mcp", URL: up.HTTP(), Headers: map[string]project.Header{"Authorization": {SecretKey: "TOKEN"}}}
	var lacks *project.NoCredentialError
	if _, err := p.Open(t.Context(), of, given); !errors.As(err, &lacks) || lacks.Header != "Authorization" {
		t.Fatalf("without it: %v", err)
	}
	key := store.CredentialKey{Scope: "project", Owner: "p1", Service: "Mon MCP", Name: "TOKEN"}
	m.creds[key] = store.Credential{CredentialKey: key, Secret: store.NewSecret("a-long-secret")}
	if _, err := p.Open(t.Context(), of, given); err != nil {
		t.Fatal(err)
	}
	headers := up.Headers()
	if got := headers[len(headers)-1].Get("Authorization"); got != "Bearer a-long-secret" {
		t.Errorf("it came as %q", got)
	}
	elsewhere := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}})
	given.URL = elsewhere.HTTP()
	if _, err := p.Open(t.Context(), of, given); err == nil || strings.Contains(err.Error(), "a-long-secret") || len(elsewhere.Headers()) > 0 {
		t.Errorf("sent to another host: %v, %v", err, elsewhere.Headers())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byName) != 1 {
		t.Errorf("one that was never reached is kept: %d", len(p.byName))
	}
}

// Where all that may be kept are in use, another one is refused; one that is there
// is not, and one that is not in use makes room.
func TestFull(t *testing.T) {
	now := time.Now()
	p := newPool(t, &memory{}, &now)
	use := func(n int) (*server, error) {
		return p.generation("p1", project.Server{Slug: "s", URL: fmt.Sprint("https://mcp.example/", n)})
	}
	var last *server
	for n := range maxKept {
		var err error
		if last, err = use(n); err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := use(maxKept); err != errFull {
		t.Errorf("one more: %v", err)
	}
	if again, err := use(7); err != nil {
		t.Errorf("one that is there: %v", err)
	} else {
		again.end()
	}
	last.end()
	if _, err := use(maxKept); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// TestIconsAreNotPinned: icons of a temporary server reach nobody, so they are no
// part of the pins that a stored generation keeps.
func TestIconsAreNotPinned(t *testing.T) {
	g := withoutIcons{scan.Gate{}}
	bare, _ := g.Pin(store.Server{}, "", store.Tool{Name: "n"})
	drawn, _ := g.Pin(store.Server{}, "", store.Tool{Name: "n", Icons: json.RawMessage(`[{"src":"https://icons.example/i.png"}]`)})
	if bare != drawn {
		t.Errorf("pin %.12s with icons, %.12s without", drawn, bare)
	}
}
