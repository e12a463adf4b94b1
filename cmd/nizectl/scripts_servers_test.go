package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptMCPServer starts an MCP server over HTTP with the tools add_note, whose
// calls it counts, and hang, which never answers. mcpserver VAR keeps its address;
// beside it, /private wants the token s3cret-token, GET /count says how often
// add_note ran and how many calls hang, and POST /describe changes what the tools
// say of themselves.
func scriptMCPServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mcpserver VAR")
	}
	var mu sync.Mutex
	about, notes, hanging := "Adds a note", 0, 0
	left := make(chan struct{})
	serve := func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name            string
				Arguments       map[string]any
				ProtocolVersion string
			}
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if json.NewDecoder(r.Body).Decode(&req) != nil || len(req.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		var result any
		switch req.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": struct{}{}}, "serverInfo": map[string]any{"name": "notes", "version": "1"}}
		case "tools/list":
			schema := map[string]any{"type": "object"}
			result = map[string]any{"tools": []any{
				map[string]any{"name": "add_note", "description": about, "inputSchema": schema},
				map[string]any{"name": "hang", "description": "Waits for ever", "inputSchema": schema},
			}}
		case "tools/call":
			if req.Params.Name == "hang" {
				hanging++
				mu.Unlock()
				select {
				case <-r.Context().Done():
				case <-left:
				}
				mu.Lock()
				hanging--
				return
			}
			notes++
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("note %d: %v, by %s", notes, req.Params.Arguments["text"], r.Header.Get("X-Who"))}}}
		}
		w.Header().Set("Content-Type", "application/json")
		reply := map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result}
		if result == nil {
			delete(reply, "result")
			reply["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		_ = json.NewEncoder(w).Encode(reply) // the client has left
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", serve)
	mux.HandleFunc("/private", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-token" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		serve(w, r)
	})
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%d notes, %d hanging\n", notes, hanging)
	})
	mux.HandleFunc("POST /describe", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		about = strings.TrimSpace(string(text))
	})
	web := httptest.NewServer(mux)
	ts.Defer(func() { close(left); web.Close() })
	ts.Setenv(args[0], web.URL)
}
