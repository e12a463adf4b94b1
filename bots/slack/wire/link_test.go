package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"nize/bots/slack/slacktest"
	"nize/store"
)

// TestSocketModeClient shows why nize reads Socket Mode's links itself. When a case fails, the
// library does right what made nize keep its own loop.
func TestSocketModeClient(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*slacktest.Server, *socketmode.Client) {
		fake := slacktest.Running(t, slacktest.Options{Unlimited: true})
		api := slackgo.New(fake.BotToken(), slackgo.OptionAppLevelToken(fake.AppToken()), slackgo.OptionAPIURL(fake.URL()+"/api/"))
		client := socketmode.New(api, socketmode.OptionLog(log.New(io.Discard, "", 0)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = client.RunContext(ctx) // it ends with ctx
		}()
		t.Cleanup(func() { cancel(); <-ended })
		return fake, client
	}
	next := func(t *testing.T, c *socketmode.Client) socketmode.Event {
		t.Helper()
		select {
		case e := <-c.Events:
			return e
		case <-t.Context().Done():
			t.Fatal("no event")
			panic("unreachable")
		}
	}

	t.Run("a link that is refused for good", func(t *testing.T) {
		fake, client := start(t)
		fake.SetSocketMode(false)
		for linked := 0; linked < 4; { // without a pause
			e := next(t, client)
			if e.Type == socketmode.EventTypeConnected {
				linked++
			}
			if text := fmt.Sprintf("%+v", e); strings.Contains(text, "disabled") || e.Type == socketmode.EventTypeConnectionError {
				t.Fatalf("it reports %s: %s", e.Type, text)
			}
		}
	})
	t.Run("a block that it refuses", func(t *testing.T) {
		fake, client := start(t)
		for next(t, client).Type != socketmode.EventTypeHello {
		}
		fake.SendRaw([]byte(`{"envelope_id":"e1","type":"events_api","payload":{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","user":"U1","channel":"C1","ts":"1.2","text":"hi","blocks":[{"type":"actions","elements":[{"type":"dial"}]}]}}}`))
		if e := next(t, client); e.Type != socketmode.EventTypeErrorBadMessage || e.Request != nil {
			t.Errorf("%s with the request %+v", e.Type, e.Request)
		}
	})
}

// An acknowledgement is sent as one frame and never exceeds what Slack reads.
func TestAcknowledgement(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxAck-100)
	frame, err := EncodeAck("e1", long)
	if err != nil || !bytes.HasPrefix(frame, []byte(`{"envelope_id":"e1","payload":"x`)) {
		t.Fatalf("%.40s, %v", frame, err)
	}
	if bare, err := EncodeAck("e1", nil); string(bare) != `{"envelope_id":"e1"}` {
		t.Errorf("%s, %v", bare, err)
	}
	if _, err := EncodeAck("e1", long+long); err == nil {
		t.Error("what Slack ignores is sent")
	}
	first := make(chan byte, 1) // the first byte of the frame
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/link" {
			_, _ = io.WriteString(w, `{"ok":true,"url":"ws`+strings.TrimPrefix("http://"+r.Host, "http")+`/link"}`)
			return
		}
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			first <- 0
			return
		}
		defer conn.Close()
		head := make([]byte, 1)
		_, _ = io.ReadFull(conn.NetConn(), head)
		first <- head[0]
	}))
	defer slack.Close()
	conn, err := New(Options{URL: slack.URL}, store.NewSecret("xoxb-1"), store.NewSecret("xapp-1")).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, frame); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got != 0x81 { // a text, and its last frame
		t.Errorf("the frame begins with %#x", got)
	}
}
