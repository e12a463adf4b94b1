package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"nize/mcp/scan"
	"nize/store"
)

// asMain makes the test binary a toolbox, for what only a process shows.
const asMain = "NIZE_TOOLBOX_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// noon is the clock of all tests: a Saturday.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testBox(t *testing.T) *toolbox {
	return &toolbox{now: func() time.Time { return noon }, roll: func(n int) int { return n - 1 }, notes: notebook{dir: filepath.Join(t.TempDir(), "new", "notes")}}
}

// connect returns a real MCP client on an in-memory transport. Its SDK checks
// structured content against the tool's schema on the server's side.
func connect(t *testing.T, b *toolbox, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	near, far := sdk.NewInMemoryTransports()
	server, err := newServer(b).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close() // both ends close; whichever is second returns an error
		_ = server.Wait()
	})
	return session
}

func call(t *testing.T, session *sdk.ClientSession, name, args string) (text string, failed bool) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s(%s): %v", name, args, err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func TestTools(t *testing.T) {
	session := connect(t, testBox(t), nil)
	for _, test := range []struct{ tool, args, want string }{
		{"current_time", `{"place":"Tokyo"}`, "It is 21:00 on Saturday, 2026-11-21 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"current_time", `{}`, "It is 12:00 on Saturday, 2026-11-21 in UTC"},
		{"current_time", `{"place":"tokyo, japan"}`, "It is 21:00 on Saturday, 2026-11-21 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"current_time", `{"place":"the United States"}`, "It is 07:00 on Saturday, 2026-11-21 in United States (America/New_York, UTC-05:00). United States has several time zones; this is America/New_York."},
		{"current_time", `{"place":"Sao Paulo"}`, "It is 09:00 on Saturday, 2026-11-21 in São Paulo (America/Sao_Paulo, UTC-03:00)"},
		{"current_time", `{"place":"asia/kolkata"}`, "It is 17:30 on Saturday, 2026-11-21 in Asia/Kolkata"},
		{"current_time", `{"place":"UTC+5:45"}`, "It is 17:45 on Saturday, 2026-11-21 in UTC+05:45"},
		{"current_time", `{"place":"-3"}`, "It is 09:00 on Saturday, 2026-11-21 in UTC-03:00"},
		{"current_time", `{"place":"est5edt"}`, "It is 07:00 on Saturday, 2026-11-21 in EST5EDT"},
		{"convert_time", `{"time":"14:30","from":"Lisbon","to":"Tokyo"}`, "14:30 on Saturday, 2026-11-21 in Lisbon (Europe/Lisbon, UTC+00:00) is 23:30 on Saturday, 2026-11-21 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"convert_time", `{"time":"3 pm","from":"New York","to":"UTC"}`, "15:00 on Saturday, 2026-11-21 in New York (America/New_York, UTC-05:00) is 20:00 on Saturday, 2026-11-21 in UTC"},
		{"convert_time", `{"time":"2026-06-01 9:05 a.m.","from":"Berlin","to":"UTC"}`, "09:05 on Monday, 2026-06-01 in Berlin (Europe/Berlin, UTC+02:00) is 07:05 on Monday, 2026-06-01 in UTC"},
		{"convert_time", `{"time":"2026-06-01T09:05:00-04:00","to":"UTC"}`, "13:05 on Monday, 2026-06-01 in UTC is 13:05 on Monday, 2026-06-01 in UTC"},
		{"convert_time", `{"time":"noon","to":"Kathmandu"}`, "12:00 on Saturday, 2026-11-21 in UTC is 17:45 on Saturday, 2026-11-21 in Kathmandu (Asia/Kathmandu, UTC+05:45)"},
		{"time_difference", `{"from":"London","to":"New York"}`, "New York is 5 hours behind London: 12:00 on Saturday, 2026-11-21 in London (Europe/London, UTC+00:00) is 07:00 on Saturday, 2026-11-21 in New York (America/New_York, UTC-05:00)"},
		{"convert_units", `{"value":26.2,"from":"miles","to":"km"}`, "26.2 mi = 42.1648128 km"},
		{"convert_units", `{"value":98.6,"from":"°F","to":"celsius"}`, "98.6 F = 37 C"},
		{"convert_units", `{"value":1,"from":"meters per second","to":"km/h"}`, "1 m/s = 3.6 km/h"},
		{"convert_units", `{"value":8,"from":"Mb","to":"mb"}`, "8 Mbit = 1 MB"},
		{"convert_units", `{"value":1,"from":"square_feet","to":"m2"}`, "1 ft2 = 0.09290304 m2"},
		{"convert_units", `{"value":1,"from":"km","to":"ly"}`, "1 km ≈ 1.05700083402462e-13 ly"},
		{"calculate", `{"expression":"6*7"}`, "6*7 = 42"},
		{"calculate", `{"expression":"0.1+0.2"}`, "0.1+0.2 = 0.3"},
		{"calculate", `{"expression":"(19.99 * 3 + 4.50) * 1.081"}`, "(19.99 * 3 + 4.50) * 1.081 = 69.69207"},
		{"calculate", `{"expression":"1/3"}`, "1/3 ≈ 0.333333333333333"},
		{"calculate", `{"expression":"-2^2 + 2^-1"}`, "-2^2 + 2^-1 = -3.5"},
		{"calculate", `{"expression":"2^3^2"}`, "2^3^2 = 512"},
		{"calculate", `{"expression":"9223372036854775807 + 1"}`, "9223372036854775807 + 1 ≈ 9.22337203685478e+18"},
		{"calculate", `{"expression":"17% * 2340 − 7 % 4"}`, "17% * 2340 − 7 % 4 = 394.8"},
		{"calculate", `{"expression":"-7 % 4"}`, "-7 % 4 = 1"},
		{"calculate", `{"expression":"17/100*2340"}`, "17/100*2340 = 397.8"},
		{"calculate", `{"expression":"5! + 2(3+4) × 2pi/pi"}`, "5! + 2(3+4) × 2pi/pi = 148"},
		{"calculate", `{"expression":"sqrt(144) + log(1000) + cbrt(27) + log2(8)"}`, "sqrt(144) + log(1000) + cbrt(27) + log2(8) = 21"},
		{"calculate", `{"expression":"max(1, 7, 3) + round(2.345, 2) + round(2.5) + abs(-3)"}`, "max(1, 7, 3) + round(2.345, 2) + round(2.5) + abs(-3) = 15.35"},
		{"roll_dice", `{"dice":"2d6 + 3"}`, "2d6+3: 15 [6 6]"},
		{"roll_dice", `{"dice":"D20"}`, "D20: 20 [20]"},
		{"change_case", `{"text":"Größe 5","case":"upper"}`, "GRÖßE 5"},
		{"show_color", `{"color":"#FF8800"}`, "#FF8800 is #ff8800: red 255, green 136, blue 0"},
		{"show_color", `{"color":"dark green"}`, "dark green is #006400: red 0, green 100, blue 0"},
	} {
		if got, failed := call(t, session, test.tool, test.args); failed || got != test.want {
			t.Errorf("%s(%s)\n got %s\nwant %s", test.tool, test.args, got, test.want)
		}
	}
}

// Errors say what went wrong and what to do, in one line.
func TestErrors(t *testing.T) {
	session := connect(t, testBox(t), nil)
	for _, test := range []struct{ tool, args, want string }{
		{"current_time", `{"place":"Tokio"}`, `unknown place "Tokio"; did you mean tokyo?`},
		{"current_time", `{"place":"Qqqqqqqqq"}`, "give a larger city in the same zone"},
		{"current_time", `{"place":"../../etc/passwd"}`, "unknown place"},
		{"current_time", `{"place":"local"}`, "unknown place"},
		{"current_time", `{"place":"UTC+25"}`, "out of range"},
		{"current_time", `{"city":"Tokyo"}`, `unexpected additional properties ["city"]`},
		{"convert_time", `{"time":"12:00"}`, `missing properties: ["to"]`},
		{"convert_time", `{"time":"half past","to":"Tokyo"}`, `write 15:04`},
		{"convert_units", `{"value":1,"from":"metre","to":"kg"}`, "m is a unit of length and kg one of mass"},
		{"convert_units", `{"value":1,"from":"kilometr","to":"m"}`, "did you mean kilometer?"},
		{"convert_units", `{"value":-300,"from":"C","to":"K"}`, "below absolute zero"},
		{"calculate", `{"expression":"1/0"}`, "a division by zero"},
		{"calculate", `{"expression":"2^9^9^9"}`, "more than 308 digits"},
		{"calculate", `{"expression":"sqrt(-1)"}`, "root of a negative number"},
		{"calculate", `{"expression":"squirt(2)"}`, "unknown name squirt"},
		{"calculate", `{"expression":"1 +"}`, "can't read the expression"},
		{"calculate", `{"expression":"'a' + 'b'"}`, "can't read the expression"},
		{"calculate", `{"expression":"sum(map(1..99999999, 1))"}`, "can't read the expression"},
		{"calculate", `{"expression":"` + strings.Repeat("(", 900) + `"}`, "can't read the expression"},
		{"roll_dice", `{"dice":"2x6"}`, "dice are written like 2d6+3"},
		{"roll_dice", `{"dice":"9999d6"}`, "dice are written like 2d6+3"},
		{"change_case", `{"text":"x","case":"uper"}`, "enum"},
		{"show_color", `{"color":"tael"}`, `unknown color "tael": write it as #ff8800; did you mean teal?`},
		{"show_color", `{"color":"#ff88"}`, "write it as #ff8800"},
		{"note_read", `{"id":7}`, "there is no note 7"},
	} {
		got, failed := call(t, session, test.tool, test.args)
		if !failed || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s(%s)\n got %s\nwant %s", test.tool, test.args, got, test.want)
		}
	}
}

func TestNotes(t *testing.T) {
	b := testBox(t)
	session := connect(t, b, nil)
	says := func(tool, args, want string) {
		t.Helper()
		if got, failed := call(t, session, tool, args); failed || got != want {
			t.Errorf("%s(%s) = %s, want %s", tool, args, got, want)
		}
	}
	says("note_list", `{}`, "0 of all 0 notes:")
	says("note_add", `{"text":"milk\nbread","title":"Shopping","tags":["home"]}`, "Added note 1: Shopping")
	says("note_add", `{"text":"call Ann\nabout the bread"}`, "Added note 2: call Ann")
	says("note_delete", `{"id":2}`, "Deleted note 2: call Ann")
	says("note_add", `{"text":"third"}`, "Added note 3: third") // an id is never used again

	session = connect(t, &toolbox{now: b.now, notes: notebook{dir: b.notes.dir}}, nil) // as another process
	says("note_list", `{}`, "2 of all 2 notes:\n3: third (2026-11-21)\n1: Shopping (2026-11-21)")
	says("note_list", `{"limit":1}`, "1 of all 2 notes:\n3: third (2026-11-21)")
	says("note_list", `{"query":"BREAD home"}`, "1 of all 2 notes:\n1: Shopping (2026-11-21)")
	says("note_list", `{"query":"beer"}`, "0 of all 2 notes:")
	says("note_read", `{"id":1}`, "Shopping\n\nmilk\nbread")
	if got, failed := call(t, session, "note_delete", `{"id":2}`); !failed || got != "there is no note 2; note_list shows all" {
		t.Errorf("deleting twice: %s", got)
	}
	if info, err := os.Stat(b.notes.path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("notes.json: %v, %v", info, err)
	}
	if err := os.WriteFile(b.notes.path(), []byte(`{"next":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, failed := call(t, session, "note_add", `{"text":"x"}`); !failed || !strings.Contains(got, "damaged") {
		t.Errorf("on a damaged file: %s", got)
	}
}

// Several toolboxes write at once and nothing is lost.
func TestNotesTogether(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 4, 8
	done := make(chan error, writers)
	for range writers {
		b := &toolbox{now: time.Now, notes: notebook{dir: dir}}
		go func() {
			var err error
			for range each {
				_, _, e := b.noteAdd(noteAddArgs{Text: "x"})
				err = errors.Join(err, e)
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	f, err := (&notebook{dir: dir}).read()
	if err != nil || len(f.Notes) != writers*each || f.Next != writers*each+1 {
		t.Errorf("%d notes, next %d, %v", len(f.Notes), f.Next, err)
	}
}

func TestPicture(t *testing.T) {
	res, err := connect(t, testBox(t), nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "show_color", Arguments: json.RawMessage(`{"color":"teal"}`)})
	if err != nil || len(res.Content) != 2 {
		t.Fatalf("got %+v, %v", res, err)
	}
	picture, err := png.Decode(bytes.NewReader(res.Content[1].(*sdk.ImageContent).Data))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, a := picture.At(80, 48).RGBA(); r != 0 || g != 0x8080 || b != 0x8080 || a != 0xffff {
		t.Errorf("painted %x %x %x %x", r, g, b, a)
	}
}

// A countdown reports each second to a client that asked for it, and ends when
// its call is cancelled.
func TestCountdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		session := connect(t, testBox(t), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			reports = append(reports, fmt.Sprintf("%v/%v %s", r.Params.Progress, r.Params.Total, r.Params.Message))
		}})
		params := &sdk.CallToolParams{Name: "countdown", Arguments: json.RawMessage(`{"seconds":3}`)}
		params.SetProgressToken("p")
		res, err := session.CallTool(t.Context(), params)
		if err != nil || res.IsError {
			t.Fatalf("got %+v, %v", res, err)
		}
		synctest.Wait()
		if diff := cmp.Diff(reports, []string{"1/3 2 s left", "2/3 1 s left", "3/3 0 s left"}); diff != "" {
			t.Error(diff)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "countdown", Arguments: json.RawMessage(`{"seconds":3600}`)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cancelled countdown: %v", err)
		}
		_ = session.Close()
		synctest.Wait() // fails if the countdown still runs
	})
}

// What a gateway and a model are shown is complete, true and accepted by the gateway's scan.
func TestDefinitions(t *testing.T) {
	session := connect(t, testBox(t), nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 13 {
		t.Fatalf("got %+v, %v", list, err)
	}
	for _, tool := range list.Tools {
		in, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]struct {
				Type        string
				Description string
			}
		}
		if err := json.Unmarshal(in, &schema); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		for name, p := range schema.Properties {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s: /%s is %+v", tool.Name, name, p)
			}
		}
		a, adds, erases := tool.Annotations, tool.Name == "note_add", tool.Name == "note_delete"
		if a.ReadOnlyHint == (adds || erases) || *a.DestructiveHint != erases || *a.OpenWorldHint || a.IdempotentHint == adds {
			t.Errorf("%s: annotations %+v", tool.Name, a)
		}
		listed := store.Tool{Name: tool.Name, Title: tool.Title, Description: tool.Description, InputSchema: in, OutputSchema: out}
		if err := (scan.Gate{}).Check(listed); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		if _, findings := (scan.Gate{}).Pin(store.Server{}, instructions, listed); len(findings) > 0 {
			t.Errorf("%s: %q", tool.Name, findings)
		}
	}
}

// Each name in the two tables stands for what its line says.
func TestData(t *testing.T) {
	for k, p := range gazetteer() {
		if found, err := find(p.name); err != nil || found.loc.String() != p.zone {
			t.Errorf("%s: %+v, %v", k, found, err)
		}
	}
	for name, u := range units() {
		if found, err := findUnit(name); err != nil || found.symbol != u.symbol || !(found.factor > 0) {
			t.Errorf("%s: found %+v, %v, want %s", name, found, err, u.symbol)
		}
	}
}

func toolboxProcess(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.WaitDelay = time.Second
	return cmd
}

func TestProcess(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{{[]string{"--version"}, "nize-toolbox "}, {[]string{"--help"}, "Usage:"}} {
		out, err := toolboxProcess(t, test.args...).Output()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %s, %v", test.args, out, err)
		}
	}
	for _, args := range [][]string{{"--http", "0.0.0.0:0"}, {"--http", "x"}, {"--nope"}, {"extra"}} {
		out, err := toolboxProcess(t, args...).CombinedOutput()
		if err == nil || strings.Count(string(out), "\n") != 1 || !strings.HasPrefix(string(out), "nize-toolbox: ") {
			t.Errorf("%v: %s, %v, want one line and a failure", args, out, err)
		}
	}
	// Standard input ends, also in the middle of a line.
	for _, input := range []string{"", `{"jsonrpc":"2.0","id":1,"meth`} {
		cmd := toolboxProcess(t, "--notes", t.TempDir())
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("input %q: %s, %v", input, out, err)
		}
	}
}

func TestStdio(t *testing.T) {
	cmd := toolboxProcess(t, "--notes", t.TempDir())
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, session, "note_add", `{"text":"hello"}`); failed {
		t.Errorf("note_add: %s", text)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

func TestHTTP(t *testing.T) {
	cmd := toolboxProcess(t, "--http", "127.0.0.1:0", "--notes", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // killed
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("first line %q, %v", line, err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: httpClient, DisableStandaloneSSE: true}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if text, failed := call(t, session, "calculate", `{"expression":"6*7"}`); failed || text != "6*7 = 42" {
			t.Errorf("%s: %s", version, text)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: closing: %v", version, err)
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusForbidden {
			t.Errorf("origin %s: %s", origin, res.Status)
		}
	}
}

// A tool that panics is an error of its call.
func TestPanic(t *testing.T) {
	b := testBox(t)
	b.roll = func(int) int { panic("x") }
	if text, failed := call(t, connect(t, b, nil), "roll_dice", `{"dice":"d6"}`); !failed || !strings.Contains(text, "because of a bug") {
		t.Errorf("got %s, failed %v", text, failed)
	}
}

func FuzzCalculate(f *testing.F) {
	for _, s := range []string{"2(3+4)", "50%", "5!", "1..9", "{a:1}", "2 % 0", "map([1], #)", "√2", "sqrt(", "1e999"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		if len(s) <= 1000 {
			_, _ = evaluate(s)
		}
	})
}

func FuzzPlacesAndUnits(f *testing.F) {
	f.Add("UTC+5:45", "3 pm", "square feet")
	f.Fuzz(func(_ *testing.T, place, at, unit string) {
		_, _ = findUnit(unit)
		if p, err := find(place); err == nil {
			_, _ = parseTime(at, p.loc, noon)
		}
	})
}

var update = flag.Bool("update", false, "write the tools that the evaluation of discovery uses")

// TestEvaluated keeps the tools that mcp/index/eval measures like those of this server.
func TestEvaluated(t *testing.T) {
	session := connect(t, testBox(t), nil)
	res, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	lines := json.NewEncoder(&want)
	lines.SetEscapeHTML(false)
	for _, tool := range res.Tools {
		err := lines.Encode(map[string]any{"id": "toolbox/" + tool.Name, "server": "toolbox", "name": tool.Name, "description": tool.Description, "input_schema": tool.InputSchema})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join("..", "..", "mcp", "index", "eval", "testdata", "toolbox", "tools.jsonl")
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("the evaluated tools are older than this server's (-update writes them): -want +got\n%s", diff)
	}
}
