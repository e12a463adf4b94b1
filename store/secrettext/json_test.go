package secrettext

import (
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

// TestShortenKeepsNames: redaction by name works on what was shortened.
func TestShortenKeepsNames(t *testing.T) {
	raw := `{"list":[{"password":"hunter2","n":1}],"text":"` + strings.Repeat("x", 100_000) + `"}`
	got := string(RedactJSON(json.RawMessage(raw), 1024))
	if strings.Contains(got, "hunter2") || !strings.Contains(got, `password`) || len(got) > 1124 {
		t.Errorf("got %d bytes: %.200s", len(got), got)
	}
}
