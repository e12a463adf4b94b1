package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

// replica is one of several real nized on one PostgreSQL.
type replica struct {
	*killable
	addr string
	env  []string
	said said
}

// said is what a process wrote to its log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// newReplica starts one with settings of the environment, and waits until it listens.
// Another one's key is its own, too, where like is one.
func newReplica(t *testing.T, database store.Secret, like *replica, env ...string) *replica {
	t.Helper()
	r := &replica{killable: &killable{t: t, path: nized.build(t), dir: t.TempDir()}, env: append([]string{"NIZE_DATABASE=" + database.Reveal(), "NIZE_ALERTS_DISK=0"}, env...)}
	r.log = &r.said
	if err := os.Chmod(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if like != nil {
		key, err := os.ReadFile(filepath.Join(like.dir, "nize.key"))
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, "nize.key"), key, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.run()
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", r.addr, &r.said)
		}
	})
	return r
}

// run starts its process, and waits until it listens.
func (r *replica) run() {
	r.t.Helper()
	at := filepath.Join(r.dir, "nized.addr")
	_ = os.Remove(at) // one that was killed left it
	r.cmd = exec.Command(r.path, "--data-dir", r.dir, "--listen", "127.0.0.1:0", "--socket", filepath.Join(r.dir, "s"), "--log-format", "text")
	r.cmd.Env, r.cmd.Stderr = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}, r.env...), r.log
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.Client = api.New(filepath.Join(r.dir, "s"))
	r.until("it listens", func() bool {
		addr, err := os.ReadFile(at)
		r.addr = strings.TrimSpace(string(addr))
		return err == nil
	})
}

// works waits until it is the one that works.
func (r *replica) works() {
	r.t.Helper()
	r.until("it works", func() bool { _, err := api.GetStatus.Call(r.t.Context(), r.Client, api.Empty{}); return err == nil })
}

// ask asks its listener as an MCP client of 2026-07-28 does, for a call where tool names
// one.
func (r *replica) ask(c *http.Client, scheme, method, path, token, tool string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, scheme+"://"+r.addr+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"`+tool+`","params":{}},"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_tool"} {
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// box is a server whose tool writes, with a token for it.
func box(t *testing.T, r *replica) (token string) {
	t.Helper()
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{{Name: "write", Description: "Write something down."}}})
	if _, err := api.AddServer.Call(t.Context(), r.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(t.Context(), r.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret.Reveal()
}

// Where every nized has TLS, one that stands by passes requests and streams on over TLS
// to one whose certificate holds; to any other it sends nothing, and says why.
func TestStandbyTLS(t *testing.T) {
	t.Parallel()
	database, certificates := postgrestest.New(t), t.TempDir()
	roots := x509.NewCertPool()
	withTLS := func(name string) []string {
		dir := filepath.Join(certificates, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := selfSigned(t, dir, name)
		pem, err := os.ReadFile(cert)
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			t.Fatal("a certificate", err)
		}
		return []string{"NIZE_TLS_CERT=" + cert, "NIZE_TLS_KEY=" + key}
	}
	active := newReplica(t, database, nil, withTLS("active")...)
	active.works()
	token := box(t, active)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	trusts := newReplica(t, database, active, append(withTLS("trusts"), "SSL_CERT_DIR="+filepath.Join(certificates, "active"))...)
	trusts.until("it can pass on", func() bool {
		return trusts.ask(client, "https", "GET", "/readyz", "", "").StatusCode == http.StatusOK
	})
	calls := trusts.ask(client, "https", "POST", "/mcp", token, "box:write")
	lines := bufio.NewReader(calls.Body)
	for line := ""; !strings.Contains(line, "notifications/progress"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%s: the stream says %q, %v", calls.Status, line, err)
		}
	}
	cards, err := api.ListApprovals.Call(t.Context(), active.Client, api.Empty{})
	if err != nil || len(cards.Items) != 1 {
		t.Fatalf("a call waits: %+v, %v", cards, err)
	}
	if _, err := api.DecideCall.Call(t.Context(), active.Client, api.DecideCallRequest{ID: cards.Items[0].Call, Verb: store.Approve, Digest: cards.Items[0].Digest}); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), `"id":1`) {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}

	const why = "the active node's certificate is not trusted here"
	doubts := newReplica(t, database, active, withTLS("doubts")...)
	doubts.until("it says why", func() bool {
		r := doubts.ask(client, "https", "GET", "/readyz", "", "")
		return r.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(text(t, r), why)
	})
	if r := doubts.ask(client, "https", "POST", "/mcp", token, "box:write"); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text(t, r), "does not trust") {
		t.Errorf("a call is %s", r.Status)
	}
	if _, err := api.GetStatus.Call(t.Context(), doubts.Client, api.Empty{}); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("nizectl beside it reads %v", err)
	}
	if said := doubts.said.String(); strings.Count(said, why) != 1 || !strings.Contains(said, "unknown authority") {
		t.Errorf("its log: %s", said)
	}
	if cards, err := api.ListApprovals.Call(t.Context(), active.Client, api.Empty{}); err != nil || len(cards.Items) != 0 {
		t.Errorf("these wait: %+v, %v", cards, err)
	}
}

// notified is systemd's end of NOTIFY_SOCKET.
type notified struct {
	*net.UnixConn
	t    *testing.T
	told string // the last it was told
}

func newNotified(t *testing.T) *notified {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &notified{UnixConn: c, t: t}
}

func (n *notified) env() string { return "NOTIFY_SOCKET=" + n.LocalAddr().String() }

// until reads on until it is told all of that at once.
func (n *notified) until(parts ...string) {
	n.t.Helper()
	if err := n.SetReadDeadline(time.Now().Add(patience)); err != nil {
		n.t.Fatal(err)
	}
	for b := make([]byte, 4096); ; {
		size, err := n.Read(b)
		if err != nil {
			n.t.Fatalf("systemd is not told %q: %v; it was told %s", parts, err, n.told)
		}
		n.told = string(b[:size])
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(n.told, part) }) {
			return
		}
	}
}

// stopped sends a signal and returns after how long it ended, by itself and well.
func (r *replica) stopped(s os.Signal) time.Duration {
	r.t.Helper()
	begun := time.Now()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("it ended with %v", err)
	}
	return time.Since(begun)
}

// What systemd is told of one that stands by: nothing that is not so. A stop ends it at
// once, and one of the nized that works is followed at once.
func TestStandbyUnderSystemd(t *testing.T) {
	t.Parallel()
	database := postgrestest.New(t)
	active := newReplica(t, database, nil)
	active.works()
	systemd := newNotified(t)
	second := newReplica(t, database, active, systemd.env())
	systemd.until("READY=1\n", "STATUS=this nized is a standby: ", "; it is at http://"+active.addr+"\n")

	// A newer one took over in between, or came to it with a restore.
	schema := func(by string) {
		t.Helper()
		if err := postgrestest.AskIn(database, `update nize_key set value = set_byte(value, 7, get_byte(value, 7) `+by+`) where bucket = 'meta' and key = 'schema'`); err != nil {
			t.Fatal(err)
		}
	}
	schema("+ 1")
	const why = "this nized could not take over: database was written by a newer nize: its schema is "
	systemd.until("STATUS=this nized is a standby: ", why, "; use the newer nized")
	if r := second.ask(http.DefaultClient, "http", "GET", "/readyz", "", ""); r.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(text(t, r), why) {
		t.Errorf("readyz: %s", r.Status)
	}
	if r := second.ask(http.DefaultClient, "http", "GET", "/", "", ""); r.StatusCode != http.StatusOK {
		t.Errorf("it passes on: %s", r.Status)
	}
	late := exec.Command(active.path, "--data-dir", second.dir+"-late", "--listen", "127.0.0.1:0")
	key, err := os.ReadFile(filepath.Join(active.dir, "nize.key"))
	if err != nil {
		t.Fatal(err)
	}
	late.Env = []string{"HOME=" + second.dir, "NIZE_DATABASE=" + database.Reveal(), "NIZE_MASTER_KEY=" + strings.TrimSpace(string(key))}
	out, _ := late.CombinedOutput() // the exit code is looked at below
	if late.ProcessState.ExitCode() != 1 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "use the newer nized") {
		t.Errorf("one that starts says %q, %v", out, late.ProcessState)
	}
	schema("- 1")
	systemd.until("STATUS=", "it is at http://"+active.addr+"\nWATCHDOG=1")

	t.Logf("a standby ended %v after it was told to", second.stopped(syscall.SIGTERM))
	second.run()
	systemd.until("READY=1\n")
	longest, answered, ended := time.Duration(0), time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		active.stopped(syscall.SIGTERM)
	}()
	for works := false; !works; {
		r := second.ask(http.DefaultClient, "http", "GET", "/", "", "")
		if r.StatusCode != http.StatusOK || !strings.Contains(text(t, r), "This is a nize daemon") {
			t.Errorf("in between: %s", r.Status)
		}
		longest, answered = max(longest, time.Since(answered)), time.Now()
		_, err := api.GetStatus.Call(t.Context(), second.Client, api.Empty{})
		works = err == nil
	}
	<-ended
	systemd.until("READY=1\nSTATUS=")
	t.Logf("the longest answer while the one that worked was stopped came after %v", longest)
}

// TestStandbyTaken: a nized that would stand by where somebody listens already says so in
// one line.
func TestStandbyTaken(t *testing.T) {
	t.Parallel()
	database := postgrestest.New(t)
	active := newReplica(t, database, nil)
	active.works()
	key, err := os.ReadFile(filepath.Join(active.dir, "nize.key"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	late := exec.Command(active.path, "--data-dir", filepath.Join(dir, "data"), "--socket", filepath.Join(dir, "s"), "--listen", active.addr, "--log-level", "error")
	late.Env = []string{"HOME=" + dir, "NIZE_DATABASE=" + database.Reveal(), "NIZE_MASTER_KEY=" + strings.TrimSpace(string(key))}
	out, _ := late.CombinedOutput() // the exit code is looked at below
	if late.ProcessState.ExitCode() != 5 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), active.addr+" is already in use") {
		t.Errorf("it says %q, %v", out, late.ProcessState)
	}
}

// Whoever follows something at one that stands by, when the one that works is killed,
// goes on at another: nothing is lost, and nothing comes twice.
func TestStandbyStreams(t *testing.T) {
	t.Parallel()
	const public = "https://nize.example.com" // where a proxy would be, which has TLS
	database := postgrestest.New(t)
	env := []string{"NIZE_PUBLIC_URL=" + public, "NIZE_EGRESS_ALLOW=127.0.0.1", "NIZE_BUDGETS_USER_DAILY=0"}
	first := newReplica(t, database, nil, env...)
	first.works()
	at, next := newReplica(t, database, first, env...), newReplica(t, database, first, env...)
	for _, r := range []*replica{at, next} {
		r.until("it stands by", func() bool {
			return r.ask(http.DefaultClient, "http", "GET", "/readyz", "", "").StatusCode == http.StatusOK
		})
	}
	var asked atomic.Pointer[replica] // by the proxy
	asked.Store(at)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, asked.Load().addr)
	}
	proxy := &http.Transport{DisableKeepAlives: true, DialTLSContext: dial}

	p := &programs{t: t, url: public, http: &http.Client{Transport: proxy}, release: make(chan struct{}), gone: make(chan struct{}, 16), said: make(chan struct{}, 16)} // more than wait
	model := httptest.NewServer(http.HandlerFunc(p.model))
	defer model.Close()
	defer model.CloseClientConnections()
	ctx := t.Context()
	if _, err := api.AddProvider.Call(ctx, first.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: model.URL + "/v1", Key: api.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddProject.Call(ctx, first.Client, api.AddProjectRequest{Name: "sales"}); err != nil {
		t.Fatal(err)
	}
	key, err := api.CreateProjectKey.Call(ctx, first.Client, api.CreateProjectKeyRequest{Project: "sales"})
	if err != nil {
		t.Fatal(err)
	}
	p.key = key.Secret.Reveal()
	token := box(t, first)

	// The page, with an answer that is whole and one that is under way.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, public, &http.Client{Transport: proxy, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if p := b.signIn(first.Client, ""); p.status != http.StatusSeeOther {
		t.Fatalf("signing in: %d %s", p.status, p.body)
	}
	var thread store.Thread
	if err := json.Unmarshal([]byte(b.ask("chat/threads", "{}").body), &thread); err != nil {
		t.Fatal(err)
	}
	if p := b.patchJSON("chat/threads/"+thread.ID, `{"model":"parrots/parrot"}`); p.status != http.StatusOK {
		t.Fatalf("the model: %d %s", p.status, p.body)
	}
	say := func(key, text string) {
		if p := b.ask("chat/threads/"+thread.ID+"/messages", `{"key":"`+key+`","text":"`+text+`"}`); p.status != http.StatusOK {
			t.Fatalf("a message: %d %s", p.status, p.body)
		}
	}
	answered := func(text string) func(pageEvent) bool {
		return func(e pageEvent) bool {
			return e.name == "message" && e.data.Kind == "text" && e.data.Text == text && e.data.Final
		}
	}
	_, events := b.follow(ctx, thread.ID)
	say("1", "hello")
	until(t, events, "the first answer", answered("hello"))
	say("2", "wait")
	within(t, "the second answer", p.said)

	// A round, and a session of MCP 2025-11-25.
	round, event, _ := p.follow("POST", "/llm-exec/round/stream", "", asking("wait"))
	begun, ok := event()
	if !ok || begun.delta() != "one " {
		t.Fatalf("the round: %+v", begun)
	}
	session := ""
	mcp := func(method, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, public+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		resp, err := p.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	session = mcp("POST", hello).Header.Get("Mcp-Session-Id")
	asked.Store(next) // any of them has the session
	if r := mcp("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.StatusCode != http.StatusAccepted {
		t.Fatalf("the session elsewhere: %s %s", r.Status, text(t, r))
	}
	listening := mcp("GET", "")
	if listening.StatusCode != http.StatusOK {
		t.Fatalf("listening: %s %s", listening.Status, text(t, listening))
	}

	first.kill()
	for range events {
	}
	for e, ok := event(); ok; e, ok = event() {
		t.Errorf("after the kill the round tells %+v", e)
	}
	_, _ = io.Copy(io.Discard, listening.Body) // it is cut
	for range 2 {
		within(t, "the end of what the model was asked", p.gone)
	}
	at.until("another one works", func() bool {
		return slices.ContainsFunc([]*replica{at, next}, func(r *replica) bool {
			_, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
			return err == nil
		})
	})
	first.run() // stands by, and is another than was asked
	first.until("it is ready", func() bool {
		return first.ask(http.DefaultClient, "http", "GET", "/readyz", "", "").StatusCode == http.StatusOK
	})
	asked.Store(first)

	_, events = b.follow(ctx, thread.ID)
	all := until(t, events, "the conversation", func(e pageEvent) bool { return e.name == "thread" })
	within(t, "the second answer again", p.said)
	p.release <- struct{}{}
	until(t, events, "the second answer", answered("one two"))
	say("3", "bye")
	until(t, events, "the third answer", answered("bye"))
	told := ""
	_, events = b.follow(ctx, thread.ID)
	for _, m := range until(t, events, "the conversation", func(e pageEvent) bool { return e.name == "thread" }).data.Messages {
		told += m.Kind + " " + m.Text + ", "
	}
	if told != "person hello, text hello, person wait, text one two, person bye, text bye, " || len(all.data.Messages) < 3 {
		t.Errorf("the conversation is %s and was %+v", told, all.data.Messages)
	}

	_, event, _ = p.follow("GET", "/llm-exec/rounds/"+round+"/events", begun.id, nil)
	stopped, _ := event()
	if stopped.name != "error" || !strings.Contains(stopped.data, "continue it by its round_id") {
		t.Errorf("the round that stopped: %+v", stopped)
	}
	_, event, _ = p.follow("POST", "/llm-exec/round/stream", "", map[string]any{"round_id": round})
	p.release <- struct{}{}
	said, seen := "", []string{begun.id}
	for e, ok := event(); ok; e, ok = event() {
		if slices.Contains(seen, e.id) {
			t.Errorf("%s came twice", e.id)
		}
		said, seen = said+e.delta(), append(seen, e.id)
	}
	if said != "one two" {
		t.Errorf("the round says %q", said)
	}

	if r := mcp("GET", ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("the session of the one that was killed: %s", r.Status)
	}
	session = ""
	if session = mcp("POST", hello).Header.Get("Mcp-Session-Id"); session == "" || mcp("GET", "").StatusCode != http.StatusOK {
		t.Error("there is no other session")
	}
	for _, path := range []string{"/login", "/app/", "/"} {
		if got := text(t, first.ask(http.DefaultClient, "http", "GET", path, "", "")); got != "this nized is a standby, and its own address is not for signing in: use "+public+"\n" {
			t.Errorf("%s by its own address: %q", path, got)
		}
	}
}
