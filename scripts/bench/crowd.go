package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	crowdMembers  = 50
	crowdTokens   = 50                     // each: limits.user.tokens
	crowdWaiting  = 10                     // each: approvals.max_pending
	crowdPages    = 8                      // each: limits.user.streams
	crowdSessions = 100                    // each, of one token: limits.token.sessions
	crowdPriority = 10                     // the nice value of the process of the crowd
	crowdPause    = 100 * time.Millisecond // of the measured member between calls, who uses less than a 51st of the CPU
	crowdServer   = "shared"
)

// crowdEnv makes this program a crowd of members, so that its CPU is separate and has less
// priority; its value is a [crowdSpec] in JSON.
const crowdEnv = "NIZE_BENCH_CROWD"

type crowdSpec struct {
	Dir  string `json:"dir"`
	Addr string `json:"addr"`
}

// Commands to the crowd, one per line; it answers each with a [crowded].
const (
	crowdHold  = "hold"  // create and hold as much as the quotas allow
	crowdPush  = "push"  // until the next line, try for more, one request of each member at a time
	crowdCalls = "calls" // until the next line, call a tool that reads, one call of each member at a time
	crowdRest  = "rest"  // hold, and request nothing
)

// crowded is what the crowd did since its last answer.
type crowded struct {
	Held     map[string]int64 `json:"held,omitempty"`
	Refused  map[string]int64 `json:"refused,omitempty"`
	Requests int64            `json:"requests"`
}

// crowded measures the calls of one member while 50 others are at their quotas: they hold
// what they may hold, request more, and call tools all the time.
func (b *bench) crowded(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", make([]batch, goodServers+1)...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "crowd")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.register(ctx, up, 0, goodServers); err != nil {
		return err
	}
	everybody := []string{"all"}
	for i := range goodServers {
		if _, err := api.PatchServer.Call(ctx, d.api, api.PatchServerRequest{Name: fmt.Sprintf("system-%d", i), Visibility: &everybody}); err != nil {
			return fmt.Errorf("sharing a server: %w", err)
		}
	}
	if _, err := api.AddServer.Call(ctx, d.api, api.AddServerRequest{Server: store.Server{Name: crowdServer, Transport: store.HTTP, URL: up.url(goodServers), TrustAnnotations: true, Visibility: everybody, MaxConcurrency: crowdMembers}}); err != nil {
		return fmt.Errorf("adding a server: %w", err)
	}
	for key, value := range map[string]string{"limits.user.files": fmt.Sprint(1 << 20), "limits.images.stored": fmt.Sprint(40 << 20)} {
		if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			return fmt.Errorf("setting %s: %w", key, err)
		}
	}
	if _, err := api.AddUser.Call(ctx, d.api, api.AddUserRequest{Name: "ann"}); err != nil {
		return fmt.Errorf("adding a person: %w", err)
	}
	made, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "bench", User: "ann"})
	if err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	call, _, end, err := d.calmCalls(ctx, up, made.Secret.Reveal())
	if err != nil {
		return err
	}
	defer end()
	calm, err := d.paced(ctx, call, calmTime, 1, crowdPause)
	if err != nil {
		return err
	}
	crowd, err := startCrowd(ctx, crowdSpec{d.dir, d.addr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.stop()) }()
	for _, p := range []struct {
		ask, what string
		floor     float64 // members that compute all the time compete for the processor
	}{
		{crowdHold, "hold all that they may", 2}, {crowdPush, "ask for more, one request each at a time", 0}, {crowdCalls, "call a tool all the time, one call each at a time", 0}, {crowdRest, "have stopped", 0},
	} {
		_, err := crowd.ask(p.ask)
		if err != nil {
			return err
		}
		if p.ask == crowdHold {
			if _, err := d.underLoad(ctx, call, calmTime/3); err != nil {
				return err
			}
		}
		begin := time.Now()
		now, err := d.paced(ctx, call, floodTime, 1, crowdPause)
		if err != nil {
			return err
		}
		did, err := crowd.ask(crowdRest)
		if err != nil {
			return err
		}
		reference := fmt.Sprintf("calm %s ms (direct %s ms, now %s ms), nized's CPU %s cores", number(millis(calm.p95)), number(millis(calm.direct)), number(millis(now.direct)), number(now.cores))
		if did.Requests > 0 {
			reference += fmt.Sprintf("; %.0f requests/s of theirs", float64(did.Requests)/time.Since(begin).Seconds())
		}
		b.table.add(row{what: fmt.Sprintf("calls of a member while %d others %s, p95 (p50 %s ms)", crowdMembers, p.what, number(millis(now.p50))), value: millis(now.p95), unit: "ms",
			reference: reference, ratio: float64(now.p95) / float64(calm.p95), floor: p.floor, counted: true})
		held := ""
		if text, err := json.Marshal(did.Held); err == nil && len(did.Held) > 0 {
			held = "held " + string(text)
		}
		if text, err := json.Marshal(did.Refused); err == nil && len(did.Refused) > 0 {
			held = strings.TrimPrefix(held+", refused "+string(text), ", ")
		}
		b.table.add(row{what: "... nized's own memory, at most", value: now.memory, unit: "MB", reference: held, floor: 400, counted: true, missing: noProc(now.memory)})
	}
	return nil
}

// crowdProcess is a running crowd.
type crowdProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startCrowd(ctx context.Context, spec crowdSpec) (*crowdProcess, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the crowd's addresses: %w", err)
	}
	cmd := exec.CommandContext(ctx, own)
	cmd.Env = append(os.Environ(), crowdEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the crowd: %w", err)
	}
	return &crowdProcess{cmd, in, json.NewDecoder(out)}, nil
}

func (c *crowdProcess) ask(what string) (did crowded, err error) {
	if _, err := fmt.Fprintln(c.in, what); err != nil {
		return did, fmt.Errorf("asking the crowd: %w", err)
	}
	if err := c.out.Decode(&did); err != nil {
		return did, fmt.Errorf("reading what the crowd did: %w", err)
	}
	return did, nil
}

func (c *crowdProcess) stop() error {
	_ = c.in.Close() // which ends it
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the crowd ended: %w", err)
	}
	return nil
}

// member is a member of the crowd, with a page, a token for the API and one for MCP.
type member struct {
	*visitor
	api, mcp string
}

// mob is the crowd in its own process.
type mob struct {
	d        *nized
	members  []*member
	mu       sync.Mutex
	held     map[string]int64
	refused  map[string]int64
	requests atomic.Int64
	holding  context.Context // ends everything that is held open
	open     sync.WaitGroup
}

// serveCrowd executes the commands of its input until the input ends.
func serveCrowd(text string) error {
	var spec crowdSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("reading %s: %w", crowdEnv, err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, crowdPriority); err != nil {
		return fmt.Errorf("lowering the crowd's priority: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	m := &mob{d: &nized{dir: spec.Dir, addr: spec.Addr, api: api.New(api.SocketIn(spec.Dir))}, holding: ctx}
	defer m.open.Wait()
	defer end()
	rest := func() {}
	defer func() { rest() }()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		rest()
		did := m.take()
		rest = func() {}
		switch in.Text() {
		case crowdHold:
			if err := m.hold(ctx); err != nil {
				return err
			}
		case crowdPush:
			rest = m.keep(ctx, m.push)
		case crowdCalls:
			rest = m.keep(ctx, func(ctx context.Context, one *member, n int) error { return m.read(ctx, one, n) })
		}
		if err := json.NewEncoder(os.Stdout).Encode(did); err != nil {
			return fmt.Errorf("telling what the crowd did: %w", err)
		}
	}
	return nil
}

// take returns what was done since the previous call.
func (m *mob) take() crowded {
	m.mu.Lock()
	defer m.mu.Unlock()
	did := crowded{m.held, m.refused, m.requests.Swap(0)}
	m.held, m.refused = map[string]int64{}, map[string]int64{}
	return did
}

// note counts the response to a request for one more of something: created or refused by
// the quota; any other response is an error.
func (m *mob) note(what, quota string, status int, body string) error {
	m.requests.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.Contains(body, quota):
		m.refused[what]++
	case status < 300:
		m.held[what]++
	default:
		return fmt.Errorf("%s: %d %.300s", what, status, body)
	}
	return nil
}

// keep makes each member repeat do until the returned function is called.
func (m *mob) keep(ctx context.Context, do func(context.Context, *member, int) error) (rest func()) {
	ctx, end := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for _, one := range m.members {
		busy.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(ctx, one, n); err != nil && ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "bench: the crowd: %v\n", err)
					return
				}
			}
		})
	}
	return func() { end(); busy.Wait() }
}

// hold creates the members and lets each of them use its quotas completely.
func (m *mob) hold(ctx context.Context) error {
	for n := range crowdMembers {
		one, err := m.enter(ctx, n)
		if err != nil {
			return err
		}
		m.members = append(m.members, one)
	}
	errs := make(chan error, crowdMembers) // one for each
	var holding sync.WaitGroup
	slots := make(chan struct{}, 8) // more concurrent new connections would look like a flood
	for _, one := range m.members {
		holding.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for range crowdPages {
				m.open.Go(func() { _ = m.page(m.holding, one) })
			}
			for n := range crowdWaiting {
				m.open.Go(func() { _ = m.write(m.holding, one, n) })
			}
			for n := range crowdTokens {
				if err := m.token(ctx, one, n); err != nil {
					errs <- err
					return
				}
			}
			for range 2 {
				if err := m.upload(ctx, one, 500<<10); err != nil {
					errs <- err
					return
				}
			}
			for range crowdSessions {
				if err := m.session(ctx, one); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	holding.Wait()
	close(errs)
	for err := range errs {
		return err
	}
	for { // until their calls wait
		st, err := api.GetStatus.Call(ctx, m.d.api, api.Empty{})
		if err != nil {
			return fmt.Errorf("asking for the status: %w", err)
		}
		if st.Pending >= crowdMembers*crowdWaiting {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *mob) enter(ctx context.Context, n int) (*member, error) {
	name := fmt.Sprintf("m%02d", n)
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}} // each from an address of their own
	v, err := m.d.visitorBy(ctx, name, &http.Transport{DialContext: dial.DialContext, MaxIdleConnsPerHost: 4})
	if err != nil {
		return nil, err
	}
	one := &member{visitor: v}
	for audience, to := range map[string]*string{store.ForAPI: &one.api, store.ForMCP: &one.mcp} {
		made, err := api.CreateToken.Call(ctx, m.d.api, api.CreateTokenRequest{Name: "own-" + audience, User: name, Audience: audience})
		if err != nil {
			return nil, fmt.Errorf("making a token: %w", err)
		}
		*to = made.Secret.Reveal()
	}
	return one, nil
}

// send sends a request and returns the first 64 KiB of its response.
func (one *member) send(ctx context.Context, method, path, kind, body string, headers ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, one.base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := one.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

const inJSON = "application/json"

func (m *mob) token(ctx context.Context, one *member, n int) error {
	status, body, err := one.send(ctx, http.MethodPost, "/auth/mcp-tokens", inJSON, fmt.Sprintf(`{"name":"t%d"}`, n), "Authorization", "Bearer "+one.api)
	if err != nil {
		return err
	}
	return m.note("tokens", "limits.user.tokens", status, body)
}

func (m *mob) upload(ctx context.Context, one *member, size int) error {
	status, body, err := one.send(ctx, http.MethodPost, "/app/v1/chat/threads/"+one.thread+"/files", "application/octet-stream", strings.Repeat("x", size), "Sec-Fetch-Site", "same-origin")
	if err != nil {
		return err
	}
	return m.note("files", "limits.", status, body)
}

func (m *mob) session(ctx context.Context, one *member) error {
	status, body, err := one.send(ctx, http.MethodPost, "/mcp", inJSON, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"crowd","version":"1"}}}`,
		"Authorization", "Bearer "+one.mcp, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25")
	if err != nil {
		return err
	}
	return m.note("sessions", "limits.", status, body)
}

func (m *mob) page(ctx context.Context, one *member) error {
	status, body, err := one.send(ctx, http.MethodGet, "/app/v1/events", "", "", "Sec-Fetch-Site", "same-origin")
	if err != nil {
		return err
	}
	return m.note("pages", "limits.user.streams", status, body)
}

func (m *mob) call(ctx context.Context, one *member, what, tool, args string) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":%q,"params":%s},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"crowd","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, crowdServer+":"+tool, args)
	status, body, err := one.send(ctx, http.MethodPost, "/mcp", inJSON, body, "Authorization", "Bearer "+one.mcp, "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_tool")
	if err != nil {
		return err
	}
	return m.note(what, "approvals.max_pending", status, body)
}

func (m *mob) write(ctx context.Context, one *member, n int) error {
	return m.call(ctx, one, "waiting calls", writeTool, fmt.Sprintf(`{"page":%d}`, n))
}

func (m *mob) read(ctx context.Context, one *member, n int) error {
	return m.call(ctx, one, "calls", readTool, fmt.Sprintf(`{"page":%d}`, n))
}

// push requests one more of something whose quota is used up.
func (m *mob) push(ctx context.Context, one *member, n int) error {
	switch n % 5 {
	case 0:
		return m.token(ctx, one, crowdTokens+n)
	case 1:
		return m.upload(ctx, one, 2<<20)
	case 2:
		return m.session(ctx, one)
	case 3:
		return m.page(ctx, one)
	}
	return m.write(ctx, one, crowdWaiting+n)
}
