package main

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
)

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// colourful says whether standard output wants colours (no-color.org).
func (a *app) colourful() bool {
	return a.outTTY && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

func (a *app) paint(colour, s string) string {
	if colour == "" || s == "" || !a.colourful() {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// line writes a line of the answer. Its arguments must be clean.
func (a *app) line(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", args...) // the writer keeps the error for run
}

// note writes a line that is no part of the answer.
func (a *app) note(format string, args ...any) {
	a.out.Flush() // keeps the order on a terminal; the writer keeps the error
	fmt.Fprintln(a.err, display.Clean(fmt.Sprintf(format, args...)))
}

// field writes "name: value" aligned, and nothing for an empty value.
func (a *app) field(name, value string) {
	if value != "" {
		a.line("%s %s", a.paint(bold, fmt.Sprintf("%-12s", name+":")), a.wrap(display.Clean(value), 13))
	}
}

// wrap breaks a text, which begins at column indent of a terminal, between
// words, and indents what follows. Elsewhere it stays as it is.
func (a *app) wrap(s string, indent int) string {
	room := 0
	if a.outTTY {
		room = a.columns() - indent
	}
	if room < leastText {
		return s
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(s, " ") {
		switch wide := display.Width(word); {
		case i == 0:
			used = wide
		case used+1+wide > room:
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

// busy says on a terminal's standard error what takes its time; the function
// returned wipes it away.
func (a *app) busy(format string, args ...any) (done func()) {
	if !a.errTTY || a.env("TERM") == "dumb" {
		return func() {}
	}
	fmt.Fprint(a.err, display.Clean(fmt.Sprintf(format, args...)))
	return func() { fmt.Fprint(a.err, "\r\x1b[K") }
}

// progress is busy for what goes on and on: show replaces the line, ten times a
// second at most, and done wipes it away.
func (a *app) progress() (show func(format string, args ...any), done func()) {
	if !a.errTTY || a.env("TERM") == "dumb" {
		return func(string, ...any) {}, func() {}
	}
	var last time.Time
	return func(format string, args ...any) {
			if now := a.now(); now.Sub(last) >= 100*time.Millisecond {
				last = now
				fmt.Fprint(a.err, "\r\x1b[K"+display.Clean(fmt.Sprintf(format, args...)))
			}
		}, func() {
			if !last.IsZero() {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
		}
}

// printJSON writes v indented, as one document.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.out.Write(display.CleanJSON(b.Bytes())) // the writer keeps the error for run
	return nil
}

// printJSONLine writes v as one line of a stream, at once.
func (a *app) printJSONLine(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.out.Write(display.CleanJSON(b.Bytes()))
	return a.flush()
}

// flush sends what is printed so far; a stream that nobody reads any more ends.
func (a *app) flush() error {
	if err := a.out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// items keeps an empty list from being null.
func items[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// prettyJSON indents JSON for reading, keys and numbers as they are.
func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// indent puts spaces before every line of a text.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// clip cuts a text to one short line for a table.
func clip(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}

// when is a time for people: how long ago or until.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := a.now().Sub(t)
	if d < 0 {
		return "in " + span(-d+time.Second) // 90 days don't become 89 while they are printed
	}
	if d < 5*time.Second {
		return "now"
	}
	return span(d) + " ago"
}

// span is a duration in its one biggest unit.
func span(d time.Duration) string {
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

// millis is a measured time for people.
func millis(ms float64) string {
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

// count is "1 tool" or "3 tools".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// followEnd makes a person's Ctrl-C the ordinary end of a --follow.
func followEnd(ctx context.Context, follow bool, err error) error {
	if follow && ctx.Err() != nil {
		return nil
	}
	return err
}

// report prints v as JSON, or else a sentence on what was done, which is no
// answer and goes to standard error.
func (c *call) report(v any, format string, args ...any) error {
	if c.json {
		return c.printJSON(v)
	}
	c.note(format, args...)
	return nil
}

// removed reports that something is gone.
func (c *call) removed(what, name string) error {
	return c.report(struct {
		Removed string `json:"removed"`
	}{name}, "%s %s removed", what, name)
}

// each maps a list.
func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
