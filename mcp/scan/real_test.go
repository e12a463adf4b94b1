package scan

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"nize/store"
)

// TestRealTools runs over the corpora of discovery: no real definition may be refused
// or held.
func TestRealTools(t *testing.T) {
	files, err := filepath.Glob("../index/eval/testdata/*/tools.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpora: %v", err)
	}
	for _, file := range files {
		checkCorpus(t, file)
	}
}

func checkCorpus(t *testing.T, file string) {
	tools := readTools(t, file)
	var ids []string
	for _, tool := range tools {
		ids = append(ids, tool.ID())
	}
	held, all := 0, NewNames(ids)
	for _, tool := range tools {
		if err := (Gate{}).Check(tool); err != nil {
			t.Errorf("%s refused: %v", tool.ID(), err)
		}
		_, findings := Gate{}.Pin(store.Server{}, "", tool)
		findings = append(findings, Gate{}.Shadow("", tool, all)...)
		if len(findings) > 0 {
			held++
			t.Errorf("%s held: %q", tool.ID(), findings)
		}
	}
	t.Logf("%s: %d tools, %d held", filepath.Base(filepath.Dir(file)), len(tools), held)
}

func readTools(t *testing.T, file string) []store.Tool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var tools []store.Tool
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var tool store.Tool
		if err := json.Unmarshal(lines.Bytes(), &tool); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		tools = append(tools, tool)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return tools
}
