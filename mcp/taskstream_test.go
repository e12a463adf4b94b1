package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestStreamsOfASession: notifications are written to the stream that the SDK accepted last,
// also while the handler of the one before it has not ended, and never to a refusal.
func TestStreamsOfASession(t *testing.T) {
	var streams sessionStreams
	m := &jsonrpc.Request{Method: "notifications/tasks"}
	listen := func(status int) (*httptest.ResponseRecorder, func()) {
		w := httptest.NewRecorder()
		n, leave := streams.enter("s", w)
		if status != http.StatusOK {
			http.Error(n, "refused", status)
			return w, leave
		}
		n.WriteHeader(status)
		n.Flush()
		return w, leave
	}
	refused, leaveRefused := listen(http.StatusForbidden)
	if err := streams.notify("s", m); err == nil {
		t.Error("nobody listens, and it was sent")
	}
	first, leaveFirst := listen(http.StatusOK)
	second, leaveSecond := listen(http.StatusOK)
	again, leaveAgain := listen(http.StatusConflict)
	leaveFirst()
	if err := streams.notify("s", m); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		w    *httptest.ResponseRecorder
		want int
	}{"refused": {refused, 0}, "first": {first, 0}, "second": {second, 1}, "again": {again, 0}} {
		if got := strings.Count(c.w.Body.String(), m.Method); got != c.want {
			t.Errorf("%s: %d notifications, want %d", name, got, c.want)
		}
	}
	leaveSecond()
	leaveAgain()
	leaveRefused()
	if err := streams.notify("s", m); err == nil || len(streams.open) != 0 {
		t.Errorf("all have left: %v, %d sessions", err, len(streams.open))
	}
}
