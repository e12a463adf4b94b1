package offline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// finder looks for the value of one argument. Finders are in the order of how
// sure they are; each may take only what those before have left.
type finder func(p param, r *request) (json.RawMessage, span, bool)

var finders = []finder{findEnum, findBool, findAddress, findDice, findExpression, findTime, findNumber, findFrom, findTo, findPlace, findTitle, findText, findArray}

func findEnum(p param, r *request) (json.RawMessage, span, bool) {
	for _, e := range slices.SortedFunc(slices.Values(p.enum), func(a, b string) int { return len(b) - len(a) }) {
		if !p.required && len(e) < 3 {
			continue // too short to be meant
		}
		words := strings.FieldsFunc(e, func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		re, err := regexp.Compile(`(?i)(?:^|[^\pL\pN])(` + strings.Join(words, `[\s_-]*`) + `)(?:s|es)?(?:$|[^\pL\pN])`)
		if err != nil {
			continue
		}
		if _, s, ok := r.firstMatch(re); ok {
			return jsonString(e), s, true
		}
	}
	return nil, span{}, false
}

func findBool(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "boolean" {
		return nil, span{}, false
	}
	re, err := regexp.Compile(`(?i)\b((?:not|no|without|don't|off)\s+)?` + regexp.QuoteMeta(strings.Join(p.words, " ")) + `(\s+off)?\b`)
	if err != nil {
		return nil, span{}, false
	}
	m := re.FindStringSubmatchIndex(r.text)
	if m == nil {
		return nil, span{}, false
	}
	return json.RawMessage(strconv.FormatBool(m[2] < 0 && m[4] < 0)), span{m[0], m[1]}, true
}

// findAddress finds URLs, e-mail addresses and paths.
func findAddress(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 {
		return nil, span{}, false
	}
	var re *regexp.Regexp
	switch {
	case p.format == "uri" || p.format == "url" || p.named("url", "uri", "link", "href", "website"):
		re = urlRE
	case p.format == "email" || p.named("email", "mail", "recipient", "recipients"):
		re = emailRE
	case p.named("path", "file", "filename", "filepath", "directory", "dir", "folder"):
		re = pathRE
	default:
		return nil, span{}, false
	}
	v, s, ok := r.firstMatch(re)
	return jsonString(v), s, ok
}

func findDice(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || !(p.named("dice", "notation", "roll") || strings.Contains(p.about, "2d6") || strings.Contains(p.about, "dice notation")) {
		return nil, span{}, false
	}
	v, s, ok := r.dice()
	return jsonString(v), s, ok
}

func findExpression(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || !p.named("expression", "expr", "formula", "calculation", "equation", "math") {
		return nil, span{}, false
	}
	v, s, ok := r.expression()
	return jsonString(v), s, ok
}

var untilRE = regexp.MustCompile(`(?i)\b(?:until|till|to|by|before)\s+$`)

func findTime(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 {
		return nil, span{}, false
	}
	end := p.named("until", "till", "due", "deadline", "end")
	if p.format == "date" || p.named("date", "day") || end {
		v, s, ok := r.date()
		if ok && !p.required && untilRE.MatchString(r.text[:s.from]) != end {
			return nil, span{}, false // it is the other of the two dates
		}
		return jsonString(v), s, ok
	}
	if !p.isTime() {
		return nil, span{}, false
	}
	v, s, ok := r.clockTime()
	return jsonString(v), s, ok
}

// findNumber takes the next number for a required argument; an optional one
// must be named beside it.
func findNumber(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "number" && p.kind != "integer" {
		return nil, span{}, false
	}
	if v, s, ok := namedNumber(p, r); ok {
		return v, s, true
	}
	if !p.required {
		return nil, span{}, false
	}
	v, s, ok := r.number(p.kind == "integer")
	return json.RawMessage(v), s, ok
}

func namedNumber(p param, r *request) (json.RawMessage, span, bool) {
	for _, w := range p.words {
		if len(w) < 3 {
			continue
		}
		w = regexp.QuoteMeta(stem(w))
		re, err := regexp.Compile(`(?i)\b` + w + `\w*\s*(?:=|:|of|is|to)?\s*(-?\d+(?:\.\d+)?)\b|(?:^|\s)(-?\d+(?:\.\d+)?)\s+` + w)
		if err != nil {
			continue
		}
		if v, s, ok := r.firstMatch(re); ok {
			if raw, ok := convert(p, v); ok {
				return raw, s, true
			}
		}
	}
	return nil, span{}, false
}

// referenceSpan is the last number or time that is used: units and places stand
// behind it.
func referenceSpan(r *request) (span, bool) {
	var last span
	for _, re := range []*regexp.Regexp{stampRE, clockRE, numberRE} {
		for _, m := range re.FindAllStringIndex(r.text, -1) {
			for _, u := range r.used {
				if m[0] <= u.from && u.from < m[1] && u.to > last.to && u.to-u.from <= m[1]-m[0] {
					last = u
				}
			}
		}
	}
	return last, last.to > 0
}

// findFrom finds where something comes from: "from X", or the unit or place
// behind the number or time.
func findFrom(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 || !p.isOrigin() || p.isTime() {
		return nil, span{}, false
	}
	if v, s, ok := r.afterWord("from"); ok {
		return jsonString(v), s, true
	}
	if at, ok := referenceSpan(r); ok {
		clock := clockRE.MatchString(r.text[at.from:at.to])
		if v, s, ok := r.following(at, clock); ok {
			return jsonString(v), s, true
		}
	}
	return nil, span{}, false
}

func findTo(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 || !p.isDestination() || p.isTime() {
		return nil, span{}, false
	}
	if v, s, ok := r.afterWord("into", "to"); ok {
		return jsonString(v), s, true
	}
	if v, s, ok := r.firstMatch(howManyRE); ok {
		return jsonString(v), s, true
	}
	v, s, ok := r.afterWord("in", "as", "for")
	return jsonString(v), s, ok
}

func findPlace(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 || !p.isPlace() {
		return nil, span{}, false
	}
	if v, s, ok := r.afterWord("in", "at", "near", "for", "to", "from", "of"); ok {
		return jsonString(v), s, true
	}
	v, s, ok := r.properName()
	return jsonString(v), s, ok
}

func findTitle(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 || !p.named("title", "name", "subject", "heading", "label", "topic", "key") {
		return nil, span{}, false
	}
	if v, s, ok := r.firstMatch(titleRE); ok {
		return jsonString(strings.Trim(v, `"“”'‘’ `)), s, true
	}
	if p.required {
		if v, s, ok := r.quoted(); ok {
			return jsonString(v), s, true
		}
	}
	return nil, span{}, false
}

func findText(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 {
		return nil, span{}, false
	}
	if p.isText() {
		for _, re := range []*regexp.Regexp{keepRE, colonRE, sayRE} {
			if v, s, ok := r.firstMatch(re); ok {
				return jsonString(unquote(v)), s, true
			}
		}
	}
	if p.required || p.isText() {
		if v, s, ok := r.quoted(); ok {
			return jsonString(v), s, true
		}
	}
	if p.required && p.named(queryWords...) {
		if v, s, ok := r.afterWord("for", "about"); ok {
			return jsonString(v), s, true
		}
	}
	return nil, span{}, false
}

// findArray takes a list: numbers, or words with commas between them.
func findArray(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "array" || !p.required {
		return nil, span{}, false
	}
	var items []json.RawMessage
	if p.item == "number" || p.item == "integer" {
		for {
			v, s, ok := r.number(p.item == "integer")
			if !ok {
				break
			}
			r.markUsed(s)
			items = append(items, json.RawMessage(v))
		}
	} else if v, _, ok := r.firstMatch(colonRE); ok && p.item == "string" {
		for item := range strings.SplitSeq(strings.ReplaceAll(v, " and ", ","), ",") {
			if item = strings.TrimSpace(strings.Trim(strings.TrimSpace(item), ".")); item != "" {
				items = append(items, jsonString(item))
			}
		}
	}
	if len(items) == 0 {
		return nil, span{}, false
	}
	raw, err := json.Marshal(items)
	return raw, span{0, len(r.text)}, err == nil
}
