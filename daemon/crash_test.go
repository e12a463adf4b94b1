package daemon_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// killable is a real nized process on a data directory that outlives it.
type killable struct {
	*api.Client
	t     *testing.T
	path  string
	dir   string
	cmd   *exec.Cmd
	level string    // of its log; "" is error
	log   io.Writer // nil is the test's standard error
}

func newKillable(t *testing.T) *killable {
	t.Helper()
	k := &killable{t: t, path: nized.build(t), dir: t.TempDir()}
	if err := os.Chmod(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.kill) // also if it doesn't start
	k.start()
	return k
}

func (k *killable) start() {
	k.t.Helper()
	k.cmd = exec.Command(k.path, "--data-dir", k.dir, "--listen", "127.0.0.1:0", "--socket", filepath.Join(k.dir, "s"), "--log-level", cmp.Or(k.level, "error"))
	k.cmd.Env = append(os.Environ(), "NIZE_ALERTS_DISK=0") // this machine's disk is no incident of the test
	if k.cmd.Stderr = k.log; k.log == nil {
		k.cmd.Stderr = os.Stderr
	}
	endWithTest(k.cmd)
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.Client = api.New(filepath.Join(k.dir, "s"))
	k.until("nized is ready", func() bool { _, err := api.GetStatus.Call(k.t.Context(), k.Client, api.Empty{}); return err == nil })
}

// kill ends the process as a power cut would.
func (k *killable) kill() {
	if k.Client != nil {
		k.Close()
	}
	if k.cmd == nil || k.cmd.Process == nil {
		return
	}
	_ = k.cmd.Process.Kill() // it may have ended
	_ = k.cmd.Wait()         // it was killed
}

// patience is more than the longest pause between two tries to show something.
const patience = 2 * time.Minute

// until asks again and again until it is told yes.
func (k *killable) until(what string, ask func() bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// execute asks as an MCP client would and returns when the answer, or the end
// of the daemon, comes.
func (k *killable) execute(token, tool, args string) string {
	return k.executeTold(token, tool, args, nil)
}

// executeTold gives each line of the answer to told as it comes, among them the
// news that the call waits; nil asks for no news.
func (k *killable) executeTold(token, tool, args string, told func(line string)) string {
	news := ""
	if told != nil {
		news = `"progressToken":"p",`
	}
	s, err := api.GetStatus.Call(context.Background(), k.Client, api.Empty{})
	if err != nil {
		return err.Error()
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"` + tool + `","params":` + args + `},"_meta":{` + news + `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest("POST", "http://"+s.Listen+"/mcp", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_tool"} {
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var all strings.Builder
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if told != nil {
			told(line)
		}
		if err == io.EOF {
			return all.String()
		}
		if err != nil {
			return err.Error()
		}
	}
}

// Pulling the plug while a call waits and while one runs: what waits runs
// once when it is approved, from two places at the same time; what ran is
// "outcome unknown" and never runs again.
func TestKilled(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	began, hold := make(chan struct{}, 4), make(chan struct{})
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "write", Description: "Write something down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			runs.Add(1)
			return json.RawMessage(`{"content":[{"type":"text","text":"written"}]}`)
		}},
		{Name: "slow", Description: "Take long.", Annotations: &sdk.ToolAnnotations{}, Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
			runs.Add(1)
			began <- struct{}{}
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return json.RawMessage(`{"content":[]}`)
		}},
	}})
	defer close(hold)
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	defer clients.Wait()

	clients.Go(func() { k.execute(made.Secret.Reveal(), "box:write", `{}`) })
	var card store.Card
	k.until("a call waits", func() bool {
		cards, err := api.ListApprovals.Call(ctx, k.Client, api.Empty{})
		if err != nil || len(cards.Items) != 1 {
			return false
		}
		card = cards.Items[0]
		return true
	})
	k.kill()
	clients.Wait()
	k.start()
	var presses sync.WaitGroup
	var won, late atomic.Int64
	for range 8 {
		presses.Go(func() {
			_, err := api.DecideCall.Call(ctx, k.Client, api.DecideCallRequest{ID: card.Call, Verb: store.Approve, Digest: card.Digest})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, store.ErrDecided):
				late.Add(1)
			default:
				t.Errorf("press: %v", err)
			}
		})
	}
	presses.Wait()
	if won.Load() != 1 || late.Load() != 7 {
		t.Errorf("%d presses won and %d were late, want 1 and 7", won.Load(), late.Load())
	}
	k.until("the call is done", func() bool {
		c, err := api.GetCall.Call(ctx, k.Client, api.CallRequest{ID: card.Call, Reason: "the test looks"})
		return err == nil && c.State == store.Done
	})
	if runs.Load() != 1 {
		t.Errorf("%d runs, want 1", runs.Load())
	}

	clients.Go(func() { _, _ = api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "box:slow"}) }) // the daemon is killed meanwhile
	<-began
	k.kill()
	clients.Wait()
	k.start()
	var lost string
	k.until("the call is lost", func() bool {
		for e, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Outcome: store.Lost}) {
			if err != nil {
				return false
			}
			lost = e.Subject
		}
		return lost != ""
	})
	if c, err := api.GetCall.Call(ctx, k.Client, api.CallRequest{ID: lost, Reason: "the test looks"}); err != nil || c.State != store.Lost || c.Tool != "slow" {
		t.Errorf("the call that ran is %+v (%v)", c, err)
	}
	if _, err := api.DecideCall.Call(ctx, k.Client, api.DecideCallRequest{ID: lost, Verb: store.Approve}); !errors.Is(err, store.ErrDecided) {
		t.Errorf("approving a lost call: %v", err)
	}
	k.kill()
	k.start()
	if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
	if runs.Load() != 2 {
		t.Errorf("%d runs, want 2: a lost call must not run again", runs.Load())
	}
}

// A killed daemon leaves no child behind.
func TestKilledChildren(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	path := toolbox(t)
	if _, err := api.AddServer.Call(t.Context(), k.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: path, Args: []string{"--notes", filepath.Join(t.TempDir(), "n.json")}}}); err != nil {
		t.Fatal(err)
	}
	if !runsProgram(t, path) {
		t.Skip("this system does not tell what runs")
	}
	k.kill()
	k.until("the child has ended", func() bool { return !runsProgram(t, path) })
}

// runsProgram says whether a process of that program is there.
func runsProgram(t *testing.T, path string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if at, err := os.Readlink(l); err == nil && at == path {
			return true
		}
	}
	return false
}

// A stop lets a call that runs finish and tells its caller; one that waits for
// a person is cancelled; the program ends with 0.
func TestStopped(t *testing.T) {
	t.Parallel()
	began, hold := make(chan struct{}, 1), make(chan struct{})
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "write", Description: "Write something down."},
		{Name: "slow", Description: "Take long.", Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
			began <- struct{}{}
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return json.RawMessage(`{"content":[{"type":"text","text":"took long"}]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.PutSetting.Call(ctx, k.Client, api.PutSettingRequest{Key: "drain.grace", Value: "10m"}); err != nil { // the call ends when the test says so
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	waited, ran := make(chan string, 1), make(chan string, 1)
	go func() { waited <- k.execute(made.Secret.Reveal(), "box:write", `{}`) }()
	k.until("a call waits", func() bool {
		cards, err := api.ListApprovals.Call(ctx, k.Client, api.Empty{})
		return err == nil && len(cards.Items) == 1
	})
	go func() {
		c, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "box:slow"})
		if err != nil {
			ran <- err.Error()
			return
		}
		ran <- string(c.State) + " " + c.Result.Text()
	}()
	<-began
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if answer := <-waited; !strings.Contains(answer, "nized is stopping") {
		t.Errorf("the caller who waited was told %s", answer)
	}
	close(hold)
	if answer := <-ran; answer != "done took long" {
		t.Errorf("the caller of the call that ran was told %s", answer)
	}
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("nized ended with %v", err)
	}
}

// TestGraceIsKept: a call that does not end within the grace time of a stop is
// cut, and its caller is told so over a connection that still stands.
func TestGraceIsKept(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 2)
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "endless", Description: "Never ends.", Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
			began <- struct{}{}
			<-ctx.Done()
			return json.RawMessage(`{"content":[]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.PutSetting.Call(ctx, k.Client, api.PutSettingRequest{Key: "drain.grace", Value: "3s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP(), Approval: store.ApproveNever}}); err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateToken.Call(ctx, k.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 2)
	go func() { answers <- k.execute(made.Secret.Reveal(), "box:endless", `{}`) }()
	go func() {
		c, err := api.CallTool.Call(ctx, k.Client, api.CallToolRequest{ID: "box:endless"})
		if err != nil {
			answers <- err.Error()
			return
		}
		answers <- string(c.State) + " " + c.Reason.String() + " " + c.Result.Text()
	}()
	<-began
	<-began
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if answer := <-answers; !strings.Contains(answer, "nized is stopping, and the call was cut off") {
			t.Errorf("a caller was told %s", answer)
		}
	}
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("nized ended with %v", err)
	}
}
