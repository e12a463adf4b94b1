package daemon

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What grows past these limits holds two subjects: part it. Doubles and tests
// do not count.
const (
	maxMethods   = 60   // of a type
	maxFields    = 25   // of a struct
	maxInterface = 12   // methods of an interface, what it embeds counted
	maxFiles     = 35   // in a folder
	maxLines     = 7000 // in a folder
	maxCircle    = 12   // files of a folder that all use one another
)

// oversized is what is over a limit today. A number may only shrink: the test
// fails as well where it could, by a twentieth or more.
var oversized = map[string]int{
	// One record for one fact: a field more is a fact more.
	"fields of store.Call":                    36,
	"fields of store.Card":                    28,
	"fields of store.Server":                  30,
	"fields of daemon/api.PatchServerRequest": 28,
	"fields of daemon/doctor.Facts":           26,

	// What everybody keeps, in one word.
	"methods of interface store.DB": 143,

	// Words that lean on one another.
	"files in a circle in store":           28,
	"files in a circle in bots/slack":      15,
	"files in a circle in daemon/commands": 15,
	"files in a circle in mcp":             15,
	"files in a circle in mcp/index":       13,
}

// TestSizes holds the limits.
func TestSizes(t *testing.T) {
	fset, all := sources(t)
	got := map[string]int{}
	rooms := map[string][]source{}
	for _, s := range all {
		if !s.double() {
			rooms[s.room] = append(rooms[s.room], s)
		}
	}
	note := func(what string, n, limit int) {
		if n > limit {
			got[what] = n
		}
	}
	interfaces := interfacesOf(rooms)
	for room, files := range rooms {
		lines := 0
		for _, s := range files {
			lines += linesOf(t, s)
		}
		note("files in "+room, len(files), maxFiles)
		note("lines in "+room, lines, maxLines)
		for name, n := range methodsOf(files) {
			note("methods of "+room+"."+name, n, maxMethods)
		}
		for name, n := range fieldsOf(files) {
			note("fields of "+room+"."+name, n, maxFields)
		}
		note("files in a circle in "+room, largestCircle(fset, files), maxCircle)
	}
	for name := range interfaces {
		note("methods of interface "+name, len(interfaces.methods(name, map[string]bool{})), maxInterface)
	}
	for _, what := range slices.Sorted(maps.Keys(got)) {
		switch is, was := got[what], oversized[what]; {
		case was == 0:
			t.Errorf("%s: %d: it holds two subjects; part it", what, is)
		case is > was:
			t.Errorf("%s: %d, and it was %d: it may only shrink", what, is, was)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(oversized)) {
		if is, was := got[what], oversized[what]; is < was-was/20 {
			t.Errorf("%s: %d, not %d any more: say so in the list, or strike it where it is within its limit", what, is, was)
		}
	}
}

// TestOperationsSeeNoHTTP: what a chat and a page can ask for as well as nizectl
// knows of no request.
func TestOperationsSeeNoHTTP(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		operations := slices.Contains([]string{"daemon/control", "daemon/people", "daemon/settings", "daemon/backup", "daemon/monitor", "daemon/commands", "daemon/imports", "daemon/indexer"}, s.room)
		if operations && !s.test && slices.Contains(s.imports(), "net/http") {
			t.Errorf("%s imports net/http: a request is decoded before it gets here, by package mux", s.path)
		}
	}
}

func linesOf(t *testing.T, s source) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(s.path)))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

func methodsOf(files []source) map[string]int {
	n := map[string]int{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				n[receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	return n
}

func receiver(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func fieldsOf(files []source) map[string]int {
	n := map[string]int{}
	eachType(files, func(name string, t ast.Expr, _ source) {
		if st, ok := t.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				n[name] += max(1, len(f.Names))
			}
		}
	})
	return n
}

func eachType(files []source, visit func(name string, t ast.Expr, in source)) {
	for _, s := range files {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					visit(ts.Name.Name, ts.Type, s)
				}
			}
		}
	}
}

// interfaceSet is every interface of the house by its room and name, with the
// names of its methods and of what it embeds. What others wrote counts as one.
type interfaceSet map[string]struct{ methods, embeds []string }

func interfacesOf(rooms map[string][]source) interfaceSet {
	set := interfaceSet{}
	for room, files := range rooms {
		eachType(files, func(name string, t ast.Expr, in source) {
			i, ok := t.(*ast.InterfaceType)
			if !ok {
				return
			}
			names := importNames(in.file)
			one := set[room+"."+name]
			for _, m := range i.Methods.List {
				for _, n := range m.Names {
					one.methods = append(one.methods, n.Name)
				}
				if len(m.Names) > 0 {
					continue
				}
				switch x := m.Type.(type) {
				case *ast.Ident:
					one.embeds = append(one.embeds, room+"."+x.Name)
				case *ast.SelectorExpr:
					one.embeds = append(one.embeds, strings.TrimPrefix(selected(names, x), "nize/"))
				}
			}
			set[room+"."+name] = one
		})
	}
	return set
}

func (s interfaceSet) methods(name string, into map[string]bool) map[string]bool {
	one, ok := s[name]
	if !ok {
		into[name] = true
	}
	for _, m := range one.methods {
		into[m] = true
	}
	for _, e := range one.embeds {
		s.methods(e, into)
	}
	return into
}

// largestCircle is how many files of a folder use one another's definitions in
// a circle. The package is checked without its imports: what is known of the
// rest is enough to tell which file defines what a file uses.
func largestCircle(fset *token.FileSet, files []source) int {
	uses := fileUses(fset, files)
	return len(slices.MaxFunc(append(circles(uses), nil), func(a, b []string) int { return cmp.Compare(len(a), len(b)) }))
}

// fileUses says which files of a folder each of them uses.
func fileUses(fset *token.FileSet, files []source) map[string][]string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
	asts := make([]*ast.File, len(files))
	for i, s := range files {
		asts[i] = s.file
	}
	pkg, _ := conf.Check("x", fset, asts, info) // errors are of what is not imported
	uses := map[string]map[string]bool{}
	file := func(p token.Pos) string { return fset.Position(p).Filename }
	for _, s := range files {
		uses[file(s.file.Pos())] = map[string]bool{}
	}
	note := func(at token.Pos, obj types.Object) {
		if obj == nil || obj.Pkg() != pkg || !obj.Pos().IsValid() {
			return
		}
		if v, ok := obj.(*types.Var); ok && v.IsField() || obj.Parent() != nil && obj.Parent() != pkg.Scope() {
			return // a field belongs to its type, a local to its function
		}
		if from, to := file(at), file(obj.Pos()); from != to {
			uses[from][to] = true
		}
	}
	for id, obj := range info.Uses {
		note(id.Pos(), obj)
	}
	out := map[string][]string{}
	for from, to := range uses {
		out[from] = slices.Sorted(maps.Keys(to))
	}
	return out
}

type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}

// circles are the sets of files that reach one another (Tarjan, 1972).
func circles(uses map[string][]string) (found [][]string) {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for _, w := range uses[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		if ring := slices.Clone(stack[i:]); len(ring) > 1 {
			found = append(found, ring)
		}
		for _, w := range stack[i:] {
			on[w] = false
		}
		stack = stack[:i]
	}
	for _, v := range slices.Sorted(maps.Keys(uses)) {
		if index[v] == 0 {
			visit(v)
		}
	}
	return found
}

func TestCircles(t *testing.T) {
	got := circles(map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": nil})
	for _, ring := range got {
		slices.Sort(ring)
	}
	if want := "[[a b c]]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
