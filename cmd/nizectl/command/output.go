package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nize/cmd/nizectl/display"
	"nize/store/printable"

	"github.com/urfave/cli/v3"
)

const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Faint  = "2"
)

// colourful reports whether standard output wants colors (no-color.org).
func (a *App) colourful() bool {
	return a.OutTTY && a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb"
}

// Paint colors a word if standard output wants colors.
func (a *App) Paint(colour, s string) string {
	if colour == "" || s == "" || !a.colourful() {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// Line prints a line of the answer. Its arguments must be clean.
func (a *App) Line(format string, args ...any) {
	fmt.Fprintf(a.Out, format+"\n", args...) // the writer keeps the error for run
}

// PageFlags returns the flags of a list that is shown in pages.
func PageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Usage: "entries per page, at most 500 (default: 50)"},
		&cli.StringFlag{Name: "cursor", Usage: "continue after the previous page"},
	}
}

// More prints how to continue a list; next is "" at its end.
func (a *App) More(next string) {
	if next != "" {
		a.Note("there are more: --cursor %s", printable.ShellWord(next))
	}
}

// Note prints a line that is not part of the answer.
func (a *App) Note(format string, args ...any) {
	a.Out.Flush() // keeps the order on a terminal; the writer keeps the error
	fmt.Fprintln(a.Err, display.Clean(fmt.Sprintf(format, args...)))
}

// Field prints "name: value" aligned, and nothing for an empty value.
func (a *App) Field(name, value string) {
	if value != "" {
		a.Line("%s %s", a.Paint(Bold, fmt.Sprintf("%-12s", name+":")), a.Wrap(display.Clean(value), 13))
	}
}

// Wrap breaks a text, which begins at column indent of a terminal, between words, and
// indents the following lines. Without a terminal it returns the text unchanged.
func (a *App) Wrap(s string, indent int) string {
	available := 0
	if a.OutTTY {
		available = a.Columns() - indent
	}
	if available < leastText {
		return s
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(s, " ") {
		switch wide := display.Width(word); {
		case i == 0:
			used = wide
		case used+1+wide > available:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = wide
		default:
			b.WriteByte(' ')
			used += 1 + wide
		}
		b.WriteString(word)
	}
	return b.String()
}

// Busy shows on a terminal's standard error what is in progress; the returned function
// removes it.
func (a *App) Busy(format string, args ...any) (done func()) {
	if !a.ErrTTY || a.Env("TERM") == "dumb" {
		return func() {}
	}
	fmt.Fprint(a.Err, display.Clean(fmt.Sprintf(format, args...)))
	return func() { fmt.Fprint(a.Err, "\r\x1b[K") }
}

// Progress is Busy with changing text: show replaces the line, at most ten times a second,
// and done removes it.
func (a *App) Progress() (show func(format string, args ...any), done func()) {
	if !a.ErrTTY || a.Env("TERM") == "dumb" {
		return func(string, ...any) {}, func() {}
	}
	var last time.Time
	return func(format string, args ...any) {
			if now := a.Now(); now.Sub(last) >= 100*time.Millisecond {
				last = now
				fmt.Fprint(a.Err, "\r\x1b[K"+display.Clean(fmt.Sprintf(format, args...)))
			}
		}, func() {
			if !last.IsZero() {
				fmt.Fprint(a.Err, "\r\x1b[K")
			}
		}
}

// PrintJSON prints v indented, as one document.
func (a *App) PrintJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.Out.Write(display.CleanJSON(b.Bytes())) // the writer keeps the error for run
	return nil
}

// PrintJSONLine prints v as one line of a stream, without buffering.
func (a *App) PrintJSONLine(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.Out.Write(display.CleanJSON(b.Bytes()))
	return a.Flush()
}

// Flush writes the buffered output. It returns the error that ends a stream without a
// reader.
func (a *App) Flush() error {
	if err := a.Out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// Items makes JSON encode an empty list as [] instead of null.
func Items[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// PrettyJSON indents JSON for reading, with keys and numbers unchanged.
func PrettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// Indent indents every line of a text.
func Indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// Clip cuts a text to one short line for a table.
func Clip(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}

// When formats a time for people: how long ago or until.
func (a *App) When(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := a.Now().Sub(t)
	if d < 0 {
		return "in " + Span(-d+time.Second) // so that 90 days don't become 89 while they are printed
	}
	if d < 5*time.Second {
		return "now"
	}
	return Span(d) + " ago"
}

// Span formats a duration in its largest unit.
func Span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " d"
}

// Millis formats a measured time for people.
func Millis(ms float64) string {
	switch {
	case ms == 0:
		return "-"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 10000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}

// Count returns "1 tool" or "3 tools".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// FollowEnd returns nil if Ctrl-C ended a --follow.
func FollowEnd(ctx context.Context, follow bool, err error) error {
	if follow && ctx.Err() != nil {
		return Failf(ExitInterrupted, "")
	}
	return err
}

// Report prints v as JSON, or else a sentence about what was done, which is not an answer
// and is printed to standard error.
func (c *Call) Report(v any, format string, args ...any) error {
	if c.JSON {
		return c.PrintJSON(v)
	}
	c.Note(format, args...)
	return nil
}

// Removed reports that something was removed.
func (c *Call) Removed(what, name string) error {
	return c.Report(struct {
		Removed string `json:"removed"`
	}{name}, "%s %s removed", what, name)
}

// Each maps a list.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
