package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// TestCrowdAtItsQuotas: while a crowd of members has all that it may have (unsent
// files, tokens, pages that follow, calls that wait), another member keeps her
// picture, gets a page, a token and an approval, and her calls run. Before and
// meanwhile they take about as much of the processor, which a busy machine changes
// less than the time that they take; both are logged.
func TestCrowdAtItsQuotas(t *testing.T) {
	const tokens, waiting, files = 6, 5, 1
	members := 50
	if testing.Short() { // the race detector makes each of them slow
		members = 8
	}
	r, ctx := open(t, t.TempDir(), map[string]string{"NIZE_EGRESS_ALLOW": "127.0.0.1"}), t.Context()
	echo := func(_ context.Context, args json.RawMessage) json.RawMessage { return mcptest.Text(string(args)) }
	up := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "look", Do: echo}, {Name: "change", Do: echo}}})
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: store.Server{Name: "box", Transport: store.HTTP, URL: up.HTTP(), Visibility: []string{"all"}}}))
	for key, value := range map[string]string{
		"limits.user.files": "1048576", "limits.images.stored": "5242880", "limits.user.tokens": fmt.Sprint(tokens),
		"limits.user.streams": "2", "limits.streams": "101", "approvals.max_pending": fmt.Sprint(waiting),
		"approvals.mode": "whitelist", "approvals.list": "box:change",
	} {
		must(api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: key, Value: value}))
	}
	// member is one with a page, a token for the API and one for MCP.
	type member struct {
		*browser
		api, mcp string
		thread   string
	}
	enter := func(n int) *member {
		t.Helper()
		name := fmt.Sprintf("m%02d", n)
		must(api.AddUser.Call(ctx, r.Client, api.AddUserRequest{Name: name}))
		m := &member{browser: newBrowser(t, r)}
		dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}} // each from an address of their own
		way := &http.Transport{DialContext: dial.DialContext}
		t.Cleanup(way.CloseIdleConnections)
		m.Transport = way
		m.signIn(r.Client, name)
		for audience, to := range map[string]*string{store.ForAPI: &m.api, store.ForMCP: &m.mcp} {
			made, err := api.CreateToken.Call(ctx, r.Client, api.CreateTokenRequest{Name: "own-" + audience, User: name, Audience: audience})
			must(nil, err)
			*to = made.Secret.Reveal()
		}
		var th store.Thread
		must(nil, json.Unmarshal([]byte(m.ask("chat/threads", "{}").body), &th))
		m.thread = th.ID
		return m
	}
	upload := func(m *member, size int) page {
		return m.post("/app/v1/chat/threads/"+m.thread+"/files", "application/octet-stream", strings.Repeat("x", size), "Sec-Fetch-Site", "same-origin")
	}
	call := func(m *member, tool string) page {
		body, headers := rpcCall("execute_tool", `{"tool_id":"box:`+tool+`","params":{"text":"hello"}}`)
		return m.post("/mcp", inJSON, body, append(headers, "Authorization", "Bearer "+m.mcp)...)
	}
	token := func(m *member, name string) page {
		return m.post("/auth/mcp-tokens", inJSON, `{"name":"`+name+`"}`, "Authorization", "Bearer "+m.api)
	}
	// measure makes calls one after the other and returns the p95 of their times, and
	// the processor time that one took of this process.
	measure := func(m *member) (p95, cpu time.Duration) {
		t.Helper()
		begin := processorTime(t)
		var took []time.Duration
		for range 200 {
			begin := time.Now()
			if p := call(m, "look"); p.status != http.StatusOK || !strings.Contains(p.body, "hello") {
				t.Fatalf("a call: %d %s", p.status, p.body)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		return took[len(took)*95/100], (processorTime(t) - begin) / time.Duration(len(took))
	}

	ann := enter(members)
	var put struct{ ID string }
	p := upload(ann, 200<<10)
	must(nil, json.Unmarshal([]byte(p.body), &put))
	measure(ann) // warm
	before, cpuBefore := measure(ann)

	crowd := make([]*member, members)
	for i := range crowd {
		crowd[i] = enter(i)
	}
	leave, left := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer left()
	refused := map[string]int{}
	count := func(what string, p page, setting string, ok ...int) {
		t.Helper()
		switch {
		case slices.Contains(ok, p.status) && !strings.Contains(p.body, setting):
		case strings.Contains(p.body, setting):
			refused[what]++
		default:
			t.Errorf("%s: %d %.300s", what, p.status, p.body)
		}
	}
	for _, m := range crowd {
		for range files {
			count("files", upload(m, 500<<10), "limits.images.stored", http.StatusOK)
		}
		count("large files", upload(m, 2<<20), "limits.user.files")
		for n := range tokens {
			count("tokens", token(m, fmt.Sprint("t", n)), "limits.user.tokens", http.StatusOK)
		}
		for range 2 {
			if status, _ := m.follow(leave, ""); status != http.StatusOK {
				t.Errorf("a page: %d", status)
			}
		}
		count("pages", m.get("/app/v1/events"), "limits.user.streams")
		for n := range waiting { // each another call: the same one again would join the first
			calls.Go(func() {
				body, headers := rpcCall("execute_tool", fmt.Sprintf(`{"tool_id":"box:change","params":{"text":"hello %d"}}`, n))
				req, err := http.NewRequestWithContext(leave, http.MethodPost, m.base+"/mcp", strings.NewReader(body))
				if err != nil {
					return
				}
				req.Header.Set("Content-Type", inJSON)
				req.Header.Set("Authorization", "Bearer "+m.mcp)
				for i := 0; i < len(headers); i += 2 {
					req.Header.Set(headers[i], headers[i+1])
				}
				if res, err := m.Do(req); err == nil {
					res.Body.Close()
				}
			})
		}
	}
	followed, stop := context.WithCancel(ctx)
	defer stop()
	n := 0
	for e, err := range api.ReadAudit.Call(followed, r.Client, api.AuditRequest{Kind: "call.pending", Follow: true, Limit: 1000}) {
		must(nil, err)
		if e.Kind == "call.pending" {
			n++
		}
		if n == members*waiting {
			break
		}
	}
	for _, m := range crowd {
		count("waiting", call(m, "change"), "approvals.max_pending")
	}
	want := map[string]int{"large files": members, "tokens": members * 2, "pages": members, "waiting": members}
	for what, n := range want {
		if refused[what] != n {
			t.Errorf("%s: %d were refused, want %d (all: %v)", what, refused[what], n, refused)
		}
	}

	// Ann.
	during, cpu := measure(ann)
	if cpu > 4*cpuBefore {
		t.Errorf("one of her calls took %v of the processor before, and %v now", cpuBefore, cpu)
	}
	if p := ann.ask("chat/threads/"+ann.thread+"/messages", `{"key":"k","text":"see","files":[{"id":"`+put.ID+`","name":"a.txt"}]}`); p.status != http.StatusOK {
		t.Errorf("a message with her file: %d %s", p.status, p.body)
	}
	if p := upload(ann, 100<<10); p.status != http.StatusOK {
		t.Errorf("another file: %d %s", p.status, p.body)
	}
	if p := token(ann, "more"); p.status != http.StatusOK {
		t.Errorf("a token: %d %s", p.status, p.body)
	}
	if status, _ := ann.follow(leave, ""); status != http.StatusOK {
		t.Errorf("a page: %d", status)
	}
	st, err := api.GetStatus.Call(ctx, r.Client, api.Empty{})
	must(nil, err)
	t.Logf("p95 of a call: %v before, %v with %d members at their quotas (%.2f times); processor time %v, %v; refused: %v; %d MiB resident, clients and server of the test included", before, during, members, float64(during)/float64(before), cpuBefore, cpu, refused, st.Process.ResidentBytes>>20)
}

// processorTime is what this process has used of the processor.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
