package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"sorted, without spaces", " { \"b\" : [ 1 , 2 ] ,\n\"a\":null} ", `{"a":null,"b":[1,2]}`},
		{"numbers as written", `{"a":9007199254740993,"b":1.50,"c":1E+2,"d":-0,"e":0.1e-7}`, `{"a":9007199254740993,"b":1.50,"c":1E+2,"d":-0,"e":0.1e-7}`},
		{"no needless escapes", `"<a>\u0026\/é"`, `"<a>&/é"`},
		{"needed escapes", `"\u0000\"\\\n"`, `"\u0000\"\\\n"`},
		{"keys by their bytes", `{"é":1,"z":2,"Z":3,"":4}`, `{"":4,"Z":3,"z":2,"é":1}`},
		{"an escaped key is the key", `{"b":1,"\u0061":2}`, `{"a":2,"b":1}`},
		{"a scalar", `true`, `true`},
		{"empty", `{"a":{},"b":[]}`, `{"a":{},"b":[]}`},
	} {
		got, err := Canonical([]byte(test.in))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.name, got, err, test.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, test := range []struct{ name, in string }{
		{"nothing", ""},
		{"spaces", "  "},
		{"duplicate key", `{"a":1,"b":2,"a":3}`},
		{"duplicate key, once escaped", `{"a":1,"\u0061":2}`},
		{"duplicate key deep inside", `[{"x":{"k":1,"k":1}}]`},
		{"two values", `{} {}`},
		{"trailing text", `{}x`},
		{"trailing bracket", `{}]`},
		{"cut off", `{"a":`},
		{"cut off after a value", `[1`},
		{"not UTF-8", "\"\xff\""},
		{"too deep", strings.Repeat("[", 66) + strings.Repeat("]", 66)},
		{"deep enough to hurt", strings.Repeat("[", 1_000_000)},
		{"a name that is no string", `{1:2}`},
		{"leading zero", `01`},
		{"not a number", `NaN`},
		{"comment", `{}//`},
	} {
		if got, err := Canonical([]byte(test.in)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %s, %v", test.name, got, err)
		}
	}
	if _, err := Canonical([]byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))); err != nil {
		t.Errorf("64 deep: %v", err)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1.0,"a":[true,null,"x\u2028"]}`, `{"a":1,"a":2}`, `"\ud800"`, `[1e999,-0]`, `{"":{"":{}}}`, "\"\xc3\x28\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := Canonical(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		twice, err := Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent: %q, then %q, %v", once, twice, err)
		}
		// The same document, number for number.
		if a, b := generic(t, raw), generic(t, once); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q is not %q", once, raw)
		}
	})
}

func generic(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q was accepted: %v", raw, err)
	}
	return v
}

func TestDigest(t *testing.T) {
	c := Call{ID: "c", By: "u", Thread: "t", Pin: "p", Args: json.RawMessage(`{"a":"<b>"}`)}
	was := c.ComputeDigest()
	if len(was) != 64 || was != c.ComputeDigest() {
		t.Fatalf("got %q", was)
	}
	for name, change := range map[string]func(*Call){
		"id":           func(c *Call) { c.ID = "d" },
		"requester":    func(c *Call) { c.By = "v" },
		"conversation": func(c *Call) { c.Thread = "s" },
		"pin":          func(c *Call) { c.Pin = "q" },
		"arguments":    func(c *Call) { c.Args = json.RawMessage(`{"a":"<c>"}`) },
	} {
		other := c
		change(&other)
		if other.ComputeDigest() == was {
			t.Errorf("another %s has the same digest", name)
		}
	}
	c.Args = json.RawMessage(`{broken`)
	if got := c.ComputeDigest(); got != "" {
		t.Errorf("broken arguments have the digest %q", got)
	}
	c.Args = json.RawMessage(`{"a":1,"a":2}`)
	if got := c.ComputeDigest(); got != "" {
		t.Errorf("ambiguous arguments have the digest %q", got)
	}
}
