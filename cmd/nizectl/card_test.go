package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"nize/cmd/nizectl/command"
	"nize/store"
)

// TestCardShowsAll: what a person approves at a terminal has each character on
// it that would run, also those for which a terminal shows nothing; the
// arguments are still the same JSON.
func TestCardShowsAll(t *testing.T) {
	const unseen = "\u202e\u200b\u00ad\ufe0f\u034f\u2800\u3164\u00a0\u2028\ue000\U000e0041\U000e0101\u009b"
	args, err := json.Marshal(map[string]string{"k" + unseen: "a" + unseen + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := &command.Call{App: &command.App{Now: time.Now, Out: bufio.NewWriter(&out), Env: func(string) string { return "dumb" }}}
	printCard(c, store.Card{
		Call: "1", Tool: "box:write", Title: "T" + unseen, Description: "D" + unseen, Server: "box", Where: "/bin/" + unseen, By: "mia" + unseen, RunsAs: store.Plain("r" + unseen),
		Why: "w" + unseen, Args: args, Warnings: []store.Text{store.Plain("W" + unseen)}, Digest: "0123456789abcdef", State: store.Done,
	})
	c.Out.Flush()
	if i := strings.IndexAny(out.String(), unseen); i >= 0 {
		t.Errorf("%q stands as it is in:\n%s", []rune(out.String()[i:])[0], out.String())
	}
	_, rest, _ := strings.Cut(out.String(), "\n  k")
	shown, _, _ := strings.Cut(rest, "server box")
	name, value, _ := strings.Cut(shown, ":\n    | a")
	for _, part := range []string{name, value} {
		for _, r := range utf16.Encode([]rune(unseen)) {
			if !strings.Contains(part, fmt.Sprintf(`\u%04x`, r)) {
				t.Errorf("no \\u%04x in %q of %q", r, part, shown)
			}
		}
	}
}
