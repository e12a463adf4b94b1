package offline

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The form of a message often says more than its words: "17*23" has no word that a search
// could find, and "half of 86" has none that a calculator understands.

// form is what a message's form reveals: words for the search, and words of which a
// suitable tool has one in its name or description.
type form struct{ hint, words string }

var (
	unitsRE    = regexp.MustCompile(`(?i)\d\s*[\pL°][\pL°/²³]*\s+(?:to|in|into|as)\s+[\pL°]`)
	zonesRE    = regexp.MustCompile(`(?i)\b(?:to|in|into)\s+\pL`)
	nowRE      = regexp.MustCompile(`(?i)^(?:please )?(?:(?:what(?:'s|’s| is)|tell me) the (?:current |exact )?time\b|what time is it\b)`)
	rememberRE = regexp.MustCompile(`(?i)^(?:please )?(?:remember|remind me|note|jot down)\s+(?:to|that|down)?\b`)
)

// formOf returns the form of a message; it is empty if there is none.
func formOf(text string) form {
	switch text = rephrase(text); {
	case expression(text) != "":
		return form{" (calculate an arithmetic expression)", "arithmetic calculate calculator calculation math mathematical expression"}
	case urlRE.MatchString(text):
		return form{" (fetch a URL)", "fetch download browse"}
	case diceRE.MatchString(text):
		return form{" (roll dice)", "dice roll"}
	case clockRE.MatchString(text) && zonesRE.MatchString(text):
		return form{" (convert a time between time zones)", "time zone"}
	case unitsRE.MatchString(text):
		return form{" (convert units)", "unit measurement"}
	case nowRE.MatchString(text):
		return form{" (what time it is now)", "time clock"}
	case rememberRE.MatchString(text):
		return form{" (write a note)", "note remember reminder memo"}
	}
	return form{}
}

// calculations are the ways in which people ask for one in words. N stands for a number, P
// for "percent"; operators join the numbers of a list.
var calculations = []struct{ words, to string }{
	{`N P of N`, "$1/100*$2"}, {`N P off(?: of)? N`, "$2-$2*$1/100"}, {`add N P to N`, "$2+$2*$1/100"}, {`(?:subtract|take) N P (?:from|off) N`, "$2-$2*$1/100"},
	{`N (?:plus|\+) N P`, "$1+$1*$2/100"}, {`N (?:minus|-) N P`, "$1-$1*$2/100"}, {`square root of N`, "sqrt($1)"}, {`cube root of N`, "cbrt($1)"},
	{`N squared`, "$1^2"}, {`N cubed`, "$1^3"}, {`N (?:to the power of|raised to) N`, "$1^$2"}, {`factorial of N`, "$1!"}, {`N factorial`, "$1!"},
	{`half (?:of )?N`, "$1/2"}, {`(?:a|one) third of N`, "$1/3"}, {`(?:a|one) quarter of N`, "$1/4"}, {`(?:twice|double) N`, "2*$1"},
	{`multiply N (?:by|with|and) N`, "$1*$2"}, {`divide N by N`, "$1/$2"}, {`subtract N from N`, "$2-$1"}, {`difference from N to N`, "$1-$2"},
	{`(?:sum|total) of LIST`, "+"}, {`add(?: up)? LIST`, "+"}, {`product of LIST`, "*"}, {`(?:average|mean) of LIST`, "avg"},
}

// sums are calculations, compiled when they are first needed, because nized mostly runs
// without the planner.
var sums = sync.OnceValue(func() (all []*regexp.Regexp) {
	number := `\s*[$€£]?(\d+(?:\.\d+)?)[$€£]?\s*`
	forms := strings.NewReplacer(" N ", number, " N", number, "N ", number, "N", number, "P", `(?:%|percent|per cent)`, "LIST", `([$€£]?\d[\d.]*(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+to\s+)[$€£]?\d[\d.]*)+)`)
	for _, c := range calculations {
		all = append(all, regexp.MustCompile(`(?i)^(?:(?:please|hey|so|and|can you|could you|tell me|calculate|compute|work out|what(?:'s|’s| is| are)|how much (?:is|are)|give me)\s+)*(?:the\s+)?`+forms.Replace(c.words)+`[\s=?!.]*(?:please)?[\s?!.]*$`))
	}
	return all
})

var (
	thousandsRE = regexp.MustCompile(`\b\d{1,3}(?:,\d{3})+\b`)
	figureRE    = regexp.MustCompile(`\d+(?:\.\d+)?`)
	timesRE     = regexp.MustCompile(`(?i)(\d)\s*x\s*(\d)`)
	mathWords   = regexp.MustCompile(`(?i)\s*\b(plus|minus|times|multiplied by|divided by|over|to the power of)\b\s*`)
	signs       = strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-")
	signOf      = map[string]string{"plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/", "over": "/", "to the power of": "^"}
	// mathOnlyRE matches a message with little more than a calculation.
	mathOnlyRE = regexp.MustCompile(`(?i)^(?:(?:please|what(?:'s|’s| is| are)?|how much is|calculate|compute|solve|evaluate)\s+)*([-+(\d.][\d\s.,+\-*/^%()]*[\d)!%])[\s=?!.]*$`)
)

// expression returns the calculation that a message asks for, in signs or words, or "".
func expression(text string) string {
	text = thousandsRE.ReplaceAllStringFunc(strings.TrimSpace(text), func(n string) string { return strings.ReplaceAll(n, ",", "") })
	for i, re := range sums() {
		if m := re.FindStringSubmatchIndex(text); m != nil {
			switch to, list := calculations[i].to, figureRE.FindAllString(text, -1); to {
			case "+", "*":
				return strings.Join(list, to)
			case "avg":
				return "(" + strings.Join(list, "+") + ")/" + strconv.Itoa(len(list))
			default:
				return string(re.ExpandString(nil, strings.NewReplacer("$1", "${1}", "$2", "${2}").Replace(to), text, m))
			}
		}
	}
	text = mathWords.ReplaceAllStringFunc(signs.Replace(text), func(w string) string { return signOf[strings.ToLower(strings.TrimSpace(w))] })
	m := mathOnlyRE.FindStringSubmatch(timesRE.ReplaceAllString(text, "$1*$2"))
	if m == nil || !strings.ContainsAny(m[1][1:], "+-*/^%!") || strings.Count(m[1], "(") != strings.Count(m[1], ")") {
		return ""
	}
	return strings.TrimSpace(m[1])
}
