package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones are part of the program, not of the machine

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed places.txt
var placesText string

// place is the meaning of a name.
type place struct {
	name  string // as displayed
	zone  string // IANA name
	loc   *time.Location
	zones string // of a country: how many zones it has
}

// gazetteer is places.txt by folded name, read at the first use.
var gazetteer = sync.OnceValue(func() map[string]place {
	m := map[string]place{}
	for line := range strings.Lines(placesText) {
		line = strings.TrimSpace(line)
		parts := append(strings.Split(line, "|"), "")
		switch {
		case line == "" || line[0] == '#' || line[0] == '[':
		case len(parts) == 2: // an IANA zone
			city := line[strings.LastIndexByte(line, '/')+1:]
			m[fold(line)] = place{name: line, zone: line}
			if old, taken := m[fold(city)]; !taken || len(old.zone) > len(line) {
				m[fold(city)] = place{name: strings.ReplaceAll(city, "_", " "), zone: line}
			}
		default: // a country takes precedence over the zone of the same name (Singapore, Jamaica)
			m[fold(parts[0])] = place{name: parts[0], zone: parts[1], zones: parts[2]}
		}
	}
	return m
})

var unaccent = strings.NewReplacer("á", "a", "à", "a", "ã", "a", "â", "a", "å", "a", "ä", "a", "é", "e", "è", "e", "ê", "e", "í", "i", "ì", "i", "ó", "o", "ò", "o",
	"õ", "o", "ô", "o", "ö", "o", "ø", "o", "ú", "u", "ù", "u", "ü", "u", "ç", "c", "ñ", "n", "ń", "n", "ł", "l", "ş", "s", "ß", "ss", "_", " ", ".", "", "’", "'")

// fold removes differences in spelling: case, accents, "St." and underscores.
func fold(s string) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(unaccent.Replace(strings.ToLower(s))), " "), "the ")
}

var offset = regexp.MustCompile(`^(?:(?i)utc|gmt)? ?([+-]\d{1,2})(?::?(\d{2}))?$`)

// find resolves a city, a country, "City, Country", an IANA zone or an offset. An empty
// text is UTC.
func find(s string) (place, error) {
	s = cmp.Or(strings.TrimSpace(s), "UTC")
	if m := offset.FindStringSubmatch(s); m != nil {
		t, err := time.Parse("-07:00", fmt.Sprintf("%c%02s:%02s", m[1][0], m[1][1:], m[2]))
		if err != nil {
			return place{}, fmt.Errorf("offset %s is out of range", s)
		}
		_, seconds := t.Zone()
		name := "UTC" + t.Format("-07:00")
		return place{name: name, loc: time.FixedZone(name, seconds)}, nil
	}
	all := gazetteer()
	city, _, _ := strings.Cut(s, ",")
	p := cmp.Or(all[fold(s)], all[fold(city)], place{name: strings.ToUpper(s), zone: strings.ToUpper(s)}) // the last is CET, EST5EDT …
	loc, err := time.LoadLocation(p.zone)
	if err != nil || p.zone == "LOCAL" {
		near := cmp.Or(suggest(fold(city), slices.Collect(maps.Keys(all))), "; give a larger city in the same zone, its country, or an IANA zone such as Asia/Tokyo")
		return place{}, fmt.Errorf("unknown place %.60q%s", s, near)
	}
	p.loc = loc
	return p, nil
}

type clockOut struct {
	Place   string `json:"place"`
	Zone    string `json:"zone" jsonschema:"IANA zone"`
	Time    string `json:"time" jsonschema:"RFC 3339"`
	Weekday string `json:"weekday"`
	Note    string `json:"note,omitempty"`
}

// at returns the time in a place, for programs and as a sentence.
func (p place) at(t time.Time) (clockOut, string) {
	t = t.In(p.loc)
	out := clockOut{Place: p.name, Zone: p.loc.String(), Time: t.Format(time.RFC3339), Weekday: t.Weekday().String()}
	text := t.Format("15:04 on Monday, 2006-01-02 in ") + p.name
	if out.Place != out.Zone {
		text += fmt.Sprintf(" (%s, UTC%s)", out.Zone, t.Format("-07:00"))
	}
	if p.zones > "1" {
		out.Note = fmt.Sprintf("%s has several time zones; this is %s.", p.name, p.zone)
		text += ". " + out.Note
	}
	return out, text
}

type placeArgs struct {
	Place string `json:"place,omitempty" jsonschema:"City, country, IANA zone or UTC offset, e.g. Tokyo, Brazil, Europe/Zurich, UTC+2. UTC if left out."`
}

type convertArgs struct {
	Time string `json:"time" jsonschema:"Time to convert: 15:04, 3 pm, 2026-01-31 15:04, RFC 3339 or now. A time without a date is today's in the place it is from."`
	From string `json:"from,omitempty" jsonschema:"Where that time holds: city, country, IANA zone or UTC offset. UTC if left out."`
	To   string `json:"to" jsonschema:"Where to convert it to: city, country, IANA zone or UTC offset."`
}

type differenceArgs struct {
	From string `json:"from" jsonschema:"First place: city, country, IANA zone or UTC offset."`
	To   string `json:"to" jsonschema:"Second place; the answer says how far it is ahead of the first."`
}

type clocksOut struct {
	From  clockOut `json:"from"`
	To    clockOut `json:"to"`
	Ahead float64  `json:"hours_ahead" jsonschema:"How far the second place is ahead; negative if it is behind"`
}

func (b *toolbox) addClocks(s *sdk.Server) {
	add(s, about(reads, "current_time", "Current time", "Tells what time and date it is now in a city, country or time zone. Answers questions such as \"What time is it in Tokyo?\" and \"What is today's date?\"."),
		limits{"place": length(0, 100)}, func(in placeArgs) (out clockOut, text string, err error) {
			p, err := find(in.Place)
			if err != nil {
				return out, "", err
			}
			out, text = p.at(b.now())
			return out, "It is " + text, nil
		})
	add(s, about(reads, "convert_time", "Convert time between zones", "Converts a clock time or date and time from one place to another, daylight saving included. Example: 3 pm in New York, in Berlin."),
		limits{"time": length(0, 60), "from": length(0, 100), "to": length(0, 100)}, func(in convertArgs) (clocksOut, string, error) {
			return b.compare(in.From, in.To, in.Time)
		})
	add(s, about(reads, "time_difference", "Time difference between places", "Tells how many hours two places are apart, and the time in both. Example: how far is Tokyo ahead of London?"),
		limits{"from": length(0, 100), "to": length(0, 100)}, func(in differenceArgs) (clocksOut, string, error) {
			out, text, err := b.compare(in.From, in.To, "now")
			way := "ahead of"
			if out.Ahead < 0 {
				way = "behind"
			}
			return out, fmt.Sprintf("%s is %g hours %s %s: %s", out.To.Place, math.Abs(out.Ahead), way, out.From.Place, text), err
		})
}

// compare returns one moment in two places.
func (b *toolbox) compare(from, to, at string) (out clocksOut, text string, err error) {
	x, err := find(from)
	if err != nil {
		return out, "", err
	}
	y, err := find(to)
	if err != nil {
		return out, "", err
	}
	t, err := parseTime(at, x.loc, b.now())
	if err != nil {
		return out, "", err
	}
	fromClock, fromText := x.at(t)
	toClock, toText := y.at(t)
	_, seconds := t.In(x.loc).Zone()
	_, further := t.In(y.loc).Zone()
	out = clocksOut{fromClock, toClock, float64(further-seconds) / 3600}
	return out, fromText + " is " + toText, nil
}

// parseTime parses a time of today or a date and time, in loc unless it has an offset of
// its own. The date comes first.
func parseTime(s string, loc *time.Location, now time.Time) (time.Time, error) {
	if s = strings.TrimSpace(s); strings.EqualFold(s, "now") {
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	s = strings.NewReplacer("T", " ", "NOON", "12:00", "MIDNIGHT", "00:00", " AM", "AM", " PM", "PM", " A.M.", "AM", " P.M.", "PM").Replace(strings.ToUpper(s))
	today := now.In(loc).Format(time.DateOnly)
	for _, layout := range []string{" 15:04", " 15:04:05", " 3PM", " 3:04PM", ""} {
		for _, text := range []string{today + " " + s, s} {
			if t, err := time.ParseInLocation(time.DateOnly+layout, text, loc); err == nil {
				return t, nil
			}
		}
	}
	return now, fmt.Errorf("can't read the time %.60q: write 15:04, 3:04 pm, 2006-01-02 15:04, 2006-01-02T15:04:05Z or now", s)
}
