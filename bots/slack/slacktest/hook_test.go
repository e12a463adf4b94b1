package slacktest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
)

// hook is an app in HTTP mode.
type hook struct {
	mu       sync.Mutex
	status   int
	requests []string
	bad      int
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	stamp := r.Header.Get("X-Slack-Request-Timestamp")
	if err != nil || r.Header.Get("X-Slack-Signature") != slacktest.Sign(slacktest.SigningSecret, stamp, body) {
		h.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	h.requests = append(h.requests, r.URL.Path+" "+r.Header.Get("X-Slack-Retry-Num")+r.Header.Get("X-Slack-Retry-Reason"))
	var in struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(body, &in) == nil && in.Challenge != "" {
		_, _ = io.WriteString(w, in.Challenge)
		return
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("command") != "" {
		_, _ = io.WriteString(w, "got "+form.Get("text"))
		return
	}
	w.WriteHeader(h.status)
}

func TestHTTPMode(t *testing.T) {
	h := &hook{status: 500}
	server := httptest.NewServer(h)
	defer server.Close()
	a := start(t, slacktest.Options{Endpoint: server.URL, RetryAfter: []time.Duration{0, 0}})
	a.bad("socket_mode_disabled", "apps.connections.open")
	if err := a.fake.Verify(within(t)); err != nil {
		t.Error(err)
	}
	must[slacktest.Message](t)(a.fake.DM(slacktest.Ann, "hello"))
	a.until("giving up", func() bool { return a.fake.Stats().Dropped == 1 })
	h.mu.Lock()
	h.status = 200
	want := []string{"/slack/events ", "/slack/events ", "/slack/events 1http_error", "/slack/events 2http_error"}
	if !slices.Equal(h.requests, want) {
		t.Errorf("got %q, want %q", h.requests, want)
	}
	h.mu.Unlock()
	if err := a.fake.Press(within(t), slacktest.Ann, a.card(slacktest.General), "yes"); err != nil {
		t.Error(err)
	}
	if err := a.fake.Slash(within(t), slacktest.Ann, slacktest.General, "/nize usage"); err != nil {
		t.Error(err)
	}
	if got := a.fake.Ephemerals(slacktest.General, slacktest.Ann); len(got) != 1 || got[0].Text != "got usage" {
		t.Errorf("the command was answered with %+v", got)
	}
	if got, err := a.fake.PostSigned(within(t), "/slack/events", http.Header{"X-Slack-Signature": {"v0=00"}}, []byte("{}")); err != nil || got.Status != 401 {
		t.Errorf("a wrong signature: %v %d", err, got.Status)
	}
}
