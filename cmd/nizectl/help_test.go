package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"nize"
)

var (
	named = regexp.MustCompile(`nizectl((?: [a-z][a-z|-]*)+)([^\n` + "`" + `]*)`)
	flags = regexp.MustCompile(`(?:^| )--([a-z-]+)`)
)

// TestPagesNameCommands looks up every command that a page names, and its flags.
func TestPagesNameCommands(t *testing.T) {
	root, seen := allCommands(t), 0
	for _, topic := range nize.Topics {
		for _, m := range named.FindAllStringSubmatch(topic.Text(), -1) {
			at := root
			for _, word := range strings.Fields(m[1]) {
				first, others, _ := strings.Cut(word, "|")
				next := at.Command(first)
				if next == nil && len(at.Commands) > 0 && at.ArgsUsage == "" {
					t.Errorf("%s: %s: %s has no command %s", topic.Path, m[0], at.FullName(), first)
				}
				if next == nil {
					break // arguments
				}
				for name := range strings.SplitSeq(others, "|") {
					if name != "" && at.Command(name) == nil {
						t.Errorf("%s: %s: %s has no command %s", topic.Path, m[0], at.FullName(), name)
					}
				}
				at = next
				seen++
			}
			rest, _, _ := strings.Cut(m[2], " #") // of another command, perhaps
			rest, _, _ = strings.Cut(rest, " -- ")
			for _, f := range flags.FindAllStringSubmatch(rest, -1) {
				if !slices.ContainsFunc(slices.Concat(at.Flags, root.Flags), func(have cli.Flag) bool { return slices.Contains(have.Names(), f[1]) }) {
					t.Errorf("%s: %s: %s has no flag --%s", topic.Path, m[0], at.FullName(), f[1])
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("it saw %d commands only", seen)
	}
}

// TestPagesOnATerminal: a page is rendered there, its links lead to topics, and
// nothing of its Markdown is left.
func TestPagesOnATerminal(t *testing.T) {
	d := newDouble(t)
	got := d.nizectl(surroundings{tty: true, columns: 80, env: map[string]string{"NO_COLOR": "1"}}, "help", "nize")
	if got.code != 0 || !strings.Contains(got.out, "Try it") || !strings.Contains(got.out, "cli (nizectl help cli)") {
		t.Errorf("%+v", got)
	}
	for _, odd := range []string{"## ", "**", "```", "](", "<picture", "The map"} {
		if strings.Contains(got.out, odd) {
			t.Errorf("%q is in %s", odd, got.out)
		}
	}
	if got := d.nizectl(surroundings{}, "help", "nize"); !strings.HasPrefix(got.out, "# nize\n") || strings.Contains(got.out, "## The map") {
		t.Errorf("in a pipe: %s", got.out)
	}
}
