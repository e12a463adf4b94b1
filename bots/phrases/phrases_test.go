package phrases

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestComplete reads the keys from the source: no catalogue may lack one, and
// all take the same number of arguments.
func TestComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "phrases.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[Key]bool{}
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
	if len(keys) < 20 {
		t.Fatalf("found %d keys only", len(keys))
	}
	for tag, c := range catalogues {
		for key := range keys {
			if c[key] == "" {
				t.Errorf("%s lacks %s", tag, key)
			}
			if got, want := strings.Count(c[key], "%s"), strings.Count(english[key], "%s"); got != want {
				t.Errorf("%s: %s takes %d arguments, want %d", tag, key, got, want)
			}
		}
		if len(c) != len(keys) {
			t.Errorf("%s has %d sentences for %d keys", tag, len(c), len(keys))
		}
	}
}

func TestFor(t *testing.T) {
	for _, locale := range []string{"", "en", "en-GB", "en_US", "xx-Yyyy-ZZ", "-"} {
		if got := For(locale).Say(StateDone); got != "done" {
			t.Errorf("For(%q) says %q", locale, got)
		}
	}
	if got := For("en").Say(CardBy, "100%"); got != "asked by: 100%" {
		t.Errorf("got %q", got)
	}
}
