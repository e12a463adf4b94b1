package offline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The form of a message often says more than its words: "17*23" holds none that a
// search could find, and "half of 86" none that a calculator knows.

// form is what a message asks for by its form: words for the search, and those of
// which a tool for it has one in its name or description.
type form struct {
	hint  string
	words []string
}

var (
	unitsRE    = regexp.MustCompile(`(?i)\d\s*[\pL°][\pL°/²³]*\s+(?:to|in|into|as)\s+[\pL°]|\bhow (?:many|much)\s+\S+\s+(?:are|is|in)\s+(?:a|an|[\d.,]+)\s`)
	zonesRE    = regexp.MustCompile(`(?i)\b(?:to|in|into)\s+\pL`)
	countRE    = regexp.MustCompile(`(?i)\bhow (?:many|long)\b.*\b(?:words?|characters?|letters|lines|sentences|paragraphs|bytes)\b`)
	nowRE      = regexp.MustCompile(`(?i)^(?:please )?(?:what(?:'s|’s| is)|tell me) the (?:current |exact )?time\b|^what time is it\b`)
	rememberRE = regexp.MustCompile(`(?i)^(?:please )?(?:remember|remind me|note|jot down|don['’]t (?:let me )?forget)\s+(?:to|that|down)?\b`)
	ownListRE  = regexp.MustCompile(`(?i)^(?:please )?(?:show|list|what are|which are|give me|read)(?: me)?(?: all)?(?: of)? (?:my|the|all) (\pL+s)[\s?!.]*$`)
)

// formOf is the form of a message; one without is empty.
func formOf(text string) form {
	if calculation(text) != "" {
		return arithmetic
	}
	text = rephrase(text)
	r := &request{text: text}
	switch {
	case urlRE.MatchString(text):
		return form{" (fetch a URL)", []string{"fetch", "download", "browse"}}
	case diceRE.MatchString(text):
		return form{" (roll dice)", []string{"dice", "roll"}}
	case clockRE.MatchString(text) && zonesRE.MatchString(text):
		return form{" (convert a time between time zones)", []string{"time", "zone"}}
	case unitsRE.MatchString(text):
		return form{" (convert units)", []string{"unit", "measurement"}}
	case countRE.MatchString(text):
		return form{" (count the words of a text)", []string{"count", "statistic"}}
	case nowRE.MatchString(text):
		return form{" (what time it is now)", []string{"time", "clock"}}
	case rememberRE.MatchString(text):
		return form{" (write a note)", []string{"note", "remember", "reminder", "memo"}}
	}
	if m := ownListRE.FindStringSubmatch(text); m != nil {
		return form{" (list " + strings.ToLower(m[1]) + ")", nil}
	}
	if _, _, ok := r.expression(); ok && mathOnlyRE.MatchString(text) {
		return arithmetic
	}
	return form{}
}

var arithmetic = form{" (calculate an arithmetic expression)", []string{"arithmetic", "calculate", "calculator", "calculation", "math", "mathematic", "mathematical", "expression"}}

// mathOnlyRE is a message that holds little but a calculation.
var mathOnlyRE = regexp.MustCompile(`(?i)^(?:what(?:'s|’s| is| are)?|how much is|calculate|compute|solve|evaluate|=|\s)*[-+−\d\s.,()*×·÷/^%x]*(?:\s*(?:plus|minus|times|multiplied by|divided by|over)\s*[-+−\d\s.,()*×·÷/^%x]+)*[\s=?!.]*$`)

// rephrasings write what is asked in the order in which arguments are found.
var rephrasings = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(?i)\bhow (?:many|much)\s+(\pL+)\s+(?:are|is)?\s*(?:there\s+)?in\s+an?\s+(\pL[\pL ]*?)\s*\??$`), "1 $2 in $1"},
	{regexp.MustCompile(`(?i)\bhow far (?:is|ahead is)\s+(.+?)\s+(?:ahead of|behind|from)\s+(.+?)\s*\??$`), "time difference from $2 to $1"},
	{regexp.MustCompile(`(?i)\bbetween\s+(.+?)\s+and\s+`), "from $1 to "},
}

func rephrase(text string) string {
	for _, p := range rephrasings {
		text = p.re.ReplaceAllString(text, p.to)
	}
	return text
}

const numeral = `[$€£]?(\d+(?:\.\d+)?)[$€£]?`

// calculations are the ways in which people ask for one in words; %list% stands
// for several numbers.
var calculations = []struct {
	re    func() *regexp.Regexp
	write func(n []string) string
}{
	{calcRE(numeral + `\s*(?:%|percent|per cent) of ` + numeral), func(n []string) string { return n[0] + "/100*" + n[1] }},
	{calcRE(numeral + `\s*(?:%|percent|per cent) off(?: of)? ` + numeral), func(n []string) string { return n[1] + "-" + n[1] + "*" + n[0] + "/100" }},
	{calcRE(`add ` + numeral + `\s*(?:%|percent|per cent) to ` + numeral), func(n []string) string { return n[1] + "+" + n[1] + "*" + n[0] + "/100" }},
	{calcRE(`(?:subtract|take) ` + numeral + `\s*(?:%|percent|per cent) (?:from|off) ` + numeral), func(n []string) string { return n[1] + "-" + n[1] + "*" + n[0] + "/100" }},
	{calcRE(numeral + `\s*(?:plus|\+)\s*` + numeral + `\s*(?:%|percent|per cent)`), func(n []string) string { return n[0] + "+" + n[0] + "*" + n[1] + "/100" }},
	{calcRE(numeral + `\s*(?:minus|-)\s*` + numeral + `\s*(?:%|percent|per cent)`), func(n []string) string { return n[0] + "-" + n[0] + "*" + n[1] + "/100" }},
	{calcRE(`square root of ` + numeral), func(n []string) string { return "sqrt(" + n[0] + ")" }},
	{calcRE(`cube root of ` + numeral), func(n []string) string { return "cbrt(" + n[0] + ")" }},
	{calcRE(numeral + ` squared`), func(n []string) string { return n[0] + "^2" }},
	{calcRE(numeral + ` cubed`), func(n []string) string { return n[0] + "^3" }},
	{calcRE(numeral + ` (?:to the power of|to the power|raised to) ` + numeral), func(n []string) string { return n[0] + "^" + n[1] }},
	{calcRE(`(?:factorial of )` + numeral), func(n []string) string { return n[0] + "!" }},
	{calcRE(numeral + ` factorial`), func(n []string) string { return n[0] + "!" }},
	{calcRE(`half (?:of )?` + numeral), func(n []string) string { return n[0] + "/2" }},
	{calcRE(`(?:a|one) third of ` + numeral), func(n []string) string { return n[0] + "/3" }},
	{calcRE(`(?:a|one) quarter of ` + numeral), func(n []string) string { return n[0] + "/4" }},
	{calcRE(`(?:twice|double) ` + numeral), func(n []string) string { return "2*" + n[0] }},
	{calcRE(`multiply ` + numeral + ` (?:by|with|and) ` + numeral), func(n []string) string { return n[0] + "*" + n[1] }},
	{calcRE(`divide ` + numeral + ` by ` + numeral), func(n []string) string { return n[0] + "/" + n[1] }},
	{calcRE(`subtract ` + numeral + ` from ` + numeral), func(n []string) string { return n[1] + "-" + n[0] }},
	{calcRE(`difference (?:between|of) ` + numeral + ` and ` + numeral), func(n []string) string { return n[0] + "-" + n[1] }},
	{calcRE(`(?:average|mean) of ` + numerals), func(n []string) string {
		return "(" + strings.Join(n, "+") + ")/" + strconv.Itoa(len(n))
	}},
	{calcRE(`(?:sum|total) of ` + numerals), func(n []string) string { return strings.Join(n, "+") }},
	{calcRE(`add(?: up)? ` + numerals), func(n []string) string { return strings.Join(n, "+") }},
	{calcRE(`product of ` + numerals), func(n []string) string { return strings.Join(n, "*") }},
}

// numerals are at least two numbers of a list.
const numerals = `[$€£]?\d+(?:\.\d+)?[$€£]?(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+to\s+)[$€£]?\d+(?:\.\d+)?[$€£]?)+`

// calcRE is a whole message that asks for a calculation, compiled when it is first
// needed: nized starts without a planner most of the time.
func calcRE(core string) func() *regexp.Regexp {
	return compiled(`(?i)^(?:(?:please|hey|hi|so|and|can you|could you|tell me|calculate|compute|work out|what(?:'s|’s| is| are)|how much (?:is|are)|give me)\s+)*(?:the\s+)?` + core + `[\s=?!.]*(?:please)?[\s?!.]*$`)
}

func compiled(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	thousandsRE = regexp.MustCompile(`\b(\d{1,3}(?:,\d{3})+)\b`)
	figureRE    = regexp.MustCompile(`\d+(?:\.\d+)?`)
)

// calculation is the expression that a message asks for in words, or "".
func calculation(text string) string {
	text = thousandsRE.ReplaceAllStringFunc(strings.TrimSpace(text), func(n string) string { return strings.ReplaceAll(n, ",", "") })
	for _, c := range calculations {
		if c.re().MatchString(text) {
			return c.write(figureRE.FindAllString(text, -1))
		}
	}
	return ""
}

// weakWords ask for nearly everything, so that a tool that has them need not be
// what is meant.
var weakWords = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq(`add make create show get give find list tell write read generate send do compute count return convert put set
		take say text name number many much long old one new good first last far today now other more most own any all every each how
		yes than then there here time`) {
		weakWords[stem(w)] = true
	}
}

// trustedScore is the score from which the search is believed without a word that
// the message and the tool have in common.
const trustedScore = 0.6

// fits says whether a tool may be what a message asks for: the search is sure, or
// the message has its form, or the first of the words that count is the tool's,
// or half of them are.
func (t found) fits(text string, f form) bool {
	vocabulary := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(t.ID+" "+t.Description), notWord) {
		vocabulary[stem(w)] = true
	}
	if len(f.words) > 0 {
		return slices.ContainsFunc(f.words, func(w string) bool { return vocabulary[stem(w)] })
	}
	if t.Score >= trustedScore {
		return true
	}
	text, _, _ = strings.Cut(text, ":") // what stands behind it is a value
	for _, re := range []*regexp.Regexp{quotedRE, urlRE, emailRE} {
		text = re.ReplaceAllString(text, " ")
	}
	known, all, leads := 0, 0, false
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		if filler[w] || weakWords[stem(w)] || w[0] >= '0' && w[0] <= '9' || len(w) < 2 {
			continue
		}
		all++
		if vocabulary[stem(w)] {
			known++
			leads = leads || all == 1
		}
	}
	return known > 0 && (leads || 2*known >= all)
}
