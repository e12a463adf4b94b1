package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// TestCallResults: a prompt, a resource and a picture are shown and saved; a file that
// is there is asked about before anything runs.
func TestCallResults(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ raw, out, saved string }{
		"text":     {`{"content":[{"type":"text","text":"two\u001b[2J"}]}`, "two", "two"},
		"prompt":   {`{"messages":[{"role":"user","content":{"type":"text","text":"Say hello"}},{"role":"assistant","content":{"type":"image","data":"AAEC","mimeType":"image/png"}}]}`, "user: Say hello\nassistant: [image/png, 3 bytes]\n", "\x00\x01\x02"},
		"resource": {`{"contents":[{"uri":"file:///a","text":"the text"}]}`, "the text\n", "the text\n"},
		"bytes":    {`{"contents":[{"uri":"file:///a","blob":"AAEC","mimeType":"application/x"}]}`, "[application/x, 3 bytes]\n", "\x00\x01\x02"},
		"picture":  {`{"content":[{"type":"text","text":"here"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x","blob":"AAED"}}]}`, "here\n[image image/png", "\x00\x01\x02"},
	} {
		d := newDouble(t)
		answer(d, api.CallTool, store.Call{Server: "box", Tool: "x", State: store.Done, Result: &store.Result{Raw: json.RawMessage(test.raw)}})
		got := d.nizectl(surroundings{}, "tools", "call", "box:x")
		if got.code != 0 || !strings.HasPrefix(got.out, test.out) || strings.Contains(got.out, "\x1b") {
			t.Errorf("%s: %+v", name, got)
		}
		path := filepath.Join(dir, name+".png")
		got = d.nizectl(surroundings{}, "tools", "call", "box:x", "-o", path)
		saved, err := os.ReadFile(path)
		if got.code != 0 || got.out != "" || err != nil || !strings.HasPrefix(string(saved), test.saved) {
			t.Errorf("%s: %+v, %q, %v", name, got, saved, err)
		}
		d.asked = nil
		if got = d.nizectl(surroundings{}, "tools", "call", "box:x", "-o", path); got.code != 2 || d.asked != nil {
			t.Errorf("%s: %+v, asked %v", name, got, d.asked)
		}
	}
	if second, err := os.ReadFile(filepath.Join(dir, "picture-2.png")); err != nil || string(second) != "\x00\x01\x03" {
		t.Errorf("the second file: %q, %v", second, err)
	}
}

// TestCallErrors: what went wrong is said once, with the tool's name once.
func TestCallErrors(t *testing.T) {
	for reason, want := range map[string]string{
		"box:x did not answer within 1s":          "nizectl: box:x did not answer within 1s\n",
		"box:x: it answered 401 Unauthorized":     "nizectl: box:x failed: it answered 401 Unauthorized\n",
		"box is not reachable: nobody listens":    "nizectl: box:x failed: box is not reachable: nobody listens\n",
		"box:xy did not answer":                   "nizectl: box:x failed: box:xy did not answer\n",
		"":                                        "nizectl: box:x failed: no reason was given\n",
		"box:x failed: the connection was closed": "nizectl: box:x failed: the connection was closed\n",
	} {
		d := newDouble(t)
		answer(d, api.CallTool, store.Call{Server: "box", Tool: "x", State: store.Failed, Reason: store.Plain(reason)})
		if got := d.nizectl(surroundings{}, "tools", "call", "box:x"); got.code != 1 || got.err != want {
			t.Errorf("%q: %+v, want %q", reason, got, want)
		}
	}
}
