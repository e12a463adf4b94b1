package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
)

// appKey is the key of the [App] in the root command.
const appKey = "app"

// Root makes cmd, with its commands, the root of the program: it adds their short names,
// and sets the width of its help to the terminal's.
func (a *App) Root(cmd *cli.Command) {
	AddAliases(cmd)
	cmd.Metadata = map[string]any{appKey: a}
}

// PrintHelp prints the help of a command. It replaces the library's printer, which sorts
// groups of commands by name and can't wrap lines to the width of a terminal.
func PrintHelp(w io.Writer, _ string, data any) {
	cmd, ok := data.(*cli.Command)
	if !ok {
		return // the library passes nothing else
	}
	a, ok := cmd.Root().Metadata[appKey].(*App)
	if !ok {
		a = &App{}
	}
	h := helpText{a: a, wide: a.helpColumns()}
	h.head("NAME")
	h.text(3, cmd.FullName()+" - "+cmd.Usage)
	h.head("USAGE")
	h.text(3, usageLine(cmd))
	if cmd.Version != "" {
		h.head("VERSION")
		h.text(3, cmd.Version)
	}
	if cmd.Description != "" {
		h.head("DESCRIPTION")
		for line := range strings.SplitSeq(cmd.Description, "\n") {
			text := strings.TrimLeft(line, " ")
			h.text(3+len(line)-len(text), text)
		}
	}
	h.commands(cmd)
	h.flags("OPTIONS", cmd.VisibleFlags())
	if cmd.Root() != cmd {
		h.flags("GLOBAL OPTIONS", cmd.VisiblePersistentFlags())
	}
	fmt.Fprint(w, h.String()) // the writer keeps the error for run
}

// PrintPairs prints one more section of help.
func (a *App) PrintPairs(title string, rows [][2]string) {
	h := helpText{a: a, wide: a.helpColumns()}
	h.head(strings.ToUpper(title))
	h.pairs(3, rows)
	a.Line("\n%s", strings.TrimRight(h.String(), "\n"))
}

// helpColumns returns the width to which help is wrapped; 0 is unlimited.
func (a *App) helpColumns() int {
	if !a.OutTTY || a.Columns == nil {
		return 0
	}
	return min(a.Columns(), 100)
}

// usageLine returns the synopsis of a command.
func usageLine(cmd *cli.Command) string {
	line := cmd.FullName()
	if len(cmd.VisibleFlags()) > 0 {
		line += " [options]"
	}
	if len(Visible(cmd)) > 0 {
		line += " [command]"
	}
	return strings.TrimSpace(line + " " + cmd.ArgsUsage)
}

// helpText builds a help text.
type helpText struct {
	strings.Builder
	a    *App
	wide int
}

func (h *helpText) head(title string) {
	if h.Len() > 0 {
		h.WriteByte('\n')
	}
	h.WriteString(h.a.Paint(Bold, title+":") + "\n")
}

// text adds a paragraph, indented.
func (h *helpText) text(indent int, s string) {
	pad := strings.Repeat(" ", indent)
	for _, row := range breakWords(s, h.wide-indent) {
		h.WriteString(strings.TrimRight(pad+row, " ") + "\n")
	}
}

// leastColumn is the minimum width for putting the second column of a pair beside the
// first.
const leastColumn = 24

// pairs adds rows of two columns. If the terminal is too narrow for both, the second is
// below the first.
func (h *helpText) pairs(indent int, rows [][2]string) {
	first := 0
	for _, row := range rows {
		if n := display.Width(row[0]); n <= 30 || h.wide == 0 {
			first = max(first, n)
		}
	}
	at := indent + first + 2
	if h.wide > 0 && h.wide-at < leastColumn {
		at = indent + 4
	}
	for _, row := range rows {
		line := strings.Repeat(" ", indent) + row[0]
		rest := breakWords(row[1], h.wide-at)
		if gap := at - display.Width(line); gap >= 2 && len(rest) > 0 {
			line += strings.Repeat(" ", gap) + rest[0]
			rest = rest[1:]
		}
		h.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, more := range rest {
			h.WriteString(strings.Repeat(" ", at) + more + "\n")
		}
	}
}

// commands adds the commands below cmd, in their categories if they have some, both in the
// given order.
func (h *helpText) commands(cmd *cli.Command) {
	var order []string
	rows := map[string][][2]string{}
	for _, sub := range cmd.Commands {
		if sub.Hidden {
			continue
		}
		if rows[sub.Category] == nil {
			order = append(order, sub.Category)
		}
		rows[sub.Category] = append(rows[sub.Category], [2]string{strings.Join(shownNames(sub), ", "), sub.Usage})
	}
	for _, category := range order {
		title := category
		if title == "" {
			title = "commands"
		}
		h.head(strings.ToUpper(title))
		h.pairs(3, rows[category])
	}
}

func (h *helpText) flags(title string, flags []cli.Flag) {
	if len(flags) == 0 {
		return
	}
	h.head(title)
	rows := make([][2]string, 0, len(flags))
	for _, f := range flags {
		head, usage, _ := strings.Cut(f.String(), "\t") // the library's form: names, a tab, usage and default
		rows = append(rows, [2]string{head, strings.TrimSpace(usage)})
	}
	h.pairs(3, rows)
}

// breakWords breaks a text between words into lines of at most that many columns; a longer
// word gets its own line. Without a width it is one line.
func breakWords(s string, most int) []string {
	if most <= 0 || display.Width(s) <= most {
		return []string{s}
	}
	var rows []string
	row := ""
	for _, word := range strings.Fields(s) {
		if row != "" && display.Width(row)+1+display.Width(word) > most {
			rows, row = append(rows, row), ""
		}
		if row != "" {
			row += " "
		}
		row += word
	}
	return append(rows, row)
}
