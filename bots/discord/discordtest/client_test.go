package discordtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"nize/bots/chattest"
	"nize/bots/discord/discordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bot is a client of the wire alone.
type bot struct {
	t      *testing.T
	fake   *discordtest.Server
	client *http.Client
	dialer websocket.Dialer
}

// newBot is over pipes, so that it may run in a bubble of synctest.
func newBot(t *testing.T, o discordtest.Options) *bot {
	t.Helper()
	fake, pipe := discordtest.New(o), chattest.NewPipe()
	if err := fake.Start(pipe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return &bot{t: t, fake: fake, client: &http.Client{Transport: &http.Transport{DialContext: pipe.Dial, DisableKeepAlives: true}}, dialer: websocket.Dialer{NetDialContext: pipe.Dial}}
}

// do calls the API and returns status and answer.
func (b *bot) do(method, path, body string, change ...func(*http.Request)) (int, map[string]any, http.Header) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.fake.APIURL()+"v9"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+b.fake.BotToken())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(req)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	answer := map[string]any{}
	if bytes.HasPrefix(raw, []byte("[")) {
		raw = append(append([]byte(`{"list":`), raw...), '}')
	}
	if len(raw) > 0 && json.Unmarshal(raw, &answer) != nil {
		answer["text"] = string(raw)
	}
	return resp.StatusCode, answer, resp.Header
}

// gate is one connection of the gateway.
type gate struct {
	t  *testing.T
	ws *websocket.Conn
}

type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

func (b *bot) dial(query string) *gate {
	b.t.Helper()
	_, answer, _ := b.do("GET", "/gateway/bot", "")
	url, _ := answer["url"].(string)
	ws, resp, err := b.dialer.DialContext(context.Background(), url+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	b.t.Cleanup(func() { ws.Close() })
	return &gate{t: b.t, ws: ws}
}

func (g *gate) send(raw string) {
	g.t.Helper()
	if err := g.ws.WriteMessage(websocket.TextMessage, []byte(raw)); err != nil {
		g.t.Fatal(err)
	}
}

// next is the next frame, or the code with which the connection was closed.
func (g *gate) next() (frame, int) {
	g.t.Helper()
	var f frame
	if err := g.ws.ReadJSON(&f); err != nil {
		if closed, ok := err.(*websocket.CloseError); ok {
			return f, closed.Code
		}
		return f, -1
	}
	return f, 0
}

// until skips frames until an event of that name.
func (g *gate) until(name string) frame {
	g.t.Helper()
	for {
		f, code := g.next()
		if code != 0 {
			g.t.Fatalf("closed with %d before %s", code, name)
		}
		if f.Type == name {
			return f
		}
	}
}

func (b *bot) identify(intents string) (*gate, frame) {
	b.t.Helper()
	g := b.dial("/?v=9&encoding=json")
	if hello, code := g.next(); hello.Op != 10 {
		b.t.Fatalf("the first frame is %+v, %d", hello, code)
	}
	g.send(`{"op":2,"d":{"token":"` + b.fake.BotToken() + `","intents":` + intents + `,"properties":{"os":"linux"}}}`)
	return g, g.until("READY")
}
