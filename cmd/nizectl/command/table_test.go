package command

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/cmd/nizectl/display"
)

func TestTableAlignsAndColours(t *testing.T) {
	for name, test := range map[string]struct {
		tty  bool
		env  map[string]string
		want string
	}{
		"file":     {false, nil, "NAME  STATE    N\n世界  ready    1\nlong  failed  12\n"},
		"NO_COLOR": {true, map[string]string{"NO_COLOR": "1"}, "NAME  STATE    N\n世界  ready    1\nlong  failed  12\n"},
		"dumb":     {true, map[string]string{"TERM": "dumb"}, "NAME  STATE    N\n世界  ready    1\nlong  failed  12\n"},
		"terminal": {true, nil, "\x1b[1mNAME\x1b[0m  \x1b[1mSTATE\x1b[0m    \x1b[1mN\x1b[0m\n世界  \x1b[32mready\x1b[0m    1\nlong  \x1b[31mfailed\x1b[0m  12\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			a := &App{Out: bufio.NewWriter(&out), Err: &errs, OutTTY: test.tty, Env: func(k string) string { return test.env[k] }, Columns: func() int { return 0 }}
			table := a.Table("NAME", "STATE", "N").Numbers(2)
			table.State = 1
			table.Row("世界", "ready", "1")
			table.Row("long", "failed", "12")
			table.Print("")
			a.Out.Flush()
			if diff := cmp.Diff(out.String(), test.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			a.Table("NAME").Print("nothing here")
			if errs.String() != "nothing here\n" {
				t.Errorf("empty: %q", errs.String())
			}
		})
	}
}

func TestTableKeepsWithinTheTerminal(t *testing.T) {
	const id, text, command = "01M7YEWJCBQ0A6QG38KXVGFENP", "a long story of what\n went wrong here", "nizectl servers test tracker"
	const long, below = "a long story of what went wrong here", "\n    to do: " + command
	for name, test := range map[string]struct {
		tty     bool
		columns int
		want    string
	}{
		"wide":           {true, 200, id + "  " + long + "  " + command},
		"just":           {true, 94, id + "  " + long + "  " + command},
		"one less":       {true, 93, id + "  a long story of what went wrong …    " + command},
		"eighty":         {true, 80, id + "  a long story of what …  " + command},
		"sixty":          {true, 60, id + "  a long story of what went …" + below},
		"narrow":         {true, 40, id + "  a long …" + below},
		"names stay":     {true, 20, id + "\n    what: a long\n    story of what\n    went wrong here,\n    to do: nizectl\n    servers test\n    tracker"},
		"a pipe":         {false, 80, id + "  " + long + "  " + command},
		"unknown to tty": {true, 0, id + "  " + long + "  " + command},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			a := &App{Out: bufio.NewWriter(&out), OutTTY: test.tty, Env: func(string) string { return "dumb" }, Columns: func() int { return test.columns }}
			table := a.Table("ID", "WHAT", "TO DO").Text(1)
			table.Row(id, text, command)
			table.Print("")
			a.Out.Flush()
			_, row, _ := strings.Cut(out.String(), "\n")
			if diff := cmp.Diff(row, test.want+"\n"); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			for line := range strings.Lines(out.String()) {
				if w := display.Width(strings.TrimSuffix(line, "\n")); test.tty && test.columns > len(id) && w > test.columns {
					t.Errorf("%d columns of %d: %q", w, test.columns, line)
				}
			}
		})
	}
}

func TestWrap(t *testing.T) {
	const text = "server tracker is down since 07:07:17, its command ends with status 1"
	for name, test := range map[string]struct {
		tty     bool
		columns int
		text    string
		want    string
	}{
		"wide":      {true, 200, text, text},
		"narrow":    {true, 40, text, "server tracker is down since\n          07:07:17, its command ends\n          with status 1"},
		"just":      {true, 14 + 10, "one two three four", "one two three\n          four"},
		"long word": {true, 24, "a " + strings.Repeat("x", 20) + " b", "a\n          " + strings.Repeat("x", 20) + "\n          b"},
		"CJK":       {true, 24, "世界世界 世界世界", "世界世界\n          世界世界"},
		"tiny":      {true, 12, text, text},
		"a pipe":    {false, 40, text, text},
		"unknown":   {true, 0, text, text},
	} {
		t.Run(name, func(t *testing.T) {
			a := &App{OutTTY: test.tty, Columns: func() int { return test.columns }}
			if got := a.Wrap(test.text, 10); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := &App{Now: func() time.Time { return now }}
	for want, at := range map[string]time.Time{
		"-": {}, "now": now.Add(-time.Second), "30 s ago": now.Add(-30 * time.Second), "5 min ago": now.Add(-5 * time.Minute),
		"3 h ago": now.Add(-3 * time.Hour), "in 90 d": now.Add(90 * 24 * time.Hour),
	} {
		if got := a.When(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// On a narrow terminal the arguments of a call, which may be pages of text, take a few
// lines of a list.
func TestTableShortensBelowARow(t *testing.T) {
	var out strings.Builder
	a := &App{Out: bufio.NewWriter(&out), OutTTY: true, Env: func(string) string { return "dumb" }, Columns: func() int { return 40 }}
	table := a.Table("ID", "ARGUMENTS").Text(1)
	table.Row(strings.Repeat("x", 36), strings.Repeat("a line of many ", 300))
	table.Print("")
	a.Out.Flush()
	if lines := strings.Count(out.String(), "\n"); lines > 2+mostLines+1 || !strings.Contains(out.String(), "arguments: a line") || !strings.HasSuffix(out.String(), "…\n") {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// A long cell does not widen the rows without one, where no terminal cuts it.
func TestTableInAPipe(t *testing.T) {
	var out strings.Builder
	a := &App{Out: bufio.NewWriter(&out), Env: func(string) string { return "dumb" }}
	table := a.Table("SERVER", "LAST ERROR", "STATE").Text(1)
	table.Row("a", strings.Repeat("long ", 140), "down")
	table.Row("b", "", "ready")
	table.Print("")
	a.Out.Flush()
	lines := strings.Split(out.String(), "\n")
	if !strings.HasSuffix(lines[1], "long  down") || len(lines[2]) > 80 || !strings.HasSuffix(lines[2], "ready") || len(lines[0]) > 80 {
		t.Errorf("got %q", lines)
	}
}
