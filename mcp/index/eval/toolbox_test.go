package main

import "testing"

// TestToolbox: the example server answers requests that it has a tool for and refuses the
// others, with the requests that were tuned with and with those that were not.
func TestToolbox(t *testing.T) {
	fsys, err := files("")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range toolboxRequests {
		n, err := measureToolbox(fsys, r.name)
		if err != nil {
			t.Fatal(err)
		}
		if n.with < 18 || n.kept < r.kept || n.without != 24 || n.refused < r.refused {
			t.Errorf("%s: %d of %d requests are kept, want %d; %d of %d refused, want %d", r.name, n.kept, n.with, r.kept, n.refused, n.without, r.refused)
		}
		if r.name != "heldout" { // they are not to be tuned with
			for _, w := range n.wrong {
				t.Log(w)
			}
		}
	}
}
