package index

import (
	"slices"
	"strings"
)

// number says whether a tool tells of one thing or of many.
type number uint8

const (
	numUnknown number = iota
	numOne
	numMany
)

// numbers gives the verbs that tell of one thing and of many. Where a tool gets
// both there are mostly two tools, such as get_secret and list_secrets, which
// have all other words in common.
var numbers = func() map[string]number {
	m := make(map[string]number)
	for n, verbs := range map[number]string{
		numOne:  "get show describe read view detail details",
		numMany: "list search find query browse enumerate",
	} {
		for v := range strings.FieldsSeq(verbs) {
			m[v] = n
		}
	}
	return m
}()

// numberOf reads it from a tool's name: its verb says it, and get_secrets gets
// many.
func numberOf(name string) number {
	out, last := numUnknown, ""
	sp := splitter{word: func(w string) {
		if n := numbers[w]; n == numUnknown {
			last = w
		} else {
			out = max(out, n)
		}
	}}
	sp.split(name)
	if out == numOne && plural(last) {
		return numMany
	}
	return out
}

// plural says whether w looks like the plural of an English noun.
func plural(w string) bool {
	if len(w) <= 3 || !strings.HasSuffix(w, "s") {
		return false
	}
	before := w[len(w)-2]
	return before != 's' && before != 'u' && before != 'i'
}

// disagreement is 1 where the request names in the plural what the tool gives
// one of, and half that where it names one thing, by a value, and the tool lists
// them: "show me the secrets in V" does not ask for get_secret.
func (s *search) disagreement(d *doc) float64 {
	if d.number == numUnknown {
		return 0
	}
	said, many := false, false
	for i := range s.concepts {
		c := &s.concepts[i]
		if !c.literal && numbers[c.word] == numUnknown && c.names(d) {
			said, many = true, many || plural(c.word)
		}
	}
	switch {
	case many && d.number == numOne:
		return 1
	case said && !many && d.number == numMany && s.req.values > 0:
		return 0.5
	}
	return 0
}

// names says whether the concept stands in the tool's name.
func (c *concept) names(d *doc) bool {
	return slices.ContainsFunc(c.terms, func(e expansion) bool { return e.near() && d.inName(e.term) })
}
