package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// request sends a request to the nth of them.
func (f *failover) request(ctx context.Context, method string, n int, path string, h http.Header, body string) (*http.Response, error) {
	to := f.list[n%len(f.list)]
	for i := range f.list { // none is ready: the first is as good as any
		if next := f.list[(n+i)%len(f.list)]; next.isReady() {
			to = next
			break
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+to.addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header, r.Host = h.Clone(), h.Get("Host")
	if h.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return f.http.Do(r)
}

// ask returns the whole response.
func (f *failover) ask(ctx context.Context, method string, n int, path string, h http.Header, body string) (int, string, http.Header, error) {
	resp, err := f.request(ctx, method, n, path, h, body)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), resp.Header, err
}

// session is an MCP client that uses each of them in turn.
type session struct {
	f       *failover
	version string
	id      string
	n       int
}

func (s *session) send(ctx context.Context, method, params string) (int, string, error) {
	s.n++
	h := http.Header{"Authorization": {"Bearer " + s.f.token}, "Accept": {"application/json, text/event-stream"}}
	if method != "initialize" {
		h.Set("MCP-Protocol-Version", s.version)
	}
	if s.id != "" {
		h.Set("Mcp-Session-Id", s.id)
	}
	id := `"id":1,`
	if strings.HasPrefix(method, "notifications/") {
		id = ""
	}
	if s.version >= "2026" {
		h.Set("Mcp-Method", method)
		h.Set("Mcp-Name", "execute_tool")
	}
	status, body, got, err := s.f.ask(ctx, http.MethodPost, s.n, "/mcp", h, `{"jsonrpc":"2.0",`+id+`"method":"`+method+`","params":`+params+`}`)
	if err == nil && method == "initialize" {
		s.id = got.Get("Mcp-Session-Id")
	}
	return status, body, err
}

// tool calls a tool. Protocol versions with sessions begin a new one if theirs is gone.
func (s *session) tool(ctx context.Context, id, text string) bool {
	meta := ""
	if s.version < "2026" {
		if s.id == "" {
			status, _, err := s.send(ctx, "initialize", `{"protocolVersion":"`+s.version+`","capabilities":{},"clientInfo":{"name":"load","version":"1"}}`)
			if err != nil || status != http.StatusOK {
				s.id = ""
				return false
			}
			if _, _, err := s.send(ctx, "notifications/initialized", `{}`); err != nil {
				return false
			}
		}
	} else {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + s.version + `","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	status, body, err := s.send(ctx, "tools/call", `{"name":"execute_tool","arguments":{"tool_id":"`+id+`","params":{"text":"`+text+`"}}`+meta+`}`)
	if status == http.StatusNotFound {
		s.id = ""
	}
	return err == nil && status == http.StatusOK && strings.Contains(body, "did "+text)
}

// call calls a tool repeatedly; one that changes something with another key each time,
// since the outcome of a call without a response is unknown.
func (f *failover) call(ctx context.Context, who, version, tool string, from int) {
	s := &session{f: f, version: version, n: from}
	since := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%s-%d", tool, version, n)
		one, end := context.WithTimeout(ctx, patience)
		done := s.tool(one, "ledger:"+tool, key)
		end()
		wait := 50 * time.Millisecond
		if done {
			since = f.answered(who, since)
			if tool == "note" {
				f.acked.Store(key, true)
			}
		} else {
			wait = 200 * time.Millisecond
		}
		pause(ctx, wait)
	}
}

// desk makes calls that need approval.
func (f *failover) desk(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	for n := 0; ctx.Err() == nil; n++ {
		calls.Go(func() {
			one, end := context.WithTimeout(ctx, 30*time.Second)
			defer end()
			key := fmt.Sprintf("desk-%d", n)
			if (&session{f: f, version: "2026-07-28", n: n}).tool(one, "desk:note", key) {
				f.acked.Store(key, true)
				f.answered("answers after a yes", time.Now())
			}
		})
		pause(ctx, 2*time.Second)
	}
}

// decide approves waiting calls.
func (f *failover) decide(ctx context.Context) {
	for ctx.Err() == nil {
		for _, n := range f.list {
			one, end := context.WithTimeout(ctx, patience)
			list, err := api.ListApprovals.Call(one, n.api, api.Empty{})
			if err == nil {
				for _, c := range list.Items {
					if !strings.HasPrefix(c.Tool, "desk:") {
						continue
					}
					if _, err := api.DecideCall.Call(one, n.api, api.DecideCallRequest{ID: c.Call, Verb: store.Approve}); err == nil {
						f.decided.Store(c.Call, true)
						f.answered("yeses", time.Now())
					}
				}
			}
			end()
		}
		pause(ctx, 500*time.Millisecond)
	}
}

// rounds runs rounds whose calls are decided through another nized than the one that began
// them, and twice.
func (f *failover) rounds(ctx context.Context) {
	h := http.Header{"X-Api-Key": {f.key}}
	since := time.Now()
	type answer struct {
		ID, Status string
		Calls      []struct{ ID, Digest string } `json:"proposed_calls"`
		Message    struct{ Content string }
	}
	send := func(n int, body string) (a answer) {
		one, end := context.WithTimeout(ctx, patience)
		defer end()
		if status, got, _, err := f.ask(one, http.MethodPost, n, "/llm-exec/round", h, body); err == nil && status == http.StatusOK {
			_ = json.Unmarshal([]byte(got), &a) // a bad one has no status
		}
		return a
	}
	for n := 0; ctx.Err() == nil; n++ {
		a := send(n, `{"model":"offline/planner","messages":[{"role":"user","content":"What is 6*7?"}],"tools":[{"type":"callable","callable_id":"toolbox:calculate"}]}`)
		if a.Status == "requires_approval" {
			for try := 1; try < 40 && ctx.Err() == nil && a.Status != "completed"; try++ { // the same answers again change nothing
				b := send(rand.IntN(nizeds), fmt.Sprintf(`{"round_id":%q,"approvals":[{"id":%q,"digest":%q,"approve":true}]}`, a.ID, a.Calls[0].ID, a.Calls[0].Digest))
				if b.Status == "completed" && strings.Contains(b.Message.Content, "42") {
					since = f.answered("rounds", since)
					a.Status = b.Status
					break
				}
				if b.Status == "failed" || b.Status == "completed" {
					since = f.answered("rounds that were told of a lost call", since)
					break
				}
				pause(ctx, 250*time.Millisecond)
			}
		}
		pause(ctx, 250*time.Millisecond)
	}
}
