package slack

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/wire"
	"nize/store"
	"nize/store/database/databasetest"
)

// heard is a handler that records what it gets.
type heard struct {
	nobody
	mu   sync.Mutex
	list []store.Inbound
	more chan struct{} // gets a signal for each message
}

func newHeard() *heard { return &heard{more: make(chan struct{}, 4096)} }

func (h *heard) Message(_ context.Context, in store.Inbound) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, old := range h.list {
		if old.Key == in.Key {
			return false, nil
		}
	}
	h.list = append(h.list, in)
	h.more <- struct{}{}
	return true, nil
}

func (h *heard) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, in := range h.list {
		out = append(out, in.Text)
	}
	return out
}

func (h *heard) wait(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range n {
		select {
		case <-h.more:
		case <-ctx.Done():
			t.Fatalf("heard %q, want %d messages", h.texts(), n)
		}
	}
}

// HTTP mode accepts signed requests, and neither others nor replays.
func TestHTTPMode(t *testing.T) {
	t.Parallel()
	h := newHeard()
	var b *Bot
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) { b.Handler().ServeHTTP(w, r) })
	fake := startFake(t, slacktest.Options{Unlimited: true, Endpoint: front})
	o := Options{Store: storeOf(databasetest.Open(t))}
	b = newHTTPBot(t, fake, o, h)
	ctx := t.Context()
	if err := fake.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := fake.Mention(slacktest.Ann, slacktest.General, "good day"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	body := []byte(`{"type":"event_callback","team_id":"T0FAKE","event_id":"Ev1","event":{"type":"app_mention","user":"U0ANN","text":"<@U0NIZE> evil","ts":"17.1","channel":"C0GENERAL"}}`)
	old := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	for name, header := range map[string]http.Header{
		"no signature":    {"X-Slack-Signature": {"none"}},
		"wrong signature": {"X-Slack-Signature": {"v0=" + strings.Repeat("0", 64)}},
		"old":             {"X-Slack-Request-Timestamp": {old}},
		"no time":         {"X-Slack-Request-Timestamp": {"x"}},
	} {
		got, err := fake.PostSigned(ctx, "/slack/events", header, body)
		if err != nil || got.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d, %v", name, got.Status, err)
		}
	}
	if err := fake.CheckCertificate(ctx); err != nil {
		t.Error(err)
	}
	forged := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Slack-Signature": {"none"}}
	if got, err := fake.PostSigned(ctx, "/slack/commands", forged, []byte("ssl_check=1&command=%2Fnize&text=stop&user_id=U0ANN&team_id=T0FAKE&channel_id=C0GENERAL")); err != nil || got.Status != http.StatusUnauthorized {
		t.Errorf("a command that is called a look at the certificate: %d, %v", got.Status, err)
	}
	got, err := fake.PostSigned(ctx, "/slack/events", http.Header{}, []byte(`{"type":`))
	if err != nil || got.Status != http.StatusOK {
		t.Errorf("a broken body that was signed: %d, %v; want it acknowledged, since it comes no better again", got.Status, err)
	}
	if texts := h.texts(); len(texts) != 1 || texts[0] != "good day" {
		t.Errorf("heard %q", texts)
	}
	b.Use(nil)
	if got, err := fake.PostSigned(ctx, "/slack/events", http.Header{}, body); err != nil || got.Status == http.StatusOK {
		t.Errorf("without an account: %d, %v", got.Status, err)
	}
}

// If Slack drops events, the operator is told, and the notice is acknowledged.
func TestEventsLimited(t *testing.T) {
	t.Parallel()
	h := newHeard()
	var b *Bot
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) { b.Handler().ServeHTTP(w, r) })
	fake := startFake(t, slacktest.Options{Unlimited: true, Endpoint: front})
	b = newHTTPBot(t, fake, Options{Store: storeOf(databasetest.Open(t))}, h)
	fake.LimitEvents()
	if err := fake.Wait(t.Context(), func() bool { return fake.Stats().Acked == 1 }); err != nil {
		t.Fatal(err)
	}
	if got := b.Health(); got.State != bots.Connected || !strings.Contains(got.Error, "30,000") {
		t.Errorf("health is %+v", got)
	}
	if _, err := fake.Mention(slacktest.Ann, slacktest.General, "and again"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	if got := b.Health(); got.Error != "" {
		t.Errorf("after the next event health is %+v", got)
	}
}

func httpServer(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// newHTTPBot runs a bot whose account is in HTTP mode.
func newHTTPBot(t *testing.T, fake *slacktest.Server, o Options, h *heard) *Bot {
	t.Helper()
	b := runBotWith(t, fake, o, h, fake.SigningSecret())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for b.Health().State != bots.Connected || b.Current() == nil || b.Current().account.Mode != HTTPMode {
		if queue.Sleep(ctx, time.Millisecond) != nil {
			t.Fatal("the bot does not start")
		}
	}
	return b
}

// Neither a frame nor a request's body crashes the process.
func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"envelope_id":"e","type":"events_api","payload":{"type":"event_callback"}}`))
	f.Add([]byte(`command=%2Fnize&text=help&user_id=U1&team_id=T1&channel_id=C1`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = wire.DecodeRequest(raw)
		for _, kind := range []string{"events_api", "interactive", "slash_commands"} {
			_, _ = hookPayload(kind, raw)
		}
	})
}
