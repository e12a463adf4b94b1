package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHabitsOfHandshakes compares the SDK's transport with and without the round tripper on
// habits of older servers, which are the reasons for its translations (handshake.go).
func TestHabitsOfHandshakes(t *testing.T) {
	const both, ours, waits = "both", "ours", "ours, and the SDK waits for ever" // who speaks with it
	type message struct {
		ID     json.RawMessage
		Method string
	}
	write := func(status int, media, body string) func(http.ResponseWriter, message) {
		return func(rw http.ResponseWriter, _ message) {
			if media != "" {
				rw.Header().Set("Content-Type", media)
			}
			rw.WriteHeader(status)
			io.WriteString(rw, body) //nolint:errcheck // a test's server
		}
	}
	result := func(form string) func(http.ResponseWriter, message) { // %[1]s is the id, %[2]s the result
		return func(rw http.ResponseWriter, m message) {
			rw.Header().Set("Content-Type", mediaJSON)
			fmt.Fprintf(rw, form, m.ID, helloResult)
		}
	}
	const letter = `{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s}`
	for name, c := range map[string]struct {
		of       string // the message, or "GET"
		answer   func(http.ResponseWriter, message)
		accepted string
	}{
		"discover: 404":                  {methodDiscover, write(404, "text/plain", "no"), both},
		"discover: 400":                  {methodDiscover, write(400, "text/plain", "no"), both},
		"discover: 500":                  {methodDiscover, write(500, "text/plain", "no"), both},
		"discover: 202":                  {methodDiscover, write(202, "", ""), ours},
		"discover: nothing":              {methodDiscover, write(200, mediaJSON, ""), ours},
		"discover: a page":               {methodDiscover, write(200, "text/html", "<html>"), ours},
		"discover: an error without id":  {methodDiscover, write(200, mediaJSON, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}`), ours},
		"discover: an error, id null":    {methodDiscover, write(400, mediaJSON, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`), both},
		"initialize: to the letter":      {methodInitialize, result(letter), both},
		"initialize: an id as text":      {methodInitialize, result(`{"jsonrpc":"2.0","id":"%[1]s","result":%[2]s}`), waits},
		"initialize: no id":              {methodInitialize, result(`{"jsonrpc":"2.0","result":%[2]s}`), ours},
		"initialize: no version":         {methodInitialize, result(`{"id":%[1]s,"result":%[2]s}`), ours},
		"initialize: a byte order mark":  {methodInitialize, result("\xef\xbb\xbf" + letter), ours},
		"initialize: a batch":            {methodInitialize, result("[" + letter + "]"), ours},
		"initialize: events as JSON":     {methodInitialize, result("data: " + letter + "\n\n"), ours},
		"initialized: 200":               {"notifications/initialized", write(200, mediaJSON, "{}"), both},
		"initialized: 400":               {"notifications/initialized", write(400, "text/plain", "no"), ours},
		"initialized: 404":               {"notifications/initialized", write(404, "text/plain", "no"), ours},
		"initialized: 500":               {"notifications/initialized", write(500, "text/plain", "no"), ours},
		"initialized: an error":          {"notifications/initialized", write(200, mediaJSON, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`), both},
		"stream: 405":                    {"GET", write(405, "", ""), both},
		"stream: 404":                    {"GET", write(404, "text/plain", "no"), both},
		"stream: 500":                    {"GET", write(500, "text/plain", "no"), both},
		"stream: 501":                    {"GET", write(501, mediaJSON, ""), both},
		"stream: 500, as a stream":       {"GET", write(500, mediaStream, ""), ours},
		"stream: 501, as a stream":       {"GET", write(501, mediaStream, ""), ours},
		"stream: a page":                 {"GET", write(200, "text/html", "<html>"), both},
		"stream: a heartbeat":            {"GET", write(200, mediaStream, "event: ping\ndata: x\n\n"), both},
		"stream: text":                   {"GET", write(200, mediaStream, "data: x\n\n"), ours},
		"stream: a notice of no version": {"GET", write(200, mediaStream, "data: {\"method\":\"notifications/x\"}\n\n"), ours},
	} {
		gets := make(chan struct{}, 100)
		web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			var m message
			switch {
			case r.Method == http.MethodDelete:
				return
			case r.Method == http.MethodGet:
				gets <- struct{}{}
				m.Method = "GET"
			case json.NewDecoder(r.Body).Decode(&m) != nil:
				rw.WriteHeader(http.StatusBadRequest)
				return
			}
			switch {
			case m.Method == c.of:
				c.answer(rw, m)
				if m.Method == "GET" {
					http.NewResponseController(rw).Flush()
				}
			case m.Method == methodDiscover:
				write(200, mediaJSON, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID))(rw, m)
			case m.Method == methodInitialize:
				rw.Header().Set(headerSession, "s1")
				result(letter)(rw, m)
			case m.ID == nil:
				rw.WriteHeader(http.StatusAccepted)
			case m.Method == "GET":
				rw.WriteHeader(http.StatusMethodNotAllowed)
			default:
				result(letter)(rw, m)
			}
		}))
		at, err := url.Parse(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		try := func(client *http.Client, ends bool) error {
			cs, err := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{}).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: client}, nil)
			if err != nil {
				return err
			}
			defer cs.Close()
			<-gets
			if c.of != "GET" {
				return nil
			}
			if ends {
				ended := make(chan error, 1)
				go func() { ended <- cs.Wait() }()
				select {
				case err := <-ended:
					return err
				case <-time.After(time.Minute):
					return nil // the SDK has learned it
				}
			}
			for range 20 {
				if err := cs.Ping(t.Context(), nil); err != nil {
					return err
				}
			}
			return nil
		}
		base := NewTransport()
		library := errors.New(waits)
		if c.accepted != waits {
			library = try(&http.Client{Transport: base}, c.accepted == ours)
		}
		life, end := context.WithCancelCause(t.Context())
		own := try((&RoundTripper{Base: base, Scheme: at.Scheme, Host: at.Host, Life: life, End: end, Budget: NewBudget()}).Client(), false)
		end(nil)
		base.CloseIdleConnections()
		if (library == nil) != (c.accepted == both) || own != nil {
			t.Errorf("%s is spoken with by %s; the SDK: %v; ours: %v", name, c.accepted, library, own)
		}
		web.CloseClientConnections()
		web.Close()
	}
}
