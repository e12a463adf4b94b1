package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// benchmarkHTTP measures Run against a server without overhead, compared with a POST of the
// same bytes.
func benchmarkHTTP(b *testing.B, bare bool) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var result string
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789012345678901234567890123456789"}]}`
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	defer srv.Close()
	db := newMemory()
	p := New(Options{Log: slog.New(slog.DiscardHandler), Servers: db, Tools: db, Credentials: db, Gate: strictGate{}})
	defer p.Close(b.Context())
	if _, err := db.PutServer(b.Context(), admin, remote(srv.URL), 0); err != nil {
		b.Fatal(err)
	}
	if _, err := p.Sync(b.Context(), admin, "far"); err != nil {
		b.Fatal(err)
	}
	t, err := db.GetTool(b.Context(), "far:echo")
	if err != nil {
		b.Fatal(err)
	}
	c := &store.Call{Server: "far", Tool: "echo", Pin: t.Pin, Args: json.RawMessage(`{"text":"0123456789"}`)}
	client := &http.Client{Transport: wire.NewTransport()}
	defer client.CloseIdleConnections()
	body := (&wire.Request{Method: wire.MethodCall, Name: "echo", Args: c.Args}).Encode(1, "")
	b.ReportAllocs()
	for b.Loop() {
		if !bare {
			if _, err := p.Run(b.Context(), member, c, nil); err != nil {
				b.Fatal(err)
			}
			continue
		}
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}
