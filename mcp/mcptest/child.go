package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// childEnv is the environment variable with the options of a child process.
const childEnv = "MCPTEST_CHILD"

// Command returns how to start the fake as a child process: the test binary, and the
// environment that it needs.
func (s *Server) Command() (path string, env map[string]string) {
	s.t.Helper()
	path, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	opt := s.opt
	opt.Tools = nil
	for _, t := range s.tools {
		opt.Tools = append(opt.Tools, t)
	}
	s.mu.Unlock()
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // keep raw results unchanged
	if err := enc.Encode(opt); err != nil {
		s.t.Fatal(err)
	}
	return path, map[string]string{childEnv: strings.TrimSpace(raw.String())}
}

// ChildMain runs the fake over standard input and output and never returns if this process
// was started as one; otherwise it returns immediately. Call it first in TestMain.
func ChildMain() {
	if len(os.Args) == 2 && os.Args[1] == grandchild {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		time.Sleep(10 * time.Minute)
		os.Exit(0)
	}
	raw, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	var opt Options
	if err := json.Unmarshal([]byte(raw), &opt); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		os.Exit(2)
	}
	if opt.Log != "" {
		fmt.Fprintln(os.Stderr, opt.Log)
	}
	s := build(opt)
	switch opt.Fault {
	case Dead:
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	case Deaf:
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it ends with the test
		os.Exit(0)
	case Stubborn:
		signal.Ignore(syscall.SIGTERM)
	case Noise:
		fmt.Println("Starting server...")
		fmt.Println("listening on stdio")
	case Storm:
		go s.storm()
	}
	if err := s.real.Run(context.Background(), &interceptor{Transport: &sdk.StdioTransport{}, server: s}); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
	}
	if opt.Fault == Stubborn {
		time.Sleep(10 * time.Minute)
	}
	os.Exit(0)
}

var stdout sync.Mutex // in a child, for writes of the interceptor and of faults

func (s *Server) storm() {
	for {
		stdout.Lock()
		_, err := os.Stdout.WriteString(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		stdout.Unlock()
		if err != nil {
			return
		}
	}
}

// grandchild is the argument that marks a process as a grandchild.
const grandchild = "mcptest-grandchild"

// fork starts a process that outlives this one unless it is killed.
func fork(session bool) int {
	cmd := exec.Command(os.Args[0], grandchild)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 0
	}
	return cmd.Process.Pid
}

// interceptor is a transport whose connection handles the requests that the fake answers
// itself.
type interceptor struct {
	sdk.Transport
	server *Server
}

func (i *interceptor) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := i.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &intercepted{Connection: c, server: i.server}, nil
}

type intercepted struct {
	sdk.Connection
	server *Server
}

func (c *intercepted) Write(ctx context.Context, msg jsonrpc.Message) error {
	stdout.Lock()
	defer stdout.Unlock()
	return c.Connection.Write(ctx, msg)
}

func (c *intercepted) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			if c.server.answered(m) {
				continue
			}
		case *jsonrpc.Request:
			if m.Method == "tools/list" {
				if result, ok := c.server.page(m.Params); ok {
					if err := c.Write(ctx, &jsonrpc.Response{ID: m.ID, Result: result}); err != nil {
						return nil, err
					}
					continue
				}
			}
			if m.Method == "tools/call" && c.server.intercepts(m.Params) {
				if c.server.faultOf(m.Params) == Wedge {
					for { // stop reading; without cgo, Go would end a program in which no goroutine can wake up
						<-time.After(time.Hour)
					}
				}
				go c.call(ctx, m)
				continue
			}
		}
		return msg, nil
	}
}

func (s *Server) faultOf(params json.RawMessage) Fault {
	var p struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[p.Name].Fault
}

// intercepts reports whether the fake answers this call itself.
func (s *Server) intercepts(params json.RawMessage) bool {
	var p struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tools[p.Name]
	return ok && (t.Result != nil || t.Do != nil || t.Fault != "")
}

// call answers one call in a child or in memory.
func (c *intercepted) call(ctx context.Context, m *jsonrpc.Request) {
	write := func(msg jsonrpc.Message) error { return c.Write(ctx, msg) }
	result, fault, _ := c.server.reply(ctx, m.ID, m.Params, write)
	raw := func(b []byte) {
		stdout.Lock()
		defer stdout.Unlock()
		os.Stdout.Write(append(b, '\n')) //nolint:errcheck // the parent may have exited
	}
	switch fault {
	case Die:
		os.Exit(7)
	case Hang:
		return
	case Noise:
		for range 5 {
			raw([]byte("DEBUG: handling a request"))
		}
	case Flood:
		raw(bytes.TrimRight(bytes.Repeat([]byte("DEBUG: once more\n"), 1100), "\n"))
	case BigLine, BigBody:
		raw(envelope(m.ID, Text(strings.Repeat("x", 17<<20))))
		return
	case Broken:
		raw([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[`))
		return
	case HTML:
		raw([]byte("<!doctype html>"))
		return
	}
	if os.Getenv(childEnv) != "" {
		raw(envelope(m.ID, result)) // verbatim: the SDK would encode it again
		return
	}
	if err := write(&jsonrpc.Response{ID: m.ID, Result: result}); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
	}
}
