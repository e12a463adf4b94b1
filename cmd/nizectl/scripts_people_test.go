package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// mcplisten TOKEN FILE is an MCP client that only listens: it opens the event
// stream of a session, writes FILE once it is open, and ends when the daemon
// ends the stream. A stream that nobody ends is an error.
func mcplisten() int {
	if err := mcpListen(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mcplisten:", err)
		return 1
	}
	return 0
}

func mcpListen(token, file string) error {
	addr, err := os.ReadFile(filepath.Join(os.Getenv("NIZE_DATA_DIR"), "nized.addr"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	send := func(method, session, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+strings.TrimSpace(string(addr))+"/mcp", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode/100 != 2 {
			resp.Body.Close()
			err = fmt.Errorf("HTTP %d", resp.StatusCode)
		}
		return resp, err
	}
	hello, err := send("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcplisten","version":"1"}}}`)
	if err != nil {
		return err
	}
	hello.Body.Close()
	ready, err := send("POST", hello.Header.Get("Mcp-Session-Id"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		return err
	}
	ready.Body.Close()
	stream, err := send("GET", hello.Header.Get("Mcp-Session-Id"), "")
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	if err := os.WriteFile(file, []byte("open\n"), 0o600); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stream.Body)
	if ctx.Err() != nil {
		return errors.New("the stream was not ended")
	}
	fmt.Println("the stream ended", err)
	return nil
}
