package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAddToList(t *testing.T) {
	ours := func(raw json.RawMessage) bool { return bytes.Contains(raw, []byte("ours")) }
	type entry struct {
		C string `json:"c"`
	}
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":      {" ", "{\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"c\": \"ours 2\"\n      }\n    ]\n  }\n}\n"},
		"no hooks":           {`{"a": 1}`, `{"a": 1,"hooks":{"Pre":[{"c":"ours 2"}]}}`},
		"null":               {`{"hooks": null}`, `{"hooks": {"Pre":[{"c":"ours 2"}]}}`},
		"others beside it":   {"{\n  // mine\n  \"hooks\": {\"Post\": [1], \"Pre\": [{\"c\": \"theirs\"}]}, // end\n}\n", "{\n  // mine\n  \"hooks\": {\"Post\": [1], \"Pre\": [{\"c\": \"theirs\"},{\"c\":\"ours 2\"}]}, // end\n}\n"},
		"an older one":       {`{"hooks": {"Pre": [{"c": "theirs"}, {"c": "ours 1"}]}}`, `{"hooks": {"Pre": [{"c": "theirs"}, {"c":"ours 2"}]}}`},
		"it is there":        {`{"hooks": {"Pre": [{"c": "ours 2"}]}}`, ""},
		"a list of another":  {`{"hooks": []}`, "!"},
		"an object for list": {`{"hooks": {"Pre": {}}}`, "!"},
		"no JSON":            {`hooks = 1`, "!"},
		"a list":             {`[]`, "!"},
	} {
		out, changed, err := AddToList([]byte(c.text), []string{"hooks", "Pre"}, entry{"ours 2"}, ours)
		switch {
		case c.want == "!":
			if !errors.Is(err, ErrForm) {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		case c.want == "":
			if err != nil || changed || string(out) != c.text {
				t.Errorf("%s: %q, %t, %v", name, out, changed, err)
			}
		case err != nil || !changed || strings.TrimSpace(string(out)) != strings.TrimSpace(c.want):
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, out, c.want)
		}
	}
}

// A comment may end with the file instead of its line.
func TestAddToListCommentLast(t *testing.T) {
	out, changed, err := AddToList([]byte(`{"hooks":[]} // mine`), []string{"hooks"}, 1, func(json.RawMessage) bool { return false })
	if err != nil || !changed || string(out) != `{"hooks":[1]} // mine` {
		t.Errorf("got %q, %v, %v", out, changed, err)
	}
}
