package main

import (
	"bufio"
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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"nize/mcp/scan"
	"nize/mcp/schema"
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

// client is a real MCP client on an in-memory transport.
type client struct {
	t       *testing.T
	session *sdk.ClientSession
	out     map[string]json.RawMessage // output schemas
}

func newClient(t *testing.T, b *toolbox) *client {
	t.Helper()
	near, far := sdk.NewInMemoryTransports()
	server, err := newServer(b).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close() // both ends close; whichever is second says so
		_ = server.Wait()
	})
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, session: session, out: map[string]json.RawMessage{}}
	for _, tool := range list.Tools {
		raw, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		c.out[tool.Name] = raw
	}
	return c
}

func testBox(t *testing.T) *toolbox {
	return &toolbox{now: func() time.Time { return noon }, roll: func(n int) int { return n - 1 }, notes: notebook{dir: filepath.Join(t.TempDir(), "new", "notes")}}
}

// call returns the text, the structured content and whether it is an error.
// Structured content must fit the tool's own output schema.
func (c *client) call(name, args string) (text string, structured json.RawMessage, failed bool) {
	c.t.Helper()
	res, err := c.session.CallTool(c.t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Fatalf("%s(%s): %v", name, args, err)
	}
	text = res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return text, nil, true
	}
	structured, err = json.Marshal(res.StructuredContent)
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := schema.Compile(c.out[name])
	if err != nil {
		c.t.Fatalf("%s: output schema: %v", name, err)
	}
	if err := v.Check(structured); err != nil {
		c.t.Errorf("%s(%s): %s: %v", name, args, structured, err)
	}
	return text, structured, false
}

func TestTools(t *testing.T) {
	c := newClient(t, testBox(t))
	for _, test := range []struct{ tool, args, want string }{
		{"current_time", `{"place":"Tokyo"}`, "It is 21:00 on Saturday, 2026-11-21 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"current_time", `{}`, "It is 12:00 on Saturday, 2026-11-21 UTC"},
		{"current_time", `{"place":"tokyo, japan"}`, "It is 21:00 on Saturday, 2026-11-21 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"current_time", `{"place":"the United States"}`, "It is 07:00 on Saturday, 2026-11-21 in United States (America/New_York, UTC-05:00). United States has several time zones; this is America/New_York."},
		{"current_time", `{"place":"São Paulo"}`, "It is 09:00 on Saturday, 2026-11-21 in São Paulo (America/Sao_Paulo, UTC-03:00)"},
		{"current_time", `{"place":"zurich"}`, "It is 13:00 on Saturday, 2026-11-21 in Zürich (Europe/Zurich, UTC+01:00)"},
		{"current_time", `{"place":"asia/kolkata"}`, "It is 17:30 on Saturday, 2026-11-21 in Asia/Kolkata (UTC+05:30)"},
		{"current_time", `{"place":"UTC+5:45"}`, "It is 17:45 on Saturday, 2026-11-21 UTC+05:45"},
		{"current_time", `{"place":"est5edt"}`, "It is 07:00 on Saturday, 2026-11-21 in EST5EDT (UTC-05:00)"},
		{"convert_time", `{"time":"3 pm","from":"New York","to":"Berlin"}`, "15:00 on Saturday, 2026-11-21 in New York (America/New_York, UTC-05:00) is 21:00 on Saturday, 2026-11-21 in Berlin (Europe/Berlin, UTC+01:00)"},
		{"convert_time", `{"time":"2026-07-01 09:30","from":"London","to":"Tokyo"}`, "09:30 on Wednesday, 2026-07-01 in London (Europe/London, UTC+01:00) is 17:30 on Wednesday, 2026-07-01 in Tokyo (Asia/Tokyo, UTC+09:00)"},
		{"convert_time", `{"time":"2026-03-29 02:30","from":"Berlin","to":"UTC"}`, "03:30 on Sunday, 2026-03-29 in Berlin (Europe/Berlin, UTC+02:00) is 01:30 on Sunday, 2026-03-29 UTC. 02:30 does not exist there on that day, since clocks go forward; 03:30 was taken."},
		{"convert_time", `{"time":"2026-01-01T00:00:00Z","to":"Los Angeles"}`, "00:00 on Thursday, 2026-01-01 UTC is 16:00 on Wednesday, 2025-12-31 in Los Angeles (America/Los_Angeles, UTC-08:00)"},
		{"time_difference", `{"from":"London","to":"Tokyo"}`, "Tokyo is 9 hours ahead of London on 2026-11-21: 12:00 in London and 21:00 in Tokyo"},
		{"time_difference", `{"from":"Kathmandu","to":"London","date":"2026-07-01"}`, "London is 4 hours 45 minutes behind Kathmandu on 2026-07-01: 17:45 in Kathmandu and 13:00 in London"},
		{"date_math", `{"days":90}`, "2027-02-19 is a Friday, day 50 of the year, week 2027-W07"},
		{"date_math", `{"date":"2026-01-31","months":1.0}`, "2026-02-28 is a Saturday, day 59 of the year, week 2026-W09"},
		{"date_math", `{"date":"2024-02-29","years":-1}`, "2023-02-28 is a Tuesday, day 59 of the year, week 2023-W09"},
		{"date_math", `{"until":"2027-01-01"}`, "2026-11-21 is a Saturday, day 325 of the year, week 2026-W47; 41 days until 2027-01-01 (Friday), 29 of them Monday to Friday"},
		{"date_math", `{"date":"tomorrow","until":"1500-01-01","place":"Auckland"}`, "2026-11-23 is a Monday, day 327 of the year, week 2026-W48; -192444 days until 1500-01-01 (Monday), -137460 of them Monday to Friday"},
		{"convert_units", `{"value":26.2,"from":"miles","to":"km"}`, "26.2 mi = 42.1648128 km"},
		{"convert_units", `{"value":98.6,"from":"°F","to":"celsius"}`, "98.6 F = 37 C"},
		{"convert_units", `{"value":9007199254740993,"from":"m","to":"mm"}`, "9007199254740993 m = 9007199254740993000 mm"},
		{"convert_units", `{"value":1,"from":"m","to":"ft"}`, "1 m ≈ 3.28083989501312 ft"},
		{"convert_units", `{"value":100,"from":"kilometers per hour","to":"mph"}`, "100 km/h ≈ 62.1371192237334 mph"},
		{"convert_units", `{"value":1,"from":"GiB","to":"mb"}`, "1 GiB = 1073.741824 MB"},
		{"convert_units", `{"value":8,"from":"Mb","to":"MB"}`, "8 Mbit = 1 MB"},
		{"convert_units", `{"value":2,"from":"cups","to":"ml"}`, "2 cup = 473.176473 ml"},
		{"calculate", `{"expression":"(19.99 * 3 + 4.50) * 1.081"}`, "(19.99 * 3 + 4.50) * 1.081 = 69.69207"},
		{"calculate", `{"expression":"9007199254740993 + 0.1 + 0.2"}`, "9007199254740993 + 0.1 + 0.2 = 9007199254740993.3"},
		{"calculate", `{"expression":"1/3"}`, "1/3 ≈ 0.333333333333333 (1/3)"},
		{"calculate", `{"expression":"2^10! "}`, ""},
		{"calculate", `{"expression":"-2^2 + 2**3**2 - 7 % 4"}`, "-2^2 + 2**3**2 - 7 % 4 = 505"},
		{"calculate", `{"expression":"200 + 15%*200"}`, "200 + 15%*200 = 230"},
		{"calculate", `{"expression":"sqrt(2)"}`, "sqrt(2) ≈ 1.4142135623731"},
		{"calculate", `{"expression":"√16 + 3² + 2(3+4) + round(2.345, 2) + max(1,5!,3)"}`, "√16 + 3² + 2(3+4) + round(2.345, 2) + max(1,5!,3) = 149.35"},
		{"roll_dice", `{"dice":"2d6 + 3"}`, "2d6+3: 15 (2d6: 6 6, 3)"},
		{"roll_dice", `{"dice":"4d6kh3-d%"}`, "4d6kh3-d%: -82 (4d6kh3: 6 6 6 6, -d%: 100)"},
		{"random_pick", `{"items":["a","b","c"],"count":2}`, "Picked: c, a"},
		{"text_stats", `{"text":"One two. Three!\n\nFour 日本"}`, "24 characters (19 without spaces), 28 bytes, 5 words, 3 lines, 3 sentences, 2 paragraphs; about 2 s to read"},
		{"change_case", `{"text":"parseHTTPBody don't 2","case":"snake"}`, "parse_http_body_dont_2"},
		{"change_case", `{"text":"the o'neil way","case":"title"}`, "The O'neil Way"},
		{"change_case", `{"text":"HELLO world. next ONE","case":"sentence"}`, "Hello world. Next one"},
		{"change_case", `{"text":"some words here","case":"camel"}`, "someWordsHere"},
		{"encode_text", `{"text":"héllo?","encoding":"base64"}`, "aMOpbGxvPw=="},
		{"encode_text", `{"text":"aMOpbGxvPw","encoding":"base64url","direction":"decode"}`, "héllo?"},
		{"encode_text", `{"text":"a b&c","encoding":"url"}`, "a%20b%26c"},
		{"encode_text", `{"text":"68 69","encoding":"hex","direction":"decode"}`, "hi"},
		{"hash_text", `{"text":"abc"}`, "sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"hash_text", `{"text":"abc","algorithm":"crc32"}`, "crc32: 352441c2"},
	} {
		got, _, failed := c.call(test.tool, test.args)
		if test.want == "" && !failed {
			t.Errorf("%s(%s) = %s, want an error", test.tool, test.args, got)
		} else if test.want != "" && (failed || got != test.want) {
			t.Errorf("%s(%s)\n got %s\nwant %s", test.tool, test.args, got, test.want)
		}
	}
}

// TestErrors: what went wrong and what to do, in one line.
func TestErrors(t *testing.T) {
	c := newClient(t, testBox(t))
	for _, test := range []struct{ tool, args, want string }{
		{"current_time", `{"place":"Tokio"}`, `unknown place "Tokio"; did you mean Tokyo (Asia/Tokyo)?`},
		{"current_time", `{"place":"Qqqqqqqqq"}`, "give a larger city in the same zone"},
		{"current_time", `{"place":"../../etc/passwd"}`, "unknown place"},
		{"current_time", `{"place":"local"}`, "unknown place"},
		{"current_time", `{"place":"UTC+25"}`, "out of range"},
		{"current_time", `{"place":"Paris, Jamaica"}`, "give the IANA zone"},
		{"current_time", `{"city":"Tokyo"}`, "/city is not a parameter; there are /place"},
		{"convert_time", `{"tim":"12:00"}`, "/to is required (string: Where to convert it to: city, country, IANA zone or UTC offset); /tim is not a parameter, did you mean /time?"},
		{"convert_time", `{"time":"half past","to":"Tokyo"}`, `can't read the time "half past": write 15:04`},
		{"date_math", `{"date":"2026-02-30"}`, "write it as 2006-01-02"},
		{"date_math", `{"years":9000}`, "only the years 1 to 9999"},
		{"convert_units", `{"value":1,"from":"metre","to":"kg"}`, "m is a unit of length and kg one of mass"},
		{"convert_units", `{"value":1,"from":"kilometr","to":"m"}`, "did you mean kilometer?"},
		{"convert_units", `{"value":-300,"from":"C","to":"K"}`, "below absolute zero"},
		{"convert_units", `{"value":"1","from":"m","to":"km"}`, `/value must be a number, received "1"`},
		{"calculate", `{"expression":"1/0"}`, "division by zero"},
		{"calculate", `{"expression":"2^9^9^9"}`, "too large"},
		{"calculate", `{"expression":"sqr(2)"}`, "did you mean sqrt?"},
		{"calculate", `{"expression":"1 +"}`, "ends too early"},
		{"calculate", `{"expression":"` + strings.Repeat("(", 500) + `"}`, "nested deeper"},
		{"roll_dice", `{"dice":"2x6"}`, "dice are written like 2d6+3"},
		{"roll_dice", `{"dice":"9999d6"}`, "more than 1000 dice"},
		{"random_pick", `{"items":["a"],"count":2}`, "give more items or a smaller count"},
		{"encode_text", `{"text":"%zz","encoding":"url","direction":"decode"}`, "that is not url"},
		{"encode_text", `{"text":"ff","encoding":"hex","direction":"decode"}`, "not text: 1 bytes, in hex ff"},
		{"change_case", `{"text":"x","case":"uper"}`, `did you mean "upper"?`},
		{"note_read", `{"id":7}`, "there are no notes at all"},
		{"note_search", `{"query":" "}`, "the query is empty"},
	} {
		got, _, failed := c.call(test.tool, test.args)
		if !failed || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s(%s)\n got %s\nwant %s", test.tool, test.args, got, test.want)
		}
	}
}

func TestNotebook(t *testing.T) {
	b := testBox(t)
	c := newClient(t, b)
	add := func(args, want string) {
		t.Helper()
		if got, _, failed := c.call("note_add", args); failed || got != want {
			t.Errorf("note_add(%s) = %s, want %s", args, got, want)
		}
	}
	if got, _, _ := c.call("note_list", `{}`); got != "There are no notes yet." {
		t.Errorf("note_list = %s", got)
	}
	add(`{"text":"milk\nbread","title":"Shopping","tags":["home"]}`, "Added note 1: Shopping")
	add(`{"text":"call Ann\nabout the bread"}`, "Added note 2: call Ann")
	if got, _, failed := c.call("note_delete", `{"id":2}`); failed || got != "Deleted note 2: call Ann" {
		t.Errorf("note_delete = %s", got)
	}
	add(`{"text":"third"}`, "Added note 3: third") // an id is never used again

	c = newClient(t, &toolbox{now: b.now, notes: notebook{dir: b.notes.dir}}) // another process
	for _, test := range []struct{ tool, args, want string }{
		{"note_list", `{}`, "3: third (2026-11-21)\n1: Shopping (2026-11-21) #home"},
		{"note_list", `{"limit":1}`, "3: third (2026-11-21)\n… and 1 more"},
		{"note_list", `{"tag":"home"}`, "1: Shopping (2026-11-21) #home"},
		{"note_search", `{"query":"BREAD home"}`, "1: Shopping (2026-11-21) #home"},
		{"note_search", `{"query":"beer"}`, "None of the 2 notes fits."},
		{"note_read", `{"id":1}`, "Shopping\n\nmilk\nbread"},
	} {
		if got, _, failed := c.call(test.tool, test.args); failed || got != test.want {
			t.Errorf("%s(%s) = %s, want %s", test.tool, test.args, got, test.want)
		}
	}
	if got, _, failed := c.call("note_delete", `{"id":2}`); !failed || got != "there is no note 2: the newest is 3 (third); note_list shows all" {
		t.Errorf("note_delete = %s", got)
	}
	info, err := os.Stat(b.notes.path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("notes.json: %v, %v", info, err)
	}
	left, err := filepath.Glob(filepath.Join(b.notes.dir, "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.WriteFile(b.notes.path(), []byte(`{"next":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, failed := c.call("note_add", `{"text":"x"}`); !failed || !strings.Contains(got, "damaged") {
		t.Errorf("on a damaged file: %s", got)
	}
}

// TestNotebookTogether: several toolboxes write at once and nothing is lost.
func TestNotebookTogether(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 4, 8
	done := make(chan error, writers)
	for range writers {
		b := &toolbox{notes: notebook{dir: dir}}
		go func() {
			var err error
			for range each {
				_, _, e := b.noteAdd(addArgs{Text: "x"})
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

// TestDefinitions: what a gateway and a model are shown is complete and true.
func TestDefinitions(t *testing.T) {
	c := newClient(t, testBox(t))
	if got := c.session.InitializeResult().Instructions; got != instructions {
		t.Errorf("instructions %q", got)
	}
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		var in struct {
			Properties map[string]struct{ Description string }
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err := errors.Join(err, json.Unmarshal(raw, &in)); err != nil {
			t.Fatal(err)
		}
		for name, p := range in.Properties {
			if p.Description == "" {
				t.Errorf("%s: /%s has no description", tool.Name, name)
			}
		}
		a := tool.Annotations
		writes, erases := strings.HasPrefix(tool.Name, "note_add"), tool.Name == "note_delete"
		if a.ReadOnlyHint == (writes || erases) || *a.DestructiveHint != erases || *a.OpenWorldHint || a.IdempotentHint == writes {
			t.Errorf("%s: annotations %+v", tool.Name, a)
		}
		if tool.Description == "" || tool.Title == "" || tool.OutputSchema == nil {
			t.Errorf("%s is not described", tool.Name)
		}
	}
	if diff := cmp.Diff(len(list.Tools), 17); diff != "" {
		t.Errorf("tools: %s", diff)
	}
}

func TestPlaces(t *testing.T) {
	for k, p := range gazetteer() {
		if _, err := time.LoadLocation(p.zone); err != nil {
			t.Errorf("%s: %v", k, err)
		}
		if _, err := find(p.name); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	for name, u := range units() {
		if found, err := findUnit(name); err != nil || found.symbol != u.symbol {
			t.Errorf("%s: found %s, %v, want %s", name, found.symbol, err, u.symbol)
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
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "note_add", Arguments: json.RawMessage(`{"text":"hello"}`)})
	if err != nil || res.IsError {
		t.Errorf("note_add: %v, %v", res, err)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

func TestHTTP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := toolboxProcess(t, "--http", "127.0.0.1:0", "--notes", t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("first line %q, %v, %s", line, err, &stderr)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
			&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: httpClient, DisableStandaloneSSE: true}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "hash_text", Arguments: json.RawMessage(`{"text":"abc","algorithm":"crc32"}`)})
		if err != nil || res.IsError {
			t.Errorf("%s: %v, %v", version, res, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: closing: %v", version, err)
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.Body.Close(); res.StatusCode != http.StatusForbidden {
			t.Errorf("origin %s: %s", origin, res.Status)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stopping: %v: %s", err, &stderr)
	}
}

// TestPanic: a tool that panics is an error of its call.
func TestPanic(t *testing.T) {
	broken := tool{name: "broken", in: object(""), run: func(context.Context, json.RawMessage) (json.RawMessage, string, error) { panic("x") }}
	res, err := handle(broken)(t.Context(), &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{}})
	if err != nil || !res.IsError {
		t.Errorf("got %v, %v", res, err)
	}
}

// TestGateFits: the toolbox's own definitions are small enough for any gateway.
func TestGateFits(t *testing.T) {
	total := 0
	for _, tool := range testBox(t).tools() {
		total += len(tool.in) + len(tool.out) + len(tool.description)
		if _, err := store.Canonical([]byte(tool.in)); err != nil {
			t.Errorf("%s: %v", tool.name, err)
		}
		if _, err := store.Canonical([]byte(tool.out)); err != nil {
			t.Errorf("%s: %v", tool.name, err)
		}
	}
	c := newClient(t, testBox(t))
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		in, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		listed := store.Tool{Name: tool.Name, Title: tool.Title, Description: tool.Description, InputSchema: in, OutputSchema: c.out[tool.Name]}
		if err := (scan.Gate{}).Check(listed); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		if _, findings := (scan.Gate{}).Pin(store.Server{}, instructions, listed); len(findings) > 0 {
			t.Errorf("%s: %q", tool.Name, findings)
		}
	}
	if total > 20_000 {
		t.Error(fmt.Sprint("definitions take ", total, " bytes"))
	}
}
