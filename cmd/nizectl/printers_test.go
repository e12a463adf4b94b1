package main

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// printers write to a person's streams; Note, Field, Table and the like clean
// what they are given themselves, and these do not.
var printers = []string{"Line", "Fprint", "Fprintf", "Fprintln", "WriteString"}

// cleaners return what may be printed, whatever they are given.
var cleaners = []string{
	"display.Clean", "display.CleanLines", "display.CleanJSON", "printable.Escape", "printable.EscapeLines", "printable.Prose", "printable.JSON", "bots.Plain", "bots.Escape",
	"command.Count", "c.When", "len", "Format", "oneLine", "problem", "toolLine", "outcomeLine", "cardKeys",
}

// keepers return what may be printed if all that they are given may be.
var keepers = []string{"c.Paint", "t.a.Paint", "c.Wrap", "a.Wrap", "command.Indent", "strings.Repeat", "strings.TrimRight", "strings.TrimSuffix", "strings.TrimSpace", "strings.ReplaceAll", "Sprintf", "Say", "plainSigns", "levelColour", "command.StateColour", "auditLine"}

// own are expressions that print nize's own words, or what was cleaned before.
var own = map[string]string{
	"approvals.go: line":                     "bots escapes the lines of a card",
	"command/prompt.go: note":                "words of ours",
	"chat/turn.go: line(card, t.s.reader())": "outcomeLine or ranLine",
	"audit.go: line":                         "made of clean cells",
	"audit.go: from":                         "a number in words",
	"audit.go: p.Seq":                        "a number",
	"approvals.go: pattern.Covered":          "a number",
	"bots_platform.go: strings.TrimRight(string(text), \"\\n\")":           "the manifest",
	"chart.go: c.Paint(command.Bold, unit)":                                "a word of ours",
	"chart.go: line":                                                       "made of clean names",
	"doctor.go: level":                                                     "painted when it was clean",
	"doctor.go: wide":                                                      "a number",
	"doctor.go: c.Wrap(display.Clean(text), indent)":                       "a number beside what is clean",
	"doctor.go: strings.Repeat(\" \", indent)":                             "blanks",
	"help.go: text":                                                        "pages of this program",
	"command/help.go: h.String()":                                          "help of this program",
	"command/help.go: strings.TrimRight(h.String(), \"\\n\")":              "help of this program",
	"leavers.go: r.Kind":                                                   "quoted by its verb",
	"main.go: \"nizectl: \" + text":                                        "made by oneLine",
	"version.go: v.Nizectl":                                                "the version of this program",
	"command/completion.go: filesLine":                                     "a constant",
	"command/completion.go: strings.ReplaceAll(name, \":\", `\\:`)":        "completable lets ASCII through only",
	"command/table.go: t.a.Wrap(strings.Join(rest, \", \"), 4)":            "made of clean cells",
	"command/output.go: format + \"\\n\"":                                  "Line itself",
	"command/output.go: args":                                              "Line itself",
	"command/output.go: a.Paint(Bold, fmt.Sprintf(\"%-12s\", name+\":\"))": "names of fields are ours",
	"command/prompt.go: question":                                          "made clean by Confirm, or a constant",
	"command/table.go: strings.TrimRight(line.String(), \" \")":            "made of clean cells",
	"servers/changes.go: row":                                              "made of a clean line",
	"servers/servers.go: stamp":                                            "a time",
	"chat/answer.go: more":                                                 "the transcript made it printable",
	"chat/prompt.go: p.answers.prompt()":                                   "answering.prompt escapes",
	"chat/prompt.go: line":                                                 "bots.CardLines escapes",
	"chat/turn.go: line":                                                   "the catalogue's",
}

// TestPrintersCleanWhatTheyPrint walks the sources: what goes to a person's
// terminal is a constant, is made of what may be printed, or is argued for above.
func TestPrintersCleanWhatTheyPrint(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{".", "clients", "command", "servers", "chat"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || path == "dev.go" { // what it shows is of this process
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !matches(nameOf(call.Fun), printers) {
					return true
				}
				args := call.Args
				if !strings.HasSuffix(nameOf(call.Fun), "Line") {
					if w := nameOf(args[0]); w == "&b" || w == "b" || w == "&line" { // a builder
						return true
					}
					args = args[1:]
				}
				for _, arg := range args {
					what := path + ": " + sourceOf(fset, arg)
					if _, argued := own[what]; argued {
						used[what] = true
					} else if !clean(arg) {
						t.Errorf("%s: %s prints %s as it came", fset.Position(arg.Pos()), nameOf(call.Fun), sourceOf(fset, arg))
					}
				}
				return true
			})
		}
	}
	for what := range own {
		if !used[what] {
			t.Errorf("%s is printed nowhere any more", what)
		}
	}
}

// clean says whether an expression may be printed, as far as its form tells.
func clean(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return clean(e.X) && clean(e.Y)
	case *ast.ParenExpr:
		return clean(e.X)
	case *ast.SelectorExpr: // a constant of the catalogue, or of a colour
		return nameOf(e) == "c.App" || strings.HasPrefix(nameOf(e), "phrases.") || strings.HasPrefix(nameOf(e), "command.")
	case *ast.CallExpr:
		name := nameOf(e.Fun)
		return matches(name, cleaners) || matches(name, keepers) && !slices.ContainsFunc(e.Args, func(arg ast.Expr) bool { return !clean(arg) })
	}
	return false
}

func matches(name string, list []string) bool {
	return slices.ContainsFunc(list, func(l string) bool { return name == l || strings.HasSuffix(name, "."+l) })
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.UnaryExpr:
		return e.Op.String() + nameOf(e.X)
	}
	return ""
}

func sourceOf(fset *token.FileSet, e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, fset, e); err != nil {
		return err.Error()
	}
	return b.String()
}
