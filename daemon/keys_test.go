package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nize/daemon"
	"nize/daemon/settings"
)

// TestKeysStay: a key that a build had is still there, of the same kind, settable
// by the same people and with the same choices, as COMPATIBILITY.md promises. Keys
// may be added. With -update the file is written anew, but only if nothing recorded
// was lost: to end a deprecation, delete the key's line by hand.
func TestKeysStay(t *testing.T) {
	golden := filepath.Join("testdata", "keys.golden")
	recorded, err := os.ReadFile(golden)
	if err != nil && (!*update || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	var lines strings.Builder
	for _, k := range settings.Keys(daemon.Settings()) {
		line := []string{"kind=" + string(k.Kind)}
		if k.User {
			line = append(line, "user")
		}
		if !k.UserOnly {
			line = append(line, "system")
		}
		for _, choice := range k.Choices {
			line = append(line, "choice="+choice)
		}
		keys[k.Name] = line
		fmt.Fprintln(&lines, k.Name, strings.Join(line, " "))
	}
	for line := range strings.Lines(string(recorded)) {
		fields := strings.Fields(line)
		now, ok := keys[fields[0]]
		if !ok {
			t.Errorf("key %s was removed", fields[0])
		}
		for _, was := range fields[1:] {
			if ok && !slices.Contains(now, was) {
				t.Errorf("key %s had %s, and has %s", fields[0], was, strings.Join(now, " "))
			}
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(golden, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
