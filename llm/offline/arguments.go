package offline

import (
	"encoding/json"
	"regexp"
	"strings"
)

// arguments is what could be told from the words.
type arguments struct {
	args    map[string]json.RawMessage
	missing []param // required ones, in order
	told    int     // arguments that came from the words
}

func (f arguments) raw() json.RawMessage {
	b, err := json.Marshal(f.args)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// fillArguments finds the arguments of a tool in a message. about is the tool's name
// and description: words of theirs ask for the tool and are no argument.
func fillArguments(params []param, r *request, about string) arguments {
	f := arguments{args: make(map[string]json.RawMessage)}
	put := func(p param, v json.RawMessage, s span) {
		f.args[p.name] = v
		f.told++
		r.markUsed(s)
	}
	for _, p := range params { // name=value beats every guess
		if v, s, ok := explicitValue(p, r, params); ok {
			put(p, v, s)
		}
	}
	for _, finder := range finders {
		for _, p := range params {
			if _, ok := f.args[p.name]; ok {
				continue
			}
			if v, s, ok := finder(p, r); ok {
				put(p, v, s)
			}
		}
	}
	f.addFreeText(params, r, about, put)
	for _, p := range params {
		if _, ok := f.args[p.name]; ok || !p.required {
			continue
		}
		if len(p.fallback) > 0 {
			f.args[p.name] = p.fallback
			continue
		}
		f.missing = append(f.missing, p)
	}
	return f
}

// addFreeText gives what is left of the message to the one required text.
func (f *arguments) addFreeText(params []param, r *request, about string, put func(param, json.RawMessage, span)) {
	var open []param
	for _, p := range params {
		if _, ok := f.args[p.name]; !ok && p.required && len(p.fallback) == 0 {
			open = append(open, p)
		}
	}
	if len(open) != 1 || open[0].kind != "string" || len(open[0].enum) > 0 || !open[0].takesFreeText() {
		return
	}
	if f.told > 0 && !open[0].isText() && !open[0].named(queryWords...) {
		return // what is left beside other arguments is seldom a value
	}
	vocabulary := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(about), notWord) {
		vocabulary[stem(w)] = true
	}
	if rest := r.rest(func(w string) bool { return vocabulary[stem(w)] }); rest != "" {
		put(open[0], jsonString(rest), span{0, len(r.text)})
	}
}

func notWord(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 0x80) }

// stem cuts the endings of words, enough to meet "counts" with "count".
func stem(w string) string {
	for _, end := range []string{"ing", "es", "ed", "s"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 3 {
			return strings.TrimSuffix(cut, "e")
		}
	}
	return strings.TrimSuffix(w, "e")
}

// takesFreeText says whether any words may be its value.
func (p param) takesFreeText() bool {
	if p.format != "" || p.isOrigin() || p.isDestination() || p.isTime() || p.isPlace() {
		return false
	}
	return !p.named("url", "uri", "link", "path", "file", "filename", "email", "dice", "id", "expression", "date", "unit", "currency")
}

func (p param) isOrigin() bool {
	return p.named("from", "source", "src", "origin", "departure", "start")
}
func (p param) isDestination() bool {
	return p.named("to", "target", "dest", "destination", "into", "arrival")
}
func (p param) isTime() bool {
	return !p.named("zone", "timezone", "tz") && (p.named("time", "clock", "hour", "when", "datetime", "timestamp") || p.format == "time" || p.format == "date-time")
}
func (p param) isPlace() bool {
	return p.named("place", "city", "location", "timezone", "tz", "zone", "country", "where", "region", "town", "address")
}
func (p param) isText() bool {
	return p.named("text", "body", "content", "message", "note", "input", "prompt", "comment", "sentence", "data", "string")
}

// explicitValue finds name=value and name: value.
func explicitValue(p param, r *request, params []param) (json.RawMessage, span, bool) {
	name := regexp.QuoteMeta(p.name)
	if len(p.words) > 1 {
		name += "|" + regexp.QuoteMeta(strings.Join(p.words, " "))
	}
	re, err := regexp.Compile(`(?is)(?:^|[\s,;(])(?:` + name + `)\s*(?:=|:\s)\s*(?:"([^"]*)"|'([^']*)'|(.+))`)
	if err != nil {
		return nil, span{}, false
	}
	m := re.FindStringSubmatchIndex(r.text)
	if m == nil {
		return nil, span{}, false
	}
	s := span{m[0], m[1]}
	for g := 2; g <= 6; g += 2 {
		if m[g] < 0 {
			continue
		}
		v := r.text[m[g]:m[g+1]]
		if g == 6 { // unquoted: up to the next argument, or one word
			v = untilNext(v, params, p.isText() || p.named("title", "query"))
			s.to = m[g] + len(v)
		}
		if raw, ok := convert(p, strings.TrimSpace(v)); ok && r.isFree(s) {
			return raw, s, true
		}
	}
	return nil, span{}, false
}

func untilNext(v string, params []param, long bool) string {
	if !long {
		if i := strings.IndexAny(v, " \t\n,;"); i >= 0 {
			v = v[:i]
		}
		return strings.TrimRight(v, "?!.,;")
	}
	for _, p := range params {
		re, err := regexp.Compile(`(?i)[\s,;]+` + regexp.QuoteMeta(p.name) + `\s*[=:]`)
		if err != nil {
			continue
		}
		if m := re.FindStringIndex(v); m != nil {
			v = v[:m[0]]
		}
	}
	return v
}

// convert makes a value of a parameter's kind from text.
func convert(p param, text string) (json.RawMessage, bool) {
	switch p.kind {
	case "number", "integer":
		v, s, ok := (&request{text: text}).number(p.kind == "integer")
		return json.RawMessage(v), ok && s.to-s.from >= len(strings.TrimSpace(text))
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "y", "on", "1":
			return json.RawMessage("true"), true
		case "false", "no", "n", "off", "0":
			return json.RawMessage("false"), true
		}
		return nil, false
	case "array":
		if json.Valid([]byte(text)) && strings.HasPrefix(text, "[") {
			return json.RawMessage(text), true
		}
		return nil, false
	case "object":
		if json.Valid([]byte(text)) && strings.HasPrefix(text, "{") {
			return json.RawMessage(text), true
		}
		return nil, false
	}
	if len(p.enum) > 0 {
		for _, e := range p.enum {
			if strings.EqualFold(e, text) {
				return jsonString(e), true
			}
		}
		return nil, false
	}
	return jsonString(text), text != ""
}

var queryWords = []string{"query", "q", "search", "term", "keyword", "keywords", "topic", "question"}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), "\"“”") }

func jsonString(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
