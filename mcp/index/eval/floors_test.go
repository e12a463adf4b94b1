//go:build !race

package main

import (
	"io"
	"testing"
)

// One goroutine measures here: the race detector has nothing to find, and would
// take a minute for it.

// The embedded corpora keep their floors of quality; memory is for
// `eval -floors`, which has the process to itself.
func TestFloors(t *testing.T) {
	all, err := loadAll("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := printQuality(io.Discard, all)
	if err != nil {
		t.Fatal(err)
	}
	learned, err := printReplay(io.Discard, all)
	if err != nil {
		t.Fatal(err)
	}
	figures := append(out.floors(), learned...)
	if len(figures) < 15 {
		t.Errorf("only %d figures", len(figures))
	}
	for _, f := range figures {
		if f.low() {
			t.Errorf("%s is %.3f, its floor %.2f", f.name, f.value, f.floor)
		}
	}
	if n := printFloors(io.Discard, []figure{{name: "x", value: 1, floor: 2}, {name: "y", value: 1, floor: 2, below: true}, {name: "slow", value: 2, floor: 1, below: true, clock: true}}); n != 1 {
		t.Errorf("printFloors counts %d low figures, want 1", n)
	}
}

// A strong model leads, a useless one loses at most two points.
func TestFusion(t *testing.T) {
	fsys, err := files("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := load(fsys, "mcp")
	if err != nil {
		t.Fatal(err)
	}
	figures, err := printFusion(io.Discard, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.low() {
			t.Errorf("%s is %.3f, at most %.2f", f.name, f.value, f.floor)
		}
	}
}
