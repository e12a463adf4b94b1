package store_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"nize/store"
)

func TestReadExecute(t *testing.T) {
	for raw, want := range map[string]string{ // tool, params, and what stands beside them
		`{"tool_id":"s:t","params":{"a":1}}`:                          `s:t {"a":1}`,
		`{"tool_id":"s:t","tool_name":"T","params":{"b":1,"a":2.0}}`:  `s:t {"a":2.0,"b":1}`,
		`{"tool_id":"s:t","tool_name":null}`:                          `s:t {}`,
		`{"tool_id":"s:t","params":null}`:                             `s:t {}`,
		`{"tool_id":"s:t","params":[]}`:                               `s:t {}`,
		`{"tool_id":"s:t","params":" "}`:                              `s:t {}`,
		`{"tool_id":"s:t","params":"null"}`:                           `s:t {}`,
		`{"tool_id":"s:t","params":"{\"a\":1}"}`:                      `s:t {"a":1}`,
		`{"tool_id":"s:t","params":"\"{\\\"a\\\":1}\""}`:              `s:t {"a":1}`,
		`"{\"tool_id\":\"s:t\",\"params\":{\"a\":9007199254740993}}"`: `s:t {"a":9007199254740993}`,
		`{"tool_id":"s:t","path":"/a"}`:                               `s:t {} path="/a"`,
		`{"tool_id":"s:t","params":{},"path":"/a","all":null}`:        `s:t {} all=null path="/a"`,
		`{"tool_id":"s:t","params":{"a":1},"path":"/a"}`:              `s:t {"a":1} path="/a"`,
		`{"tool_id":"s:t","arguments":{"a":1}}`:                       `s:t {} arguments={"a":1}`,
		`{"tool_id":"s:t","params":{"a":1},"Params":{"b":1}}`:         `s:t {"a":1} Params={"b":1}`,
		`{"tool_id":"s:t","params":{"a":1},"args":{},"input":"{}"}`:   `s:t {"a":1}`,
		`{"tool_id":"s:t","TOOL_ID":"s:u"}`:                           `s:t {} TOOL_ID="s:u"`,
		`{}`:                                                          ` {}`,
		``:                                                            ` {}`,
		`null`:                                                        ` {}`,
	} {
		args, err := store.ReadExecute([]byte(raw))
		got := args.Tool + " " + string(args.Params)
		for _, name := range slices.Sorted(maps.Keys(args.Beside)) {
			got += " " + name + "=" + string(args.Beside[name])
		}
		if err != nil || got != want {
			t.Errorf("%s\n got %s, %v\nwant %s", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		`[1]`:                                      "must be a JSON object",
		`7`:                                        "must be a JSON object",
		`"hello"`:                                  "not a valid JSON object",
		`{"tool_id"`:                               "not a valid JSON object",
		`{"tool_id":"s:t","tool_id":"s:u"}`:        "duplicate",
		`{"tool_id":1}`:                            "tool_id must be of type string, not number",
		`{"tool_id":"s:t","tool_name":{}}`:         "tool_name must be of type string, not object",
		`{"tool_id":"s:t","params":7}`:             "params must be of type object, not number",
		`{"tool_id":"s:t","params":[1]}`:           "params must be of type object, not array",
		`{"tool_id":"s:t","params":true}`:          "params must be of type object, not boolean",
		`{"tool_id":"s:t","params":"hello"}`:       "params must be of type object, not string",
		`{"tool_id":"s:t","params":"[1]"}`:         "params must be of type object, not array",
		`{"tool_id":"s:t","params":"{\"a\":1"}`:    "params must be of type object, not string",
		`{"tool_id":"s:t","params":{"a":1,"a":2}}`: "duplicate",
	} {
		_, err := store.ReadExecute([]byte(raw))
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// FuzzReadExecute: whatever is read keeps each member that holds something.
func FuzzReadExecute(f *testing.F) {
	f.Add(`{"tool_id":"s:t","params":{"a":1},"path":"/a"}`)
	f.Add(`"{\"tool_id\":\"s:t\",\"arguments\":\"{}\"}"`)
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := store.ReadExecute([]byte(raw))
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		object, ok := store.ObjectOf(json.RawMessage(raw))
		var given map[string]json.RawMessage
		if !ok || json.Unmarshal(object, &given) != nil {
			t.Fatalf("%q was read", raw)
		}
		for name, value := range given {
			_, kept := args.Beside[name]
			switch {
			case name == "tool_id" || name == "tool_name" || kept:
			case name == "params" && (string(args.Params) != "{}" || store.IsEmptyJSON(value)):
			case store.IsArgumentWord(name) && store.IsEmptyJSON(value):
			default:
				t.Fatalf("%q lost %q", raw, name)
			}
		}
	})
}
