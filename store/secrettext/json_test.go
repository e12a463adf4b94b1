package secrettext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzShorten(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"password":"x"}],"b":"long"}`), 8)
	f.Add([]byte(`[[[[[[]]]]]]`), 3)
	f.Add([]byte(`nonsense and more of it`), 4)
	f.Add([]byte(`{"token":{"x":"y","z":[null,true,1e9]}}`), 12)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		limit = 1 + limit&0xff
		got := shorten(raw, limit)
		if json.Valid(raw) && len(raw) > limit && !json.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		if json.Valid(raw) && len(got) > 16*(len(raw)+16) {
			t.Fatalf("%d bytes became %d", len(raw), len(got))
		}
		RedactJSON(raw, limit) // must not panic
	})
}

// What counts as harmless is what redaction leaves as it is.
func FuzzHarmless(f *testing.F) {
	for _, doc := range []string{
		`{"page":1,"text":"of the book"}`, `{"password":"hunter2"}`, `["Bearer abcdefghijklmnop"]`, `{"a":"DB_PASS: x1y2z3"}`, `"\u006eize_0123456789abcdef"`,
		`{"url":"https://a:b1@c"}`, `{"apiKey":["x"]}`, `{"PIN_PWD":4}`, `"MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdefghijklmnopqrstuvwxyz0"`, `{"x":sk-0123456789abcdef}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !harmless(raw) {
			return
		}
		var v any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		was, _ := json.Marshal(v)
		if got, _ := json.Marshal(redactValue("", v)); !bytes.Equal(got, was) {
			t.Fatalf("%q: redaction makes %s of it", raw, got)
		}
	})
}

// Most calls' arguments are looked at without decoding them.
func TestHarmlessIsCheap(t *testing.T) {
	raw := json.RawMessage(`{"page":1,"text":"of the book"}`)
	if n := testing.AllocsPerRun(100, func() { RedactJSON(raw, 1024) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// TestShortenKeepsNames: redaction by name works on what was shortened.
func TestShortenKeepsNames(t *testing.T) {
	raw := `{"list":[{"password":"hunter2","n":1}],"text":"` + strings.Repeat("x", 100_000) + `"}`
	got := string(RedactJSON(json.RawMessage(raw), 1024))
	if strings.Contains(got, "hunter2") || !strings.Contains(got, `password`) || len(got) > 1124 {
		t.Errorf("got %d bytes: %.200s", len(got), got)
	}
}
