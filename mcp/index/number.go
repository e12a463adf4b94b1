package index

import (
	"slices"
	"strings"
)

// number is whether a tool returns one thing or many.
type number uint8

const (
	numUnknown number = iota
	numOne
	numMany
)

// numbers maps verbs to one thing or many. If a server has verbs of both kinds, it mostly
// has two tools, such as get_secret and list_secrets, that share all other words.
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

// numberOf derives it from a tool's name: its verb decides, and get_secrets gets many.
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

// plural reports whether w looks like the plural of an English noun.
func plural(w string) bool {
	if len(w) <= 3 || !strings.HasSuffix(w, "s") {
		return false
	}
	before := w[len(w)-2]
	return before != 's' && before != 'u' && before != 'i'
}

// disagreement returns 1 if the request names in the plural a thing of which the tool
// returns one, and 0.5 if the request names one thing by a value and the tool lists them:
// "show me the secrets in V" does not ask for get_secret.
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

// names reports whether the tool's name contains the concept.
func (c *concept) names(d *doc) bool {
	return slices.ContainsFunc(c.terms, func(e expansion) bool { return e.near() && d.inName(e.term) })
}
