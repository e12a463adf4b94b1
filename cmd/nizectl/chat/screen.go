package chat

import (
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"nize/bots"
	"nize/bots/phrases"
	"nize/cmd/nizectl/display"
	"nize/store"
)

// cardDelay is how long a card must have been on the screen, with no key pressed, before a
// key counts as its answer: input typed for something else must not run anything.
const cardDelay = 400 * time.Millisecond

// screen is the front end on a terminal. One goroutine owns it.
type screen struct {
	s       *session
	style   style
	region  *region
	in      *input
	raw     *term.State
	decoder decoder
	editor  *editor
	hist    *history

	output      []string  // lines to print with the next draw
	md          *markdown // of the text being written
	textID      string
	tools       []toolRow                   // at work
	cards       []store.Card                // that wait; the first is on the screen
	cardSince   time.Time                   // since when the first one can be seen, or the last key
	printed     string                      // the call whose card is above the live region, as it is too high for it
	standing    *standing                   // what always or never asks about the first card
	args        *editor                     // the arguments of the first card are being edited, or
	declines    bool                        // the reason for which it is declined
	answers     *answering                  // the form of a question that is filled in on args, or nil
	typed       struct{ call, text string } // edited arguments that did not fit
	lost        string                      // why the connection is lost
	interrupted time.Time                   // time of the last Ctrl-C
	hint        string
	cardDelay   time.Duration
}

type toolRow struct{ id, line string }

// measure reads the terminal's size; 80 by 24 if it has none.
func (f *screen) measure() {
	width, height := 80, 24
	if out, ok := f.s.opt.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
			width, height = max(w, 20), max(h, 4)
		}
	}
	f.region.width, f.region.height = width, height
	if f.md != nil {
		f.md.width = width
	}
}

// printLines prints lines that are safe to print.
func (f *screen) printLines(lines ...string) {
	for _, line := range lines {
		f.output = append(f.output, f.style.plainSigns(line))
	}
}

// printText prints plain text, wrapped.
func (f *screen) printText(paint func(string) string, text string) {
	for line := range strings.SplitSeq(bots.Plain(text), "\n") {
		f.printLines(f.style.each(paint, f.style.wrap(cells(line), f.region.width-1, "", "  "))...)
	}
}

// draw updates the terminal.
func (f *screen) draw() error {
	output := f.output
	f.output = nil
	var rows []string
	if f.md != nil {
		rows = append(rows, f.md.partial()...)
	}
	columns := f.region.width - 1
	for _, t := range f.tools {
		rows = append(rows, f.style.dim(f.style.plainSigns(display.Shorten(t.line, columns, "…"))))
	}
	switch {
	case f.lost != "":
		rows = append(rows, f.style.yellow(f.style.plainSigns(display.Shorten(f.s.words().Say(phrases.TermLost, f.lost), columns, "…"))))
	case f.s.busy && len(f.cards) == 0 && f.md == nil && len(f.tools) == 0:
		rows = append(rows, f.style.dim(f.style.plainSigns(f.s.words().Say(phrases.TermWorking))))
	}
	if f.hint != "" {
		rows = append(rows, f.style.dim(display.Shorten(f.hint, columns, "…")))
	}
	edit := f.editor
	if f.args != nil {
		edit = f.args
	}
	lines, row, col := edit.rows(f.style, f.region.width)
	if len(f.cards) > 0 {
		switch {
		case f.standing != nil:
			lines = append(f.standing.rows(f.style, columns, f.s.words()), f.style.dim(display.Shorten(f.s.words().Say(phrases.TermStandingKeys), columns, "…")))
			row, col = len(lines)-1, 0
		case f.args == nil:
			lines = f.style.each(f.style.bold, f.style.wrap(cells(cardKeys(f.cards[0], f.s.words())), columns, "", ""))
			row, col = len(lines)-1, min(visible(lines[len(lines)-1])+1, columns)
		}
		f.output = output
		rows = append(f.boxRows(len(rows)+len(lines)), rows...)
		output, f.output = f.output, nil
	}
	return f.region.draw(output, append(rows, lines...), len(rows)+row, col)
}
