package main

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones come with the program, not with the machine

	"nize/store"
)

//go:embed places.txt
var placesText string

// place is what a name stands for.
type place struct {
	name  string // as people write it
	zone  string // IANA name
	zones int    // of a country: how many it has
}

// gazetteer is places.txt, read once, at the first use.
var gazetteer = sync.OnceValue(func() map[string]place {
	m := map[string]place{}
	section := ""
	for line := range strings.Lines(placesText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case section == "[zones]":
			city := line[strings.LastIndexByte(line, '/')+1:]
			p := place{name: strings.ReplaceAll(city, "_", " "), zone: line}
			m[key(line)] = place{name: line, zone: line}
			if old, taken := m[key(city)]; !taken || len(old.zone) > len(line) {
				m[key(city)] = p
			}
		default:
			parts := strings.Split(line, "|")
			p := place{name: parts[0], zone: parts[1]}
			if len(parts) > 2 {
				p.zones, _ = strconv.Atoi(parts[2]) // 0 where the file is wrong: no note
			}
			m[key(parts[0])] = p // a country goes before the zone of the same name (Singapore, Jamaica)
		}
	}
	return m
})

var unaccent = strings.NewReplacer("á", "a", "à", "a", "ã", "a", "â", "a", "å", "a", "ä", "a", "é", "e", "è", "e", "ê", "e",
	"í", "i", "ì", "i", "ó", "o", "ò", "o", "õ", "o", "ô", "o", "ö", "o", "ø", "o", "ú", "u", "ù", "u", "ü", "u", "ç", "c", "ñ", "n", "ń", "n", "ł", "l", "ş", "s", "ß", "ss")

// key folds what people write differently: case, accents, "St." and underscores.
func key(s string) string {
	s = unaccent.Replace(strings.ToLower(s))
	s = strings.NewReplacer("_", " ", ".", "", "’", "'").Replace(s)
	return strings.TrimPrefix(strings.Join(strings.Fields(s), " "), "the ")
}

var (
	offset   = regexp.MustCompile(`^(?:(?i)utc|gmt)? ?([+-])(\d{1,2})(?::?(\d{2}))?$`)
	zoneName = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$`)
)

// where is a resolved place: a location and how to name it.
type where struct {
	loc  *time.Location
	name string // "Tokyo", or the zone itself
	note string // what the reader should know, a sentence or nothing
}

// find resolves a city, country, IANA zone or offset.
func find(s string) (where, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return where{}, errors.New("a place is empty: give a city, a country, an IANA zone such as Asia/Tokyo, or an offset such as UTC+2")
	}
	if len(s) > 100 {
		return where{}, errors.New("a place has more than 100 characters: give a city, a country or an IANA zone")
	}
	if m := offset.FindStringSubmatch(s); m != nil {
		return fixed(m)
	}
	p, err := lookup(s)
	if err != nil {
		if !zoneName.MatchString(s) {
			return where{}, err
		}
		loc, zoneErr := time.LoadLocation(s) // UTC, CET, EST5EDT …
		if zoneErr != nil || s == "Local" {
			if loc, zoneErr = time.LoadLocation(strings.ToUpper(s)); zoneErr != nil || strings.EqualFold(s, "local") {
				return where{}, err
			}
		}
		return where{loc: loc, name: loc.String()}, nil
	}
	loc, err := time.LoadLocation(p.zone)
	if err != nil {
		return where{}, fmt.Errorf("loading zone %s: %w", p.zone, err)
	}
	w := where{loc: loc, name: p.name}
	if p.zones > 1 {
		w.note = fmt.Sprintf("%s has several time zones; this is %s.", p.name, p.zone)
	}
	return w, nil
}

func fixed(m []string) (where, error) {
	hours, _ := strconv.Atoi(m[2]) // digits, by the expression
	minutes, _ := strconv.Atoi(m[3])
	if hours > 14 || minutes > 59 {
		return where{}, fmt.Errorf("offset %s%s:%02d is out of range: -12:00 to +14:00", m[1], m[2], minutes)
	}
	seconds := hours*3600 + minutes*60
	if m[1] == "-" {
		seconds = -seconds
	}
	name := fmt.Sprintf("UTC%s%02d:%02d", m[1], hours, minutes)
	return where{loc: time.FixedZone(name, seconds), name: name}, nil
}

// lookup finds a name, also "City, Country".
func lookup(s string) (place, error) {
	all := gazetteer()
	if p, ok := all[key(s)]; ok {
		return p, nil
	}
	city, region, ok := strings.Cut(s, ",")
	if p, known := all[key(city)]; ok && known {
		// "Paris, Texas": a region that we know and that keeps another time.
		if r, ok := all[key(region)]; ok && r.zones == 1 && !sameTime(r.zone, p.zone) {
			return place{}, fmt.Errorf("%s is known in zone %s, not in %s: give the IANA zone of the place that you mean", strings.TrimSpace(city), p.zone, strings.TrimSpace(region))
		}
		return p, nil
	}
	near := ""
	if n := store.Nearest(key(city), keys(all)); n != "" {
		near = fmt.Sprintf("; did you mean %s (%s)?", all[n].name, all[n].zone)
	} else {
		near = "; give a larger city in the same zone, its country, or an IANA zone such as Asia/Tokyo"
	}
	return place{}, fmt.Errorf("unknown place %q%s", s, near)
}

func keys(m map[string]place) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	// The nearest of several equals must not depend on the map's order.
	return sorted(out)
}

// sameTime says whether two zones show the same clock in this half of the decade.
func sameTime(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := time.LoadLocation(a)
	y, err2 := time.LoadLocation(b)
	if err1 != nil || err2 != nil {
		return false
	}
	for _, month := range []time.Month{time.January, time.July} {
		t := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		_, p := t.In(x).Zone()
		_, q := t.In(y).Zone()
		if p != q {
			return false
		}
	}
	return true
}
