package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What is almost JSON is read as what it means; what could mean something else is
// refused, and quoted.
func TestMessagesAreMended(t *testing.T) {
	const want = `{"n":null}`
	for name, msg := range map[string]string{
		"clean":                      `{"jsonrpc":"2.0","id":1000,"result":{"n":null}}`,
		"byte order mark":            "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1000,"result":{"n":null}}`,
		"NaN":                        `{"jsonrpc":"2.0","id":1000,"result":{"n":NaN}}`,
		"Infinity":                   `{"jsonrpc":"2.0","id":1000,"result":{"n":Infinity}}`,
		"-Infinity":                  `{"jsonrpc":"2.0","id":1000,"result":{"n":-Infinity}}`,
		"colours around it":          "\x1b[32m" + `{"jsonrpc":"2.0","id":1000,"result":{"n":null}}` + "\x1b[0m",
		"a title before it":          "\x1b]0;server\x07" + `{"jsonrpc":"2.0","id":1000,"result":{"n":null}}`,
		"a warning before it":        "Warning: deprecated in {main}\n" + `{"jsonrpc":"2.0","id":1000,"result":{"n":null}}`,
		"no version":                 `{"id":1000,"result":{"n":null}}`,
		"an error that is null":      `{"jsonrpc":"2.0","id":1000,"result":{"n":null},"error":null}`,
		"blanks and line breaks":     "\r\n {\"jsonrpc\":\"2.0\",\r\n \"id\":1000, \"result\":{\"n\":NaN}}\n\n",
		"an id with a fraction of 0": `{"jsonrpc":"2.0","id":1000.0,"result":{"n":null}}`,
		"an id as text":              `{"jsonrpc":"2.0","id":"1000","result":{"n":null}}`,
		"an id that is null":         `{"jsonrpc":"2.0","id":null,"result":{"n":null}}`,
		"an id that is always 0":     `{"jsonrpc":"2.0","id":0,"result":{"n":null}}`,
		"an id of the server's own":  `{"jsonrpc":"2.0","id":"server-error","result":{"n":null}}`,
		"no id":                      `{"jsonrpc":"2.0","result":{"n":null}}`,
		"a batch":                    `[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":1000,"result":{"n":null}}]`,
		"a batch with a NaN":         `[{"jsonrpc":"2.0","id":1000,"result":{"n":NaN}}]`,
	} {
		e, err := findAnswer([]byte(msg), 1000, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		raw, err := e.answer()
		if err != nil || strings.Join(strings.Fields(string(raw)), "") != want {
			t.Errorf("%s: result %s, %v", name, raw, err)
		}
	}
	for name, c := range map[string]struct{ msg, words string }{
		"another's answer":       {`{"jsonrpc":"2.0","id":1001,"result":{}}`, "another request"},
		"another's, as text":     {`{"jsonrpc":"2.0","id":"1001","result":{}}`, "another request"},
		"another's in a batch":   {`[{"jsonrpc":"2.0","id":1001,"result":{}}]`, "another request"},
		"a request":              {`{"jsonrpc":"2.0","id":1000,"method":"ping"}`, "another request"},
		"a request after text":   {`got {"jsonrpc":"2.0","id":1000,"method":"ping"}`, `"got {`},
		"two results":            {`{"jsonrpc":"2.0","id":1000,"result":{},"result":{"a":1}}`, "duplicate member"},
		"cut off":                {`{"jsonrpc":"2.0","id":1000,"result":{"content":[`, `{"jsonrpc":"2.0"`},
		"python":                 {`{'jsonrpc': '2.0', 'id': 1000, 'result': {}}`, `'jsonrpc'`},
		"a NaN in a key's place": {`{NaN:1}`, `{NaN:1}`},
		"nan of another kind":    {`{"jsonrpc":"2.0","id":1000,"result":{"n":nan}}`, `nan`},
		"a page":                 {"<!DOCTYPE html><html><head><title>Sign &amp; in</title>", `a web page with the title "Sign & in"`},
		"text":                   {"Internal\nServer Error", `"Internal Server Error"`},
		"other JSON":             {`{"status":"ok"}`, `{"status":"ok"}`},
		"nothing":                {"", "nothing"},
	} {
		if _, err := findAnswer([]byte(c.msg), 1000, nil); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.words)
		}
	}
}

// An error says all that the server says, whatever its form.
func TestErrorsOfServers(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-32000,"message":"no disk"}`:                           "no disk (code -32000)",
		`{"code":-32000,"message":"no disk","data":"sda1 is full"}`:     "no disk (code -32000): sda1 is full",
		`{"code":-32000,"message":"no disk","data":{"path": ["a", 1]}}`: `no disk (code -32000): {"path":["a",1]}`,
		`{"code":-32000,"message":"no disk on sda1","data":"sda1"}`:     "no disk on sda1 (code -32000)",
		`{"code":"-32602","message":"no such tool"}`:                    "no such tool (code -32602)",
		`{"code":"E_DISK","message":"no disk"}`:                         "no disk",
		`"Session not found"`:                                           "Session not found",
		`{"detail":"Not Found"}`:                                        `{"detail":"Not Found"}`,
		`{"code":-32603,"message":{"reason":"no disk"},"data":null}`:    `{"reason":"no disk"} (code -32603)`,
		`["a","b"]`:                     `["a","b"]`,
		`500`:                           "500",
		`{"code":1.5,"message":"a\nb"}`: "a\nb",
	} {
		if got := openError(json.RawMessage(raw)).Error(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// A quote holds no half of a secret where it was cut.
func TestQuotesAreMaskedBeforeTheyAreCut(t *testing.T) {
	hide := Hide(strings.NewReplacer("hunter22hunter22", "••••").Replace)
	for n := range 40 {
		text := strings.Repeat("x", maxQuote-20+n) + " hunter22hunter22 " + strings.Repeat("y", 100)
		if got := hide.quote([]byte(text)); strings.Contains(got, "hunt") {
			t.Fatalf("after %d bytes: %s", n, got)
		}
	}
}

func TestEventsWithoutTheirLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"data: {\"a\":1}\n":                     `{"a":1}`,
		"data: {\"a\":1}":                       `{"a":1}`,
		"\xef\xbb\xbfdata: {\"a\":1}\n\n":       `{"a":1}`,
		"event: message\r\ndata: {\"a\":1}\r\n": `{"a":1}`,
		"data: {\"a\":\n":                       "",
		"data: 12":                              "",
	} {
		ev, err := newEventReader(strings.NewReader(text)).next()
		if string(ev.data) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, ev.data, err)
		}
	}
}

// FuzzMend: valid JSON is not changed, and what is mended is valid.
func FuzzMend(f *testing.F) {
	for _, s := range []string{`{"a":NaN}`, "\xef\xbb\xbf{}", "\x1b[1m{\"a\":\"b\nc\"}", `[Infinity,-Infinity]`, `{"NaN":"NaN"}`, "{\"a\":\"\\\x01\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := mend(data)
		if ok && !json.Valid(got) {
			t.Fatalf("%q was mended to %q", data, got)
		}
		if json.Valid(data) && (!ok || !bytes.Equal(got, bytes.TrimSpace(data))) {
			t.Fatalf("%q became %q", data, got)
		}
		if answer, end := answerAfterText(data); answer != nil && (!isAnswer(answer) || end > len(data)) {
			t.Fatalf("%q is no answer", answer)
		}
		Hide(nil).quote(data)
		openMessage(data, nil) //nolint:errcheck // it must not panic
	})
}

// FuzzOpenError: whatever stands there is an error with a text.
func FuzzOpenError(f *testing.F) {
	f.Add([]byte(`{"code":-32000,"message":"m","data":{"a":[1]}}`))
	f.Add([]byte(`"text"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if json.Valid(data) && string(data) != "null" && openError(data) == nil {
			t.Fatal("no error")
		}
	})
}

// FuzzReadID: an id is ours only if it is the number, in whatever form.
func FuzzReadID(f *testing.F) {
	for _, s := range []string{`1000`, `"1000"`, `1000.0`, `1e3`, `"x"`, `null`, `-1`, `1000.5`, `18446744073709551616`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, ok := readID(data)
		if !ok {
			return
		}
		var v any
		text := bytes.Trim(data, `"`)
		if err := json.Unmarshal(text, &v); err == nil {
			if f, isNumber := v.(float64); isNumber && f != float64(n) {
				t.Fatalf("%q was read as %d", data, n)
			}
		}
	})
}

// TestReadableStream: the SDK sees the events that it can decode, and no others.
func TestReadableStream(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	for name, c := range map[string]struct{ in, want string }{
		"to the letter":     {"id: 5\nevent: message\ndata: " + changed + "\n\n", "id: 5\nevent: message\ndata: " + changed + "\n\n"},
		"a request":         {"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n"},
		"over two lines":    {"data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"a\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"a\"}\n\n"},
		"heartbeats":        {"data: ping\n\ndata: " + changed + "\n\n", "data: " + changed + "\n\n"},
		"JSON that is none": {"data: {\"type\":\"heartbeat\"}\n\ndata: 1\n\ndata: []\n\n", ""},
		"no version":        {"data: {\"method\":\"a\",\"params\":{\"b\":1}}\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"b\":1}}\n\n"},
		"an answer to null": {"data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n\n", ""},
		"a time to wait":    {"retry: 20\nid: 1\ndata: " + changed + "\n\n", "id: 1\nretry: 20\ndata: " + changed + "\n\n"},
		"nothing":           {": hello\n\n", ""},
	} {
		got, err := io.ReadAll(newReadableStream(io.NopCloser(strings.NewReader(c.in)), nil))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// FuzzReadableStream: what the SDK gets, it can decode.
func FuzzReadableStream(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\ndata: x\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := io.ReadAll(newReadableStream(io.NopCloser(bytes.NewReader(in)), nil))
		if err != nil {
			return
		}
		er := newEventReader(bytes.NewReader(out))
		for {
			ev, err := er.next()
			if err != nil {
				return
			}
			if _, err := jsonrpc.DecodeMessage(ev.data); err != nil {
				t.Fatalf("%q: %v", ev.data, err)
			}
		}
	})
}
