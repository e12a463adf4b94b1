package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silentBase is a service that answers nothing, and may send a part of an answer.
type silentBase struct{ head bool }

func (b silentBase) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.head {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: silentBody{req.Context()}, Request: req}, nil
	}
	<-req.Context().Done()
	return nil, req.Context().Err()
}

type silentBody struct{ ctx context.Context }

func (b silentBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (silentBody) Close() error { return nil }

// TestSilenceIsShort: a server that does not answer server/discover is taken for an
// older one so soon that initialize follows within 2 s.
func TestSilenceIsShort(t *testing.T) {
	for name, base := range map[string]silentBase{"nothing": {}, "a stream": {head: true}} {
		synctest.Test(t, func(t *testing.T) {
			trip := &RoundTripper{Base: base, Scheme: "http", Host: "far.example", Life: t.Context(), End: func(error) {}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://far.example/mcp", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			resp, err := trip.discover(req, []byte("1"))
			if took := time.Since(begin); err != nil || took >= 2*time.Second {
				t.Fatalf("%s: after %s: %v", name, took, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(body), "-32601") {
				t.Errorf("%s: %s, %v", name, body, err)
			}
		})
	}
}
