package chattest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Rule checks a JSON value and reports flaws to the checker with the value's pointer.
// Rules are values, so that a table of them reads like a platform's reference.
type Rule func(c *Checker, at string, raw json.RawMessage)

// Fields are the fields of an object; a name that ends in ! marks a required one.
type Fields map[string]Rule

// Flaw is a kind of mistake.
type Flaw int

// The flaws that this package's rules report.
const (
	NotString Flaw = iota
	NotList
	NotObject
	NotBool
	NotInteger
	Empty    // a required string is empty
	TooShort // a string; %[1]d and %[2]d are the minimum and the maximum, %[3]d and %[4]d the values just outside
	TooLong
	Exceeds // a string that may be empty is too long
	TooFew  // items of a list, with the same numbers
	TooMany
	OutOfRange // an integer, with the same numbers
	NoChoice   // %[1]s lists the valid values
	NoMatch    // of the pattern %[1]s
	NoURL
	Unknown // field %[1]s
	Missing // field %[1]s
	NoType
	BadType // %[1]v, with %[2]s as the valid types
)

// Dialect has a platform's error texts, and its behaviour where its reference says nothing.
type Dialect struct {
	Lenient bool // unknown fields are ignored, and null counts as missing
	Words   map[Flaw]string
}

// Checker collects the flaws of a payload, and totals over all of it.
type Checker struct {
	*Dialect
	Wrongs []Wrong
	Counts map[string]int // for the platform's own rules
	seen   map[string]bool
}

// Wrong is one flaw.
type Wrong struct{ At, Text string }

const maxWrongs = 20 // per response

// NewChecker returns a Checker for one payload.
func NewChecker(d *Dialect) *Checker {
	return &Checker{Dialect: d, Counts: map[string]int{}, seen: map[string]bool{}}
}

// Wrong reports a flaw with the platform's own text.
func (c *Checker) Wrong(at, format string, args ...any) {
	if len(c.Wrongs) < maxWrongs {
		c.Wrongs = append(c.Wrongs, Wrong{At: at, Text: fmt.Sprintf(format, args...)})
	}
}

func (c *Checker) flaw(at string, f Flaw, args ...any) {
	format := c.Words[f]
	if !strings.Contains(format, "%") {
		args = nil
	}
	c.Wrong(at, format, args...)
}

// Once reports whether a word occurs for the first time.
func (c *Checker) Once(word string) bool {
	again := c.seen[word]
	c.seen[word] = true
	return !again
}

func bounds(least, most int) []any { return []any{least, most, least - 1, most + 1} }

// String decodes a string.
func (c *Checker) String(at string, raw json.RawMessage) (v string, ok bool) {
	if ok = len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &v) == nil; !ok {
		c.flaw(at, NotString)
	}
	return v, ok
}

// Items decodes a list and checks its length.
func (c *Checker) Items(at string, raw json.RawMessage, least, most int) []json.RawMessage {
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil:
		c.flaw(at, NotList)
	case len(list) < least:
		c.flaw(at, TooFew, bounds(least, most)...)
	case len(list) > most:
		c.flaw(at, TooMany, bounds(least, most)...)
		return nil
	}
	return list
}

// Length is a string with a number of characters in that range.
func Length(least, most int) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.String(at, raw); ok {
			c.Length(at, v, least, most)
		}
	}
}

// Length checks the number of characters of a string.
func (c *Checker) Length(at, v string, least, most int) {
	switch n := utf8.RuneCountInString(v); {
	case n == 0 && least > 0:
		c.flaw(at, Empty, bounds(least, most)...)
	case n < least:
		c.flaw(at, TooShort, bounds(least, most)...)
	case n > most && least == 0:
		c.flaw(at, Exceeds, bounds(least, most)...)
	case n > most:
		c.flaw(at, TooLong, bounds(least, most)...)
	}
}

// Word is one of the given words.
func Word(words ...string) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.String(at, raw); ok && !slices.Contains(words, v) {
			c.flaw(at, NoChoice, strings.Join(words, ", "))
		}
	}
}

// Matching is a string that matches a pattern, which is compiled at first use: nizectl
// contains the doubles for its command dev and has to start fast.
func Matching(pattern string) Rule {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.String(at, raw); ok && !re().MatchString(v) {
			c.flaw(at, NoMatch, pattern)
		}
	}
}

// Address is a URL of at most that many characters.
func Address(most int) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		v, ok := c.String(at, raw)
		if !ok {
			return
		}
		u, err := url.Parse(v)
		if err != nil || !slices.Contains([]string{"http", "https", "mailto", "slack"}, u.Scheme) || u.Host == "" && u.Opaque == "" {
			c.flaw(at, NoURL)
		}
		c.Length(at, v, 0, most)
	}
}

// Boolean is true or false.
func Boolean(c *Checker, at string, raw json.RawMessage) {
	if s := string(raw); s != "true" && s != "false" {
		c.flaw(at, NotBool)
	}
}

// Integer is a number without a fraction.
func Integer(least, most int) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.integer(at, raw); ok && (v < least || v > most) {
			c.flaw(at, OutOfRange, bounds(least, most)...)
		}
	}
}

// Number is one of the given numbers.
func Number(of ...int) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.integer(at, raw); ok && !slices.Contains(of, v) {
			c.flaw(at, NoChoice, strings.Trim(strings.ReplaceAll(fmt.Sprint(of), " ", ", "), "[]"))
		}
	}
}

func (c *Checker) integer(at string, raw json.RawMessage) (v int, ok bool) {
	if ok = len(raw) > 0 && raw[0] != 'n' && json.Unmarshal(raw, &v) == nil; !ok {
		c.flaw(at, NotInteger)
	}
	return v, ok
}

// List is a list with a number of items in that range.
func List(least, most int, of Rule) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		for i, item := range c.Items(at, raw, least, most) {
			of(c, fmt.Sprintf("%s/%d", at, i), item)
		}
	}
}

// Dictionary is an object whose names are checked too.
func Dictionary(name func(string) bool, of Rule) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		for key, value := range c.object(at, raw) {
			if !name(key) {
				c.flaw(at+"/"+key, Unknown, key)
			}
			of(c, at+"/"+key, value)
		}
	}
}

// Object is an object with these fields.
func Object(fields Fields) Rule {
	return func(c *Checker, at string, raw json.RawMessage) { c.Object(at, raw, fields) }
}

func (c *Checker) object(at string, raw json.RawMessage) (got map[string]json.RawMessage) {
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &got) != nil {
		c.flaw(at, NotObject)
		return nil
	}
	return got
}

// Object checks an object and returns its fields, nil if it isn't one.
func (c *Checker) Object(at string, raw json.RawMessage, fields Fields) map[string]json.RawMessage {
	got := c.object(at, raw)
	if got == nil {
		return nil
	}
	if c.Lenient {
		maps.DeleteFunc(got, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		check := fields[name]
		if check == nil {
			check = fields[name+"!"]
		}
		switch {
		case check != nil:
			check(c, at+"/"+name, got[name])
		case !c.Lenient:
			c.flaw(at, Unknown, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		must, ok := strings.CutSuffix(name, "!")
		switch {
		case !ok || got[must] != nil:
		case c.Lenient:
			c.flaw(at+"/"+must, Missing, must)
		default:
			c.flaw(at, Missing, must)
		}
	}
	return got
}

// One is an object whose type, a word or a number, selects one of these rules.
func One(kinds Fields) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		var got struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal(raw, &got) != nil || len(got.Type) == 0 || string(got.Type) == `""` {
			c.flaw(at, NoType)
			return
		}
		kind := strings.Trim(string(got.Type), `"`)
		check := kinds[kind]
		if check == nil {
			c.flaw(at+"/type", BadType, fmt.Sprintf("%.60s", kind), strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
			return
		}
		check(c, at, raw)
	}
}

// Counted is a string whose length is added to a total of its kind.
func Counted(kind string, least, most int) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		if v, ok := c.String(at, raw); ok {
			c.Length(at, v, least, most)
			c.Counts[kind] += utf8.RuneCountInString(v)
		}
	}
}

// About checks relations between the parts of a value. Other rules report flaws of the
// parts themselves.
func About[T any](f func(c *Checker, at string, v T)) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		var v T
		_ = json.Unmarshal(raw, &v) // already reported
		f(c, at, v)
	}
}

// Anything accepts any value.
func Anything(*Checker, string, json.RawMessage) {}

// All applies several rules to one value.
func All(rules ...Rule) Rule {
	return func(c *Checker, at string, raw json.RawMessage) {
		for _, r := range rules {
			r(c, at, raw)
		}
	}
}

// Join returns the union of several Fields.
func Join(all ...Fields) Fields {
	out := Fields{}
	for _, f := range all {
		maps.Copy(out, f)
	}
	return out
}
