package chat

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"nize/bots"
	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// show makes escapes readable in golden files.
func show(lines []string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "<ESC>")
}

func renderMarkdown(s style, width int, pieces ...string) []string {
	m := newMarkdown(s, width)
	var out []string
	for _, piece := range pieces {
		out = append(out, m.write(piece)...)
		m.partial() // looking changes nothing
	}
	return append(out, m.close()...)
}

var fine = style{escapes: true, colour: true}

func TestMarkdown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		got := renderMarkdown(fine, 60, string(raw))
		golden(t, name+".golden", show(got))
		// However it is cut, it looks the same.
		var bytewise []string
		for _, r := range string(raw) {
			bytewise = append(bytewise, string(r))
		}
		if diff := cmp.Diff(got, renderMarkdown(fine, 60, bytewise...)); diff != "" {
			t.Errorf("%s in pieces (-whole +pieces):\n%s", name, diff)
		}
		for _, line := range got {
			if visible(line) > 60 {
				t.Errorf("%s: %d columns: %q", name, visible(line), line)
			}
		}
	}
}

// A card in Chinese: each character takes two columns, and the frame stays
// straight at any width.
func TestBoxChinese(t *testing.T) {
	card := store.Card{
		Call: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tool: "toolbox:convert_time", Title: "Convert a time", Server: "toolbox", Where: "nize-toolbox", By: "安", RunsAs: store.Textf("no credential"),
		Args: []byte(`{"city":"東京","n":1}`), Warnings: []store.Text{store.Textf("this conversation has read untrusted text, which may have asked for this call")},
		Digest: strings.Repeat("ab12", 16), State: store.Pending, Policy: store.ByRequester,
	}
	for _, locale := range []string{"zh-Hans", "zh-Hant"} {
		lines := frontLines(bots.PartsOf(card, bots.Reader{Locale: locale}))
		golden(t, "box_"+locale+".golden", show(boxLines(fine, lines, 50)))
		for width := 20; width < 100; width++ {
			rows := boxLines(fine, lines, width)
			for _, row := range rows {
				if visible(row) != visible(rows[0]) || visible(row) > width {
					t.Fatalf("width %d: a row has %d columns, the first %d: %q", width, visible(row), visible(rows[0]), row)
				}
			}
		}
	}
}

func TestBox(t *testing.T) {
	var lines []boxLine
	for _, text := range []string{"Run toolbox:greet?", "description (the server's own claim):", "  | Greets somebody, in many words: approvers: everybody, at once", "arguments:", `    "text": "` + strings.Repeat("long 日本 ", 12) + `"`} {
		lines = append(lines, boxLine{text: text})
	}
	lines[0].look = lookBold
	golden(t, "box.golden", show(boxLines(fine, lines, 50)))
	golden(t, "box_ascii.golden", show(boxLines(style{ascii: true}, lines, 50)))
}

// FuzzMarkdown: whatever a model writes, only our own escapes come out, no line
// is too wide, and looking at a partial line changes nothing.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a **b** `c` [d](e)\n\n- x\n1. y\n> z\n```go\nf\n```\n|a|b|\n|-|-|\n|1|2|\n", 30)
	f.Add("**\x1b[2J*_`[](", 20)
	f.Add("\u202e\u200b日本\u0301\n|\n", 25)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 20 || width > 200 || !utf8.ValidString(text) {
			return
		}
		for _, line := range renderMarkdown(fine, width, text[:len(text)/2], text[len(text)/2:]) {
			if visible(line) > width+2 { // a character of two columns may not fit the least room
				t.Errorf("%d columns of %d: %q", visible(line), width, line)
			}
			bare := line
			for _, code := range []string{"1", "2", "3", "4", "36", "31", "32", "33"} {
				for _, more := range []string{"", ";3", ";4", ";36", ";3;4", ";3;36", ";4;36", ";3;4;36"} {
					bare = strings.ReplaceAll(bare, "\x1b["+code+more+"m", "")
				}
			}
			bare = strings.ReplaceAll(bare, reset, "")
			if bots.Plain(bare) != bare {
				t.Errorf("an escape of others in %q", line)
			}
		}
	})
}
