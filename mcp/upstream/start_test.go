package upstream

import (
	"context"
	"strings"
	"testing"
	"time"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// TestStartTime: what fetches its program first has time for it, and a record
// may say otherwise.
func TestStartTime(t *testing.T) {
	for command, want := range map[string]time.Duration{
		"/usr/bin/npx -y some-server": installTime, "/usr/bin/uvx x": installTime, "docker run -i x": installTime, "podman run x": installTime, "bunx x": installTime,
		"pipx run x": installTime, "pipx list": spawnTime, "npm exec x": installTime, "npm start": spawnTime, "uv run x": installTime, "node npx": spawnTime, "uv": spawnTime,
	} {
		words := strings.Fields(command)
		s := store.Server{Transport: store.Stdio, Command: words[0], Args: words[1:]}
		if got := startTime(s); got != want {
			t.Errorf("%s has %s, want %s", command, got, want)
		}
		s.StartTimeout = store.Duration(time.Minute)
		if got := startTime(s); got != time.Minute {
			t.Errorf("%s has %s where the record says a minute", command, got)
		}
	}
	if got := startTime(store.Server{Transport: store.HTTP, URL: "http://x"}); got != wire.ConnectTime {
		t.Errorf("a URL has %s", got)
	}
}

// TestSlowStart: whoever adds a server sees what it writes while it starts, and
// one that is ended for taking too long is not ended silently.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	slow := store.Server{Name: "slow", Transport: store.Stdio, Command: "/bin/sh", Args: []string{"-c", "echo fetching 1 of 9 >&2; exec sleep 60"}, StartTimeout: store.Duration(time.Second)}
	failed := make(chan error, 1) // for the probe's one error
	go func() {
		_, err := b.Probe(t.Context(), slow)
		failed <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := ""
	for seen == "" && ctx.Err() == nil {
		if lines, ok := b.FollowProbe(ctx, "slow"); ok {
			for chunk := range lines {
				seen += string(chunk) // until the probe ends
			}
		}
	}
	if !strings.Contains(seen, "fetching 1 of 9") {
		t.Errorf("who follows the probe sees %q", seen)
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "no answer within 1s; it was ended; its last words: fetching 1 of 9") {
		t.Errorf("the error is %v", err)
	}
	if _, ok := b.FollowProbe(ctx, "slow"); ok {
		t.Error("a probe that has ended is still under way")
	}
}

// TestCauseHints: the hint is for what the command says of itself.
func TestCauseHints(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"npm error 404 Not Found - GET https://registry.npmjs.org/none - Not found": "name of the package",
		"npm error notarget No matching version found for x@9.":                     "version of the package",
		"npm error network request failed, reason: getaddrinfo ENOTFOUND x":         "HTTPS_PROXY",
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock":        "may nized's user use it",
		"something else": "run the command by hand",
	} {
		b := newBench(t, nil)
		_, err := b.Probe(t.Context(), store.Server{Name: "x", Transport: store.Stdio, Command: "/bin/sh", Args: []string{"-c", "echo \"$0\" >&2; exit 1", said}})
		if err == nil || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", said, err, want)
		}
	}
}

// A start takes the stored tools from where they are in memory already.
func TestStartTakesWhatIsKnown(t *testing.T) {
	t.Parallel()
	db := newMemory()
	far := remote("http://127.0.0.1:1")
	far.Disabled = true
	if _, err := db.PutServer(t.Context(), admin, far, 0); err != nil {
		t.Fatal(err)
	}
	p := New(Options{Servers: db, Tools: db, Credentials: db, Gate: strictGate{}, Known: func(context.Context) (map[string][]store.Tool, error) {
		return map[string][]store.Tool{far.Name: {{Server: far.Name, Name: "echo", Accepted: "pin"}}, "gone": {{Server: "gone", Name: "echo"}}}, nil
	}})
	defer p.Close(t.Context())
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, ok := p.findServer(far.Name)
	if _, gone := p.findServer("gone"); !ok || gone || len(s.tools.byName) != 1 || s.tools.byName["echo"].accepted != "pin" {
		t.Errorf("after the start %s is there: %v, its tools %v, one that is gone: %v", far.Name, ok, s.tools, gone)
	}
}

// What a status counts follows each change of a server's tools.
func TestStatusCountsTools(t *testing.T) {
	t.Parallel()
	p := New(Options{Gate: strictGate{}})
	defer p.Close(t.Context())
	s := newServer(p, remote("http://127.0.0.1:1"), []store.Tool{{Name: "a", State: store.ToolAccepted}, {Name: "b", State: store.ToolQuarantined}})
	counted := func(tools, held int) {
		t.Helper()
		if st := s.status(nil); st.Tools != tools || st.Held != held {
			t.Errorf("%d tools, %d held; want %d and %d", st.Tools, st.Held, tools, held)
		}
	}
	set := func(name string, state store.ToolState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tools.set(store.Tool{Name: name, State: state})
	}
	counted(1, 1)
	set("b", store.ToolAccepted)
	set("b", store.ToolAccepted)
	counted(2, 0)
	set("a", store.ToolQuarantined)
	set("c", store.ToolQuarantined)
	counted(1, 2)
	s.setTools(nil)
	counted(0, 0)
}

// TestMissingProgram: what an interpreter that is not in nized's PATH is cured by.
func TestMissingProgram(t *testing.T) {
	for text, want := range map[string]string{
		"it exited with status 127: /usr/bin/env: ‘node’: No such file or directory": "node",
		"env: node: No such file or directory":                                       "node",
		"env: can't execute 'python3': No such file or directory":                    "python3",
		"sh: 1: node: not found":                                                     "node",
		"/bin/sh: line 1: node: command not found":                                   "node",
		"exec: node: not found":                                                      "node",
		"the node of the tree: not found":                                            "",
		"open node.json: No such file or directory":                                  "",
	} {
		got := causeHint(text)
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
