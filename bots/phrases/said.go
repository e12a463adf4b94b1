package phrases

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// What other rooms say (why a call asks, a card's warning, what the assistant
// could not do, why a press was refused) is English, since models, the audit
// trail and nizectl read it too. A chat finds the sentence by its English form
// and says it in its own language: see [Catalogue.Translate].

// sentence is one of them. A %s stands for what stays as it is (names, numbers,
// other people's words), a %v for a part that is translated itself. The order
// of the arguments is that of the English form.
type sentence struct{ english, simplified, traditional string }

// maxSaid bounds what is looked up; nize's own sentences are shorter.
const maxSaid = 4096

// matcher finds one sentence.
type matcher struct {
	form     *regexp.Regexp
	parts    []bool // which arguments are translated themselves
	sentence sentence
}

var matchers = sync.OnceValue(func() []matcher { return compile(sentences) })

// compile makes the forms of a list, the surest first.
func compile(list []sentence) []matcher {
	list = slices.Clone(list)
	// The more a form says itself, the surer it is that it is the one.
	weight := func(s sentence) int { return len(verb.ReplaceAllString(s.english, "")) }
	slices.SortStableFunc(list, func(a, b sentence) int { return cmp.Compare(weight(b), weight(a)) })
	out := make([]matcher, len(list))
	for i, s := range list {
		m := matcher{sentence: s}
		var form strings.Builder
		form.WriteString(`(?s)\A`)
		at := 0
		for _, v := range verb.FindAllStringSubmatchIndex(s.english, -1) {
			form.WriteString(regexp.QuoteMeta(s.english[at:v[0]]))
			at = v[1]
			if s.english[v[4]:v[5]] == "%" {
				form.WriteString("%")
				continue
			}
			form.WriteString(`(.+?)`)
			m.parts = append(m.parts, s.english[v[4]:v[5]] == "v")
		}
		form.WriteString(regexp.QuoteMeta(s.english[at:]) + `\z`)
		m.form = regexp.MustCompile(form.String())
		out[i] = m
	}
	return out
}

var verb = regexp.MustCompile(`%(?:\[(\d+)\])?((?:\.\d+)?.)`)

// Translate says an English sentence of nize's own in the catalogue's language.
// What it doesn't know, such as other people's words, it returns as it is.
func (c Catalogue) Translate(text string) string {
	if c.sentences == nil || text == "" || len(text) > maxSaid {
		return text
	}
	if said, ok := c.nearest(text); ok {
		return said
	}
	if said, ok := c.among(matchers(), text, c.Translate); ok {
		return said
	}
	if spans.MatchString(text) {
		return c.span(text)
	}
	return c.date(text)
}

var suggests = regexp.MustCompile(`(?s)\A(.+)` + strings.Replace(regexp.QuoteMeta(nearest.english), "%s", `([^;]+)`, 1) + `\z`)

// nearest says a sentence that suggests a name, if it knows what comes before.
func (c Catalogue) nearest(text string) (string, bool) {
	found := suggests.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	said := c.Translate(found[1])
	if said == found[1] {
		return "", false
	}
	return said + fmt.Sprintf(c.pick(nearest), found[2]), true
}

// Problem says why something did not work. Where only the end of an error's
// chain is known, that is the reason, and what was being done is left out: who
// reads it did it. What is only said to be invalid is told what to write instead.
func (c Catalogue) problem(text string) string {
	for rest := text; ; {
		said := c.Translate(rest)
		if said != rest && (rest == text || strings.Contains(rest, " ")) { // a word alone says too little
			return said
		}
		var more bool
		if _, rest, more = strings.Cut(rest, ": "); !more {
			return strings.TrimPrefix(text, "invalid: ")
		}
	}
}

// moment is how the assistant writes one.
const moment = "Monday, 2 January, 15:04"

// date writes a moment in the catalogue's manner, and leaves all else alone.
func (c Catalogue) date(text string) string {
	at, err := time.Parse(moment, text)
	if err != nil {
		return text
	}
	name, _, _ := strings.Cut(text, ",") // without a year, at has none that fits
	days := []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	day := []rune("日一二三四五六")[max(slices.Index(days, name), 0)]
	return fmt.Sprintf("%d月%d日（星期%c）%s", at.Month(), at.Day(), day, at.Format("15:04"))
}
