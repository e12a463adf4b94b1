package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/store"
)

// A result of text and pictures is saved as files, none over another.
func TestSaveResult(t *testing.T) {
	dir := t.TempDir()
	c := store.Call{Tool: "draw/../it", Finished: time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local), Result: &store.Result{Raw: json.RawMessage(
		`{"content":[{"type":"text","text":"Here it is."},{"type":"image","mimeType":"image/png","data":"cG5n"},{"type":"resource","resource":{"mimeType":"text/csv","text":"a,b"}},{"type":"image","mimeType":"image/jpeg","data":"anBn"}]}`)}}
	s := &session{}
	path := filepath.Join(dir, "out.txt")
	got, err := s.saveParts(c, bots.ResultParts(c.Result), path)
	if err != nil || len(got.lines) != 3 {
		t.Fatalf("got %q, %v", got.lines, err)
	}
	for name, want := range map[string]string{"out.txt": "Here it is.\na,b\n", "out-2.png": "png", "out-3.jpg": "jpg"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := s.saveParts(c, bots.ResultParts(c.Result), path); err == nil {
		t.Error("a file was written over")
	}
	path = filepath.Join(dir, "it.jpeg")
	if _, err := s.saveParts(c, bots.ResultParts(c.Result), path); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"it.jpeg": "jpg", "it-2.txt": "Here it is.\na,b\n", "it-3.png": "png"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	t.Chdir(dir)
	if got, err = s.saveParts(c, bots.ResultParts(c.Result)[1:2], ""); err != nil || !strings.Contains(got.lines[0], "draw____it-20260301-120000.png") {
		t.Errorf("got %q, %v", got.lines, err)
	}
	if parts := bots.ResultParts(&store.Result{Error: &store.CallError{Message: store.Textf("nize had an internal error")}}); len(parts) != 1 || parts[0].Text == "" {
		t.Errorf("of an error: %+v", parts)
	}
	if bots.ResultParts(nil) != nil {
		t.Error("a call without a result has one")
	}
}
