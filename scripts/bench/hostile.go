package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// hostileEnv makes this program a hostile server: its value is the kind of one over
// standard input and output, or "http" for one process that serves all kinds over HTTP,
// each at /KIND.
const hostileEnv = "NIZE_BENCH_HOSTILE"

// Kinds of hostile servers. Most of them otherwise respond properly.
const (
	junk     = "junk"     // output that is not JSON, without end
	flood    = "flood"    // standard error, without end
	storm    = "storm"    // tools/list_changed, without end
	changing = "changing" // the same ten times a second, with a different list each time
	endless  = "endless"  // a list of tools that never ends
	huge     = "huge"     // notifications of 4 MiB, without end
	asking   = "asking"   // requests to the client, without end
	dying    = "dying"    // ends at once
	forking  = "forking"  // starts ten processes and ends
	silent   = "silent"   // never answers
	drip     = "drip"     // answers a byte every 20 ms
	giant    = "giant"    // answers 200 MB, once it is registered
	cut      = "cut"      // ends its event stream at once, and requests that it be resumed at once
)

var (
	hostileChildren = []string{junk, flood, storm, changing, endless, huge, asking, dying, forking, silent, drip, giant}
	hostileSites    = []string{junk, storm, changing, endless, huge, drip, giant, cut}
)

const (
	listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	megabytes   = "MEGABYTES" // replaced by 200 of them in an answer
	hostileTool = "act"       // every one of them has it
)

var megabyte = strings.Repeat("x", 1_000_000)

// hostile is a hostile server.
type hostile struct {
	kind  string
	mu    sync.Mutex // one message at a time
	w     io.Writer
	lists int // under mu
}

func (h *hostile) write(msg string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return writeLine(h.w, msg)
}

func writeLine(w io.Writer, msg string) error {
	head, tail, large := strings.Cut(msg, megabytes)
	_, err := io.WriteString(w, head)
	for n := 0; large && n < 200 && err == nil; n++ {
		_, err = io.WriteString(w, megabyte)
	}
	if err == nil {
		_, err = io.WriteString(w, tail+"\n")
	}
	return err
}

// rage sends unrequested messages until it can't; frame encodes a message for the
// transport.
func (h *hostile) rage(frame func(string) string) {
	what, pause := "", time.Duration(0)
	switch h.kind {
	case junk:
		what = strings.Repeat("no JSON ", 20)
	case storm:
		what = frame(listChanged)
	case changing:
		what, pause = frame(listChanged), 100*time.Millisecond
	case huge:
		what = frame(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 4<<20) + `"}}`)
	case asking:
		what = frame(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	default:
		return
	}
	for h.write(what) == nil {
		time.Sleep(pause)
	}
}

// answer returns the response to one message; "" is none.
func (h *hostile) answer(line []byte) string {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return ""
	}
	result := "{}"
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`
	case "server/discover":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	case "tools/list":
		result = h.list()
	case "tools/call":
		text := "done"
		if h.kind == giant {
			text = megabytes
		}
		result = `{"content":[{"type":"text","text":"` + text + `"}]}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// list returns a response to tools/list.
func (h *hostile) list() string {
	h.mu.Lock()
	h.lists++
	n := h.lists
	h.mu.Unlock()
	count, next := 3, ""
	switch h.kind {
	case changing:
		count = 500
	case endless:
		count, next = 30, fmt.Sprintf(`,"nextCursor":"%d"`, n)
	case giant:
		if n > 3 {
			next = `,"nextCursor":"` + megabytes + `"`
		}
	}
	tools := []string{`{"name":"` + hostileTool + `","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`}
	for i := range count {
		g := generate(n*count%10_000 + i)
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, g.name, fmt.Sprintf("%s (%d)", g.description, n), g.schema))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]` + next + `}`
}

// serveHostile runs a hostile server as a child process, or all that use HTTP.
func serveHostile(kind string) error {
	if kind == "http" {
		return serveHostileHTTP()
	}
	h := &hostile{kind: kind, w: os.Stdout}
	switch kind {
	case dying:
		return nil
	case forking:
		for range 10 {
			_ = exec.Command("sleep", "60").Start() // as many as there may be
		}
		return nil
	case silent:
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case flood:
		go func() {
			noise := []byte(strings.Repeat("it is all going wrong again\n", 100))
			for {
				if _, err := os.Stderr.Write(noise); err != nil {
					return
				}
			}
		}()
	}
	var raging sync.Once
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		msg := h.answer(line)
		if msg == "" {
			raging.Do(func() { go h.rage(func(m string) string { return m }) }) // it is initialized
			continue
		}
		if kind == drip {
			dripOn(os.Stdout, msg)
		} else if err := h.write(msg); err != nil {
			return err
		}
	}
}

func dripOn(w io.Writer, text string) {
	for i := range len(text) {
		if _, err := io.WriteString(w, text[i:i+1]); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func serveHostileHTTP() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	for _, kind := range hostileSites {
		h := &hostile{kind: kind}
		mux.HandleFunc("POST /"+kind, h.post)
		mux.HandleFunc("GET /"+kind, h.stream)
	}
	fmt.Println(ln.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
		os.Exit(0)
	}()
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}).Serve(ln)
}

func (h *hostile) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	msg := h.answer(body)
	if msg == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "hostile")
	if h.kind == drip && strings.Contains(msg, "tools") {
		dripOn(w, msg)
		return
	}
	_ = writeLine(w, msg) // the client may have left
}

// stream serves the standing event stream.
func (h *hostile) stream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if h.kind == cut {
		fmt.Fprintf(w, "id: %d\nretry: 1\ndata: %s\n\n", time.Now().UnixNano(), listChanged)
		return
	}
	(&hostile{kind: h.kind, w: flushed{w}}).rage(func(m string) string { return "data: " + m + "\n" })
}

// flushed sends each message by itself.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}
