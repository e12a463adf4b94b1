package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenEnvelope(t *testing.T) {
	e, err := openEnvelope([]byte(` { "jsonrpc":"2.0", "id" : "1007" , "result" : {"a":[1,{"b":"}\""}]} , "x":null} `))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := readID(e.id); !ok || n != 1007 {
		t.Errorf("id %s", e.id)
	}
	if got := string(e.result); got != `{"a":[1,{"b":"}\""}]}` {
		t.Errorf("result %s", got)
	}
	for _, bad := range []string{``, `x`, `[]`, `"s"`, `{"id":1,"id":2}`, `{"result":1,"result":2}`, `{"method":1}`, `{"a":1}{"b":2}`, `{"res\u0075lt":1,"result":2}`} {
		if _, err := openEnvelope([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	e, err := openEnvelope([]byte(`{"id":1,"result":{"a":` + deep + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.answer(); err == nil || AsFault(err).Reach != Answered {
		t.Errorf("nesting of 71: %v", err)
	}
	e, err = openEnvelope([]byte("{\"id\":1,\"result\":{\"a\":\"\xff\"}}"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := e.answer()
	if err != nil || string(raw) != "{\"a\":\"\uFFFD\"}" {
		t.Errorf("invalid UTF-8: %q, %v", raw, err)
	}
}

// TestListsAreCut: a definition that nests too deep does not take the others of its
// list along, and stays too deep; a result of a call is refused whole.
func TestListsAreCut(t *testing.T) {
	nest := func(n int, within string) string { return strings.Repeat(`{"a":`, n) + within + strings.Repeat("}", n) }
	for given, want := range map[string]string{
		`{"tools":[{"name":"a"},{"s":` + nest(100, `["]}",1]`) + `,"t":1}],"nextCursor":"c"}`: `{"tools":[{"name":"a"},{"s":` + nest(61, "null") + `,"t":1}],"nextCursor":"c"}`,
		`{"tools":[{"s":` + nest(61, "[]") + `}]}`:                                            `{"tools":[{"s":` + nest(61, "null") + `}]}`,
		`{"tools":[{"s":` + nest(61, "1") + `}]}`:                                             `{"tools":[{"s":` + nest(61, "1") + `}]}`,
		`{"prompts":[` + nest(63, `[],"b":"[{\""`) + `]}`:                                     `{"prompts":[` + nest(62, `null`) + `]}`,
		`{"resources":[[` + nest(90, "1") + `],2]}`:                                           `{"resources":[[` + nest(61, "null") + `],2]}`,
		`{"resourceTemplates":[` + nest(90, "{}") + `,` + nest(80, "[]") + `]}`:               `{"resourceTemplates":[` + nest(62, "null") + `,` + nest(62, "null") + `]}`,
		`{"content":[` + nest(100, "1") + `]}`:                                                "",
		`{"tools":[],"content":[` + nest(100, "1") + `]}`:                                     "",
		`{"tools":` + nest(100, "1") + `}`:                                                    "",
		`{"structuredContent":{"tools":[` + nest(100, "1") + `]}}`:                            "",
		`[` + nest(100, "1") + `]`:                                                            "",
	} {
		got, err := envelope{result: []byte(given)}.answer()
		if want == "" && err == nil || want != "" && (err != nil || string(got) != want) {
			t.Errorf("%s: %s, %v\nwant %s", given, got, err, want)
		}
	}
}

func TestEncode(t *testing.T) {
	nop := func(json.RawMessage) {}
	cases := map[string]struct {
		r    Request
		meta string
		want string
	}{
		"call":   {Request{Method: MethodCall, Name: "a\"b", Args: []byte(`{"n":1.0}`)}, "", `{"name":"a\"b","arguments":{"n":1.0}}`},
		"empty":  {Request{Method: MethodCall, Name: "a"}, "", `{"name":"a","arguments":{}}`},
		"token":  {Request{Method: MethodCall, Name: "a", Progress: nop}, "", `{"name":"a","arguments":{},"_meta":{"progressToken":3}}`},
		"modern": {Request{Method: MethodCall, Name: "a", Progress: nop}, `"v":1`, `{"name":"a","arguments":{},"_meta":{"progressToken":3,"v":1}}`},
		"trace":  {Request{Method: MethodCall, Name: "a", Traceparent: "00-x"}, "", `{"name":"a","arguments":{},"_meta":{"traceparent":"00-x"}}`},
		"all":    {Request{Method: MethodCall, Name: "a", Progress: nop, Traceparent: "00-x"}, `"v":1`, `{"name":"a","arguments":{},"_meta":{"progressToken":3,"traceparent":"00-x","v":1}}`},
	}
	for name, c := range cases {
		got := string(c.r.Encode(3, c.meta))
		want := `{"jsonrpc":"2.0","id":3,"method":"` + c.r.Method + `","params":` + c.want + `}`
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	er := newEventReader(strings.NewReader(": comment\n\nid: 5\nretry: 20\ndata:\n\nevent: message\r\ndata: one\r\ndata:two\r\n\r\nnonsense\ndata: " + long + "\n\ndata: cut off"))
	var got []string
	for {
		ev, err := er.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		got = append(got, ev.name+"="+string(ev.data))
	}
	if diff := cmp.Diff(got, []string{"message=one\ntwo", "=" + long}); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
	if er.lastID != "5" || er.retry.Milliseconds() != 20 {
		t.Errorf("id %q, retry %s", er.lastID, er.retry)
	}
	er = newEventReader(strings.NewReader("data: " + strings.Repeat("x", MaxMessage+1) + "\n\n"))
	if _, err := er.next(); !errors.Is(err, errTooLarge) {
		t.Errorf("an event over the bound: %v", err)
	}
	er = newEventReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("y", 1<<20)+"\n", 9) + "\n"))
	if _, err := er.next(); !errors.Is(err, errTooLarge) {
		t.Errorf("an event of many lines over the bound: %v", err)
	}
}

func TestRing(t *testing.T) {
	var logged bytes.Buffer
	r := NewStderrLog(slog.New(slog.NewTextHandler(&logged, nil)))
	r.Mask(strings.NewReplacer("hunter22", "••••").Replace)
	if err := r.readFrom(strings.NewReader("pass hunter22 and ghp_0123456789abcdefABCDEF\n"+strings.Repeat("line\n", 30000)), nil, nil); err != nil {
		t.Error(err)
	}
	if got := len(r.Bytes()); got != ringSize {
		t.Errorf("it keeps %d bytes, want %d", got, ringSize)
	}
	if got := strings.Count(logged.String(), "server wrote"); got > 110 {
		t.Errorf("%d lines were logged", got)
	}
	if strings.Contains(logged.String(), "hunter22") || strings.Contains(logged.String(), "ghp_0") {
		t.Error("a secret is in the log")
	}
	if got := r.lastLines(2); got != "line | line" {
		t.Errorf("last %q", got)
	}
}

// FuzzOpenEnvelope compares our cutter with encoding/json.
func FuzzOpenEnvelope(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":{}}`, `{"method":"x","params":[1,"]"]}`, `{"error":{"code":-1,"message":"m"},"id":1001}`, `{"a":{"b":[1,2,{"c":"\\"}]},"result":-1.5e3}`, ` {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := openEnvelope(data)
		var want map[string]json.RawMessage
		if jsonErr := json.Unmarshal(data, &want); jsonErr != nil {
			if err == nil && want == nil {
				t.Fatalf("%q is no object, and was taken", data)
			}
			return
		}
		if err != nil {
			return // stricter than encoding/json: twins, types
		}
		if got := string(e.result); got != string(want["result"]) {
			t.Errorf("result %q, want %q", got, want["result"])
		}
		if got := string(e.params); got != string(want["params"]) {
			t.Errorf("params %q, want %q", got, want["params"])
		}
		if e.result != nil {
			if raw, err := e.answer(); err == nil && !json.Valid(raw) {
				t.Errorf("answer %q is no JSON", raw)
			}
		}
		readID(e.id)
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {}\n\n"))
	f.Add([]byte("data\n\n:\r\n\r\ndata:x\ndata:y\n\nid:\x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		er := newEventReader(strings.NewReader(string(data)))
		for range len(data) + 1 {
			ev, err := er.next()
			if err != nil {
				return
			}
			if len(ev.data) == 0 || len(ev.data) > len(data) {
				t.Fatalf("an event of %d bytes out of %d", len(ev.data), len(data))
			}
		}
		t.Fatal("more events than bytes")
	})
}

func FuzzBindings(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`), []byte(`{"a":"é"}`))
	f.Add([]byte(`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`), []byte(`{"a":{"b":9007199254740993}}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		all, err := BindingsOf(schema)
		if err != nil || !json.Valid(args) {
			return
		}
		for _, b := range all {
			v, ok := b.value(args)
			for i := range len(v) {
				if ok && (v[i] < 0x20 || v[i] > 0x7e) {
					t.Fatalf("header value %q", v)
				}
			}
		}
	})
}

// TestEncodeIsJSON: a call is JSON whatever it has.
func TestEncodeIsJSON(t *testing.T) {
	for _, r := range []Request{{Name: "a"}, {Name: "a\"b", State: "s\"", AsTask: true}, {Name: "a", Args: []byte(`{"b":1}`), Answers: []byte(`{}`)}} {
		r.Method = MethodCall
		for i := range 8 {
			if r.Progress = nil; i&1 != 0 {
				r.Progress = func(json.RawMessage) {}
			}
			if r.Traceparent = ""; i&2 != 0 {
				r.Traceparent = "00-1-2-01"
			}
			meta := ""
			if i&4 != 0 {
				meta = `"k":1`
			}
			if b := r.Encode(1, meta); !json.Valid(b) {
				t.Errorf("%s", b)
			}
		}
	}
}
