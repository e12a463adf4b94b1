package markdown

import (
	"fmt"
	"strings"
	"testing"
)

var slackSizes = Sizes{Part: 10_000, Soft: 8_500, Word: 9_500, Lead: 1_000}

// TestCutting: a growing text is split in the same places, splits are at lines or words,
// and each message is complete by itself.
func TestCutting(t *testing.T) {
	text := longAnswer()
	parts := slackSizes.Split(text)
	if strings.Join(parts, "") != text || len(parts) < 4 {
		t.Fatalf("%d parts, which are not the text", len(parts))
	}
	grown := 0
	for n := 0; n <= len(text); n += 97 {
		got := slackSizes.Split(text[:n])
		for i, piece := range got[:max(len(got)-1, 0)] {
			if piece != parts[i] {
				t.Fatalf("with %d bytes, part %d is otherwise than in the whole", n, i)
			}
			grown++
		}
	}
	if grown == 0 {
		t.Error("nothing was compared")
	}
	before := ""
	for i, piece := range parts {
		if i < len(parts)-1 && !strings.HasSuffix(piece, "\n") && !strings.HasSuffix(piece, " ") {
			t.Errorf("part %d ends within a word: …%q", i, piece[len(piece)-20:])
		}
		shown := slackSizes.Dress(before, piece, i < len(parts)-1)
		if open := openIn(shown); open.fence != "" {
			t.Errorf("message %d leaves its code open", i)
		}
		if len(shown) > 12_000 {
			t.Errorf("message %d has %d bytes", i, len(shown))
		}
		if first, _, _ := strings.Cut(strings.TrimPrefix(shown, "```go\n"), "\n"); strings.HasPrefix(first, "func") && !strings.HasPrefix(shown, "```go\n") {
			t.Errorf("message %d begins with code that is none: %q", i, first)
		}
		if strings.HasPrefix(shown, "| row") {
			t.Errorf("message %d begins with rows without their head", i)
		}
		before += piece
	}
	for in, want := range map[string]string{
		"~~~~ py\na\n":         "~~~~",
		"~~~~ py\na\n~~~\n":    "~~~~",
		"a\n  ```\nb\n  ```\n": "",
		"```a`b```\n":          "", // a code span
		"text\n```js\nx":       "\n```",
		"```\nx\n```js\n":      "```", // a fence with a language closes nothing
	} {
		if got := slackSizes.TailOf(in); got != want {
			t.Errorf("tailOf(%q) = %q, want %q", in, got, want)
		}
	}
}

// longAnswer returns an answer of over 30,000 characters with constructs that a split may
// go through.
func longAnswer() string {
	var b strings.Builder
	b.WriteString("# Report\n\nSome *words*, 1 < 2.\n\n| name | size |\n|---|--:|\n")
	for i := range 500 {
		fmt.Fprintf(&b, "| row %d | %d |\n", i, i*i)
	}
	b.WriteString("\nNow the code:\n\n```go\n")
	for i := range 400 {
		fmt.Fprintf(&b, "func f%d(x int) int { return x*%d /* *not bold* _x_ */ }\n", i, i)
	}
	b.WriteString("```\n\n")
	for b.Len() < 40_000 {
		b.WriteString("One long line without an end, and then another word of it ")
	}
	return b.String() + "\n\nThe end."
}
