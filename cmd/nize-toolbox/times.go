package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

type placeArgs struct {
	Place string `json:"place"`
}

type clockOut struct {
	Place     string `json:"place"`
	Zone      string `json:"zone"`
	Time      string `json:"time"` // RFC 3339
	Date      string `json:"date"`
	Clock     string `json:"clock"`
	Weekday   string `json:"weekday"`
	UTCOffset string `json:"utc_offset"`
	Note      string `json:"note,omitempty"`
}

func clockOf(w where, t time.Time) clockOut {
	t = t.In(w.loc)
	return clockOut{Place: w.name, Zone: w.loc.String(), Time: t.Format(time.RFC3339), Date: t.Format(time.DateOnly),
		Clock: t.Format("15:04"), Weekday: t.Weekday().String(), UTCOffset: t.Format("-07:00"), Note: w.note}
}

// String is one clock as a person says it.
func (c clockOut) String() string {
	s := fmt.Sprintf("%s on %s, %s", c.Clock, c.Weekday, c.Date)
	if c.Place != c.Zone {
		s += fmt.Sprintf(" in %s (%s, UTC%s)", c.Place, c.Zone, c.UTCOffset)
	} else if !strings.HasPrefix(c.Zone, "UTC") {
		s += fmt.Sprintf(" in %s (UTC%s)", c.Zone, c.UTCOffset)
	} else {
		s += " " + c.Zone
	}
	if c.Note != "" {
		s += ". " + c.Note
	}
	return s
}

func (b *toolbox) currentTime(in placeArgs) (clockOut, string, error) {
	if in.Place == "" {
		in.Place = "UTC"
	}
	w, err := find(in.Place)
	if err != nil {
		return clockOut{}, "", err
	}
	out := clockOf(w, b.clock())
	return out, "It is " + out.String(), nil
}

type convertArgs struct {
	Time string `json:"time"`
	From string `json:"from"`
	To   string `json:"to"`
}

type convertOut struct {
	From clockOut `json:"from"`
	To   clockOut `json:"to"`
	Note string   `json:"note,omitempty"`
}

func (b *toolbox) convertTime(in convertArgs) (convertOut, string, error) {
	to, err := find(in.To)
	if err != nil {
		return convertOut{}, "", err
	}
	if in.From == "" {
		in.From = "UTC"
	}
	from, err := find(in.From)
	if err != nil {
		return convertOut{}, "", err
	}
	t, note, err := parseTime(in.Time, from.loc, b.clock())
	if err != nil {
		return convertOut{}, "", err
	}
	out := convertOut{From: clockOf(from, t), To: clockOf(to, t), Note: note}
	text := fmt.Sprintf("%s is %s", out.From, out.To)
	if note != "" {
		text += ". " + note
	}
	return out, text, nil
}

var dateLayouts = []string{"2006-01-02", "2006/01/02", "2 January 2006", "2 Jan 2006", "January 2, 2006", "Jan 2, 2006", "02.01.2006"}

// clockLayouts are matched against upper case without spaces.
var clockLayouts = []string{"15:04", "15:04:05", "3PM", "3:04PM", "3:04:05PM"}

// parseTime reads a clock time of today or a date and time, in loc unless it
// carries an offset of its own.
func parseTime(s string, loc *time.Location, now time.Time) (time.Time, string, error) {
	s = strings.TrimSpace(s)
	if strings.EqualFold(s, "now") || s == "" {
		return now, "", nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, "", nil
	}
	day := now.In(loc)
	clock := s
	for _, cut := range []string{"T", " "} {
		// The date may hold spaces itself: try every border.
		for i := strings.LastIndex(s, cut); i > 0; i = strings.LastIndex(s[:i], cut) {
			if d, err := parseDate(s[:i]); err == nil {
				day, clock = d, s[i+1:]
				break
			}
		}
	}
	if d, err := parseDate(s); err == nil {
		return time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, loc), "", nil
	}
	switch strings.ToLower(clock) {
	case "noon", "midday":
		clock = "12:00"
	case "midnight":
		clock = "00:00"
	}
	folded := strings.NewReplacer(" ", "", ".", "").Replace(strings.ToUpper(clock))
	for _, layout := range clockLayouts {
		c, err := time.Parse(layout, folded)
		if err != nil {
			continue
		}
		t := time.Date(day.Year(), day.Month(), day.Day(), c.Hour(), c.Minute(), c.Second(), 0, loc)
		if t.Hour() != c.Hour() || t.Minute() != c.Minute() {
			return t, fmt.Sprintf("%s does not exist there on that day, since clocks go forward; %s was taken.", c.Format("15:04"), t.Format("15:04")), nil
		}
		return t, "", nil
	}
	return time.Time{}, "", fmt.Errorf("can't read the time %q: write 15:04, 3:04 pm, 2006-01-02 15:04, 2006-01-02T15:04:05Z or now", shorten(s))
}

func parseDate(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("can't read the date %q: write it as 2006-01-02", shorten(s))
}

func shorten(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}

type differenceArgs struct {
	From string `json:"from"`
	To   string `json:"to"`
	Date string `json:"date"`
}

type differenceOut struct {
	From    clockOut `json:"from"`
	To      clockOut `json:"to"`
	Minutes int      `json:"minutes"` // To is ahead by this much
}

func (b *toolbox) timeDifference(in differenceArgs) (differenceOut, string, error) {
	from, err := find(in.From)
	if err != nil {
		return differenceOut{}, "", err
	}
	to, err := find(in.To)
	if err != nil {
		return differenceOut{}, "", err
	}
	t := b.clock()
	if in.Date != "" {
		d, err := parseDate(in.Date)
		if err != nil {
			return differenceOut{}, "", err
		}
		t = d.Add(12 * time.Hour)
	}
	_, x := t.In(from.loc).Zone()
	_, y := t.In(to.loc).Zone()
	out := differenceOut{From: clockOf(from, t), To: clockOf(to, t), Minutes: (y - x) / 60}
	text := fmt.Sprintf("%s and %s have the same time", to.name, from.name)
	if out.Minutes != 0 {
		way := "ahead of"
		if out.Minutes < 0 {
			way = "behind"
		}
		text = fmt.Sprintf("%s is %s %s %s", to.name, span(out.Minutes), way, from.name)
	}
	text += fmt.Sprintf(" on %s: %s and %s", t.In(from.loc).Format(time.DateOnly), out.From.Clock+" in "+from.name, out.To.Clock+" in "+to.name)
	for _, note := range []string{from.note, to.note} {
		if note != "" {
			text += ". " + note
		}
	}
	return out, text, nil
}

// span is minutes in words, without a sign.
func span(minutes int) string {
	if minutes < 0 {
		minutes = -minutes
	}
	var parts []string
	if h := minutes / 60; h > 0 {
		parts = append(parts, count(h, "hour"))
	}
	if m := minutes % 60; m > 0 || len(parts) == 0 {
		parts = append(parts, count(m, "minute"))
	}
	return strings.Join(parts, " ")
}

func count(n int, what string) string {
	if n == 1 || n == -1 {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type dateArgs struct {
	Date   string  `json:"date"`
	Place  string  `json:"place"`
	Years  integer `json:"years"`
	Months integer `json:"months"`
	Weeks  integer `json:"weeks"`
	Days   integer `json:"days"`
	Until  string  `json:"until"`
}

type dateOut struct {
	Date      string `json:"date"`
	Weekday   string `json:"weekday"`
	ISOWeek   string `json:"iso_week"`
	DayOfYear int    `json:"day_of_year"`
	LeapYear  bool   `json:"leap_year"`
	Until     string `json:"until,omitempty"`
	DaysUntil *int   `json:"days_until,omitempty"`
	Weekdays  *int   `json:"weekdays_until,omitempty"` // Monday to Friday
}

func (b *toolbox) dateMath(in dateArgs) (dateOut, string, error) {
	day, err := b.day(in.Date, in.Place)
	if err != nil {
		return dateOut{}, "", err
	}
	moved := addMonths(day, int(in.Years*12+in.Months)).AddDate(0, 0, int(in.Weeks*7+in.Days))
	if moved.Year() < 1 || moved.Year() > 9999 {
		return dateOut{}, "", fmt.Errorf("the result is in the year %d: only the years 1 to 9999 are computed", moved.Year())
	}
	year, week := moved.ISOWeek()
	out := dateOut{Date: moved.Format(time.DateOnly), Weekday: moved.Weekday().String(), ISOWeek: fmt.Sprintf("%04d-W%02d", year, week),
		DayOfYear: moved.YearDay(), LeapYear: time.Date(moved.Year(), 12, 31, 0, 0, 0, 0, time.UTC).YearDay() == 366}
	text := fmt.Sprintf("%s is a %s, day %d of the year, week %s", out.Date, out.Weekday, out.DayOfYear, out.ISOWeek)
	if in.Until == "" {
		return out, text, nil
	}
	end, err := b.day(in.Until, in.Place)
	if err != nil {
		return dateOut{}, "", err
	}
	days := int((end.Unix() - moved.Unix()) / 86400) // Sub ends after 292 years
	working := weekdays(moved, days)
	out.Until, out.DaysUntil, out.Weekdays = end.Format(time.DateOnly), &days, &working
	text += fmt.Sprintf("; %s until %s (%s), %d of them Monday to Friday", count(days, "day"), out.Until, end.Weekday(), working)
	return out, text, nil
}

// day reads a date; empty, today, tomorrow and yesterday are of the place.
func (b *toolbox) day(s, in string) (time.Time, error) {
	if in == "" {
		in = "UTC"
	}
	w, err := find(in)
	if err != nil {
		return time.Time{}, err
	}
	now := b.clock().In(w.loc)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "today":
		return today, nil
	case "tomorrow":
		return today.AddDate(0, 0, 1), nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	return parseDate(s)
}

// addMonths stays inside the month: 31 January and one month is the last of February.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

// weekdays counts Monday to Friday among the days from t on, negative backwards.
func weekdays(t time.Time, days int) int {
	sign := 1
	if days < 0 {
		t, days, sign = t.AddDate(0, 0, days), -days, -1
	}
	n := days / 7 * 5
	for i := range days % 7 {
		if d := t.AddDate(0, 0, i).Weekday(); d != time.Saturday && d != time.Sunday {
			n++
		}
	}
	return sign * n
}
