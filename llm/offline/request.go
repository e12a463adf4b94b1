package offline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file finds arguments in a sentence: numbers with units, times, places, quoted text
// and so on.

type span struct{ from, to int }

// request is a person's message, with the parts that are already used as arguments, so that
// nothing is used twice.
type request struct {
	text string
	used []span
	at   time.Time // when it was written, in the person's time zone
}

// rephrasings put a request into the order in which arguments are found.
var rephrasings = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(?i)\bhow (?:many|much)\s+(\pL+)\s+(?:are|is)?\s*(?:there\s+)?in\s+an?\s+(\pL[\pL ]*?)\s*\??$`), "1 $2 in $1"},
	{regexp.MustCompile(`(?i)\bhow (?:many|much)\s+(\pL+)\s+(?:are|is)\s+([\d.,]+ \pL[\pL ]*?)\s*\??$`), "$2 in $1"},
	{regexp.MustCompile(`(?i)\bhow far (?:is|ahead is)\s+(.+?)\s+(?:ahead of|behind|from)\s+(.+?)\s*\??$`), "time difference from $2 to $1"},
	{regexp.MustCompile(`(?i)\bbetween\s+(.+?)\s+and\s+`), "from $1 to "},
}

func rephrase(text string) string {
	for _, p := range rephrasings {
		text = p.re.ReplaceAllString(text, p.to)
	}
	return text
}

// arguments are those found in the words.
type arguments struct {
	args    map[string]json.RawMessage
	missing []param // required ones, in order
	told    int     // number of arguments from the words
}

func (f arguments) raw() json.RawMessage { return jsonOf(f.args) }

// jsonOf returns v as JSON; the values passed here can always be encoded.
func jsonOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// fillArguments finds the arguments of a tool in a message. about is the tool's name and
// description: its words ask for the tool and are not arguments.
func fillArguments(params []param, r *request, about string) arguments {
	f := arguments{args: make(map[string]json.RawMessage)}
	for _, find := range finders {
		for _, p := range params {
			if _, ok := f.args[p.name]; ok {
				continue
			}
			if v, s, ok := find(p, r); ok {
				f.args[p.name] = v
				f.told++
				r.used = append(r.used, s)
			}
		}
	}
	for _, p := range params {
		_, ok := f.args[p.name]
		switch {
		case ok || !p.required:
		case len(p.fallback) > 0:
			f.args[p.name] = p.fallback
		default:
			f.missing = append(f.missing, p)
		}
	}
	// If a single text is missing, it is the unused rest of the message.
	if len(f.missing) == 1 && f.missing[0].takesFreeText() && (f.told == 0 || f.missing[0].named(textWords+queryWords)) {
		if rest := r.rest(vocabulary(about)); rest != "" {
			f.args[f.missing[0].name] = jsonOf(rest)
			f.missing, f.told = nil, f.told+1
		}
	}
	return f
}

const (
	originWords      = "from source src origin departure start"
	destinationWords = "to target dest destination into arrival"
	timeWords        = "time clock hour when datetime timestamp"
	placeWords       = "place city location timezone tz zone country where region town address"
	textWords        = " text body content message note input prompt comment sentence data string "
	queryWords       = " query q search term keyword keywords topic question "
	formWords        = "url uri link path file filename email dice id expression date unit currency"
)

func (p param) takesFreeText() bool {
	return p.kind == "string" && len(p.enum) == 0 && p.format == "" && !p.named(originWords+" "+destinationWords+" "+timeWords+" "+placeWords+" "+formWords)
}

// finder looks for the value of one argument. Finders are ordered by certainty; each may
// only use what the earlier ones left.
type finder func(p param, r *request) (json.RawMessage, span, bool)

var finders = []finder{findNamed, findEnum, findBool, findPattern, findNumber, findFrom, findTo, findPlace, findText}

// find returns the first unused match: its first group that took part, or all of it.
func (r *request) find(re *regexp.Regexp) (string, span, bool) {
	for at := 0; at < len(r.text); {
		m := re.FindStringSubmatchIndex(r.text[at:])
		if m == nil || m[1] == 0 {
			break
		}
		s := span{at + m[0], at + m[1]}
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] >= 0 {
				s = span{at + m[g], at + m[g+1]}
				break
			}
		}
		at = max(s.from, at+1) // matches may overlap
		if v := strings.TrimSpace(r.text[s.from:s.to]); v != "" && !slices.ContainsFunc(r.used, func(u span) bool { return s.from < u.to && u.from < s.to }) {
			return v, s, true
		}
	}
	return "", span{}, false
}

// findNamed finds name=value, name: value and, for numbers, "max length 500".
func findNamed(p param, r *request) (json.RawMessage, span, bool) {
	sign := `\s*(?:=|:\s)\s*`
	if p.kind == "number" || p.kind == "integer" {
		sign = `\s*(?:=|:|of|is)?\s*`
	}
	re, err := regexp.Compile(`(?is)(?:^|[\s,;(])(?:` + regexp.QuoteMeta(p.name) + `|` + regexp.QuoteMeta(p.label()) + `)` + sign + `(?:"([^"]*)"|([^\s,;]+)` + map[bool]string{true: `.*`}[p.named(textWords)] + `)`)
	if err != nil {
		return nil, span{}, false
	}
	m := re.FindStringSubmatchIndex(r.text)
	if m == nil {
		return nil, span{}, false
	}
	from, to := m[4], m[1]
	if m[2] >= 0 {
		from, to = m[2], m[3]
	}
	v, ok := convert(p, strings.TrimRight(r.text[from:to], "?!"))
	return v, span{m[0], m[1]}, ok
}

func findEnum(p param, r *request) (json.RawMessage, span, bool) {
	for _, e := range slices.SortedFunc(slices.Values(p.enum), func(a, b string) int { return len(b) - len(a) }) {
		words := strings.ReplaceAll(regexp.QuoteMeta(strings.NewReplacer("_", " ", "-", " ").Replace(e)), " ", `[\s_-]*`)
		re, err := regexp.Compile(`(?i)(?:^|[^\pL\pN])(` + words + `)(?:s|es)?(?:$|[^\pL\pN])`)
		if err != nil || !p.required && len(e) < 3 {
			continue // too short to be meant
		}
		if _, s, ok := r.find(re); ok {
			return jsonOf(e), s, true
		}
	}
	return nil, span{}, false
}

func findBool(p param, r *request) (json.RawMessage, span, bool) {
	re, err := regexp.Compile(`(?i)\b((?:not|no|without|don't|off)\s+)?` + regexp.QuoteMeta(p.label()) + `(\s+off)?\b`)
	if err != nil || p.kind != "boolean" {
		return nil, span{}, false
	}
	m := re.FindStringSubmatchIndex(r.text)
	if m == nil {
		return nil, span{}, false
	}
	return json.RawMessage(strconv.FormatBool(m[2] < 0 && m[4] < 0)), span{m[0], m[1]}, true
}

var (
	urlRE    = regexp.MustCompile(`(?i)\b(?:https?|ftp|file|wss?)://[^\s"'<>]*[^\s"'<>.,;:?!)]`)
	emailRE  = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)
	pathRE   = regexp.MustCompile(`(?:^|[\s"'(])((?:~|\.{1,2})?/[^\s"'?;,]*[^\s"'?;,.:)]|[\w-]+\.[A-Za-z]{1,5})(?:$|[\s"'?;,.:)])`)
	diceRE   = regexp.MustCompile(`(?i)\b\d{0,3}d\d{1,4}(?:k[hl]\d{1,3})?(?:\s*[+-]\s*\d{1,4}\b)?\b`)
	clockRE  = regexp.MustCompile(`(?i)\b(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?|\d{1,2}(?::\d{2})?\s*[ap]\.?m\b\.?|(?:[01]?\d|2[0-3]):[0-5]\d|noon|midnight)`)
	dateRE   = regexp.MustCompile(`(?i)\b(\d{4}-\d{2}-\d{2}|today|tomorrow|yesterday)\b`)
	numberRE = regexp.MustCompile(`(?:^|[^\w.,])([-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+−]?\d+(?:\.\d+)?)`)
)

// findPattern finds values with a recognizable form.
func findPattern(p param, r *request) (v json.RawMessage, s span, ok bool) {
	var text string
	switch {
	case p.kind != "string" || len(p.enum) > 0:
		return nil, span{}, false
	case p.format == "uri" || p.named("url uri link href website"):
		text, s, ok = r.find(urlRE)
	case p.format == "email" || p.named("email mail recipient recipients"):
		text, s, ok = r.find(emailRE)
	case p.named("path file filename filepath directory dir folder"):
		text, s, ok = r.find(pathRE)
	case p.named("dice notation roll"):
		text, s, ok = r.find(diceRE)
		if text = strings.ToLower(strings.ReplaceAll(text, " ", "")); strings.HasPrefix(text, "d") {
			text = "1" + text // not every tool accepts d20
		}
	case p.named("expression expr formula calculation equation math"):
		text, s = expression(r.text), span{0, len(r.text)}
		ok = text != ""
	case p.format == "date" || p.named("date day"):
		text, s, ok = r.find(dateRE)
		if days, isWord := map[string]int{"today": 0, "tomorrow": 1, "yesterday": -1}[strings.ToLower(text)]; isWord {
			text = r.at.AddDate(0, 0, days).Format(time.DateOnly)
		}
	case p.isTime():
		text, s, ok = r.find(clockRE)
		text = clockTime(text)
	}
	return jsonOf(text), s, ok
}

func (p param) isTime() bool {
	return strings.HasSuffix(p.format, "time") || p.named(timeWords) && !p.named("zone")
}

// clockTime returns a time of day as HH:MM, and leaves everything else unchanged.
func clockTime(s string) string {
	folded := strings.NewReplacer(" ", "", ".", "", "NOON", "12:00", "MIDNIGHT", "00:00").Replace(strings.ToUpper(s))
	for _, layout := range []string{"3PM", "3:04PM", "15:04"} {
		if t, err := time.Parse(layout, folded); err == nil {
			return t.Format("15:04")
		}
	}
	return s
}

// findNumber takes the next number for a required argument.
func findNumber(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "number" && p.kind != "integer" || !p.required {
		return nil, span{}, false
	}
	text, s, ok := r.find(numberRE)
	v, isNumber := convert(p, text)
	return v, s, ok && isNumber
}

// findFrom finds the source: "from X", or the unit or place after a number or time.
func findFrom(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || !p.named(originWords) {
		return nil, span{}, false
	}
	v, s, ok := r.after("from")
	for i := len(r.used) - 1; i >= 0 && !ok; i-- {
		if m := behindRE.FindStringSubmatchIndex(r.text[r.used[i].to:]); m != nil {
			v, s, ok = r.text[r.used[i].to+m[2]:r.used[i].to+m[3]], span{r.used[i].to + m[2], r.used[i].to + m[3]}, true
		}
	}
	return jsonOf(v), s, ok
}

func findTo(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || !p.named(destinationWords) {
		return nil, span{}, false
	}
	v, s, ok := r.after("into", "to", "in", "as")
	return jsonOf(v), s, ok
}

func findPlace(p param, r *request) (json.RawMessage, span, bool) {
	if p.kind != "string" || len(p.enum) > 0 || !p.named(placeWords) {
		return nil, span{}, false
	}
	v, s, ok := r.after("in", "at", "near", "for", "to", "from", "of")
	if !ok {
		v, s, ok = r.find(properRE)
	}
	return jsonOf(v), s, ok
}

// stop ends a phrase: a punctuation mark, or one of these words.
const stop = `(?:\s+(?:to|into|from|in|at|for|on|by|with|and|when|if|as|is|are|please|now|right now|today|tomorrow|of|until)\b|\s*[?!;,:]|\.(?:\s|$)|\s*$)`

var (
	behindRE = regexp.MustCompile(`(?i)^\s*(?:(?:in|at)\s+)?((?:[^\s\d?!;,:].*?))` + stop)
	properRE = regexp.MustCompile(`[^\p{Lu}]\b([\p{Lu}][\p{L}'’.-]+(?:\s+[\p{Lu}][\p{L}'’.-]+)*)`)
	noneRE   = regexp.MustCompile(`(?i)^(?:me|us|it|this|that|there|here|what|which|how|the time|time|now|\d.*)$`)
	quotedRE = regexp.MustCompile(`"([^"]+)"|“([^”]+)”|«([^»]+)»|` + "`([^`]+)`")
	titleRE  = regexp.MustCompile(`(?i)\b(?:titled|called|named|(?:with )?(?:the )?(?:title|name|subject))\s+["“]?(.+?)["”]?(?:\s*[:;,]|\s+(?:with|saying|that says|and)\b|\s*$)`)
	sayRE    = regexp.MustCompile(`(?is)(?:\b(?:saying|that says|(?:with |and )?(?:the )?(?:text|body|content|message))\s*:?|:|^(?:please )?(?:remember|remind me|note|jot down)(?: to| that| down)?)\s+["“]?(.+?)["”]?\s*$`)
	phrases  sync.Map // for after: regular expressions, keyed by word
)

// after returns the phrase after the first of the words that is followed by one.
func (r *request) after(words ...string) (string, span, bool) {
	for _, w := range words {
		re, _ := phrases.LoadOrStore(w, sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile(`(?i)\b` + w + `\s+(?:the\s+|an?\s+|my\s+)?(.+?)` + stop)
		}))
		if v, s, ok := r.find(re.(func() *regexp.Regexp)()); ok && !noneRE.MatchString(v) {
			return strings.TrimSuffix(v, "."), s, true
		}
	}
	return "", span{}, false
}

func findText(p param, r *request) (v json.RawMessage, s span, ok bool) {
	var text string
	switch {
	case p.kind != "string" || len(p.enum) > 0:
		return nil, span{}, false
	case p.named("title name subject heading label"):
		text, s, ok = r.find(titleRE)
	case p.named(textWords):
		text, s, ok = r.find(sayRE)
	case p.required && p.named(queryWords):
		text, s, ok = r.after("for", "about")
	}
	if !ok && (p.required || p.named(textWords)) {
		text, s, ok = r.find(quotedRE)
	}
	return jsonOf(strings.Trim(text, `"“” `)), s, ok
}

// convert returns a value of a parameter's kind from text.
func convert(p param, text string) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	switch p.kind {
	case "number", "integer":
		v := strings.NewReplacer(",", "", "−", "-", "+", "").Replace(text)
		_, err := strconv.ParseFloat(v, 64)
		return json.RawMessage(v), err == nil && json.Valid([]byte(v)) && !(p.kind == "integer" && strings.Contains(v, "."))
	case "boolean":
		b, err := strconv.ParseBool(text)
		return jsonOf(b), err == nil
	case "array", "object":
		return json.RawMessage(text), json.Valid([]byte(text)) && strings.HasPrefix(text, map[string]string{"array": "[", "object": "{"}[p.kind])
	}
	for _, e := range p.enum {
		if strings.EqualFold(e, text) {
			return jsonOf(e), true
		}
	}
	return jsonOf(text), text != "" && len(p.enum) == 0
}

// rest returns what is not used, without the words that only ask for the tool.
func (r *request) rest(vocabulary map[string]bool) string {
	left := []byte(r.text)
	for _, u := range r.used {
		for i := u.from; i < u.to; i++ {
			left[i] = ' '
		}
	}
	words := strings.Fields(string(left))
	for len(words) > 0 {
		w := strings.ToLower(strings.Trim(words[0], ".,;:?!\"'"))
		if w != "" && !filler[stem(w)] && !vocabulary[stem(w)] {
			break
		}
		words = words[1:]
	}
	return strings.TrimRight(strings.Join(words, " "), "?")
}
