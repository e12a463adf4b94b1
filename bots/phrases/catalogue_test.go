package phrases

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCatalogues reads the sources of the whole tree for all texts for people: the keys of
// this package, and the formats passed to a constructor of texts and errors in any package.
// Each has a translation in every catalogue, with the same arguments, and no catalogue has
// others.
func TestCatalogues(t *testing.T) {
	said := readSources(t, filepath.Join("..", ".."))
	if len(said) < 350 {
		t.Fatalf("found %d sentences only", len(said))
	}
	for tag, c := range map[string]map[Key]string{"zh-Hans": simplified(), "zh-Hant": traditional()} {
		for key, at := range said {
			switch translated, ok := c[key]; {
			case !ok || translated == "":
				t.Errorf("%s lacks %q, which is said at %s", tag, key, at)
			case verbs(translated) != verbs(string(key)):
				t.Errorf("%s: %q takes the arguments %q, want %q as at %s", tag, translated, verbs(translated), verbs(string(key)), at)
			}
		}
		for key := range c {
			if said[key] == "" {
				t.Errorf("%s: nobody says %q", tag, key)
			}
		}
	}
}

// constructors create texts and errors; the value is the index of the format argument.
// Functions that pass their own format on to one of them are found as well.
var constructors = map[string]int{"nize/store.Textf": 0, "nize/store.Errorf": 0, "nize/store.Unknown": 0}

// source is a source file.
type source struct {
	pkg     string // its import path
	file    *ast.File
	imports map[string]string // keyed by name
}

// readSources returns the texts in a tree, and where they are.
func readSources(t *testing.T, root string) map[Key]string {
	t.Helper()
	set := token.NewFileSet()
	var sources []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		s := source{pkg: "nize/" + filepath.ToSlash(dir), file: file, imports: map[string]string{}}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			s.imports[path[strings.LastIndexByte(path, '/')+1:]] = path
		}
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w := walker{t: t, set: set, makes: maps.Clone(constructors), consts: map[string]ast.Expr{}, said: map[Key]string{}}
	for _, s := range sources {
		w.declare(s)
	}
	for before := 0; before < len(w.makes); { // functions may pass it on to others that do
		before = len(w.makes)
		for _, s := range sources {
			w.wrappers(s)
		}
	}
	for _, s := range sources {
		if s.pkg != "nize/bots/phrases" { // its formats are its constants
			w.read(s)
		}
	}
	for _, known := range []string{"ErrConflict", "ErrDecided", "ErrDiskFull"} { // as printed by Problem
		if call, ok := w.consts["nize/store."+known].(*ast.CallExpr); ok {
			w.say(source{}, call.Args[0])
		}
	}
	return w.said
}

// walker collects texts.
type walker struct {
	t      *testing.T
	set    *token.FileSet
	makes  map[string]int      // index of the format among the arguments, keyed by package and function
	consts map[string]ast.Expr // keyed by package and name
	said   map[Key]string      // with their positions
}

// declare records the constants of a file; those of type Key are texts.
func (w *walker) declare(s source) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				w.consts[s.pkg+"."+name.Name] = spec.Values[i]
			}
		}
		return true
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && s.pkg == "nize/bots/phrases" {
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Key" {
				w.say(s, spec.Values[0])
			}
		}
		return true
	})
}

// wrappers records the functions of a file that pass their own format on.
func (w *walker) wrappers(s source) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		var names []string
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if format, ok := w.format(s, n); ok {
				if id, ok := format.(*ast.Ident); ok {
					if i := slices.Index(names, id.Name); i >= 0 {
						w.makes[s.name(f.Name)] = i
					}
				}
			}
			return true
		})
	}
}

// format returns the format of a constructor call.
func (w *walker) format(s source, n ast.Node) (ast.Expr, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, false
	}
	at, ok := w.makes[s.name(call.Fun)]
	if !ok || at >= len(call.Args) {
		return nil, false
	}
	return call.Args[at], true
}

// name returns a function or value with its package; a method is assumed to be in the
// calling package.
func (s source) name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return s.pkg + "." + e.Name
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok && s.imports[id.Name] != "" {
			return s.imports[id.Name] + "." + e.Sel.Name
		}
		return s.pkg + "." + e.Sel.Name
	}
	return ""
}

// read collects the formats of a file.
func (w *walker) read(s source) {
	for _, d := range s.file.Decls {
		f, _ := d.(*ast.FuncDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			format, ok := w.format(s, n)
			if !ok {
				return true
			}
			if f != nil {
				if id, isName := format.(*ast.Ident); isName && w.makes[s.name(f.Name)] == paramAt(f, id.Name) {
					return true // collected at the function's calls
				}
			}
			w.say(s, format, n.(*ast.CallExpr).Args...)
			return true
		})
	}
}

// paramAt returns the index of a parameter, -1 if there is none.
func paramAt(f *ast.FuncDecl, name string) int {
	at := 0
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return at
			}
			at++
		}
	}
	return -1
}

// say records one sentence; sentinels among its arguments are a part of it.
func (w *walker) say(s source, format ast.Expr, args ...ast.Expr) {
	text, ok := w.text(s, format)
	at := w.set.Position(format.Pos()).String()
	if !ok {
		w.t.Errorf("%s: the format is no constant", at)
		return
	}
	for _, arg := range args {
		if name := s.name(arg); strings.HasPrefix(name, "nize/store.Err") {
			if call, ok := w.consts[name].(*ast.CallExpr); ok {
				word, _ := w.text(s, call.Args[0])
				text = strings.Replace(text, "%w", word, 1)
			}
		}
	}
	if !strings.Contains(verbs(text), "1") && strings.Contains(text, "%") {
		w.t.Errorf("%s: %q has no arguments and is printed as it stands, with its %%", at, text)
	}
	w.said[Key(text)] = at
}

// text returns the value of a constant expression.
func (w *walker) text(s source, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, okX := w.text(s, e.X)
		y, okY := w.text(s, e.Y)
		return x + y, okX && okY && e.Op == token.ADD
	case *ast.Ident:
		v, ok := w.consts[s.pkg+"."+e.Name]
		if !ok {
			return "", false
		}
		return w.text(s, v)
	}
	return "", false
}

var verb = regexp.MustCompile(`%(?:\[(\d+)\])?((?:\.\d+)?.)`)

// verbs returns the verbs of a sentence in the order of their arguments, whatever their
// order in the sentence: "%[2]s%[1]d" is "1d 2s". All verbs that print strings count as the
// same.
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
		if strings.HasSuffix(m[2], "q") || strings.HasSuffix(m[2], "s") || strings.HasSuffix(m[2], "v") || strings.HasSuffix(m[2], "w") {
			m[2] = "s"
		}
		took = append(took, strconv.Itoa(next)+m[2])
		next++
	}
	slices.Sort(took)
	return strings.Join(slices.Compact(took), " ")
}

func TestVerbs(t *testing.T) {
	for text, want := range map[string]string{"": "", "100%%": "", "%s of %d": "1s 2d", "%[2]d, %[1]s": "1s 2d", "%[1]s %[1]s": "1s", "%[2]s": "2s", "%q!": "1s", "%.1f %w": "1.1f 2s"} {
		if got := verbs(text); got != want {
			t.Errorf("verbs(%q) = %q, want %q", text, got, want)
		}
	}
}
