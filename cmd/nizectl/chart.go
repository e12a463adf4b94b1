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

// chart is bars beside names and numbers, as wide as the terminal. Nothing in
// it is told by a colour.
type chart struct {
	columns int
	blocks  bool // eighths of a block may be drawn; else hashes
	names   []string
	values  []int64
}

// chartWidth is how many columns there are for a chart.
func chartWidth(a *command.App) int {
	n, err := strconv.Atoi(a.Env("COLUMNS"))
	if err != nil || n <= 0 {
		n = cmp.Or(a.Columns(), usualColumns)
	}
	return min(max(n, leastColumns), 200)
}

// drawsBlocks says whether the locale has more than ASCII.
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

// everyDay adds the days without a call, so that distances are true.
func everyDay(r store.UsageReport, now time.Time) []store.UsageRow {
	first := r.Since
	if first.IsZero() {
		first, _ = time.Parse(time.DateOnly, r.Rows[0].Key) // a day that cannot be read is the year 1, which the bound below ends
	}
	byDay := map[string]store.UsageRow{}
	for _, row := range r.Rows {
		byDay[row.Key] = row
	}
	const most = 400 // days, as long as usage is kept by default
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
	if len(byDay) > 0 { // some lie outside: then only those with calls
		return r.Rows
	}
	return out
}

// lines draws the chart. The largest value has the longest bar; one that is not
// 0 has some bar.
func (c chart) lines() []string {
	var widest, digits int
	var most int64
	for i, name := range c.names {
		widest, digits, most = max(widest, display.Width(name)), max(digits, len(thousands(c.values[i]))), max(most, c.values[i])
	}
	// Two gaps of one column; the name yields before the bar does.
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

// eighths are the parts of a block, from one to seven.
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

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
