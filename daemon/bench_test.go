package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

func session(b testing.TB, url, token string) *sdk.ClientSession {
	b.Helper()
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	c := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{token, transport}}}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkExecuteTool compares execute_tool with a direct call to the same
// upstream; here all parts share a process, so that one profile shows them.
func BenchmarkExecuteTool(b *testing.B) {
	up := mcptest.New(b, mcptest.Options{Name: "up", Tools: []mcptest.Tool{{Name: "look", Description: "Look.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}, Do: func(context.Context, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"content":[{"type":"text","text":"0123456789012345678901234567890123456789012345678901234567890123456789"}]}`)
	}}}})
	url := up.HTTP()
	r := open(b, b.TempDir(), nil)
	if _, err := api.AddServer.Call(b.Context(), r.Client, api.AddServerRequest{Server: store.Server{Name: "up", URL: url, TrustAnnotations: true}}); err != nil {
		b.Fatal(err)
	}
	made, err := api.CreateToken.Call(b.Context(), r.Client, api.CreateTokenRequest{Name: "t"})
	if err != nil {
		b.Fatal(err)
	}
	st, err := api.GetStatus.Call(b.Context(), r.Client, api.Empty{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("direct", func(b *testing.B) {
		s := session(b, url, "none")
		for b.Loop() {
			if _, err := s.CallTool(b.Context(), &sdk.CallToolParams{Name: "look"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gateway", func(b *testing.B) {
		s := session(b, "http://"+st.Listen+"/mcp", made.Secret.Reveal())
		for b.Loop() {
			r, err := s.CallTool(b.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "up:look", "params": map[string]any{}}})
			if err != nil || r.IsError {
				b.Fatal(err, r)
			}
		}
	})
}
