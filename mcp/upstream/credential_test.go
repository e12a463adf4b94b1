package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"nize/mcp/mcptest"
	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// secret stores a credential of server far.
func (b *bench) secret(scope, owner, name, host, text string) {
	b.t.Helper()
	err := b.db.PutCredential(b.t.Context(), admin, store.Credential{
		CredentialKey: store.CredentialKey{Scope: scope, Owner: owner, Service: "far", Name: name}, Host: host, Secret: store.NewSecret(text)})
	if err != nil {
		b.t.Fatal(err)
	}
}

func withKey(url string) store.Server {
	s := remote(url)
	s.Headers = map[string]store.Value{"Authorization": {SecretKey: "TOKEN"}, "X-Plain": {Text: "as it is"}}
	return s
}

func TestCredentialInAHeader(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		b := newBench(t, nil)
		m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}, Stateless: stateless})
		cfg := withKey(m.HTTP())
		b.put(cfg)
		_, err := b.Sync(t.Context(), admin, "far")
		if err == nil || !strings.Contains(err.Error(), "nizectl credentials set far TOKEN") {
			t.Errorf("without the credential: %v", err)
		}
		b = newBench(t, nil) // a pool that has not met the server yet: its own attempts accept nothing
		b.secret("system", "", "TOKEN", "", "first-value")
		b.register(cfg)
		b.good("far:echo", `{}`, `{}`)
		for _, h := range m.Headers() {
			if got := h.Get("Authorization"); got != "Bearer first-value" {
				t.Fatalf("a request had Authorization %q", got)
			}
			if got := h.Get("X-Plain"); got != "as it is" {
				t.Fatalf("a request had X-Plain %q", got)
			}
		}
		// The value is looked up for each call; one that includes a scheme is sent
		// unchanged.
		b.secret("system", "", "TOKEN", "", "Basic abc")
		b.good("far:echo", `{}`, `{}`)
		if !seen(m, "Authorization", "Basic abc") {
			t.Error("the new value was not sent")
		}
		if strings.Contains(b.log.String(), "first-value") {
			t.Error("the credential is in the log")
		}
	}
}

func TestCredentialIsBoundToItsHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	url := m.HTTP()
	b.put(withKey(url))
	b.secret("system", "", "TOKEN", "api.example.org", "s3cret-value")
	_, err := b.Sync(t.Context(), admin, "far")
	if err == nil || !strings.Contains(err.Error(), "is for host api.example.org") {
		t.Fatalf("error %v, want one about the host", err)
	}
	if strings.Contains(err.Error(), "s3cret-value") || len(m.Headers()) != 0 {
		t.Error("it got out")
	}
	// A credential without a host is bound to the first host it is sent to.
	b.secret("system", "", "TOKEN", "", "s3cret-value")
	b.sync(admin, "far")
	other := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	b.put(withKey(other.HTTP()))
	if _, err := b.Sync(t.Context(), admin, "far"); err == nil || len(other.Headers()) != 0 {
		t.Errorf("another host: error %v, %d requests", err, len(other.Headers()))
	}
}

func TestPersonalCredentialsNeverCross(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "whoami"}}, JSON: true})
	b.secret("system", "", "TOKEN", "", "shared-key")
	for _, u := range []string{"ann", "bob"} {
		b.secret("user", u, "TOKEN", "", u+"-key")
	}
	b.register(withKey(m.HTTP()))
	start := len(m.Headers())
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			user := []string{"ann", "bob", "cid"}[i%3]
			if _, err := b.Run(t.Context(), store.Caller{User: user}, b.call("far:whoami", `{}`), nil); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		})
	}
	wg.Wait()
	sessions := map[string]string{}
	counts := map[string]int{}
	for _, h := range m.Headers()[start:] {
		auth, id := h.Get("Authorization"), h.Get("Mcp-Session-Id")
		counts[auth]++
		if was, ok := sessions[id]; ok && was != auth && id != "" {
			t.Fatalf("session %s was used with %s and %s", id, was, auth)
		}
		sessions[id] = auth
	}
	for _, key := range []string{"shared-key", "ann-key", "bob-key"} {
		if counts["Bearer "+key] < 100 {
			t.Errorf("%s was sent %d times, want 100 and more", key, counts["Bearer "+key])
		}
	}
	if st := b.Status()[0]; st.Sessions != 3 {
		t.Errorf("%d sessions, want 3", st.Sessions)
	}
}

func TestCleanEnvironment(t *testing.T) {
	t.Setenv("NIZE_CANARY", "chirp")
	t.Setenv("LANG", "C.UTF-8")
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "env", Fault: mcptest.Env}}, Log: "the key is tok-987654321"})
	cfg := stdio(m)
	cfg.Env["KEY"] = store.Value{SecretKey: "KEY"}
	err := b.db.PutCredential(t.Context(), admin, store.Credential{
		CredentialKey: store.CredentialKey{Scope: "system", Service: "child", Name: "KEY"}, Secret: store.NewSecret("tok-987654321")})
	if err != nil {
		t.Fatal(err)
	}
	b.register(cfg)
	res, err := b.run(t.Context(), "child:env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(res.Text()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		if name == "KEY" && value != mask.Dots { // it was present, otherwise it would not be masked
			t.Errorf("KEY is %q", value)
		}
	}
	if got := strings.Join(names, " "); strings.Contains(got, "CANARY") || !strings.Contains(got, "PATH") || len(names) > 5 {
		t.Errorf("the child sees %s", got)
	}
	eventually(t, "its log", func() bool { return len(b.Logs("child")) > 0 })
	if logs := string(b.Logs("child")); strings.Contains(logs, "tok-987654321") || !strings.Contains(logs, "the key is ••••") {
		t.Errorf("logs: %s", logs)
	}
}

func TestBoundCredentialIsNotGivenToACommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{})
	cfg := stdio(m)
	cfg.Name = "far"
	cfg.Env["KEY"] = store.Value{SecretKey: "KEY"}
	b.secret("system", "", "KEY", "api.example.org", "x")
	b.put(cfg)
	if _, err := b.Sync(t.Context(), admin, "far"); err == nil || !strings.Contains(err.Error(), "not given to the command") {
		t.Errorf("error %v", err)
	}
}

func TestHeaderWithALineBreak(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.secret("system", "", "TOKEN", "", "a\r\nX-Evil: 1")
	b.put(withKey("http://127.0.0.1:1/"))
	if _, err := b.Sync(t.Context(), admin, "far"); err == nil || !strings.Contains(err.Error(), "line break") {
		t.Errorf("error %v", err)
	}
}

func TestCallersTokenIsNotForwarded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	b.register(remote(m.HTTP()))
	by := store.Caller{User: "ann", Token: "nize_token_id"}
	if _, err := b.Run(t.Context(), by, b.call("far:echo", `{}`), nil); err != nil {
		t.Fatal(err)
	}
	for _, h := range m.Headers() {
		if strings.Contains(fmt.Sprint(h), "nize_token_id") || h.Get("Authorization") != "" {
			t.Errorf("a request carried %v", h)
		}
	}
}

func TestModernWireHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Stateless: true, Tools: []mcptest.Tool{{Name: "where", Schema: []byte(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Deep-N"}}}}}`)}}})
	b.register(remote(m.HTTP()))
	args := `{"deep":{"n":42},"region":"日本"}`
	b.good("far:where", args, args) // the SDK's server checks each of them
	var last http.Header
	for _, h := range m.Headers() {
		if h.Get("Mcp-Method") == "tools/call" {
			last = h
		}
	}
	for name, want := range map[string]string{"Mcp-Name": "where", "Mcp-Param-Region": "=?base64?5pel5pys?=", "Mcp-Param-Deep-N": "42", "Mcp-Protocol-Version": wire.VersionModern} {
		if got := last.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestBadHeaderAnnotationRefusesTheTool(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":7}}}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
	} {
		if _, err := wire.BindingsOf([]byte(schema)); err == nil {
			t.Errorf("%s was taken", schema)
		}
	}
}

// A server that rejects a credential is distinguished from one that is down, and the owner
// of the credential is named.
func TestLoginLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	b.secret("system", "", "TOKEN", "", "shared-key")
	b.secret("user", "ann", "TOKEN", "", "ann-key")
	b.put(withKey(m.HTTP()))
	b.sync(admin, "far")
	lost := func() []string { return b.Status()[0].LoginLost }
	if got := lost(); got != nil {
		t.Fatalf("before: %q", got)
	}
	m.SetFault(mcptest.Unauthorized, -1)
	if _, err := b.run(t.Context(), "far:echo", `{}`); err == nil {
		t.Fatal("the call went through")
	}
	c := b.call("far:echo", `{}`)
	if _, err := b.Run(t.Context(), store.Caller{User: "ann"}, c, nil); err == nil {
		t.Fatal("ann's call went through")
	}
	eventually(t, "both logins are lost", func() bool { return slices.Equal(lost(), []string{"", "ann"}) })
	m.SetFault(mcptest.Unauthorized, 0)
	eventually(t, "the shared one is back", func() bool { return slices.Equal(lost(), []string{"ann"}) })
	m.SetFault(mcptest.Unavailable, -1)
	if _, err := b.run(t.Context(), "far:echo", `{}`); err == nil {
		t.Fatal("the call went through")
	}
	if got := lost(); slices.Contains(got, "") {
		t.Errorf("a server that is down: %q", got)
	}
}
