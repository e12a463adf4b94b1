package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamEnv makes this program serve MCP instead of measuring it; its value is an
// [upstreams] in JSON.
const upstreamEnv = "NIZE_BENCH_UPSTREAM"

// upstreams lists what one process serves: server i at /i/mcp.
type upstreams struct {
	Addr    string  `json:"addr"`
	Servers []batch `json:"servers"`
}

// batch is a server with Count generated tools, from number First on. Without tools it has
// the two tools of the call figures, and, if Beyond is set, only forwards them to the
// server there.
type batch struct {
	First  int    `json:"first"`
	Count  int    `json:"count"`
	Beyond string `json:"beyond,omitempty"`
	Text   string `json:"text,omitempty"` // the result instead of one of 100 bytes
}

const (
	readTool  = "read_page"
	writeTool = "write_page"
)

// hundred is a result of 100 bytes.
var hundred = strings.Repeat("0123456789", 10)

func serveUpstream(text string) error {
	var spec upstreams
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("reading %s: %w", upstreamEnv, err)
	}
	ln, err := net.Listen("tcp", spec.Addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	for i, batch := range spec.Servers {
		server, err := newUpstream(batch)
		if err != nil {
			return err
		}
		mux.Handle(fmt.Sprintf("/%d/mcp", i), sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	}
	hs := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
		_ = hs.Close()                       // the measurement is over
	}()
	fmt.Println(ln.Addr())
	if err := hs.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func newUpstream(b batch) (*sdk.Server, error) {
	server := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	answer := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: cmp.Or(b.Text, hundred)}}}, nil
	}
	if b.Beyond != "" {
		beyond, err := connect(context.Background(), b.Beyond, "")
		if err != nil {
			return nil, err
		}
		answer = func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return beyond.session.CallTool(ctx, &sdk.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		}
	}
	schema := json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer","description":"Number of the page."}},"required":["page"]}`)
	if b.Count == 0 {
		server.AddTool(&sdk.Tool{Name: readTool, Description: "Reads a page of the book.", InputSchema: schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, answer)
		server.AddTool(&sdk.Tool{Name: writeTool, Description: "Writes a page of the book.", InputSchema: schema}, answer)
	}
	for i := range b.Count {
		g := generate(b.First + i)
		server.AddTool(&sdk.Tool{Name: g.name, Description: g.description, InputSchema: g.schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: g.reads}}, answer)
	}
	return server, nil
}

// upstream is a running process of upstreams.
type upstream struct {
	addr    string
	servers []batch
	cmd     *exec.Cmd
	stdin   io.Closer
}

// startUpstream starts one on a previous address, or on any for "".
func startUpstream(ctx context.Context, addr string, servers ...batch) (*upstream, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	text, err := json.Marshal(upstreams{Addr: cmp.Or(addr, "127.0.0.1:0"), Servers: servers})
	if err != nil {
		return nil, fmt.Errorf("encoding the upstream's servers: %w", err)
	}
	cmd := exec.CommandContext(ctx, own)
	cmd.Env = append(os.Environ(), upstreamEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the upstream: %w", err)
	}
	u := &upstream{servers: servers, cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		u.kill()
		return nil, fmt.Errorf("waiting for the upstream: %w", err)
	}
	u.addr = strings.TrimSpace(line)
	return u, nil
}

func (u *upstream) url(i int) string { return fmt.Sprintf("http://%s/%d/mcp", u.addr, i) }

// kill ends it like a crash and waits for it; a second call has no effect.
func (u *upstream) kill() {
	_ = u.cmd.Process.Kill() // it may have ended
	_ = u.cmd.Wait()         // "killed" is expected
	_ = u.stdin.Close()      // Wait closed it
}
