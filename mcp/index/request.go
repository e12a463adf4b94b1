package index

import (
	"path"
	"strings"
	"unicode/utf8"
)

const (
	maxRequest   = 4 << 10 // bytes of a request that are read
	maxSentences = 32
	maxAsked     = 64 // distinct words of a request that count; one bit each
)

// asked is one word of a request.
type asked struct {
	word      string
	literal   bool     // quoted, or part of an id, path, URL: a value, not a request
	joined    string   // this word and the next joined ("data base"), "" at the end of a phrase
	whole     string   // the compound word, such as github, of which this is a part, git or hub; otherwise ""
	english   []string // translations of a Chinese word
	sentences uint32   // a bit for each sentence that contains it
}

// request is a user's request, split into words. It is independent of the index; an index
// resolves it to [concept]s.
type request struct {
	words  []asked
	action action
	values int // number of quotes, ids, paths and other values, however many words each has
}

// parse reads a request. Values (quotes, paths, URLs, ids, JSON, placeholders) are
// arguments for the tool; they rarely name the tool, so their words have less weight, and
// words for their kind are added: a path is a file.
func parse(text string) request {
	p := parser{seen: make(map[string]int)}
	p.split.word = p.word
	p.split.joined = p.whole
	p.split.cjk = p.chinese
	if len(text) > maxRequest {
		text = text[:maxRequest] // a character cut in half is dropped
	}
	p.reading = quantities(text)
	p.text(text)
	if p.reading.converts {
		p.add(asked{word: "convert", english: []string{"conversion"}})
	}
	if p.req.action == actUnknown && question(text) {
		p.req.action = actRead
	}
	if len(p.req.words) == 0 { // only stop words: use them instead of nothing
		p.keepStop = true
		p.req.values = 0
		p.text(text)
	}
	return p.req
}

type parser struct {
	req      request
	split    splitter
	seen     map[string]int // index in req.words
	literal  bool
	keepStop bool
	sentence uint32
	reading  reading
	last     int // index+1 of the previous word in the same phrase, 0 if none
}

// text reads the request token by token.
func (p *parser) text(s string) {
	size := len(s)
	was := p.literal
	defer func() { p.literal = was }()
	for s != "" {
		switch c := s[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s = s[1:]
			continue
		case c == '{':
			s = p.braces(s)
			continue
		}
		if inner, rest, ok := quoted(s); ok {
			p.value(inner)
			s = rest
			continue
		}
		end := strings.IndexAny(s, " \t\n\r")
		if end < 0 {
			end = len(s)
		}
		// A quote in the middle of a token (name="x y") starts a new one.
		if q := strings.IndexAny(s[1:end], "\"`<{"); q >= 0 {
			end = q + 1
		}
		if n := p.dictation(s); n > 0 {
			p.literal, s = true, s[n:]
			continue
		}
		if introduces(s[:end]) {
			p.token(s[:end])
			p.literal, s = true, s[end:]
			continue
		}
		if means, ok := p.reading.at[size-len(s)]; ok {
			p.implied(means)
		} else {
			p.token(s[:end])
		}
		if strings.ContainsAny(s[end-1:end], ".?!;") && len(p.req.words) > 0 && p.sentence < maxSentences-1 {
			if p.req.words[len(p.req.words)-1].sentences>>p.sentence != 0 {
				p.sentence++
			}
		}
		s = s[end:]
	}
}

// dictations maps the beginning of a request whose rest is a text to be kept.
var dictations = []string{"write down", "jot down", "note down", "take down", "note that", "remember that", "take a note that", "make a note that", "keep in mind that", "don't forget that"}

// dictation reads the beginning of a request to keep a text, and returns its length.
func (p *parser) dictation(s string) int {
	if len(p.req.words) > 0 || p.literal {
		return 0
	}
	for _, d := range dictations {
		if len(s) > len(d) && s[len(d)] == ' ' && strings.EqualFold(s[:len(d)], d) {
			at := p.add(asked{word: "note"})
			p.req.words[at].english = []string{"note", "memo", "remember"}
			p.req.action = actCreate
			return len(d)
		}
	}
	return 0
}

// introduces reports whether the text after this token is a value: "add a note: buy milk".
func introduces(tok string) bool {
	head, ok := strings.CutSuffix(tok, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(head) {
	case "note", "memo", "text", "message", "comment", "this", "sentence", "string", "title", "following":
		return true
	}
	return false
}

// implied adds an operator or a unit.
func (p *parser) implied(m implied) {
	p.last = 0
	if m.word != "" {
		at := p.add(asked{word: m.word, literal: m.value})
		p.req.words[at].english = m.tools
	}
}

// quoted splits a quoted text or a <placeholder> off the front of s.
func quoted(s string) (inner, rest string, ok bool) {
	for _, q := range [...][2]string{{`"`, `"`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"「", "」"}, {"'", "'"}, {"<", ">"}} {
		if !strings.HasPrefix(s, q[0]) {
			continue
		}
		body := s[len(q[0]):]
		end := strings.Index(body, q[1])
		if end < 0 || end > 300 {
			return "", "", false
		}
		return body[:end], body[end+len(q[1]):], true
	}
	return "", "", false
}

// braces reads a JSON-like value as one literal.
func (p *parser) braces(s string) string {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				p.value(s[1:i])
				return s[i+1:]
			}
		}
	}
	p.value(s[1:])
	return ""
}

// value reads a literal.
func (p *parser) value(s string) {
	p.last = 0
	was := p.literal
	p.countValue()
	p.literal = true
	for tok := range strings.FieldsSeq(s) {
		p.token(tok)
	}
	p.literal = was
	p.last = 0
}

// countValue counts a literal that is not inside another one.
func (p *parser) countValue() {
	if !p.literal {
		p.req.values++
	}
}

// token reads one token without spaces.
func (p *parser) token(tok string) {
	bare := strings.Trim(tok, ".,;:!?()[]{}'\"")
	kind := kindOf(bare)
	if kind == "" {
		p.split.split(tok)
		if strings.ContainsAny(tok[len(tok)-1:], ".,;:!?)") {
			p.last = 0
		}
		return
	}
	if kind == "dice" || kind == "color" {
		p.last = 0
		p.word(kind)
		p.last = 0
		return
	}
	was := p.literal
	p.countValue()
	p.literal = true
	p.last = 0
	switch kind {
	case "url":
		if _, rest, ok := strings.Cut(bare, "://"); ok {
			bare = rest
		}
		p.split.split(strings.TrimPrefix(bare, "www."))
	case "email", "path":
		p.split.split(bare)
	}
	p.kind(kind, bare)
	p.literal = was
}

// kind adds words for the kind of a literal.
func (p *parser) kind(kind, tok string) {
	p.last = 0
	switch kind {
	case "url":
		p.word("url")
	case "email":
		p.word("email")
	case "path":
		p.word("file")
		p.last = 0
		if ext := path.Ext(tok); len(ext) > 1 && len(ext) < 6 {
			p.word(strings.ToLower(ext[1:]))
		}
	case "id":
		p.word("id")
	}
	p.last = 0
}

// kindOf returns the kind of value of a token, or "" for a plain word.
func kindOf(tok string) string {
	switch {
	case strings.Contains(tok, "://") || strings.HasPrefix(tok, "www."):
		return "url"
	case strings.Count(tok, "@") == 1 && strings.IndexByte(tok, '@') > 0 && strings.Contains(tok[strings.IndexByte(tok, '@'):], "."):
		return "email"
	case isColor(tok):
		return "color"
	case isPath(tok):
		return "path"
	case isID(tok):
		return "id"
	case isDice(tok):
		return "dice"
	}
	return ""
}

// isDice reports whether tok is in dice notation: 2d6, d20.
func isDice(tok string) bool {
	count, sides, ok := strings.Cut(strings.ToLower(tok), "d")
	if !ok || len(count) > 3 || strings.Trim(count, "0123456789") != "" {
		return false
	}
	sides, _, _ = strings.Cut(sides, "+")
	sides, _, _ = strings.Cut(sides, "-")
	switch sides {
	case "4", "6", "8", "10", "12", "20", "100":
		return true
	}
	return false
}

// isColor reports whether tok is a color as in CSS: #ff8800.
func isColor(tok string) bool {
	return len(tok) == 7 && tok[0] == '#' && strings.Trim(strings.ToLower(tok[1:]), "0123456789abcdef") == ""
}

// isPath reports whether tok looks like a file's path or name.
func isPath(tok string) bool {
	if len(tok) < 3 {
		return false
	}
	if strings.HasPrefix(tok, "./") || strings.HasPrefix(tok, "../") || strings.HasPrefix(tok, "~/") || strings.Contains(tok, `:\`) {
		return true
	}
	if tok[0] == '/' && alnum(tok[1]) {
		return true
	}
	ext := path.Ext(tok)
	if len(ext) < 3 || len(ext) > 5 || len(ext) == len(tok) || strings.Count(tok, ".") > 2 {
		return false
	}
	_, ok := extensions[strings.ToLower(ext[1:])]
	return ok
}

// extensions lists extensions of files that people name in requests.
var extensions = func() map[string]struct{} {
	m := make(map[string]struct{})
	for e := range strings.FieldsSeq(`txt md pdf doc docx xls xlsx csv tsv json xml yaml yml toml html htm css js ts jsx tsx py go rs java rb php sh sql
		png jpg jpeg gif svg webp bmp mp3 wav mp4 avi mov zip tar gz log ppt pptx ipynb parquet db env ini cfg conf bib tex`) {
		m[e] = struct{}{}
	}
	return m
}()

// isID reports whether tok is a generated identifier: letters and digits mixed over at
// least eight characters, or a long number.
func isID(tok string) bool {
	letters, digits := 0, 0
	for i := range len(tok) {
		switch c := tok[i]; {
		case digit(c):
			digits++
		case lower(c) || upper(c):
			letters++
		case c == '-' || c == '_' || c == '=':
		default:
			return false
		}
	}
	return digits >= 5 && letters+digits >= 6 || digits >= 2 && letters > 0 && letters+digits >= 8
}

// word adds one word of the request.
func (p *parser) word(w string) {
	if r, _ := utf8.DecodeRuneInString(w); isCJK(r) {
		p.add(asked{word: w, literal: p.literal})
		p.last = 0
		return
	}
	if len(w) == 1 || (isStop(w) && !p.keepStop) {
		p.last = 0
		return
	}
	before := p.last
	_, place := places[w]
	at := p.add(asked{word: w, literal: p.literal || digit(w[0]) || place})
	if before > 0 && p.req.words[before-1].joined == "" {
		p.req.words[before-1].joined = p.req.words[before-1].word + w
	}
	p.last = at + 1
	if p.req.action == actUnknown && !p.literal {
		p.req.action = actions[stem(w)]
	}
}

// whole sets the compound word, such as GitHub, after its parts git and hub were added.
func (p *parser) whole(w string, _ int) {
	if p.last < 2 || !strings.HasSuffix(w, p.req.words[p.last-1].word) {
		return
	}
	head := strings.TrimSuffix(w, p.req.words[p.last-1].word)
	if at, ok := p.seen[head]; ok {
		p.req.words[at].joined = w
		p.req.words[at].whole, p.req.words[p.last-1].whole = w, w
	}
}

// add adds a word once; plain words take precedence over values.
func (p *parser) add(a asked) int {
	a.sentences = 1 << p.sentence
	if at, ok := p.seen[a.word]; ok {
		p.req.words[at].literal = p.req.words[at].literal && a.literal
		p.req.words[at].sentences |= a.sentences
		return at
	}
	p.req.words = append(p.req.words, a)
	p.seen[a.word] = len(p.req.words) - 1
	return len(p.req.words) - 1
}

// chinese finds the words of the lexicon in a run of characters, longest first.
func (p *parser) chinese(run string) {
	lex := loadLexicon()
	for i := 0; i < len(run); {
		n := min(lex.longest, len(run)-i)
		for ; n > 0; n-- {
			if english, ok := lex.chinese[run[i:i+n]]; ok {
				at := p.add(asked{word: run[i : i+n], literal: p.literal})
				p.req.words[at].english = english
				if p.req.action == actUnknown && !p.literal {
					p.req.action = actions[stem(english[0])]
				}
				break
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(run[i:])
		}
		i += n
	}
}

// question reports whether a request without an action asks for information: how many,
// which, is there, do I have.
func question(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	first, _, _ = strings.Cut(strings.ToLower(first), "'")
	_, ok := questions[strings.Trim(first, ",.;:!?")]
	return ok
}

var questions = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq("what which who whose where when how why is are was were do does did has have any") {
		m[w] = struct{}{}
	}
	return m
}()
