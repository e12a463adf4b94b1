package fileconfig

import (
	"testing"

	"nize/store"
)

// TestTaken is the names of agents that an extension can't have.
func TestTaken(t *testing.T) {
	x, y := store.ExtensionOrigin("x"), store.ExtensionOrigin("y")
	stored := []store.Agent{{ID: "hand"}, {ID: "file", Origin: "/etc/nize/nized.toml:3"}, {ID: "old", Origin: y}, {ID: "both", Origin: y}}
	for id, want := range map[string]string{
		"hand": "there is an agent hand that was made by hand: remove it (nizectl agents remove hand), or give this one another name",
		"file": "the configuration file /etc/nize/nized.toml:3 has an agent file",
		"both": "extensions/x/extension.json has an agent both",
		"old":  "", // y had it, and has it no more
		"new":  "",
	} {
		got := ""
		if err := taken(store.Agent{ID: id, Origin: y}, stored, []store.Agent{{ID: "both", Origin: x}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}
