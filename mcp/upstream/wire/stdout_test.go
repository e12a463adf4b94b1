package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainOutput reads messages and noise until the end.
func drainOutput(t testing.TB, r io.Reader) (messages, noise []string) {
	t.Helper()
	o := &stdoutReader{r: r}
	for {
		p, err := o.next()
		switch {
		case err != nil:
			if err != io.EOF { //nolint:errorlint // as it comes from the reader
				noise = append(noise, "error: "+err.Error())
			}
			return messages, noise
		case p.msg != nil:
			messages = append(messages, strings.Join(strings.Fields(string(p.msg)), ""))
		case len(strings.TrimSpace(string(p.noise))) > 0:
			noise = append(noise, strings.Join(strings.Fields(string(p.noise)), " "))
		}
	}
}

// Messages are found among whatever else a command writes, however the pieces come.
func TestMessagesOnStandardOutput(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1000,"result":{}}`, `{"jsonrpc":"2.0","id":1001,"result":{"a":"}{"}}`
	indented := "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1000,\n  \"result\": {}\n}\n"
	for name, c := range map[string]struct {
		out             string
		messages, noise []string
	}{
		"lines":                       {one + "\n" + two + "\n", []string{one, two}, nil},
		"CRLF":                        {one + "\r\n" + two + "\r\n", []string{one, two}, nil},
		"without line breaks":         {one + two, []string{one, two}, nil},
		"blank lines":                 {"\n\n" + one + "\n\n\n" + two + "\n", []string{one, two}, nil},
		"byte order mark":             {"\xef\xbb\xbf" + one + "\n", []string{one}, nil},
		"indented":                    {indented + two + "\n", []string{one, two}, nil},
		"frames":                      {fmt.Sprintf("Content-Length: %d\r\n\r\n%sContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(one), one, len(two), two), []string{one, two}, nil},
		"frames that count runes":     {"Content-Length: 3\r\n\r\n" + one + "Content-Length: 7\r\n\r\n" + two, []string{one, two}, nil},
		"colours around":              {"\x1b[36m" + one + "\x1b[0m\n" + two + "\n", []string{one, two}, nil},
		"a title":                     {"\x1b]0;server\x07" + one + "\n", []string{one}, nil},
		"colours inside":              {"{\x1b[34;1m\"jsonrpc\"\x1b[0m:\"2.0\",\"id\":1000,\"result\":{}}\n", []string{one}, nil},
		"a prompt before":             {"Listening on stdio: " + one + "\n" + two + "\n", []string{one, two}, nil},
		"a prompt, without line ends": {"> " + one + "> " + two, []string{one, two}, nil},
		"text behind":                 {one + " (took 3 ms)\n" + two + "\n", []string{one, two}, []string{"(took 3 ms)"}},
		"log lines":                   {"Starting {fast} server...\n[INFO] ready\n{ port: 3000 }\n" + one + "\n", []string{one}, []string{"Starting {fast} server...", "[INFO] ready", "{ port: 3000 }"}},
		"an object of the log":        {"Response headers: {\n  'access-control': \"*\n}\n{\n  port: \"80\n}\n" + one + "\n", []string{one}, []string{"Response headers: {", "'access-control': \"*", "}", "{", "port: \"80", "}"}},
		"a log that begins like JSON": {"{\"level\":\"info\n" + one + "\n" + two + "\n", []string{one, two}, []string{`{"level":"info`}},
		"a log of JSON":               {`{"level":"info","msg":"ready"}` + "\n" + one + "\n", []string{`{"level":"info","msg":"ready"}`, one}, nil},
		"a line break in a string":    {"{\"jsonrpc\":\"2.0\",\"id\":1000,\"result\":{\"t\":\"a\nb\"}}\n", []string{`{"jsonrpc":"2.0","id":1000,"result":{"t":"a\u000ab"}}`}, nil},
		"NaN":                         {`{"jsonrpc":"2.0","id":1000,"result":{"n":NaN}}` + "\n", []string{`{"jsonrpc":"2.0","id":1000,"result":{"n":null}}`}, nil},
		"a batch":                     {"[" + one + "," + two + "]\n", []string{"[" + one + "," + two + "]"}, nil},
		"cut off":                     {one + "\n" + `{"jsonrpc":"2.0","id":1001,"resu`, []string{one}, []string{`{"jsonrpc":"2.0","id":1001,"resu`}},
		"python":                      {"{'jsonrpc': '2.0', 'id': 1000, 'result': {}}\n", nil, []string{"{'jsonrpc': '2.0', 'id': 1000, 'result': {}}"}},
		// What is only logged is no request of the server's.
		"a request in a log": {`received {"jsonrpc":"2.0","id":1000,"method":"tools/list"}` + "\n" + one + "\n", []string{one}, []string{`received {"jsonrpc":"2.0","id":1000,"method":"tools/list"}`}},
		"usage":              {"usage: server [-h]\n\noptions:\n  -h  help\n", nil, []string{"usage: server [-h]", "options:", "-h help"}},
		"no line break":      {"Please choose a region: ", nil, []string{"Please choose a region:"}},
		"too long":           {`{"` + strings.Repeat("x", MaxMessage+1), nil, []string{"error: it wrote a line over 8 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			readers := map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader, "in bytes": iotest.OneByteReader}
			if len(c.out) > 1<<20 {
				delete(readers, "in bytes")
			}
			for kind, as := range readers {
				messages, noise := drainOutput(t, as(strings.NewReader(c.out)))
				if diff := cmp.Diff(messages, c.messages); diff != "" {
					t.Errorf("%s: messages (-got +want):\n%s", kind, diff)
				}
				if diff := cmp.Diff(noise, c.noise); diff != "" {
					t.Errorf("%s: noise (-got +want):\n%s", kind, diff)
				}
			}
		})
	}
}

// FuzzStdout: it ends, what it takes for a message is JSON, and nothing comes twice.
func FuzzStdout(f *testing.F) {
	for _, s := range []string{"{\"a\":1}\n", "x {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "{\n\"a\":\n{\"jsonrpc\":\"2.0\"}\n", "\x1b[", "\xef\xbb", "[{\n}]", "Content-Length: 2\r\n\r\n{}", "{\"a\x1b[1m\":NaN}\n"} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, slow bool) {
		var r io.Reader = strings.NewReader(string(data))
		if slow {
			r = iotest.OneByteReader(r)
		}
		o := &stdoutReader{r: r}
		size := 0
		for range 2*len(data) + 2 {
			p, err := o.next()
			if err != nil {
				return
			}
			if p.msg != nil && !json.Valid(p.msg) {
				t.Fatalf("%q is no JSON", p.msg)
			}
			if size += p.size; p.size <= 0 || size > len(data) {
				t.Fatalf("a piece of %d bytes, %d in all, of %d", p.size, size, len(data))
			}
		}
		t.Fatal("more pieces than bytes")
	})
}

// program is a server over pipes, written by hand: f gets each request, and writes
// to standard output what it likes.
func program(t testing.TB, begin string, f func(method string, id string, out io.Writer)) (*Peer, *StdioFrames) {
	t.Helper()
	ours, theirs := pipes(t)
	theirs[2].Close()
	proc := &lateEnd{done: make(chan struct{})}
	proc.asked.Store(2) // it does not end by itself
	frames := StartStdio(proc, ours, NewStderrLog(slog.New(slog.DiscardHandler)), NewBudget(), func(string) {})
	p := NewPeer(frames, NewBudget(), func() {}, func(string) {})
	go func() {
		defer theirs[1].Close()
		io.WriteString(theirs[1], begin) //nolint:errcheck // a test's server
		in := bufio.NewScanner(theirs[0])
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(in.Bytes(), &m) == nil && m.ID != nil {
				f(m.Method, string(m.ID), theirs[1])
			}
		}
	}()
	t.Cleanup(func() {
		theirs[0].Close()
		close(proc.done)
		p.Terminate(true)
	})
	return p, frames
}

const helloResult = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"case","version":"1"}}`

// respond answers as an ordinary server does, in a form of the test's.
func respond(form func(id, member, value string) string) func(method, id string, out io.Writer) {
	return func(method, id string, out io.Writer) {
		switch method {
		case "initialize":
			io.WriteString(out, form(id, "result", helloResult)) //nolint:errcheck // a test's server
		default:
			io.WriteString(out, form(id, "result", `{"got":true}`)) //nolint:errcheck // a test's server
		}
	}
}

// ways are a request that is sent beside the SDK's session, and one that it sends.
var ways = []string{MethodCall, MethodList}

// connect makes the SDK's session over a peer and sends one request over it.
func connect(t *testing.T, p *Peer, method string) (json.RawMessage, error) {
	t.Helper()
	c := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{})
	cs, err := c.Connect(t.Context(), p, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
	if err != nil {
		return nil, err
	}
	defer cs.Close()
	return (&PeerSession{p, cs}).Call(t.Context(), &Request{Method: method, Name: "t"})
}

// TestHabitsOverPipes: the whole handshake and a call with servers that keep to
// their own idea of JSON-RPC.
func TestHabitsOverPipes(t *testing.T) {
	t.Parallel()
	message := func(id, member, value string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"` + member + `":` + value + "}"
	}
	for name, form := range map[string]func(id, member, value string) string{
		"to the letter":     func(id, m, v string) string { return message(id, m, v) + "\n" },
		"ids as text":       func(id, m, v string) string { return message(`"`+id+`"`, m, v) + "\n" },
		"ids with fraction": func(id, m, v string) string { return message(id+".0", m, v) + "\n" },
		"ids are null":      func(id, m, v string) string { return message("null", m, v) + "\n" },
		"ids are 0":         func(id, m, v string) string { return message("0", m, v) + "\n" },
		"ids are left out":  func(id, m, v string) string { return `{"jsonrpc":"2.0","` + m + `":` + v + "}\n" },
		"no version":        func(id, m, v string) string { return `{"id":` + id + `,"` + m + `":` + v + "}\n" },
		"frames": func(id, m, v string) string {
			return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message(id, m, v)), message(id, m, v))
		},
		"indented":             func(id, m, v string) string { return strings.ReplaceAll(message(id, m, v), ",", ",\n ") + "\n" },
		"no line breaks":       message,
		"a prompt before each": func(id, m, v string) string { return "\x1b[32m>\x1b[0m " + message(id, m, v) + "\n" },
		"a log line before each": func(id, m, v string) string {
			return "handling " + message(id, "method", `"x"`) + "\n" + message(id, m, v) + "\n"
		},
		"everything twice": func(id, m, v string) string { return message(id, m, v) + "\n" + message(id, m, v) + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range ways {
				p, _ := program(t, "Server {v1} ready\n", respond(form))
				got, err := connect(t, p, method)
				if err != nil || string(got) != `{"got":true}` {
					t.Errorf("%s: got %s, %v", method, got, err)
				}
			}
		})
	}
}

// TestUnreadableAnswerFailsAtOnce: nobody waits for the deadline of a request that
// was answered in a way that nobody can read, and the error says in which.
func TestUnreadableAnswerFailsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, words string }{
		"python":              {"{'jsonrpc': '2.0', 'id': 1001, 'result': {'got': True}}\n", "'jsonrpc'"},
		"a trailing comma":    {`{"jsonrpc":"2.0","id":1001,"result":{"got":true,}}` + "\n", `{"got":true,}`},
		"no quotes":           {`{"jsonrpc":"2.0","id":1001,"result":{"got":yes}}` + "\n", `{"got":yes}`},
		"an error":            {`{"jsonrpc":"2.0","id":1001,"error":{"message":undefined}}` + "\n", "undefined"},
		"hexadecimal":         {`{"jsonrpc":"2.0","id":1001,"result":{"got":0x10}}` + "\n", "0x10"},
		"two messages in one": {`{"jsonrpc":"2.0","id":1001,"result":{"a":1},"result":{"b":2}}` + "\n", "duplicate member"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sent := range ways {
				p, _ := program(t, "", func(method, id string, out io.Writer) {
					if method == "initialize" {
						respond(func(id, m, v string) string { return `{"jsonrpc":"2.0","id":` + id + `,"` + m + `":` + v + "}\n" })(method, id, out)
						return
					}
					io.WriteString(out, c.answer) //nolint:errcheck // a test's server
				})
				_, err := connect(t, p, sent) // it would wait for ever
				if err == nil || !strings.Contains(err.Error(), c.words) {
					t.Fatalf("%s: error %v, want %q in it", sent, err, c.words)
				}
				if f := AsFault(err); f.Reach != Maybe {
					t.Errorf("reach %v: the tool may have run", f.Reach)
				}
			}
		})
	}
}

// TestStalledAnswerFails: an answer that begins and does not go on is not waited for
// until the deadline of its call; one that is only slow is taken.
func TestStalledAnswerFails(t *testing.T) {
	t.Parallel()
	hello := respond(func(id, m, v string) string { return `{"jsonrpc":"2.0","id":` + id + `,"` + m + `":` + v + "}\n" })
	for name, c := range map[string]struct{ begin, rest, words string }{
		"on its line":    {`{"jsonrpc":"2.0","id":ID,"result":{`, "", `"result":{, and then nothing`},
		"on a next":      {`{"jsonrpc":"2.0","id":ID,"result":{"t":"a` + "\n", "", `and then nothing`},
		"an error":       {`{"jsonrpc":"2.0","id":ID,"error":{"message":"no`, "", `"message":"no, and then nothing`},
		"only slow":      {`{"jsonrpc":"2.0","id":ID,`, `"result":{"got":true}}`, ""},
		"slow, indented": {"{\n \"jsonrpc\":\"2.0\",\n", ` "id":ID, "result":{"got":true}` + "\n}\n", ""},
	} {
		for _, sent := range ways {
			t.Run(name+" "+sent, func(t *testing.T) {
				t.Parallel()
				p, frames := program(t, "", func(method, id string, out io.Writer) {
					if method == "initialize" {
						hello(method, id, out)
						return
					}
					io.WriteString(out, strings.ReplaceAll(c.begin, "ID", id)) //nolint:errcheck // a test's server
					if c.rest != "" {
						io.WriteString(out, strings.ReplaceAll(c.rest, "ID", id)) //nolint:errcheck // a test's server
					}
				})
				frames.out.patience = 50 * time.Millisecond
				if c.rest != "" {
					frames.out.patience = time.Minute
				}
				got, err := connect(t, p, sent) // it would wait for ever
				if c.words == "" {
					if err != nil || string(got) != `{"got":true}` {
						t.Errorf("got %s, %v", got, err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.words) || AsFault(err).Reach != Maybe {
					t.Errorf("error %v, want %q in it", err, c.words)
				}
			})
		}
	}
}

// TestSaidInPlaceOfMessages: what a command writes in place of messages is in the
// error of who waits.
func TestSaidInPlaceOfMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ out, want string }{
		"usage":                   {"usage: server [-h] PORT\n", "usage: server [-h] PORT"},
		"listening":               {"Server listening on http://127.0.0.1:3000\n", "listening on http://127.0.0.1:3000"},
		"a prompt":                {"Please choose a region: ", "choose a region"},
		"a stack trace":           {"Traceback (most recent call last):\n  File \"s.py\", line 1\nModuleNotFoundError: No module named 'mcp'\n", "No module named 'mcp'"},
		"node":                    {"node:internal/modules\n  throw err;\nError: Cannot find module 'x'\n    at Module._resolve (node:internal:1)\n    at Module._load (node:internal:2)\n    at main (node:internal:3)\n    at run (node:internal:4)\n    at end (node:internal:5)\n", "Cannot find module 'x'"},
		"colours":                 {"\x1b[31mno configuration\x1b[0m\n", "no configuration"},
		"half a message":          {`{"jsonrpc":"2.0","id":10`, `{"jsonrpc":"2.0","id":10`},
		"JSON that is no message": {"[1,2,3]\n", "[1,2,3]"},
		"nothing":                 {"\n \n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, frames := program(t, "", func(_, _ string, out io.Writer) { io.WriteString(out, c.out) }) //nolint:errcheck // a test's server
			if _, err := p.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // nothing else comes: the caller gives up once it was read
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for c.want != "" && !strings.Contains(frames.Said(), c.want) && ctx.Err() == nil {
					<-tick.C
				}
				cancel()
			}()
			_, err := p.Call(ctx, &Request{Method: MethodList})
			if said := AsFault(err).Said; !strings.Contains(said, c.want) || (said == "") != (c.want == "") {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

// TestAnswersAreNotMixedUp: an answer without a number of ours is taken only if it
// can be for one request alone.
func TestAnswersAreNotMixedUp(t *testing.T) {
	open := func(p *Peer, n uint64) *waiter {
		w := &waiter{id: n, answer: make(chan envelope, 1)}
		p.ids.Store(n)
		if err := p.addWaiter(w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	got := func(w *waiter) string {
		select {
		case e := <-w.answer:
			return string(e.result)
		default:
			return ""
		}
	}
	newPeer := func() *Peer { return NewPeer(&floodFrames{}, NewBudget(), func() {}, func(string) {}) }
	send := func(p *Peer, id, result string) {
		if err := p.dispatch([]byte(`{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"null", "0", "1", `"x"`, "-5", "1.5"} {
		p := newPeer()
		a, b := open(p, 1000), open(p, 1001)
		send(p, id, "1")
		if got(a) != "" || got(b) != "" {
			t.Errorf("id %s was taken for one of two", id)
		}
		send(p, "1001", "2")
		if got(b) != "2" {
			t.Error("an answer to the letter was not taken")
		}
		send(p, id, "3")
		if got(a) != "3" {
			t.Errorf("id %s was not taken for the only one", id)
		}
	}
	// The late answer to a request that was given up is nobody else's.
	p := newPeer()
	open(p, 1000)
	p.findWaiter(1000, true)
	b := open(p, 1001)
	send(p, "null", "1")
	if got(b) != "" {
		t.Error("a late answer was given to the next caller")
	}
	send(p, "1000", "2")
	if got(b) != "" {
		t.Error("another's answer was given to the next caller")
	}
	send(p, "null", "3") // now only one can be meant
	if got(b) != "3" {
		t.Error("the only request was not answered")
	}
	// One that may be a log's has to have the number.
	for answer, want := range map[string]bool{`{"id":1003,"result":5}`: true, `{"id":null,"result":5}`: false, `{"id":1004,"result":5}`: false} {
		p := newPeer()
		open(p, 1003)
		if got := p.answersOnly([]byte(answer)); got != want {
			t.Errorf("%s is taken for the only request: %v", answer, got)
		}
		open(p, 1005)
		if p.answersOnly([]byte(answer)) {
			t.Errorf("%s is taken for one of two requests", answer)
		}
	}
	c := open(p, 1002)
	send(p, "1001", "4")
	if got(c) != "" {
		t.Error("a second answer to a request was given to the next caller")
	}
}

// dripping returns what it holds, one piece for each read.
type dripping struct {
	pieces []string
	looked func()
}

func (d *dripping) Read(p []byte) (int, error) {
	d.looked()
	if len(d.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

// A line that comes byte by byte is not searched anew without end, and the answer in
// it is found when it ends.
func TestDrippingLine(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1007,"result":{}}`
	d := &dripping{pieces: []string{strings.Repeat("a", 1<<20)}}
	for range 100 {
		d.pieces = append(d.pieces, "}")
	}
	d.pieces = append(d.pieces, answer+"\n")
	most := 0
	o := stdoutReader{r: d}
	d.looked = func() { most = max(most, o.searched) }
	p, err := o.next()
	if err != nil || string(p.msg) != answer || !p.afterText {
		t.Errorf("%q, after text %t, %v", p.msg, p.afterText, err)
	}
	if most == 0 || most > maxSearched+MaxMessage {
		t.Errorf("%d bytes were searched", most)
	}
}
