package reply

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHoldAndRestore(t *testing.T) {
	for body, held := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                                     false,
		`{"jsonrpc":"2.0","id":"a\"b","method":"ping"}`:                                                false,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                                  false,
		`{"jsonrpc":"2.0","id":{"a":1.5},"method":"ping"}`:                                             false,
		`{"jsonrpc":"2.0","params":{"id":1.5,"arguments":{"id":1e400}},"id":1,"method":"ping"}`:        false,
		`{"jsonrpc":"2.0" , "id" : 1.5 , "method":"ping"}`:                                             true,
		`{"id":18446744073709551616,"method":"ping"}`:                                                  true,
		`{"id":"nize:held:31","method":"ping"}`:                                                        true,
		`{"method":"notifications/cancelled","params":{"reason":"x","requestId":1.5}}`:                 true,
		`{"id":1,"method":"tools/call","params":{"name":"x","_meta":{"a":[1.5],"progressToken":1e3}}}`: true,
		` [ {"id":1.5,"method":"a"} , {"id":2,"method":"b"},{"id":2.5,"method":"c"}]`:                  true,
	} {
		r := Hold([]byte(body))
		if r.Held != held || r.Held == bytes.Equal(r.Body, []byte(body)) || r.Held && !json.Valid(r.Body) {
			t.Errorf("%s: held %v, %s", body, r.Held, r.Body)
		}
		if method := r.Method; method == "" || r.Batch != strings.HasPrefix(body, " [") {
			t.Errorf("%s: method %q, batch %v", body, method, r.Batch)
		}
	}
	for _, id := range []string{`1.5`, `-0`, `18446744073709551616`, `"nize:held:31"`} {
		held := Hold([]byte(`{"id":` + id + `}`))
		for _, form := range []string{`{"id":ID,"result":{}}`, `{"jsonrpc":"2.0","result":{"id":"nize:held:312e35"}, "id" : ID }`, `[{"id":ID,"error":{}},{"id":1}]`, `{"method":"notifications/progress","params":{"progressToken":ID,"progress":1}}`} {
			var m struct{ ID json.RawMessage }
			if err := json.Unmarshal(held.Body, &m); err != nil {
				t.Fatal(err)
			}
			got := string(Restore([]byte(strings.ReplaceAll(form, "ID", string(m.ID)))))
			if want := strings.ReplaceAll(form, "ID", id); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	// What does not come from Hold stays.
	for _, msg := range []string{`{"id":"nize:held:zz"}`, `{"id":"nize:held:7b7d"}`, `{"id":"nize:held:312c2278223a31"}`, `{"result":{"params":{"progressToken":"nize:held:312e35"}}}`, `{"id":"nize:held:`} {
		if got := string(Restore([]byte(msg))); got != msg {
			t.Errorf("%s became %s", msg, got)
		}
	}
}

// A stream that a client can't take becomes a document, however it is written.
func TestStreamsBecomeDocuments(t *testing.T) {
	const stream = ": hello\n\nevent: message\ndata: {\"method\":\"notifications/progress\"}\n\nevent: message\ndata: {\"id\":1,\ndata: \"result\":{}}\n\n"
	for name, c := range map[string]struct {
		accept, body string
		answer       func(w http.ResponseWriter)
		status       int
		want         string
	}{
		"in one": {"application/json", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) { sendStream(w, stream) }, 200, "{\"id\":1,\n\"result\":{}}"},
		"in bytes": {"application/json", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) {
			for _, c := range []byte(stream) {
				sendStream(w, string(c))
			}
		}, 200, "{\"id\":1,\n\"result\":{}}"},
		"a batch of one": {"application/json", `[{"id":1,"method":"a"}]`, func(w http.ResponseWriter) { sendStream(w, stream) }, 200, "[{\"id\":1,\n\"result\":{}}]"},
		"no answer":      {"application/json", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) { sendStream(w, ": hello\n\n") }, 500, "the request ended before it was answered\n"},
		"an error":       {"application/json", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) { http.Error(w, "no", 404) }, 404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}`},
		"a document":     {"text/event-stream", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) { sendDocument(w, 200, "{\"id\":1,\n\"result\":{}}") }, 200, "event: message\ndata: {\"id\":1, \"result\":{}}\n\n"},
		"a refusal":      {"text/event-stream", `{"id":1,"method":"a"}`, func(w http.ResponseWriter) { sendDocument(w, 400, `{"id":1,"error":{}}`) }, 400, `{"id":1,"error":{}}`},
		"accepted":       {"application/json", `{"method":"a"}`, func(w http.ResponseWriter) { w.WriteHeader(202) }, 202, ""},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(c.body))
		r.Header.Set("Accept", c.accept)
		Negotiate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if document, stream := Accepts(r.Header); !document || !stream {
				t.Errorf("%s: the handler is asked for %q", name, r.Header["Accept"])
			}
			c.answer(w)
		}), nil).ServeHTTP(w, r)
		if w.Code != c.status || w.Body.String() != c.want {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Body.String(), c.status, c.want)
		}
	}
}

func sendStream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(text)) // a recorder never fails
	w.(http.Flusher).Flush()
}

func sendDocument(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a recorder never fails
}

// FuzzHold: a request stays the same but for its ids, which come back in the answer.
func FuzzHold(f *testing.F) {
	for _, s := range []string{`{"id":1.5,"method":"a"}`, `[{"id":1e3},{}]`, `{"id":"nize:held:31"}`, `{"params":{"_meta":{"progressToken":-0}}}`, `{"id":`, `[`, `{"a" 1}`,
		`{"params":{"args":{"a":1},"name":"x"},"method":"tools/call","id":1.5}`, `{"method":"tools/call","params":{"arguments":{"nize:beside":{}}},"input":{"a":1}}`,
		`{"method":"tools/call","params":{"arguments":1,"arguments":2,"x":{},"_meta":{"progressToken":1.5}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Hold(body)
		Restore(body)
		if !json.Valid(body) {
			return
		}
		if !json.Valid(r.Body) {
			t.Fatalf("%q became %q", body, r.Body)
		}
		var m struct {
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(r.Body, &m) == nil {
			if args, beside := Arguments(m.Params.Arguments); len(args) > 0 && !json.Valid(args) || beside["_meta"] != nil {
				t.Fatalf("%q has the arguments %q and %q", body, args, beside)
			}
		}
		if got := Restore(r.Body); !r.Batch && r.Method == "" && bytes.Contains(body, []byte(`"id"`)) && !bytes.Contains(body, []byte("params")) && !bytes.Equal(got, body) {
			t.Fatalf("%q came back as %q", body, got)
		}
	})
}

// FuzzFormer: a document is what the stream says, and nothing of it twice.
func FuzzFormer(f *testing.F) {
	f.Add([]byte("data: {\"id\":1,\"result\":{}}\n\n"), 3)
	f.Add([]byte("event: x\r\ndata:[\n\n\n"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		w := httptest.NewRecorder()
		fm := &former{ResponseWriter: w, document: true}
		fm.Header().Set("Content-Type", mediaStream)
		for rest := stream; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			_, _ = fm.Write(rest[:n]) // a recorder never fails
			rest = rest[n:]
		}
		fm.finish()
		if w.Body.Len() > len(stream)+64 {
			t.Fatalf("%d bytes of %d", w.Body.Len(), len(stream))
		}
	})
}
