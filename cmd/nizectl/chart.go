package main

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/store"
)

const (
	usualColumns = 80
	leastColumns = 20
	leastBar     = 4
)

// chart is a bar chart with names and numbers, as wide as the terminal. It doesn't depend
// on colors.
type chart struct {
	columns int
	blocks  bool // draw eighths of a block; otherwise hashes
	names   []string
	values  []int64
}

// chartWidth returns the number of columns for a chart.
func chartWidth(a *command.App) int {
	n, err := strconv.Atoi(a.Env("COLUMNS"))
	if err != nil || n <= 0 {
		n = cmp.Or(a.Columns(), usualColumns)
	}
	return min(max(n, leastColumns), 200)
}

// drawsBlocks reports whether the locale has more than ASCII.
func drawsBlocks(a *command.App) bool {
	locale := cmp.Or(a.Env("LC_ALL"), a.Env("LC_CTYPE"), a.Env("LANG"))
	return strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") && a.Env("TERM") != "dumb"
}

func usageChart(c *command.Call, r store.UsageReport, zone *time.Location) {
	if len(r.Rows) == 0 {
		c.Note("nothing was called in that time")
		return
	}
	ch := chart{columns: chartWidth(c.App), blocks: drawsBlocks(c.App)}
	unit := "tokens"
	if r.By == "tool" {
		unit = "calls"
	}
	rows := r.Rows
	if r.By == "day" {
		rows = everyDay(r, c.Now().In(zone))
	}
	for _, row := range rows {
		n := row.Prompt + row.Completion
		if r.By == "tool" {
			n = row.Calls
		}
		ch.names, ch.values = append(ch.names, display.Clean(keyOf(row))), append(ch.values, n)
	}
	c.Line("%s by %s", c.Paint(command.Bold, unit), display.Clean(r.By))
	for _, line := range ch.lines() {
		c.Line("%s", line)
	}
}

// everyDay adds the days without a call, so that the time axis is linear.
func everyDay(r store.UsageReport, now time.Time) []store.UsageRow {
	first := r.Since
	if first.IsZero() {
		first, _ = time.Parse(time.DateOnly, r.Rows[0].Key) // if the day can't be parsed, this is year 1, and the bound below applies
	}
	byDay := map[string]store.UsageRow{}
	for _, row := range r.Rows {
		byDay[row.Key] = row
	}
	const most = 400 // days, the default retention of usage
	y, m, d := first.Date()
	var out []store.UsageRow
	for i := range most {
		day := time.Date(y, m, d+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		if day > now.Format(time.DateOnly) {
			break
		}
		row := byDay[day]
		delete(byDay, day)
		row.Key = day
		out = append(out, row)
	}
	if len(byDay) > 0 { // some are out of range: then show only days with calls
		return r.Rows
	}
	return out
}

// lines returns the chart. The largest value has the longest bar; every value except 0 has
// a visible bar.
func (c chart) lines() []string {
	var widest, digits int
	var most int64
	for i, name := range c.names {
		widest, digits, most = max(widest, display.Width(name)), max(digits, len(thousands(c.values[i]))), max(most, c.values[i])
	}
	// Two gaps of one column; the name shrinks before the bar does.
	available := c.columns - digits - 2
	nameWidth := min(widest, max(available-max(leastBar, available/2), 1))
	bar := max(available-nameWidth, 1)
	out := make([]string, len(c.names))
	for i, name := range c.names {
		name = display.Shorten(name, nameWidth, "~")
		number := thousands(c.values[i])
		drawn := c.bar(c.values[i], most, bar)
		out[i] = name + strings.Repeat(" ", nameWidth-display.Width(name)) + " " + drawn +
			strings.Repeat(" ", bar-display.Width(drawn)) + " " + strings.Repeat(" ", digits-len(number)) + number
	}
	return out
}

// eighths are the partial blocks, from one to seven eighths.
var eighths = []rune("▏▎▍▌▋▊▉")

func (c chart) bar(n, most int64, columns int) string {
	if n <= 0 || most <= 0 {
		return ""
	}
	share := float64(n) / float64(most) * float64(columns)
	if !c.blocks {
		return strings.Repeat("#", max(int(math.Round(share)), 1))
	}
	parts := max(int(math.Round(share*8)), 1)
	s := strings.Repeat("█", parts/8)
	if rest := parts % 8; rest > 0 {
		s += string(eighths[rest-1])
	}
	return s
}

// thousands formats a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
