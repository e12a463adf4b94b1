package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// wire sends requests of the stateful protocol without a client that corrects them.
type wire struct {
	f     *front
	token string
}

func (w wire) send(session, method, body string) *http.Response {
	w.f.t.Helper()
	req, err := http.NewRequestWithContext(w.f.t.Context(), method, w.f.url, strings.NewReader(body))
	if err != nil {
		w.f.t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + w.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		w.f.t.Fatal(err)
	}
	w.f.t.Cleanup(func() { res.Body.Close() })
	return res
}

// begin begins a session, and returns its id and what was answered.
func (w wire) begin() (session, answer string) {
	w.f.t.Helper()
	res := w.send("", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.f.t.Fatal(err)
	}
	return res.Header.Get("Mcp-Session-Id"), string(b)
}

// is expects an HTTP status for a call in a session, from the fast path and from the SDK.
func (w wire) is(session string, want int) {
	w.f.t.Helper()
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:look","params":{"what":"x"}}}}`,
		`{"jsonrpc":"2.0","id":"b","method":"tools/list"}`,
	} {
		res := w.send(session, "POST", body)
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != want {
			w.f.t.Errorf("a call in the session: %s, want %d", res.Status, want)
		}
	}
}

// TestSessionsAreBounded: a client that begins many sessions uses up only its own token's
// limit. The evicted session gets status 404. An idle session is evicted before one that
// listens or waits for a person.
func TestSessionsAreBounded(t *testing.T) {
	f := newFront(t, nil)
	f.config.set("limits.token.sessions", "3")
	f.config.set("limits.sessions", "5")
	own, other := wire{f, f.token("own", time.Hour)}, wire{f, f.token("other", time.Hour)}
	theirs, _ := other.begin()
	first, _ := own.begin()
	var last string
	for range 20 {
		last, _ = own.begin()
	}
	own.is(first, http.StatusNotFound)
	own.is(last, http.StatusOK)
	other.is(theirs, http.StatusOK)
	if n := f.server.Counts(); n.Sessions != 4 || n.Ended != 18 {
		t.Errorf("%+v", n)
	}

	// Sessions in use are not evicted; instead the new client is refused with a reason.
	waits := []string{last}
	for range 2 {
		s, _ := own.begin()
		waits = append(waits, s)
	}
	for _, s := range waits {
		if res := own.send(s, "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"box:write","params":{"what":"x"}}}}`); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status) // the headers have arrived, and the call is waiting
		}
	}
	if _, answer := own.begin(); !strings.Contains(answer, "limits.token.sessions") || !strings.Contains(answer, `"error"`) {
		t.Errorf("one too many: %s", answer)
	}
	if n := f.server.Counts(); n.Sessions != 4 || n.Requests != 3 {
		t.Errorf("%+v", n)
	}

	// An ended session frees its place.
	res := other.send(theirs, "DELETE", "")
	if res.StatusCode >= 300 || f.server.Counts().Sessions != 3 {
		t.Errorf("%s, %+v", res.Status, f.server.Counts())
	}

	// A request that is no valid initialize begins no session.
	other.send("", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	other.send("", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":3}`)
	if n := f.server.Counts().Sessions; n != 3 {
		t.Errorf("%d sessions", n)
	}
	other.is("no-such-session", http.StatusNotFound)
}
