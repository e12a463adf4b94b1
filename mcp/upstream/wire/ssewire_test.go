package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHabitsOverSSE compares this package with the SDK's own transport on servers of the
// older HTTP+SSE: what the SDK ends a session for, and the endpoint on another host, to
// which it sends the messages, and with them the credentials in their headers.
func TestHabitsOverSSE(t *testing.T) {
	const both, ours, theirs = "both", "ours", "the SDK" // who speaks with it
	message := func(id, value string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + value + `}` }
	event := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	for name, c := range map[string]struct {
		form     func(id, value string) string // of the events with an answer
		apart    bool                          // the endpoint is on another host
		accepted string
	}{
		"to the letter":               {form: func(id, v string) string { return event("message", message(id, v)) }, accepted: both},
		"without a name":              {form: func(id, v string) string { return "data: " + message(id, v) + "\n\n" }, accepted: both},
		"no version":                  {form: func(id, v string) string { return event("message", `{"id":`+id+`,"result":`+v+`}`) }, accepted: ours},
		"ids are null":                {form: func(id, v string) string { return event("message", message("null", v)) }, accepted: ours},
		"ids are left out":            {form: func(id, v string) string { return event("message", `{"jsonrpc":"2.0","result":`+v+`}`) }, accepted: ours},
		"a byte order mark":           {form: func(id, v string) string { return event("message", "\xef\xbb\xbf"+message(id, v)) }, accepted: ours},
		"NaN":                         {form: func(id, v string) string { return event("message", message(id, `{"n":NaN,`+v[1:])) }, accepted: ours},
		"a heartbeat":                 {form: func(id, v string) string { return event("ping", "2026-11-28") + event("message", message(id, v)) }, accepted: ours},
		"in a batch":                  {form: func(id, v string) string { return event("message", "["+message(id, v)+"]") }, accepted: ours},
		"an endpoint on another host": {form: func(id, v string) string { return event("message", message(id, v)) }, apart: true, accepted: theirs},
	} {
		// Each session has a server of its own.
		on := func(use func(address string) error) error {
			answers := make(chan string, 8)
			post := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
					t.Error(err)
				}
				switch rw.WriteHeader(http.StatusAccepted); {
				case m.Method == methodInitialize:
					answers <- c.form(string(m.ID), helloResult)
				case m.ID != nil:
					answers <- c.form(string(m.ID), `{"tools":[]}`)
				}
			})
			other := httptest.NewServer(post)
			defer other.Close()
			web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					post(rw, r)
					return
				}
				to := "/post"
				if c.apart {
					to = other.URL
				}
				rw.Header().Set("Content-Type", mediaStream)
				fmt.Fprint(rw, event("endpoint", to))
				for http.NewResponseController(rw).Flush() == nil {
					select {
					case a := <-answers:
						fmt.Fprint(rw, a)
					case <-r.Context().Done():
						return
					}
				}
			}))
			defer web.Close()
			defer web.CloseClientConnections()
			return use(web.URL)
		}
		library := on(func(address string) error {
			base := NewTransport()
			defer base.CloseIdleConnections()
			cs, err := sdk.NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, nil).Connect(t.Context(), &sdk.SSEClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: base}}, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
			if err != nil {
				return err
			}
			_, err = cs.ListTools(t.Context(), nil)
			return errors.Join(err, cs.Close())
		})
		for _, method := range ways {
			own := on(func(address string) error { return overSSE(t, address, method) })
			if (library == nil) != (c.accepted != ours) || (own == nil) != (c.accepted != theirs) {
				t.Errorf("%s is spoken with by %s; the SDK: %v; %s of ours: %v", name, c.accepted, library, method, own)
			}
		}
	}
}

// overSSE opens a session as the pool does, and sends one request.
func overSSE(t *testing.T, address, method string) error {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	base := NewTransport()
	defer base.CloseIdleConnections()
	life, end := context.WithCancelCause(t.Context())
	defer end(nil)
	f, err := DialSSE(t.Context(), address, &RoundTripper{Base: base, Scheme: at.Scheme, Host: at.Host, Life: life, End: end}, NewBudget())
	if err != nil {
		return err
	}
	p := NewPeer(f, NewBudget(), func() {}, func(string) {})
	defer p.Terminate(true)
	raw, err := connect(t, p, method)
	if err == nil && !strings.HasSuffix(string(raw), `"tools":[]}`) {
		err = fmt.Errorf("the result is %s", raw)
	}
	return err
}
