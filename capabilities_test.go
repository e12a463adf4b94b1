package nize

import (
	"regexp"
	"strings"
	"testing"
)

// TestCapabilities: each capability in testdata/capabilities.txt is shown by a script or
// a test that stands in the tree, and that the tests of this tree or .ci/run run.
func TestCapabilities(t *testing.T) {
	runs := regexp.MustCompile(`^cmd/nizectl/testdata/[a-z_]+\.txtar$|^scripts/web/[a-z]+\.test\.mjs$|^store/storetest/[a-z]+\.go$|_test\.go$`)
	seen := map[string]bool{}
	for line := range strings.Lines(read(t, "testdata/capabilities.txt")) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.SplitN(line, " | ", 3)
		if len(row) != 3 || row[2] == "" || seen[row[0]] {
			t.Errorf("no row of its own, of a capability, a file and what stands in it: %s", line)
			continue
		}
		seen[row[0]] = true
		switch {
		case !runs.MatchString(row[1]):
			t.Errorf("%s: nothing runs %s", row[0], row[1])
		case !strings.Contains(read(t, row[1]), row[2]):
			t.Errorf("%s: %s does not have %s", row[0], row[1], row[2])
		case strings.HasPrefix(row[2], "func ") && !strings.HasSuffix(row[2], "("):
			t.Errorf("%s: %s names no test", row[0], row[2])
		}
	}
	if len(seen) < 100 {
		t.Errorf("there are %d capabilities", len(seen))
	}
}
