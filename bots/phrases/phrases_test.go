package phrases

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestComplete reads the keys from the source: no catalogue may lack one, and
// all take the same number of arguments.
func TestComplete(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[Key]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Key" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				keys[Key(text)] = true
			}
			return true
		})
	}
	if len(keys) < 20 {
		t.Fatalf("found %d keys only", len(keys))
	}
	for tag, c := range catalogues {
		for key := range keys {
			if c[key] == "" {
				t.Errorf("%s lacks %s", tag, key)
			}
			if got, want := verbs(c[key]), verbs(english[key]); got != want {
				t.Errorf("%s: %s takes the arguments %q, want %q", tag, key, got, want)
			}
		}
		if len(c) != len(keys) {
			t.Errorf("%s has %d sentences for %d keys", tag, len(c), len(keys))
		}
	}
}

// verbs are the verbs of a sentence in the order of the arguments that they
// take, whatever the order in the sentence: "%[2]s%[1]d" is "1d 2s".
func verbs(text string) string {
	var took []string
	next := 1
	for _, m := range verb.FindAllStringSubmatch(text, -1) {
		if m[2] == "%" {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		took = append(took, strconv.Itoa(next)+m[2])
		next++
	}
	slices.Sort(took)
	return strings.Join(took, " ")
}

func TestVerbs(t *testing.T) {
	for text, want := range map[string]string{"": "", "100%%": "", "%s of %d": "1s 2d", "%[2]d, %[1]s": "1s 2d", "%[1]s %[1]s": "1s 1s", "%[2]s": "2s", "%q!": "1q"} {
		if got := verbs(text); got != want {
			t.Errorf("verbs(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestFor(t *testing.T) {
	for locale, want := range map[string]string{
		"zh": "失败", "zh-CN": "失败", "zh_SG": "失败", "zh-Hans-HK": "失败", "zh_CN.UTF-8": "失败", "ZH-cn": "失败",
		"zh-Hant": "失敗", "zh-TW": "失敗", "zh-HK": "失敗", "zh_MO": "失敗", "zh-Hant-CN": "失敗", "zh_TW.Big5": "失敗", "zh_HK@stroke": "失敗",
		"C.UTF-8": "failed", "POSIX": "failed", ".": "failed",
	} {
		if got := For(locale).Say(StateFailed); got != want {
			t.Errorf("For(%q) says %q, want %q", locale, got, want)
		}
	}
	for _, locale := range []string{"", "en", "en-GB", "en_US", "xx-Yyyy-ZZ", "-"} {
		if got := For(locale).Say(StateDone); got != "done" {
			t.Errorf("For(%q) says %q", locale, got)
		}
	}
	if got := For("en").Say(CardBy, "100%"); got != "asked by: 100%" {
		t.Errorf("got %q", got)
	}
}
