package chat

import (
	"strings"

	"nize/cmd/nizectl/display"
)

// style is the terminal's capabilities: nothing (dumb), escapes without color (NO_COLOR),
// or everything.
type style struct {
	escapes bool // escape sequences may be sent
	colour  bool
	ascii   bool // no box drawing: the locale is not UTF-8
}

// look is how a cell is painted.
type look uint8

const (
	lookBold look = 1 << iota
	lookItalic
	lookCode
	lookLink
	lookDim
	lookRed
	lookGreen
	lookYellow
)

const reset = "\x1b[0m"

// sgr returns the parameter of the look's escape sequence; code and links have only a
// color.
func (s style) sgr(l look) string {
	var codes []string
	add := func(on bool, code string) {
		if on {
			codes = append(codes, code)
		}
	}
	add(l&lookBold != 0, "1")
	add(l&lookDim != 0, "2")
	add(l&lookItalic != 0, "3")
	add(l&lookLink != 0, "4")
	add(l&lookCode != 0 && s.colour, "36")
	add(l&lookRed != 0 && s.colour, "31")
	add(l&lookGreen != 0 && s.colour, "32")
	add(l&lookYellow != 0 && s.colour, "33")
	return strings.Join(codes, ";")
}

// paint wraps text in one look.
func (s style) paint(text string, l look) string {
	if !s.escapes || text == "" {
		return text
	}
	code := s.sgr(l)
	if code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + reset
}

func (s style) bold(text string) string   { return s.paint(text, lookBold) }
func (s style) dim(text string) string    { return s.paint(text, lookDim) }
func (s style) code(text string) string   { return s.paint(text, lookCode) }
func (s style) red(text string) string    { return s.paint(text, lookRed) }
func (s style) green(text string) string  { return s.paint(text, lookGreen) }
func (s style) yellow(text string) string { return s.paint(text, lookYellow) }

func (s style) each(f func(string) string, lines []string) []string {
	for i, line := range lines {
		lines[i] = f(line)
	}
	return lines
}

func (s style) bullet() string { return s.pick("•", "-") }
func (s style) line() string   { return s.pick("─", "-") }
func (s style) bar() string    { return s.pick("│", "|") }

func (s style) pick(fine, ascii string) string {
	if s.ascii {
		return ascii
	}
	return fine
}

// cell is one character on the screen, with the marks and joiners that belong to it.
type cell struct {
	text  string
	width int
	look  look
}

// cells splits text into cells. A joiner includes the next character.
func cells(text string) []cell {
	out := make([]cell, 0, len(text))
	joined := false
	for _, r := range text {
		w := display.RuneWidth(r)
		if len(out) > 0 && (w == 0 || joined) {
			last := &out[len(out)-1]
			last.text += string(r)
			last.width = max(last.width, w)
		} else {
			out = append(out, cell{text: string(r), width: w})
		}
		joined = r == 0x200D
	}
	return out
}

func paint(cs []cell, l look) []cell {
	for i := range cs {
		cs[i].look |= l
	}
	return cs
}

func cellsWidth(cs []cell) int {
	n := 0
	for _, c := range cs {
		n += c.width
	}
	return n
}

// text returns the cells in the form that is sent.
func (s style) text(cs []cell) string {
	var b strings.Builder
	for i := 0; i < len(cs); {
		j := i
		var run strings.Builder
		for j < len(cs) && cs[j].look == cs[i].look {
			run.WriteString(cs[j].text)
			j++
		}
		b.WriteString(s.paint(run.String(), cs[i].look))
		i = j
	}
	return b.String()
}

// wrap breaks cells into lines of at most width columns, at blanks if possible; first and
// next are the prefixes of the first line and of the others.
func (s style) wrap(cs []cell, width int, first, next string) []string {
	var out []string
	head := first
	for {
		available := max(width-visible(head), 8)
		n, w, blank := 0, 0, -1
		for n < len(cs) && w+cs[n].width <= available {
			if cs[n].text == " " {
				blank = n
			}
			w += cs[n].width
			n++
		}
		if n == len(cs) {
			return append(out, head+s.text(cs))
		}
		end := n
		if cs[n].text == " " {
			end = n
		} else if blank > 0 {
			end = blank
		}
		out = append(out, head+s.text(cs[:end]))
		cs = cs[end:]
		if len(cs) > 0 && cs[0].text == " " {
			cs = cs[1:]
		}
		head = next
	}
}

// fold breaks cells into lines of at most width columns and drops nothing: a blank at a
// break stays at the end of its line.
func (s style) fold(cs []cell, width int, next string) []string {
	var out []string
	head := ""
	for {
		available := max(width-visible(head), 8)
		n, w, after := 0, 0, 0
		for n < len(cs) && w+cs[n].width <= available {
			w += cs[n].width
			n++
			if cs[n-1].text == " " {
				after = n
			}
		}
		if n == len(cs) {
			return append(out, head+s.text(cs))
		}
		if after > 0 && strings.TrimSpace(s.text(cs[:after])) != "" {
			n = after
		}
		out = append(out, head+s.text(cs[:n]))
		cs, head = cs[n:], next
	}
}

// visible returns the columns of a line that may contain our own escapes.
func visible(line string) int {
	n, escape := 0, false
	for _, r := range line {
		switch {
		case r == 0x1b:
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n += display.RuneWidth(r)
		}
	}
	return n
}
