package extensions

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExamples runs the examples of the page, as they stand there.
func TestExamples(t *testing.T) {
	page, err := os.ReadFile("../../mcp/README.md")
	if err != nil {
		t.Fatal(err)
	}
	h := newFixture(t)
	n := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(mkdir -m 700 .*?)```").FindAllStringSubmatch(string(page), -1) {
		cmd := exec.Command("sh", "-e")
		cmd.Dir, cmd.Stdin = h.dir, strings.NewReader(block[1])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v: %s", block[1], err, out)
		}
		n++
	}
	if n != 3 {
		t.Fatalf("the page has %d examples", n)
	}
	h.Load(t.Context())
	if p := h.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	if h.shown["native:words"] == nil || h.shown["native:checksum"] != nil {
		t.Errorf("shown by renderers: %v", h.shown)
	}
	if want := []string{"extensions/words/extension.json counter"}; !slices.Equal(h.agents, want) {
		t.Errorf("agents: %v, want %v", h.agents, want)
	}
	for name, c := range map[string]struct{ args, text, structured string }{
		"words":      {`{"text":"to be or not to be"}`, `^6 words; most often: to, be, or$`, `{"count":6,"top":[{"word":"to","times":2},{"word":"be","times":2},{"word":"or","times":1}]}`},
		"disk-space": {`{}`, `^[0-9]+ MiB of [0-9]+ MiB are free$`, ``},
		"checksum":   {`{"text":"abc"}`, `^ba7816bf[0-9a-f]{56}$`, `{"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`},
	} {
		r, err := h.call(name, c.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got struct{ StructuredContent json.RawMessage }
		if err := json.Unmarshal(r.Raw, &got); err != nil || !regexp.MustCompile(c.text).MatchString(r.Text()) || strings.ReplaceAll(string(got.StructuredContent), " ", "") != c.structured {
			t.Errorf("%s: %s", name, r.Raw)
		}
	}
}
