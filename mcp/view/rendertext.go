package view

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf8"

	"nize/store"
)

// Limits of one rendering. Templates belong to an extension, and data is untrusted:
// repetition and the size of generated text must end.
const (
	maxSteps = 5000                   // iterations of range
	maxTime  = 200 * time.Millisecond // for all templates of one view
	maxMade  = 16 << 10               // bytes that a function accepts or returns
	maxPiece = 16 << 10               // bytes that a template writes
)

var errBound = errors.New("it takes too long or makes too much")

// step is the function that each iteration of a range calls first; templates can't name it.
const step = "_step"

// functions returns the functions that a template may call, besides and, or, not, eq, ne,
// lt, le, gt, ge, len, index and slice. It replaces those of text/template that could
// produce output of any size, or for another language.
func functions() template.FuncMap {
	refuse := func(...any) (string, error) { return "", errors.New("there is no such function") }
	return template.FuncMap{
		"print": func(args ...any) (string, error) { return made(fmt.Sprint(short(args)...)) },
		"println": func(args ...any) (string, error) {
			return made(fmt.Sprintln(short(args)...))
		},
		"printf": printf,
		"call":   refuse, "html": refuse, "js": refuse, "urlquery": refuse,
		"join": func(sep string, list []any) (string, error) {
			var b strings.Builder
			for i, v := range short(list) {
				if i > 0 {
					b.WriteString(sep)
				}
				fmt.Fprint(&b, v)
				if b.Len() > maxMade {
					return "", errBound
				}
			}
			return b.String(), nil
		},
		"upper": func(s string) string { return strings.ToUpper(headOf(s)) },
		"lower": func(s string) string { return strings.ToLower(headOf(s)) },
		"number": func(decimals int, v any) string {
			f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
			if err != nil {
				return fmt.Sprint(v)
			}
			return strconv.FormatFloat(f, 'f', min(max(decimals, 0), 12), 64)
		},
		"default": func(otherwise, v any) any {
			if v == nil || v == "" {
				return otherwise
			}
			return v
		},
		"tool": func() string { return "" }, "args": func() map[string]any { return nil }, // set for each run
		step: func() (string, error) { return "", nil },
	}
}

// printf supports no width or precision taken from a value, and none above 99.
func printf(format string, args ...any) (string, error) {
	digits := 0
	for _, r := range format {
		if digits++; r < '0' || r > '9' {
			digits = 0
		}
		if digits > 2 || r == '*' {
			return "", errors.New("printf takes a width of two digits at most")
		}
	}
	return made(fmt.Sprintf(headOf(format), short(args)...))
}

func made(s string) (string, error) {
	if len(s) > maxMade {
		return "", errBound
	}
	return s, nil
}

// short returns values whose text has a limited length.
func short(args []any) []any {
	out := make([]any, len(args))
	for i, v := range args {
		out[i] = v
		switch v := v.(type) {
		case string:
			out[i] = headOf(v)
		case map[string]any, []any: // printed whole, it would be as large as the result
			out[i] = "…"
		}
	}
	return out
}

func headOf(s string) string { return store.Head(s, maxMade) }

// compile parses one template, which may use range but neither define nor recurse, and
// makes each iteration of a range count.
func compile(text string) (*template.Template, error) {
	if strings.Contains(text, step) {
		return nil, fmt.Errorf("%s is not a function", step)
	}
	t, err := template.New("").Option("missingkey=zero").Funcs(functions()).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	if t.Tree == nil || t.Root == nil {
		return nil, nil
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("define and block are not available")
	}
	count, err := template.New("").Funcs(functions()).Parse("{{" + step + "}}")
	if err != nil {
		return nil, err
	}
	return t, counted(t.Root, count.Root.Nodes[0])
}

// counted inserts a node before the body of each range.
func counted(n parse.Node, count parse.Node) error {
	branch := func(b *parse.BranchNode) error {
		return errors.Join(counted(b.List, count), counted(b.ElseList, count))
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := counted(child, count); err != nil {
				return err
			}
		}
	case *parse.IfNode:
		return branch(&n.BranchNode)
	case *parse.WithNode:
		return branch(&n.BranchNode)
	case *parse.RangeNode:
		err := branch(&n.BranchNode)
		n.List.Nodes = append([]parse.Node{count.Copy()}, n.List.Nodes...)
		return err
	case *parse.TemplateNode:
		return errors.New("template is not available")
	}
	return nil
}

// run is one rendering, with the remaining limits of its templates.
type run struct {
	tool string
	args map[string]any
	left int
	ends time.Time
	now  func() time.Time
}

// execute runs one template.
func (r *run) execute(t *template.Template, data any) (string, error) {
	if t == nil {
		return "", nil
	}
	t, err := t.Clone()
	if err != nil {
		return "", err
	}
	t.Funcs(template.FuncMap{step: r.step, "tool": func() string { return r.tool }, "args": func() map[string]any { return r.args }})
	if _, err := r.step(); err != nil {
		return "", err
	}
	out := &piece{}
	if err := t.Execute(out, data); err != nil && !out.full {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	text := out.String()
	for !utf8.ValidString(text) && out.full && len(text) > 0 { // it was cut within a character
		text = text[:len(text)-1]
	}
	return strings.ReplaceAll(text, "<no value>", ""), nil
}

func (r *run) step() (string, error) {
	if r.left--; r.left < 0 || r.now().After(r.ends) {
		return "", errBound
	}
	return "", nil
}

// piece collects a template's output up to its limit.
type piece struct {
	strings.Builder
	full bool
}

func (p *piece) Write(b []byte) (int, error) {
	if p.Len()+len(b) > maxPiece {
		p.full = true
		b = b[:maxPiece-p.Len()]
		_, _ = p.Builder.Write(b)
		return len(b), errBound
	}
	return p.Builder.Write(b)
}
