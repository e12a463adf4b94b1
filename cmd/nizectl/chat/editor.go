package chat

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nize/cmd/nizectl/display"
)

// editor edits one message. It is a plain state machine: keys go in, rows come out; it
// never accesses the terminal. (golang.org/x/term's Terminal blocks in a read of its own,
// counts every character as one column, and can't be drawn while an answer streams in above
// it. The textarea of charm.land/bubbles 2.2 was measured: it adds 1.2 MB to nizectl, and
// could replace no more than this file and keyboard.go, 389 lines in all.)
type editor struct {
	prompt  string
	text    []rune
	at      int // the cursor, in runes
	killed  []rune
	history *history
	back    int    // how many entries back in the history
	draft   []rune // the text that was being written before that
}

// action is what a key does beyond editing.
type action int

const (
	actNone action = iota
	actSubmit
	actInterrupt
	actLeave // Ctrl-D on an empty line
	actRedraw
	actComplete
	actEscape
)

func (e *editor) value() string { return string(e.text) }

func (e *editor) set(text string) {
	e.text = []rune(text)
	e.at = len(e.text)
	e.back = 0
}

// press handles one key.
func (e *editor) press(k key) action {
	switch k.r {
	case enter, ctrlJ:
		return actSubmit
	case ctrlC:
		return actInterrupt
	case ctrlD:
		if len(e.text) == 0 {
			return actLeave
		}
		e.cut(e.at, e.at+1)
	case ctrlL:
		return actRedraw
	case tab:
		return actComplete
	case keyEscape:
		return actEscape
	case keyPaste:
		e.insert(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(k.text))
	case keyNewline:
		e.insert("\n")
	default:
		if !e.move(k.r) && !e.kill(k.r) && k.r >= ' ' && k.r <= utf8.MaxRune {
			e.insert(string(k.r))
		}
	}
	return actNone
}

func (e *editor) move(r rune) bool {
	switch r {
	case keyLeft, ctrlB:
		e.at = max(e.at-1, 0)
	case keyRight, ctrlF:
		e.at = min(e.at+1, len(e.text))
	case keyHome, ctrlA:
		e.at = 0
	case keyEnd, ctrlE:
		e.at = len(e.text)
	case keyWordLeft:
		e.at = e.wordLeft()
	case keyWordRight:
		for e.at < len(e.text) && unicode.IsSpace(e.text[e.at]) {
			e.at++
		}
		for e.at < len(e.text) && !unicode.IsSpace(e.text[e.at]) {
			e.at++
		}
	case keyUp, ctrlP:
		e.recall(e.back + 1)
	case keyDown, ctrlN:
		e.recall(e.back - 1)
	default:
		return false
	}
	return true
}

func (e *editor) kill(r rune) bool {
	switch r {
	case ctrlH, del:
		e.cut(e.at-1, e.at)
	case keyDelete:
		e.cut(e.at, e.at+1)
	case ctrlK:
		e.killed = e.cut(e.at, len(e.text))
	case ctrlU:
		e.killed = e.cut(0, e.at)
	case ctrlW:
		e.killed = e.cut(e.wordLeft(), e.at)
	case ctrlY:
		e.insert(string(e.killed))
	default:
		return false
	}
	return true
}

func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && unicode.IsSpace(e.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.text[i-1]) {
		i--
	}
	return i
}

func (e *editor) insert(text string) {
	rs := []rune(strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < ' ' && r != '\n' || r == del {
			return -1
		}
		return r
	}, text))
	if len(e.text)+len(rs) > maxPaste {
		return
	}
	e.text = slices.Insert(e.text, e.at, rs...)
	e.at += len(rs)
}

func (e *editor) cut(from, to int) []rune {
	from, to = max(from, 0), min(to, len(e.text))
	if from >= to {
		return nil
	}
	gone := slices.Clone(e.text[from:to])
	e.text = slices.Delete(e.text, from, to)
	e.at = from
	return gone
}

// recall shows an entry of the history; 0 is the text that was being written.
func (e *editor) recall(back int) {
	if e.history == nil || back < 0 || back > e.history.len() {
		return
	}
	if e.back == 0 {
		e.draft = slices.Clone(e.text)
	}
	if back == 0 {
		e.text = e.draft
	} else {
		e.text = []rune(e.history.at(back - 1))
	}
	e.at, e.back = len(e.text), back
}

// rows lays the message out for the width and returns the position of the cursor.
func (e *editor) rows(s style, width int) (rows []string, row, col int) {
	head := cells(e.prompt)
	indent := strings.Repeat(" ", cellsWidth(head))
	line := s.bold(e.prompt)
	w := cellsWidth(head)
	place := func(i int) {
		if i == e.at {
			row, col = len(rows), w
		}
	}
	for i, r := range e.text {
		rw := display.RuneWidth(r)
		if r == '\n' || w+rw > width-1 {
			if r == '\n' {
				place(i)
			}
			rows = append(rows, line)
			line, w = indent, len(indent)
			if r == '\n' {
				continue
			}
		}
		place(i)
		line += safeRune(r)
		w += rw
	}
	place(len(e.text))
	return append(rows, line), row, col
}

// safeRune returns a pasted character in a form that can't control the terminal; each takes
// the columns returned by display.RuneWidth.
func safeRune(r rune) string {
	if display.RuneWidth(r) > 0 && !unicode.IsGraphic(r) {
		return "?"
	}
	if unicode.Is(unicode.Cf, r) && r != 0x200D && r != 0x200C {
		return ""
	}
	return string(r)
}
