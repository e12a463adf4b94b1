package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/daemon/rounds"
)

// TestMisfit: whatever does not fit is named by its path, with its index.
func TestMisfit(t *testing.T) {
	const mcp = `{"type":"mcp","server_label":"L","server_url":"https://a.example","require_approval":"auto",`
	second := func(member string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[` + mcp + `"allowed_tools":[]},` + mcp + member + `}]}`
	}
	header := `must be a string or {"secret_key": …}`
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`: " ",
		`{"model":null,"messages":null,"tools":null}`:              " ",
		`{"MODEL":"m"}`:   " ",
		`[]`:              " must be an object",
		`"text"`:          " must be an object",
		`{"model":`:       " ",
		`{"model":7}`:     "model must be a string",
		`{"messages":{}}`: "messages must be a list",
		`{"messages":[{"role":"user"},{"role":7}]}`:                              "messages[1].role must be a string",
		`{"messages":["x"]}`:                                                     "messages[0] must be an object",
		`{"messages":[{"tool_calls":[{"id":"a"},{"function":{"name":[]}}]}]}`:    "messages[0].tool_calls[1].function.name must be a string",
		`{"messages":[{"rol":"user"}]}`:                                          "messages[0].rol is not a field of a request",
		`{"tols":[]}`:                                                            "tols is not a field of a request",
		`{"temperature":"1"}`:                                                    "temperature must be a number",
		`{"max_tokens":1.5}`:                                                     "max_tokens must be a whole number",
		`{"max_tokens":1e99}`:                                                    "max_tokens must be a whole number",
		`{"approvals":[{"approve":"yes"}]}`:                                      "approvals[0].approve must be true or false",
		second(`"allowed_tools":"get_current_date"`):                             "tools[1].allowed_tools must be a list of strings",
		second(`"allowed_tools":["a",7]`):                                        "tools[1].allowed_tools[1] must be a string",
		second(`"allowed_tool":[]`):                                              "tools[1].allowed_tool is not a field of a request",
		second(`"allowed_tools":[],"headers":[]`):                                "tools[1].headers must be an object",
		second(`"allowed_tools":[],"headers":{"X-Key":7}`):                       "tools[1].headers.X-Key " + header,
		second(`"allowed_tools":[],"headers":{"X-Key":null}`):                    "tools[1].headers.X-Key " + header,
		second(`"allowed_tools":[],"headers":{"X-Key":{"secret_key":7}}`):        "tools[1].headers.X-Key " + header,
		second(`"allowed_tools":[],"headers":{"X-Key":{"secret_key":""}}`):       "tools[1].headers.X-Key " + header,
		second(`"allowed_tools":[],"headers":{"X-Key":{"credential":"shared"}}`): "tools[1].headers.X-Key " + header,
		second(`"allowed_tools":[],"headers":{"X-Key":{"secret_key":"K"}}`):      " ",
		second(`"allowed_tools":[],"headers":{"X-Key":"plain"}`):                 " ",
	} {
		path, problem := api.Misfit(new(rounds.Request), []byte(body))
		if got := path + " " + problem; got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// FuzzMisfit: what encoding/json refuses is named, and nothing else is.
func FuzzMisfit(f *testing.F) {
	for _, body := range []string{`{"model":7}`, `{"tools":[{"headers":{"a":null}}]}`, `{"messages":[{"content":[{"type":1}]}]}`, `{"approvals":[{}],"x":1}`, `nul`, `{}{}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		err := d.Decode(new(rounds.Request))
		path, problem := api.Misfit(new(rounds.Request), []byte(body))
		if named := path != "" || problem != ""; json.Valid([]byte(body)) && named != (err != nil) {
			t.Errorf("%q: %v, but %q %q", body, err, path, problem)
		}
	})
}
