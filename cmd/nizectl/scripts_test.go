package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/daemon/api"
	"nize/mcp/upstream/openapi/openapitest"
	"nize/store/kv/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"nizectl":   func() { os.Exit(Main(patience)) }, // Tab has time on a busy machine
		"mcpcall":   func() { os.Exit(mcpcall()) },
		"hook":      func() { os.Exit(hook()) },
		"apicall":   func() { os.Exit(apicall()) },
		"leaky":     func() { os.Exit(leaky()) },
		"viewed":    func() { os.Exit(viewed()) },
		"mcplisten": func() { os.Exit(mcplisten()) },
	})
}

// patience is how long a script waits for what the daemon does by itself.
const patience = 2 * time.Minute

// TestScripts runs testdata/*.txtar: the real nizectl against the real nized
// with the real nize-toolbox, each script with its own daemon.
//
//	ready              waits until the daemon answers
//	exits N CMD ARGS…  runs a command that must exit with N
//	capture VAR REGEXP keeps the first group found in the last output
//	until REGEXP CMD…  runs a command again until its output matches
//	waiting VAR        waits for a call that needs a yes and keeps its id
//	hangup             sends the daemon a SIGHUP
//	warned REGEXP      waits until a warning of the status matches
//	setting KEY VALUE  waits until a setting has that value
//	slack VAR          starts a pretended Slack and keeps its API's address
//	tokens FILE        writes the tokens of the pretended Slack, one a line
//	slash LINE ANSWER  sends a /nize command as Ann, who reads an answer with ANSWER
//	registry VAR       starts an MCP registry and keeps its address
//	service VAR FILE   starts the service of an OpenAPI document, below /v1, and keeps its address; of one that runs it replaces the document
//	model VAR [ANSWER] starts a model service and keeps its address
//	faults VAR         starts a model service that does things wrong (openaitest) and keeps its address
//	hookservice VAR    starts a service that webhook hooks ask, and keeps its address
//	auth VERB ARGS…    an authorization server before an MCP server
//	browse NAME URL    a browser opens an address, and shows where it ended; with fields it sends a form
//	postgres VAR       makes a database in the PostgreSQL of the tests and keeps its address
//	wire lay VAR       lays a wire to that, which "wire slow 30ms" and "wire cut yes" spoil
//	sameday            waits for midnight in UTC to pass, where it is near
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("scripts build and start nized")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-tags", "urfave_cli_no_template", "-o", bin+string(filepath.Separator), "nize/cmd/nized", "nize/cmd/nize-toolbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as they are released; with the race detector everything would be compiled once more
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building nized and nize-toolbox: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			data := filepath.Join(e.WorkDir, "data")
			for k, v := range map[string]string{
				"PATH": bin + string(os.PathListSeparator) + e.Getenv("PATH"), "HOME": e.WorkDir, "NIZE_DATA_DIR": data, "NIZE_LISTEN": "127.0.0.1:0",
				"NIZE_SOCKET": "", "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "", "NIZE_CONFIG": "", "INVOCATION_ID": "", "TERM": "dumb", "NIZE_ALERTS_DISK": "0", "TZ": "UTC", "BIN": bin,
				// A program with the race detector sleeps for a second before it exits.
				"GORACE": strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0"),
			} {
				e.Setenv(k, v)
			}
			e.Values[wireKey{}] = new([]*postgrestest.Wire)
			e.Values[serviceKey{}] = map[string]*openapitest.Service{}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "postgres" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return os.Getenv(postgrestest.Variable) != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready": scriptReady, "exits": scriptExits, "capture": scriptCapture, "waiting": scriptWaiting,
			"hangup": scriptHangup, "warned": scriptWarned, "setting": scriptSetting,
			"faults": scriptFaults, "mcpserver": scriptMCPServer, "hookservice": scriptHookService, "until": scriptUntil, "model": scriptModel, "registry": scriptRegistry, "service": scriptService, "sameday": scriptSameDay,
			"discord": scriptDiscord, "dslash": scriptDSlash, "dsay": scriptDSay, "dpress": scriptDPress, "dshown": scriptDShown,
			"postgres": scriptPostgres, "wire": scriptWire,
			"auth": scriptAuth, "browse": scriptBrowse, "paste": scriptPaste,
			"slack": scriptSlack, "ssay": scriptSSay, "slash": scriptSlash, "tokens": scriptTokens, "pretend": scriptPretend, "usergroup": scriptUserGroup,
		},
	})
}

func scriptClient(ts *testscript.TestScript) *api.Client {
	return api.New(api.SocketIn(ts.Getenv("NIZE_DATA_DIR")))
}

// until asks again every 20 ms until it is told yes.
func until(ts *testscript.TestScript, what string, ask func(context.Context) bool) {
	untilEvery(ts, 20*time.Millisecond, what, ask)
}

func untilEvery(ts *testscript.TestScript, pause time.Duration, what string, ask func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !ask(ctx) {
		select {
		case <-ctx.Done():
			ts.Fatalf("%s did not come within %v", what, patience)
		case <-tick.C:
		}
	}
}

func scriptReady(ts *testscript.TestScript, neg bool, args []string) {
	c := scriptClient(ts)
	defer c.Close()
	until(ts, "the daemon", func(ctx context.Context) bool { _, err := api.GetStatus.Call(ctx, c, api.Empty{}); return err == nil })
}

func scriptWaiting(ts *testscript.TestScript, neg bool, args []string) {
	c := scriptClient(ts)
	defer c.Close()
	until(ts, "a waiting call", func(ctx context.Context) bool {
		cards, err := api.ListApprovals.Call(ctx, c, api.Empty{})
		if err != nil || len(cards.Items) == 0 {
			return false
		}
		ts.Setenv(args[0], cards.Items[0].Call)
		return true
	})
}

// scriptUntil runs a command again until it succeeds and says what is wanted; with !,
// until it says that no more.
func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] until REGEXP CMD ARGS…")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	// Each is a process: at a quicker pace they would take what they wait for its time.
	untilEvery(ts, 100*time.Millisecond, args[0], func(context.Context) bool {
		return ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) != neg
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N CMD ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VAR REGEXP")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match for %q", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// mcpcall TOKEN TOOL ARGS is an MCP client of the wire of 2025-11-25: it calls
// execute_tool and prints the answer's text. For tools/list it prints the list, for
// initialize its session, which goes on where MCP_SESSION names it.
func mcpcall() int {
	if err := mcpCall(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpcall:", err)
		return 1
	}
	return 0
}

func mcpCall(token, tool, args string) error {
	addr, err := os.ReadFile(filepath.Join(os.Getenv("NIZE_DATA_DIR"), "nized.addr"))
	if err != nil {
		return err
	}
	session := os.Getenv("MCP_SESSION")
	post := func(message string) (string, error) {
		req, err := http.NewRequest("POST", "http://"+strings.TrimSpace(string(addr))+"/mcp", strings.NewReader(message))
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode/100 != 2 {
			return "", fmt.Errorf("HTTP %d: %s (%v)", resp.StatusCode, body, err)
		}
		if session == "" {
			session = resp.Header.Get("Mcp-Session-Id")
		}
		return string(body), nil
	}
	begin := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpcall","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	if session != "" {
		begin = nil
	}
	for _, message := range begin {
		if _, err := post(message); err != nil {
			return err
		}
	}
	if tool == "initialize" {
		fmt.Println("session", session)
		return nil
	}
	if tool == "tools/list" {
		body, err := post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		fmt.Println(body)
		return err
	}
	body, err := post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":%q,"params":%s}}}`, tool, args))
	if err != nil {
		return err
	}
	return printAnswer(body)
}

// printAnswer finds the answer to request 2 in JSON or an event stream.
func printAnswer(body string) error {
	for line := range strings.Lines(body) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data:")
		var message struct {
			ID     json.RawMessage `json:"id"`
			Error  json.RawMessage `json:"error"`
			Result struct {
				IsError bool `json:"isError"`
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
		}
		if json.Unmarshal([]byte(line), &message) != nil || !bytes.Equal(message.ID, []byte("2")) {
			continue
		}
		if message.Error != nil {
			return fmt.Errorf("%s", message.Error)
		}
		for _, c := range message.Result.Content {
			fmt.Println(c.Text)
		}
		if message.Result.IsError {
			return errors.New("the tool failed or was refused")
		}
		return nil
	}
	return fmt.Errorf("no answer in %q", body)
}
