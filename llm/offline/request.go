package offline

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// This file finds things in a sentence: quoted text, numbers with units, times,
// dice, places, and so on. Every finder returns the place of what it found, so
// that one thing isn't used for two arguments.

// span is a part of the message.
type span struct{ from, to int }

// request is a person's message, and what of it is used already.
type request struct {
	text string
	used []span
	at   time.Time // when it was written, in the person's zone
	// calculation is the expression that it asks for in words.
	calculation string
}

func (r *request) isFree(s span) bool {
	for _, u := range r.used {
		if s.from < u.to && u.from < s.to {
			return false
		}
	}
	return s.to > s.from
}

func (r *request) markUsed(s span) { r.used = append(r.used, s) }

var (
	quotedRE = regexp.MustCompile(`"([^"]+)"|“([^”]+)”|«([^»]+)»|` + "`([^`]+)`" + `|(?:^|[\s(:])'([^']+)'(?:$|[\s).,;:?!])`)
	urlRE    = regexp.MustCompile(`(?i)\b(?:https?|ftp|file|wss?)://[^\s"'<>]*[^\s"'<>.,;:?!)]`)
	emailRE  = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)
	pathRE   = regexp.MustCompile(`(?:^|[\s"'(])((?:~|\.{1,2})?/[^\s"'?;,]*[^\s"'?;,.:)]|[A-Za-z]:\\[^\s"'?;,]+|[\w-]+\.[A-Za-z]{1,5}[a-z0-9]{0,2})(?:$|[\s"'?;,.:)])`)
	diceRE   = regexp.MustCompile(`(?i)\b(\d{0,3})d(\d{1,4}|%)(?:k[hl]\d{1,3})?(?:\s*[+-]\s*\d{1,4}\b)?(?:\b|$)`)
	clockRE  = regexp.MustCompile(`(?i)\b(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*([ap])\.?m\b\.?|\b([01]?\d|2[0-3])[:h]([0-5]\d)(?::[0-5]\d)?\b|\b(noon|midday|midnight)\b`)
	stampRE  = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?`)
	dateRE   = regexp.MustCompile(`(?i)\b(\d{4}-\d{2}-\d{2}|today|tomorrow|yesterday|christmas|new year|(?:next |on |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b`)
	numberRE = regexp.MustCompile(`(?:^|[^\w.,])([-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)`)
	wordNoRE = regexp.MustCompile(`(?i)\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b`)
	mathRE   = regexp.MustCompile(`[-+−]?[(\d.][\d\s.,+\-−*×·÷/^%()]*[\d)]`)
)

var wordNumbers = map[string]string{
	"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
	"seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}

// firstMatch returns the first match that is not used, with its first group that
// took part (or the whole match).
func (r *request) firstMatch(re *regexp.Regexp) (string, span, bool) {
	for _, m := range re.FindAllStringSubmatchIndex(r.text, -1) {
		s := span{m[0], m[1]}
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] >= 0 {
				s = span{m[g], m[g+1]}
				break
			}
		}
		if r.isFree(s) {
			return r.text[s.from:s.to], s, true
		}
	}
	return "", span{}, false
}

// wholeMatch is first without groups.
func (r *request) wholeMatch(re *regexp.Regexp) (string, span, bool) {
	for _, m := range re.FindAllStringIndex(r.text, -1) {
		if s := (span{m[0], m[1]}); r.isFree(s) {
			return r.text[s.from:s.to], s, true
		}
	}
	return "", span{}, false
}

func (r *request) quoted() (string, span, bool) {
	v, s, ok := r.firstMatch(quotedRE)
	return strings.TrimSpace(v), s, ok
}

// number returns a JSON number.
func (r *request) number(integer bool) (string, span, bool) {
	for _, m := range numberRE.FindAllStringSubmatchIndex(r.text, -1) {
		s := span{m[2], m[3]}
		v := strings.NewReplacer(",", "", "−", "-", "+", "").Replace(r.text[s.from:s.to])
		if !r.isFree(s) || (integer && strings.ContainsAny(v, ".eE")) {
			continue
		}
		if trimmed := strings.TrimLeft(v, "-0"); trimmed != "" && trimmed[0] != '.' { // JSON has no leading zeros
			sign := ""
			if v[0] == '-' {
				sign = "-"
			}
			v = sign + trimmed
		} else if trimmed == "" {
			v = "0"
		}
		return v, s, true
	}
	if w, s, ok := r.wholeMatch(wordNoRE); ok {
		return wordNumbers[strings.ToLower(w)], s, true
	}
	return "", span{}, false
}

// clockTime returns a time of day as HH:MM, or a whole timestamp as written.
func (r *request) clockTime() (string, span, bool) {
	if v, s, ok := r.wholeMatch(stampRE); ok {
		return v, s, true
	}
	for _, m := range clockRE.FindAllStringSubmatchIndex(r.text, -1) {
		s := span{m[0], m[1]}
		if !r.isFree(s) {
			continue
		}
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return r.text[m[2*i]:m[2*i+1]]
		}
		c := clockWords{hour12: group(1), minute12: group(2), half: group(3), hour24: group(4), minute24: group(5), word: group(6)}
		if v, ok := c.value(); ok {
			return v, s, true
		}
	}
	return "", span{}, false
}

// clockWords are the groups of clockRE: a time with a.m. or p.m., one of 24
// hours, or a word.
type clockWords struct {
	hour12, minute12, half string
	hour24, minute24       string
	word                   string
}

// value writes the time as HH:MM; not ok is a time that no clock shows.
func (c clockWords) value() (text string, ok bool) {
	var h, m int
	switch {
	case c.word != "":
		if strings.EqualFold(c.word, "midnight") {
			return "00:00", true
		}
		return "12:00", true
	case c.half != "":
		fmt.Sscan(c.hour12, &h)
		fmt.Sscan(strings.TrimPrefix(c.minute12, "0"), &m)
		if h < 1 || h > 12 || m > 59 {
			return "", false
		}
		h %= 12
		if strings.EqualFold(c.half, "p") {
			h += 12
		}
	default:
		fmt.Sscan(c.hour24, &h)
		fmt.Sscan(strings.TrimPrefix(c.minute24, "0"), &m)
	}
	return fmt.Sprintf("%02d:%02d", h, m), true
}

// date returns a day as YYYY-MM-DD.
func (r *request) date() (string, span, bool) {
	v, s, ok := r.firstMatch(dateRE)
	if !ok || (v[0] >= '0' && v[0] <= '9') {
		return v, s, ok
	}
	day := r.at
	words := strings.Fields(strings.ToLower(v))
	switch w := words[len(words)-1]; w {
	case "today":
	case "tomorrow":
		day = day.AddDate(0, 0, 1)
	case "yesterday":
		day = day.AddDate(0, 0, -1)
	case "christmas":
		day = comingDay(r.at, time.December, 25)
	case "year":
		day = comingDay(r.at, time.January, 1)
	default:
		for day = day.AddDate(0, 0, 1); !strings.EqualFold(day.Weekday().String(), w); {
			day = day.AddDate(0, 0, 1)
		}
	}
	return day.Format(time.DateOnly), s, true
}

// comingDay is that day of this year, or of the next if it is over.
func comingDay(now time.Time, month time.Month, day int) time.Time {
	year := now.Year()
	if month < now.Month() || month == now.Month() && day < now.Day() {
		year++
	}
	return time.Date(year, month, day, 0, 0, 0, 0, now.Location())
}

var (
	diceWordRE = regexp.MustCompile(`(?i)\b(?:(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|a|the|some)\s+)?(dice|die)\b`)
	sidesRE    = regexp.MustCompile(`(?i)\b(\d{1,4})[- ]sided\b`)
)

// dice returns a throw in the usual notation, 2d6.
func (r *request) dice() (string, span, bool) {
	if v, s, ok := r.wholeMatch(diceRE); ok {
		v = strings.ToLower(strings.ReplaceAll(v, " ", ""))
		if v[0] == 'd' {
			v = "1" + v
		}
		return v, s, true
	}
	m := diceWordRE.FindStringSubmatchIndex(r.text)
	if m == nil || !r.isFree(span{m[0], m[1]}) {
		return "", span{}, false
	}
	count, sides := "1", "6"
	if m[2] >= 0 {
		count = strings.ToLower(r.text[m[2]:m[3]])
		if n, ok := wordNumbers[count]; ok {
			count = n
		} else if count[0] < '0' || count[0] > '9' {
			count = "1"
		}
	}
	if s := sidesRE.FindStringSubmatch(r.text); s != nil {
		sides = s[1]
	}
	return count + "d" + sides, span{m[0], m[1]}, true
}

var mathWords = []struct {
	re   *regexp.Regexp
	sign string
}{
	{regexp.MustCompile(`(?i)\s*\bplus\b\s*`), "+"},
	{regexp.MustCompile(`(?i)\s*\bminus\b\s*`), "-"},
	{regexp.MustCompile(`(?i)\s*\b(?:times|multiplied by)\b\s*`), "*"},
	{regexp.MustCompile(`(?i)(\d)\s*x\s*(\d)`), "$1*$2"},
	{regexp.MustCompile(`(?i)\s*\b(?:divided by|over)\b\s*`), "/"},
	{regexp.MustCompile(`(?i)\s*\b(?:to the power of)\b\s*`), "^"},
	{regexp.MustCompile(`[×·]`), "*"},
	{regexp.MustCompile(`÷`), "/"},
	{regexp.MustCompile(`−`), "-"},
}

// expression returns a calculation, with signs for words. Its span is the
// whole message: nothing else is left to find in one.
func (r *request) expression() (string, span, bool) {
	if r.calculation != "" {
		return r.calculation, span{0, len(r.text)}, true
	}
	text := r.text
	for _, w := range mathWords {
		text = w.re.ReplaceAllString(text, w.sign)
	}
	best := ""
	for _, m := range mathRE.FindAllString(text, -1) {
		m = strings.TrimSpace(m)
		if strings.ContainsAny(m[1:], "+-*/^%") && strings.Count(m, "(") == strings.Count(m, ")") && len(m) > len(best) {
			best = m
		}
	}
	return best, span{0, len(r.text)}, best != ""
}

// stop ends a phrase: a mark of punctuation, or one of these words.
const stop = `(?:\s+(?:to|into|from|in|at|for|on|by|with|and|when|if|as|is|are|please|now|right now|today|tomorrow|tonight|yesterday|instead|using|of|until|via)\b|\s*[?!;,:]|\.(?:\s|$)|\s*$)`

const article = `(?:the\s+|a\s+|an\s+|my\s+)?`

var phrases = map[string]func() *regexp.Regexp{}

func init() {
	for _, word := range []string{"in", "at", "for", "near", "of", "to", "into", "from", "about", "on", "as"} {
		phrases[word] = compiled(`(?i)\b` + word + `\s+` + article + `(.+?)` + stop)
	}
}

var noPlaceRE = regexp.MustCompile(`(?i)^(?:me|us|it|this|that|there|here|what|which|how|the time|time|today|tomorrow|tonight|now|\d.*)$`)

// afterWord returns the phrase behind the first of the words that has one.
func (r *request) afterWord(words ...string) (string, span, bool) {
	for _, w := range words {
		re := phrases[w]()
		for at := 0; at < len(r.text); {
			m := re.FindStringSubmatchIndex(r.text[at:])
			if m == nil {
				break
			}
			s := span{at + m[2], at + m[3]}
			v := strings.TrimSpace(r.text[s.from:s.to])
			at = s.from // phrases may overlap
			if r.isFree(s) && !noPlaceRE.MatchString(v) {
				return strings.TrimSuffix(v, "."), s, true
			}
		}
	}
	return "", span{}, false
}

var nextRE = regexp.MustCompile(`(?i)^\s*(?:(?:in|at)\s+)?` + article + `([^\s\d?!;,:].*?)` + stop)

// following returns the phrase that follows a place of the message directly: the
// unit behind a number, the city behind a time.
func (r *request) following(s span, preposition bool) (string, span, bool) {
	m := nextRE.FindStringSubmatchIndex(r.text[s.to:])
	if m == nil {
		return "", span{}, false
	}
	lead := strings.TrimSpace(r.text[s.to : s.to+m[2]])
	out := span{s.to + m[2], s.to + m[3]}
	v := strings.TrimSpace(r.text[out.from:out.to])
	if (!preposition && lead != "") || !r.isFree(out) || isStop(v) {
		return "", span{}, false
	}
	return strings.TrimSuffix(v, " time"), out, true
}

var stopWordRE = regexp.MustCompile(`(?i)^(?:to|into|from|in|at|for|on|by|with|and|when|if|as|is|are|please|now|of)\b`)

func isStop(v string) bool { return stopWordRE.MatchString(v) }

var howManyRE = regexp.MustCompile(`(?i)\bhow (?:many|much)\s+(\S+)`)

var properRE = regexp.MustCompile(`\b[\p{Lu}][\p{L}'’.-]+(?:\s+[\p{Lu}][\p{L}'’.-]+)*`)

// properName returns a run of capitalised words that doesn't begin the sentence.
func (r *request) properName() (string, span, bool) {
	for _, m := range properRE.FindAllStringIndex(r.text, -1) {
		if s := (span{m[0], m[1]}); m[0] > 0 && r.isFree(s) {
			return strings.TrimRight(r.text[s.from:s.to], "."), s, true
		}
	}
	return "", span{}, false
}

var (
	titleRE = regexp.MustCompile(`(?i)\b(?:titled|entitled|called|named|(?:with|and)?\s*(?:the\s+)?(?:title|name|subject)(?:\s+is|\s+of)?)\s+["“'‘]?(.+?)["”'’]?(?:\s*[:;,]|\.(?:\s|$)|\s+(?:with|saying|that says|containing|and (?:the )?(?:text|body|content))\b|\s*$)`)
	sayRE   = regexp.MustCompile(`(?is)\b(?:saying|that says|containing|(?:with|and)?\s*(?:the\s+)?(?:text|body|content|message)(?:\s+is|\s+of)?)\s*:?\s+["“'‘]?(.+?)["”'’]?\s*$`)
	colonRE = regexp.MustCompile(`(?s):\s+(.+)$`)
	keepRE  = regexp.MustCompile(`(?is)^\s*(?:please )?(?:remember|remind me|note|jot down|don['’]t (?:let me )?forget)\s+(?:to|that|down)\s+(.+?)\s*$`)
)

var helloRE = regexp.MustCompile(`(?i)^\s*(?:hi|hey|hello)\b[\s,!.]*(?:nize\b[\s,!.:]*)?`)

// rest is what is not used, without the words that only ask for the tool.
func (r *request) rest(vocabulary func(word string) bool) string {
	words := strings.Fields(helloRE.ReplaceAllString(r.unused(), ""))
	for len(words) > 0 {
		w := strings.ToLower(strings.Trim(words[0], ".,;:?!\"'"))
		if w != "" && !filler[w] && !vocabulary(w) {
			break
		}
		words = words[1:]
	}
	return strings.TrimSpace(strings.TrimRight(strings.Join(words, " "), "?"))
}

func (r *request) unused() string {
	var b strings.Builder
	for i, c := range r.text {
		if r.isFree(span{i, i + 1}) {
			b.WriteRune(c)
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

var filler = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq(`a an the this that these those my me i you your we us please can could would will
		do does did is are was what what's whats which how who where when tell give show get make want need like to of in
		for on at about from with and some any it let let's use run call find now`) {
		filler[w] = true
	}
}
